"""Budgets are held: on every path where that is promised, on average where it is not; and they are used well."""

# mypy: disable-error-code="arg-type, index, misc, union-attr"

import warnings

import numpy as np
import pytest

import armwise as aw
from armwise.agents.budget.lagrange import _inverse_gaps
from armwise.core.agent import Choice
from armwise.native import regression


def knapsack(T, seed, rate=0.2):
    """Contexts, rewards, costs and the LP optimum per decision of the linear world with a free arm."""
    blocks = list(aw.environments.Budgeted(n_arms=4, dim=3, rate=rate).blocks(T, seed=seed))
    contexts = np.concatenate([block.view("features") for block in blocks])
    rewards, costs = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("rewards", "costs"))
    return contexts, rewards, costs, float(blocks[0].competitors[0, 0])


def test_many_rounds_are_weighted_as_one_is():
    """Prices are tried on all recent rounds at once: a difference would be another rule than the one that plays."""
    rng = np.random.default_rng(4)
    lagrangian = rng.normal(size=(200, 5))
    lagrangian[::3, 1] = lagrangian[::3, 0]  # ties
    lagrangian[::7] = 1.0
    one_by_one = np.stack([regression.inverse_gap(row, 7.0) for row in lagrangian])
    np.testing.assert_allclose(_inverse_gaps(lagrangian, 7.0), one_by_one, rtol=1e-14)
    with pytest.raises(ValueError, match="got NaN"):
        _inverse_gaps(np.array([[0.0, 1.0], [0.0, np.nan]]), 7.0)


class TestHardStop:
    @pytest.mark.parametrize(
        "make",
        [
            lambda s: aw.LinUCB(3, seed=s),
            lambda s: aw.LagrangeCB(aw.SquareCB(3), 300, 30.0, seed=s),
            lambda s: aw.SquareCB(3, scale=5.0, seed=s),
        ],
        ids=["LinUCB", "LagrangeCB", "SquareCB"],
    )
    def test_no_path_overspends(self, make):
        """One cost above the budget on one of 8 paths would mean that the account is wrong."""
        for seed in range(8):
            contexts, rewards, costs, _ = knapsack(300, seed)
            agent = aw.HardStop(make(seed), 30.0, 1.0, fallback=0, seed=seed)
            assert agent.play(contexts, rewards, costs).costs.sum() <= 30.0

    def test_no_path_overspends_when_costs_come_late_or_never(self):
        rng = np.random.default_rng(1)
        for seed in range(8):
            contexts, rewards, costs, _ = knapsack(200, seed)
            agent, spent, waiting = aw.HardStop(aw.LinUCB(3, seed=seed), 20.0, 1.0, fallback=0, seed=seed), 0.0, []
            for t in range(200):
                choice = agent.choose(contexts[t])
                spent += costs[t, choice.arm]
                waiting.append((t, choice))
                if rng.random() < 0.3:  # some costs arrive now, in any order; a tenth is lost
                    for i in rng.permutation(len(waiting)):
                        at, done = waiting[i]
                        if rng.random() < 0.9:
                            agent.learn(contexts[at], done, rewards[at, done.arm], costs[at, done.arm])
                    waiting = []
            assert spent <= 20.0

    def test_without_a_free_arm_the_cheapest_is_set_aside_for_every_decision(self):
        rng = np.random.default_rng(2)
        most = np.array([0.1, 1.0, 2.0])
        for seed in range(10):
            agent = aw.HardStop(aw.UCB1(3, seed=seed), 100.0, most, fallback=0, horizon=500, seed=seed)
            played = agent.play(None, np.tile([0.1, 0.5, 0.9], (500, 1)), rng.random((500, 3)) * most)
            assert played.costs.sum() <= 100.0
            assert played.costs.sum() > 70.0  # and it is no miser: what is set aside is at most 50
        with pytest.raises(ValueError, match="cannot be promised"):
            aw.HardStop(aw.UCB1(3), 49.0, most, fallback=0, horizon=500)
        with pytest.raises(ValueError, match="horizon is needed"):
            aw.HardStop(aw.UCB1(3), 49.0, most, fallback=0)

    def test_two_resources(self):
        rng = np.random.default_rng(3)
        agent = aw.HardStop(aw.UCB1(3, seed=1), [10.0, 40.0], 1.0, fallback=0, seed=1)
        costs = rng.random((300, 3, 2)) * [[[0.0], [0.5], [1.0]]]
        played = agent.play(None, np.tile([0.1, 0.5, 0.9], (300, 1)), costs)
        assert (played.costs.sum(axis=0) <= [10.0, 40.0]).all() and played.costs.sum(axis=0)[0] > 8.0

    def test_a_cost_beyond_the_declared_one_is_counted_and_named(self):
        agent = aw.HardStop(aw.UCB1(2, seed=1), 10.0, 1.0, fallback=0, seed=1)
        with pytest.warns(RuntimeWarning, match="max_cost"):
            agent.learn(None, Choice(1, 0.5), 1.0, cost=3.0)
        assert agent.spent.tolist() == [3.0]

    @pytest.mark.filterwarnings("ignore:HardStop")
    def test_beyond_the_budget_by_no_more_than_the_excess(self):
        """One cost in five is up to three times its maximum: what is spent beyond the budget is that excess alone."""
        for seed in range(20):
            rng, agent = np.random.default_rng(seed), aw.HardStop(aw.UCB1(2, seed=seed), 10.0, 1.0, 0, seed=seed)
            spent = excess = 0.0
            waiting = []
            for _ in range(80):
                choice = agent.choose()
                cost = choice.arm * float(rng.random() * (3.0 if rng.random() < 0.2 else 1.0))
                spent, excess = spent + cost, excess + max(cost - 1.0, 0.0)
                waiting.append((choice, cost))
                while len(waiting) > rng.integers(5):
                    agent.learn(None, waiting[0][0], float(choice.arm), waiting.pop(0)[1])
            assert spent <= 10.0 + excess

    def test_a_horizon_that_is_over_is_told_from_a_budget_that_costs_broke(self):
        agent = aw.HardStop(aw.UCB1(2, seed=1), 1.0, [0.1, 0.5], fallback=0, horizon=5, seed=1)
        with pytest.warns(RuntimeWarning, match="max_cost"):
            agent.learn(None, agent.choose(), 1.0, cost=0.9)
        with pytest.raises(ValueError, match="costs above max_cost"):
            agent.choose()


def test_pacing_holds_its_rate_within_one_percent():
    """An agent that would spend 1 per decision, held at 0.3 with noisy costs, also when costs come 20 rounds late."""
    for late in (0, 20):
        means = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            agent, waiting, spent = aw.Pacing(aw.UCB1(3, seed=seed), 0.3, cheap=0, seed=seed), [], 0.0
            for _ in range(2000):
                choice = agent.choose()
                cost = float(rng.random() * [0.02, 1.0, 2.0][choice.arm])
                spent += cost
                waiting.append((choice, cost))
                if len(waiting) > late:
                    done, paid = waiting.pop(0)
                    agent.learn(None, done, [0.1, 0.5, 0.9][done.arm], paid)
            means.append(spent / 2000)
        assert abs(np.mean(means) / 0.3 - 1.0) < 0.01, means


def test_pacing_by_the_clock(monkeypatch):
    """A decision every 2 seconds at first, every half second later: 50 per 1,000 seconds all the same."""
    now = [1000.0]
    monkeypatch.setattr("armwise.agents.budget.pacing.time.time", lambda: now[0])
    agent, spent = aw.Pacing(aw.UCB1(2, seed=1), 50.0, cheap=0, per=1000.0, seed=1), 0.0
    for t in range(6000):
        now[0] += 2.0 if t < 2000 else 0.5
        choice = agent.choose()
        agent.learn(None, choice, float(choice.arm), float(choice.arm))
        spent += choice.arm
    assert abs(spent / (50.0 * (now[0] - 1000.0) / 1000.0) - 1.0) < 0.02


@pytest.mark.parametrize(
    "make",
    [
        lambda T, B, s: aw.LagrangeCB(aw.SquareCB(3), T, B, seed=s),
        lambda T, B, s: aw.LinCBwK(3, T, B, seed=s),
    ],
    ids=["LagrangeCB", "LinCBwK"],
)
def test_budgets_are_used_well(make):
    """At least 85 % of the LP optimum within a hard budget; the best free policy, or one that ignores costs, fails."""
    T, rate, shares = 3000, 0.2, []
    for seed in range(4):
        contexts, rewards, costs, best = knapsack(T, seed, rate)
        agent = aw.HardStop(make(T, rate * T, seed), rate * T, 1.0, fallback=0, seed=seed)
        played = agent.play(contexts, rewards, costs)
        assert played.costs.sum() <= rate * T
        shares.append(played.rewards.mean() / best)
    assert np.mean(shares) > 0.85, shares


def test_a_price_list_spares_paying_to_learn_that_an_arm_is_dear():
    """Arm 2 costs a third of the whole budget and brings nothing more: who knows the list never tries it."""
    rewards, costs = np.tile([0.2, 0.8, 0.8], (300, 1)), np.tile([0.0, 1.0, 30.0], (300, 1))
    for seed in range(5):
        arms = {}
        for known in (None, [0.0, 1.0, 30.0]):
            oracle = aw.SquareCB(1, n_arms=3, lam=1.0)
            agent = aw.LagrangeCB(oracle, 300, 90.0, prior=1.0, scale=0.1, expected_costs=known, seed=seed)
            arms[known is None] = agent.play(np.ones((300, 1)), rewards, costs).arms
        assert (arms[True] == 2).any() and not (arms[False] == 2).any()
    for bad in ([1.0, 2.0], [[1.0, 2.0]] * 3, [-1.0, 0.0, 1.0], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="expected_costs"):
            aw.LagrangeCB(aw.SquareCB(1, n_arms=3), 300, 90.0, expected_costs=bad)


def test_where_nothing_tells_rounds_apart_the_budget_is_spread_and_not_saved_up():
    """Half of the rounds can be paid for: with one price for all of them none is in the first half, then every one."""
    T = 1000
    for seed in range(3):
        oracle = aw.SquareCB(1, n_arms=2, lam=1.0)
        agent = aw.LagrangeCB(oracle, T, 0.5 * T, prior=1.0, scale=0.1, expected_costs=[0.0, 1.0], seed=seed)
        played = agent.play(np.ones((T, 1)), np.tile([0.1, 0.8], (T, 1)), np.tile([0.0, 1.0], (T, 1)))
        tenths = played.costs.reshape(10, -1).mean(axis=1)
        assert tenths.min() > 0.3 and tenths.max() < 0.7  # four standard errors of a fair coin
        assert played.costs.mean() < 0.51 and played.rewards.mean() > 0.44


@pytest.mark.parametrize("weighting", ["gaps", "wins"])
def test_what_exploring_costs_is_part_of_the_budget(weighting):
    """Prices that look at the best arms only, and not at what is drawn, spend 4 % too much here and earn 0.637."""
    T, rate, expected, found = 400, 0.1, np.array([0.02, 0.1, 1.0]), []
    for seed in range(3):
        rng = np.random.default_rng([5, seed])
        agent = aw.LagrangeCB(
            aw.LinUCB(1, alpha=1.0, lam=1.0, n_arms=3), T, rate * T, prior=0.5, scale=4.0, weighting=weighting,
            expected_costs=expected, seed=seed,
        )  # fmt: skip
        rewards = np.clip(rng.normal([0.5, 0.7, 0.75], 0.15, (T, 3)), 0.0, 1.0)
        played = agent.play(np.ones((T, 1)), rewards, expected * rng.uniform(0.7, 1.3, (T, 3)))
        found.append([played.costs.mean() / rate, played.rewards.mean()])
    spent, earned = np.mean(found, axis=0)
    assert spent < 1.02 and earned > 0.66, found


def test_probabilities_of_wins_are_those_of_the_draws():
    agent = aw.LagrangeCB(aw.LinUCB(2, alpha=1.0, lam=1.0), 4000, 400.0, weighting="wins", seed=3)
    rng = np.random.default_rng(1)
    for _ in range(30):
        x = rng.random((3, 2))
        choice = agent.choose(x)
        agent.learn(x, choice, float(rng.random() < 0.5), cost=0.1 * choice.arm)
    x = rng.random((3, 2))
    p, drawn = agent.probabilities(x), np.bincount([agent.choose(x).arm for _ in range(3000)], minlength=3) / 3000
    assert abs(p.sum() - 1.0) < 1e-9 and np.abs(p - drawn).max() < 4 * 0.5 / np.sqrt(3000)
    assert agent.choose(x).probability in p
    with pytest.raises(ValueError, match="wins"):
        aw.LagrangeCB(aw.SquareCB(2), 100, 10.0, weighting="wins")
    with pytest.raises(ValueError, match="weighting"):
        aw.LagrangeCB(aw.SquareCB(2), 100, 10.0, weighting="other")


def test_a_price_list_is_learnt_as_a_factor():
    """Long answers are long for every arm: what the cheap arm says holds for the dear one too."""
    agent = aw.LagrangeCB(aw.LinUCB(1, alpha=1.0, lam=0.1), 1000, 10.0, expected_costs=[0.001, 1.0], seed=1)
    for _ in range(50):
        agent.learn(np.ones((2, 1)), aw.Choice(0, 1.0), 0.5, cost=0.002)
    assert agent.estimate_costs(np.ones((2, 1)))[:, 0] == pytest.approx([0.002, 2.0], rel=0.01)


def test_a_covering_constraint_is_met():
    """Arm 1 pays nothing and counts; at least 30 % of the decisions must count."""
    for seed in range(3):
        agent = aw.LagrangeCB(aw.SquareCB(1, n_arms=2), 2000, 600.0, covering=True, seed=seed)
        played = agent.play(np.ones((2000, 1)), np.tile([0.6, 0.2], (2000, 1)), np.tile([0.0, 1.0], (2000, 1)))
        assert 0.28 < played.costs.mean() < 0.4


def test_the_optimum_is_that_of_a_naive_search():
    rng = np.random.default_rng(4)
    rewards, costs = rng.random(3), rng.random(3)
    for rate in (0.3, 0.5, 0.8):
        grid = [(a, b, 1 - a - b) for a in np.linspace(0, 1, 201) for b in np.linspace(0, 1 - a, 201)]
        values = [np.dot(p, rewards) for p in grid if np.dot(p, costs) <= rate]
        if not values:
            with pytest.raises(ValueError, match="no policy"):
                aw.budget_optimum(rewards[None], costs[None], rate)
            continue
        best = aw.budget_optimum(rewards[None], costs[None], rate)
        assert max(values) <= best.value + 1e-9 < max(values) + 0.01
        assert best.costs[0] <= rate + 1e-9


def test_bounds_on_means_hold_at_every_moment_and_close_in():
    """80 paths at delta = 0.2 over 150 moments: above 25 broken has probability below 1 %, were each broken with 0.2.

    Bounds for one moment alone, at the same delta, are broken at some moment on most paths.
    """
    from armwise.agents.budget.means import BoundedMeans

    broken = alone = 0
    for seed in range(80):
        rewards = (np.random.default_rng(seed).random(150) < 0.7).astype(float) * 0.9
        means = BoundedMeans(1, 0.2)
        for reward in rewards:
            means.add(0, float(reward))
        broken += not means.low[0] <= 0.63 <= means.high[0]  # they never widen: outside once is outside at the end
        n = np.arange(1, 151)
        alone += bool((np.abs(np.cumsum(rewards) / n - 0.63) > 1.28 * 0.412 / np.sqrt(n))[10:].any())
        assert means.high[0] - means.low[0] < 0.26
    assert broken <= 25 and alone > 50, (broken, alone)


class TestConservative:
    def run(self, agent, seed, T=1500):
        """Expected reward so far over that of the baseline, arm 0, which is the second best."""
        means, rng = np.array([0.6, 0.8, 0.1, 0.2]), np.random.default_rng(seed)
        played = agent.play(None, (rng.random((T, 4)) < means).astype(float))
        return np.cumsum(means[played.arms]) / (0.6 * np.arange(1, T + 1))

    def test_the_promise_holds_at_every_moment_and_the_agent_alone_breaks_it(self):
        """12 runs at delta = 0.05: more than 3 broken promises have probability below 1 %; UCB1 alone breaks most."""
        broken = alone = 0
        for seed in range(12):
            agent = aw.Conservative(aw.UCB1(4, seed=seed), 0, 0.1, delta=0.05, seed=seed)
            broken += (self.run(agent, seed) < 0.9).any()
            alone += (self.run(aw.UCB1(4, seed=seed), seed) < 0.9).any()
        assert broken <= 3 and alone > 6, (broken, alone)

    def test_it_lets_go_of_the_baseline(self):
        """Within 1,500 rounds it earns nearly what UCB1 does; the ellipsoid's widths would still hold the baseline."""
        agent = aw.Conservative(aw.UCB1(4, seed=1), 0, 0.1, delta=0.05, seed=1)
        assert self.run(agent, 1)[-1] > 1.2
        assert agent.baseline_share < 0.3

    def test_a_policy_as_baseline_with_features(self):
        rng = np.random.default_rng(5)
        theta, X = np.array([0.6, 0.3]), rng.random((3000, 3, 2)) / np.sqrt(2)
        expected = X @ theta
        rewards = (rng.random(expected.shape) < expected).astype(float)
        agent = aw.Conservative(aw.LinUCB(2, seed=1), lambda x: int(np.argmax(x[:, 1])), 0.1, seed=1)
        played = agent.play(X, rewards)
        base = np.cumsum(expected[np.arange(3000), X[:, :, 1].argmax(axis=1)])
        assert (np.cumsum(expected[np.arange(3000), played.arms]) >= 0.9 * base).all()
        assert agent.baseline_share < 0.9

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="baseline is 4"):
            aw.Conservative(aw.UCB1(3), 4, 0.1)
        with pytest.raises(ValueError, match="baseline must be"):
            aw.Conservative(aw.UCB1(3), "first", 0.1)
        with pytest.raises(ValueError, match="sees 'key'"):
            aw.Conservative(aw.PerContext(aw.UCB1(3)), 0, 0.1)


def test_wrappers_hand_costs_on():
    inner = aw.LagrangeCB(aw.SquareCB(3), 100, 10.0, seed=1)
    agent = aw.Explore(aw.HardStop(inner, 10.0, 1.0, 0, seed=1), 0.0, seed=1)
    contexts, rewards, costs, _ = knapsack(50, 1)
    played = agent.play(contexts, rewards, costs)
    assert inner.spent == pytest.approx(played.costs.sum())
    assert agent.n_costs == 1


def test_every_wrapper_refuses_the_costs_that_the_agent_inside_refuses():
    """A negative cost would give a hard budget back what was paid: no wrapper lets it through."""
    inner = aw.HardStop(aw.UCB1(2, seed=1), 5.0, 1.0, fallback=0, seed=1)
    around = [
        (aw.Explore(inner, 0.1, seed=1), None),
        (aw.Doubling(lambda T: aw.HardStop(aw.UCB1(2), 5.0, 1.0, fallback=0), seed=1), None),
        (aw.PerContext(inner, seed=1), "key"),
        (aw.PolicyArms(inner, [lambda x: 0, lambda x: 1], n_arms=2, seed=1), np.zeros(1)),
        (aw.Conservative(inner, 0, 0.5, seed=1), None),
        (aw.Pacing(inner, 0.5, cheap=0, seed=1), None),
        (aw.Corral([inner, inner.clone(seed=2)], horizon=100, seed=1), None),
    ]  # fmt: skip
    for agent, context in around:
        assert agent.n_costs == 1, agent
        with pytest.raises(ValueError, match="must not be negative"):
            agent.learn(context, agent.choose(context), 0.5, cost=-0.5)
        contexts = None if context is None else [context] * 2
        with pytest.raises(ValueError, match="must not be negative"):
            agent.play(contexts, np.full((2, 2), 0.5), np.full((2, 2), -0.5))


def test_races_show_costs_beside_regret(tmp_path):
    world = aw.environments.Budgeted(n_arms=3, dim=2, rate=0.2)
    agents = {"hard": aw.HardStop(aw.LinUCB(2), 60.0, 1.0, 0), "free": aw.LinUCB(2)}
    result = aw.race(agents, world, horizon=300, seeds=2)
    assert (result.cost("hard")[:, -1] <= 60.0).all() and (result.cost("free")[:, -1] > 60.0).all()
    assert "cost per decision" in str(result) and "cost" in result.table() and "cost" in result.curves()
    assert result.plot(kind="cost").axes[0].get_ylabel() == "cumulative cost"
    with warnings.catch_warnings():
        result.report(tmp_path / "report.html")
    plain = aw.race([aw.UCB1(3)], aw.environments.Switching(n_arms=3), horizon=50, seeds=1)
    assert not plain.costs and "cost" not in plain.curves()


def test_a_table_comes_in_another_order_for_every_seed():
    rewards = np.arange(10.0)[:, None] / 10 + [0.0, 0.05]
    world = aw.environments.Table(rewards, np.tile([0.0, 1.0], (10, 1)), np.arange(10.0)[:, None], rate=0.5)
    first, second = (next(world.blocks(10, seed=s)) for s in (1, 2))
    assert not np.array_equal(first.rewards, second.rewards)
    assert np.array_equal(np.sort(first.rewards, axis=0), rewards)
    assert np.allclose(first.view("shared")[:, 0] / 10, first.rewards[:, 0])


def test_the_bound_of_lagrange_is_claimed_for_its_own_constants_only():
    """Estimates are clipped to what rewards and costs can be, as the bound asks; another gamma has no bound."""
    world = {"rate": 0.8, "null_arm": 0, "K": 3}
    agent = aw.LagrangeCB.theoretical(2, 3, 1000, 800.0, seed=1)
    letters = aw.LagrangeCB.theory.hypotheses(agent, world, 1000)
    assert letters["lam"] == 1.0 and aw.bounds.lagrange(1000, **letters) > 0.0
    for _ in range(30):
        agent.learn([1.0, 0.0], aw.Choice(1, 1.0), 1.0, 1.0)
    outcomes = agent._estimated(np.array([40.0, -40.0]))[0]
    assert outcomes[0].max() == 1.0 and outcomes[1:].max() == 1.0 / 0.8 and outcomes.min() == 0.0
    other = aw.LagrangeCB(aw.SquareCB(2, n_arms=3, lam=1.0), 1000, 800.0, gamma=3.0, exponent=0.0, dual="gradient")
    assert "clipped" in aw.LagrangeCB.theory.hypotheses(other, world, 1000)
    clipped = aw.LagrangeCB(
        aw.SquareCB(2, n_arms=3, lam=1.0), 1000, 800.0, gamma=3.0, exponent=0.0, dual="gradient", max_cost=1.0
    )
    assert "asks for gamma" in aw.LagrangeCB.theory.hypotheses(clipped, world, 1000)


def test_the_long_run_of_the_benchmark_is_the_agent(monkeypatch):
    """Regret at T = 1,000 of seeds side by side and of the agent itself: 47 ± 3 and 45 ± 3, 12 seeds each.

    A failure means that the benchmark's million rounds are of another algorithm than LagrangeCB.theoretical.
    """
    from benchmarks.budgets import side_by_side

    T, worth = 1000, np.array([0.0, 0.9, 0.5])
    lost = []
    for seed in range(12):
        rng = np.random.default_rng([3, seed])
        rewards, costs = (rng.random((T, 3)) < mean for mean in (worth, [0.0, 1.0, 0.5]))
        agent = aw.HardStop(aw.LagrangeCB.theoretical(1, 3, T, 0.8 * T, seed=seed), 0.8 * T, 1.0, fallback=0, seed=seed)
        arms = agent.play(np.ones((T, 1)), rewards.astype(float), costs.astype(float)).arms
        lost.append(0.74 * T - worth[arms].sum())
    other = side_by_side(T, 12)
    error = np.hypot(np.std(lost), np.std(other)) / np.sqrt(12)
    assert abs(np.mean(lost) - other.mean()) < 3.5 * error


def test_the_next_horizon_has_a_budget_of_its_own():
    """A service outlives its horizon. A failure means that nothing, or everything, may be spent from then on."""
    rng = np.random.default_rng(1)
    agent = aw.LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=400, budget=100.0, seed=1)
    worth, dear = np.array([0.2, 0.8]), np.array([0.0, 1.0])
    played = agent.play(np.ones((1600, 1)), (rng.random((1600, 2)) < worth).astype(float), np.tile(dear, (1600, 1)))
    assert played.costs is not None
    spent = played.costs.reshape(4, 400).sum(axis=1)
    assert (np.abs(spent - 100.0) < 10.0).all(), spent
