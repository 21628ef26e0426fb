"""EpochGreedy, PolicyElimination and RandomizedUCB, round by round, against formulas over the full history."""

# mypy: disable-error-code="attr-defined, var-annotated"

import math

import numpy as np
import pytest

import armwise as aw
from tests.agents.oracle.oracle_worlds import planted


def totals(table, rounds):
    """Of each policy, over rounds (row of the table, arm, estimate)."""
    rows, arms, estimates = np.array(rounds).reshape(-1, 3).T
    return estimates @ (table[rows.astype(int)] == arms[:, None])


def mean_inverse(table, rows, P, mu, K):
    """mean over rows of 1 / W'(x, h(x)), for every h."""
    W = np.zeros((len(table), K))
    for h, p in enumerate(P):
        W[np.arange(len(table)), table[:, h]] += p
    return np.take_along_axis(1 / ((1 - K * mu) * W + mu), table, axis=1)[rows].mean(axis=0)


@pytest.mark.parametrize("settings", [{"scale": 1.4}, {"scale": 1.0}, {"schedule": lambda epoch: epoch % 3}])
def test_epoch_greedy_as_algorithm_7(settings):
    K, N, delta = 3, 20, 0.1
    world = planted(n_contexts=10, N=N, K=K, seed=2)
    agent = aw.EpochGreedy(aw.FinitePolicies(world.table), K, delta=delta, teaches="uniform", seed=3, **settings)
    contexts, rewards = world.rounds(700, seed=1)
    rounds, epoch, left, greedy = [], 0, 0, 0
    for x, row in zip(contexts, rewards):
        explores = left == 0
        if explores:
            epoch += 1
            c = (
                settings["schedule"](epoch)
                if "schedule" in settings
                else math.floor(math.sqrt(epoch / (K * math.log(N / delta))) / settings["scale"])
            )
            left, expected = c, np.full(K, 1 / K)
        else:
            left, greedy = left - 1, greedy + 1
            R = totals(world.table, rounds)
            leaders = np.flatnonzero(R.max() - R <= 1e-12)
            expected = np.bincount(world.table[int(x[0]), leaders], minlength=K) / leaders.size
        np.testing.assert_allclose(agent.probabilities(x), expected, atol=1e-12)
        choice = agent.choose(x)
        assert choice.note is explores
        assert choice.probability == pytest.approx(expected[choice.arm])
        agent.learn(x, choice, row[choice.arm])
        if explores:
            rounds.append((int(x[0]), choice.arm, K * row[choice.arm]))
    assert greedy > 0
    np.testing.assert_allclose(agent.oracle.totals, totals(world.table, rounds))


def test_epoch_greedy_learns_a_late_exploration_and_needs_its_note():
    agent = aw.EpochGreedy([aw.Constant(0), aw.Constant(1)], 2, schedule=lambda epoch: 3, teaches="uniform", seed=1)
    first, second = agent.choose([0.0]), agent.choose([0.0])
    agent.learn([0.0], second, 1.0)
    assert not agent.oracle.totals.any()
    agent.learn([0.0], first, 1.0)
    assert agent.oracle.totals[first.arm] == 2.0
    with pytest.raises(ValueError, match=r"choice\.note"):
        agent.learn([0.0], aw.Choice(0, 0.5), 1.0)


def test_epoch_greedy_by_a_coin_learns_every_policy_without_bias():
    """20,000 rounds of a coin that explores in one round of five: the policies' totals per round, which are those of
    (r - mean) / p, differ as the true values do. A bias would mean that the probabilities are not those drawn from."""
    K = 3
    world = planted(n_contexts=10, N=6, K=K, seed=2)
    agent = aw.EpochGreedy(aw.FinitePolicies(world.table), K, schedule=lambda epoch: 4, seed=3)
    contexts, rewards = world.rounds(20_000, seed=1)
    agent.play(contexts, rewards)
    values = np.take_along_axis(world.means, world.table, axis=1)[contexts[:, 0].astype(int)].mean(axis=0)
    found = agent.oracle.totals / 20_000
    np.testing.assert_allclose(found - found[0], values - values[0], atol=0.05)


def test_policy_elimination_as_algorithm_8():
    K, N, delta = 2, 8, 0.2
    world = planted(n_contexts=6, N=N, K=K, seed=3, gap=0.9)
    sample = np.repeat(np.arange(6.0), [1, 2, 3, 1, 1, 1])[:, None]
    agent = aw.PolicyElimination.theoretical(aw.FinitePolicies(world.table), K, contexts=sample, delta=delta, seed=5)
    contexts, rewards = world.rounds(4000, seed=4)
    alive, R = np.arange(N), np.zeros(N)
    for t, (x, row) in enumerate(zip(contexts, rewards), 1):
        log_term = math.log(4 * N * t**2 / delta)
        mu = min(1 / (2 * K), math.sqrt(log_term / (2 * K * t)))
        np.testing.assert_array_equal(agent.survivors, alive)
        if t % 50 == 1:
            v = mean_inverse(world.table[:, alive], sample[:, 0].astype(int), agent._P, mu, K)
            assert v.max() <= 2 * K + 1e-6
            masses = np.bincount(world.table[int(x[0]), alive], agent._P, K)
            np.testing.assert_allclose(agent.probabilities(x), (1 - K * mu) * masses + mu, atol=1e-12)
        choice = agent.choose(x)
        agent.learn(x, choice, row[choice.arm])
        R[world.table[int(x[0])] == choice.arm] += row[choice.arm] / choice.probability
        b = 2 * math.sqrt(2 * K * log_term / t)
        alive = alive[R[alive] / t >= R[alive].max() / t - 2 * b]
    assert len(alive) < N
    assert world.best in alive


@pytest.mark.parametrize(("N", "K"), [(50, 3), (500, 10)])
def test_policy_elimination_keeps_its_constraint_on_larger_classes(N, K):
    world = planted(n_contexts=40, N=N, K=K, seed=N)
    rows = np.arange(40)
    agent = aw.PolicyElimination(aw.FinitePolicies(world.table), K, contexts=rows[:, None], seed=1)
    for block in range(20):
        contexts, rewards = world.rounds(300, seed=block)
        agent.play(contexts, rewards)
        t = agent.t
        mu = min(1 / (2 * K), math.sqrt(math.log(4 * N * t**2 / 0.05) / (2 * K * t)))
        table = world.table[:, agent.survivors]
        assert mean_inverse(table, rows, agent._P, mu, K).max() <= 2 * K + 1e-6
        assert agent._P.min() >= 0
        assert abs(agent._P.sum() - 1) < 1e-9


def test_policy_elimination_keeps_the_best_policy():
    """With delta = 0.05 more than 2 losses in 12 runs (chance 2 %) would be suspect; the bound is so wide that any
    loss at all means a wrong width, a wrong estimate or a wrong variance. The benchmark makes 200 runs."""
    lost, dropped, early, late = 0, 0, 0.0, 0.0
    for seed in range(12):
        world = planted(n_contexts=2, N=10, K=2, seed=seed, gap=0.9)
        policies, sample = aw.FinitePolicies(world.table), np.arange(2.0)[:, None]
        agent = aw.PolicyElimination.theoretical(policies, 2, contexts=sample, seed=seed)
        contexts, rewards = world.rounds(3000, seed=seed)
        arms = agent.play(contexts, rewards).arms
        early += world.regret(contexts[:500], arms[:500])
        late += world.regret(contexts[-500:], arms[-500:])
        lost += world.best not in agent.survivors
        dropped += 10 - len(agent.survivors)
    assert lost == 0
    assert dropped > 20
    assert late < 0.9 * early


@pytest.mark.parametrize(("N", "K", "agree"), [(30, 3, 0.0), (200, 10, 0.0), (100, 5, 0.8)])
def test_randomized_ucb_keeps_its_constraints_at_every_solution(N, K, agree):
    world = planted(n_contexts=50, N=N, K=K, seed=N, agree=agree)
    agent = aw.RandomizedUCB.theoretical(aw.FinitePolicies(world.table), K, delta=0.1, seed=2)
    contexts, rewards = world.rounds(2048, seed=6)
    rng, R = np.random.default_rng(0), np.zeros(N)
    for t, (x, row) in enumerate(zip(contexts, rewards), 1):
        mu_t = min(1 / (2 * K), math.sqrt(2 * math.log(N * t / 0.1) / (2 * K * t)))
        masses = np.bincount(world.table[int(x[0])], agent.P, K)
        np.testing.assert_allclose(agent.probabilities(x), (1 - K * mu_t) * masses + mu_t, atol=1e-12)
        choice = agent.choose(x)
        agent.learn(x, choice, row[choice.arm])
        R[world.table[int(x[0])] == choice.arm] += row[choice.arm] / choice.probability
        if t & (t - 1) == 0:
            gaps, C = (R.max() - R) / t, 2 * math.log(N * t / 0.1)
            mu = min(1 / (2 * K), math.sqrt(2 * math.log(N * (t + 1) / 0.1) / (2 * K * (t + 1))))
            v = mean_inverse(world.table, contexts[:t, 0].astype(int), agent.P, mu, K)
            c = t / (180 * C)
            Q = np.vstack([np.eye(N), rng.dirichlet(np.full(N, 0.05), size=500)])
            assert np.all(Q @ v <= np.maximum(4 * K, c * (Q @ gaps) ** 2) + 1e-6)
    assert agent.policies.best() == world.best
    # The last solution leaves exploration to the floor and to little else: most of P is on good policies.
    assert agent.P @ gaps < gaps.mean()


def test_randomized_ucb_solves_again_when_its_schedule_says():
    world = planted(n_contexts=5, N=10, K=2, seed=1)
    seen = []
    for schedule in (2.0, 1.0, [10, 30], lambda m: 25 * m):
        agent = aw.RandomizedUCB(aw.FinitePolicies(world.table), 2, schedule=schedule, seed=1)
        agent.play(*world.rounds(60, seed=1))
        seen.append((agent._m, agent._next))
    assert seen == [(7, 64), (61, 61), (4, 120), (3, 75)]


@pytest.mark.parametrize("make", [aw.PolicyElimination, aw.RandomizedUCB])
def test_only_explicit_classes(make):
    more = {"contexts": np.zeros((1, 2))} if make is aw.PolicyElimination else {}
    with pytest.raises(ValueError, match="policies must be FinitePolicies"):
        make(aw.LinearOracle(dim=2), 2, **more)
    with pytest.raises(ValueError, match="policies must be an oracle"):
        make(7, 2, **more)


def test_policy_elimination_needs_contexts():
    for contexts in (np.zeros((0, 1)), np.zeros(3), [[np.nan]], [[5]]):
        with pytest.raises(ValueError, match="context"):
            aw.PolicyElimination(np.array([[0, 1]]), 2, contexts=contexts)


def test_ten_thousand_policies():
    """A round stays O(N): this takes seconds, where a loop over policies in Python would take minutes."""
    world = planted(n_contexts=30, N=10_000, K=5, seed=1)
    oracle = aw.FinitePolicies(world.table)
    contexts, rewards = world.rounds(1500, seed=1)
    agents = (
        aw.EpochGreedy(oracle, 5, seed=1),
        aw.ILoveToConBandits(oracle, 5, seed=1),
        aw.PolicyElimination(oracle, 5, contexts=np.arange(30)[:, None], seed=1),
        aw.RandomizedUCB(oracle, 5, seed=1),
    )
    for agent in agents:
        arms = agent.play(contexts, rewards).arms
        assert world.regret(contexts, arms) < world.regret(contexts, np.zeros(1500, int))
