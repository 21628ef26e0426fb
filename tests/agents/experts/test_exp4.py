"""Exp4, Exp4P and Advised against the survey's formulas written out."""

# mypy: disable-error-code="assignment, attr-defined, misc"

import math

import numpy as np
import pytest

import armwise as aw
from armwise.agents.experts.exp4p import noted_probabilities
from armwise.core import saving
from armwise.core.choices import Choice

N, K, T = 7, 4, 10_000


@pytest.fixture(scope="module")
def rounds():
    rng = np.random.default_rng(1)
    advice = rng.dirichlet(np.full(K, 0.5), size=(T, N))
    advice[:, 0] = 1.0 / K  # the uniform expert
    advice[:, 1] = np.eye(K)[2]  # zeros in the advice
    return advice, rng.random((T, K))


def naive(kind, advice, choices, rewards, *, gamma=None, delta=None):
    """Algorithms 12 and 13 as printed, weights and all; yields p_t before each reward (weights only rescaled)."""
    w = np.ones(N)
    p_min = math.sqrt(math.log(N) / (K * T))
    for xi, choice, r in zip(advice, choices, rewards):
        share = sum(w[i] * xi[i] for i in range(N)) / sum(w)
        p = (1 - gamma) * share + gamma / K if kind is aw.Exp4 else (1 - K * p_min) * share + p_min
        yield p
        r_hat = np.zeros(K)
        r_hat[choice.arm] = r / p[choice.arm]
        y = xi @ r_hat
        if kind is aw.Exp4:
            w = w * np.exp(gamma * y / K)
        else:
            v = (xi / p).sum(axis=1)
            w = w * np.exp(p_min / 2 * (y + v * math.sqrt(math.log(N / delta) / (K * T))))
        w /= w.sum()


@pytest.mark.parametrize("kind", [aw.Exp4, aw.Exp4P])
def test_probabilities_equal_the_naive_formulas_over_10000_rounds(kind, rounds):
    advice, rewards = rounds
    agent = aw.Exp4(N, K, gamma=0.07, seed=3) if kind is aw.Exp4 else aw.Exp4P(N, K, horizon=T, delta=0.01, seed=3)
    choices, got, reported = [], [], []
    for t in range(T):
        reported.append(agent.probabilities(advice[t]))
        choices.append(agent.choose(advice[t]))
        got.append(rewards[t, choices[-1].arm])
        agent.learn(advice[t], choices[-1], got[-1])
    expected = np.array(list(naive(kind, advice, choices, got, gamma=0.07, delta=0.01)))
    assert np.abs(np.array(reported) - expected).max() < 1e-12
    assert all(c.probability == p[c.arm] for c, p in zip(choices, reported))


@pytest.mark.parametrize("make", [lambda: aw.Exp4(N, K, 0.07, seed=3), lambda: aw.Exp4P(N, K, T, seed=3)])
def test_play_is_the_loop(make, rounds):
    advice, rewards = (block[:500] for block in rounds)
    fast, slow = make(), make()
    played = fast.play(advice, rewards)
    for t in range(500):
        choice = slow.choose(advice[t])
        assert (choice.arm, choice.probability) == (played.arms[t], played.probabilities[t])
        slow.learn(advice[t], choice, rewards[t, choice.arm])
    assert saving.dumps(fast) == saving.dumps(slow)


@pytest.mark.parametrize("make", [lambda: aw.Exp4(N, K, 0.07, seed=3), lambda: aw.Exp4P(N, K, T, seed=3)])
def test_rewards_may_come_late_and_in_any_order(make, rounds):
    """Choices made before any reward carry the p_t of that moment, so the order of learning cannot matter."""
    advice, rewards = (block[:60] for block in rounds)
    agent = make()
    choices = [agent.choose(x) for x in advice]
    ends = []
    for order in (range(60), np.random.default_rng(4).permutation(60)):
        copy = saving.loads(saving.dumps(agent))
        for t in order:
            copy.learn(advice[t], choices[t], rewards[t, choices[t].arm])
        ends.append(copy.probabilities(advice[0]))
    assert np.allclose(*ends, atol=1e-13)
    assert not np.allclose(ends[0], agent.probabilities(advice[0]))


def test_no_overflow_and_no_lost_digits_at_ten_million_rounds():
    """Ten million rounds' worth of weight at once: log weights far beyond exp's range, still the right p."""
    agent = aw.Exp4(3, 2, gamma=1.0, seed=1)
    advice = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    for _ in range(1000):  # each is as 10^4 rounds: a reward of 1 at probability 1e-4
        agent.learn(advice, aw.Choice(0, 1e-4), 1.0)
        agent.learn(advice, aw.Choice(1, 1e-4), 1.0)
    agent.learn(advice, aw.Choice(1, 0.5), 1.0)  # weights e^(5e6): one more factor e for expert 1, e^(1/2) for 2
    w = np.exp([0.0, 1.0, 0.5])
    assert np.abs(agent.weights - w / w.sum()).max() < 1e-12
    one_sided = aw.Exp4P(2, 2, horizon=10**7, seed=1)
    for _ in range(1000):
        one_sided.learn(np.eye(2), aw.Choice(0, 1e-6, [1e-6, 1 - 1e-6]), 1.0)
    p = one_sided.probabilities(np.eye(2))
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1.0)
    assert p[1] == pytest.approx(one_sided.p_min)


def test_tuned_gamma_and_p_min():
    assert aw.Exp4.theoretical(8, 10, 10_000).gamma == math.sqrt(10 * math.log(8) / ((math.e - 1) * 10_000))
    assert aw.Exp4.theoretical(8, 10, 5).gamma == 1.0
    assert aw.Exp4.theoretical(1, 10, 5).gamma == 1.0
    assert aw.Exp4P(8, 10, 10_000).p_min == math.sqrt(math.log(8) / (10 * 10_000))
    with pytest.raises(ValueError, match=r"horizon is 20.*at least 21 rounds"):
        aw.Exp4P(8, 10, 20)
    aw.Exp4P(8, 10, 21)


@pytest.mark.parametrize("note", [None, "p", [0.5, 0.5], [0.7, 0.7, 0.7, 0.7], [np.nan, 0.3, 0.3, 0.4]])
def test_exp4p_refuses_a_choice_without_its_probabilities(note):
    agent = aw.Exp4P(N, K, T, seed=3)
    before = saving.dumps(agent)
    with pytest.raises(ValueError, match="note"):
        agent.learn(np.full((N, K), 1 / K), aw.Choice(0, 0.25, note), 1.0)
    assert saving.dumps(agent) == before


@pytest.mark.parametrize("name", ["Exp4", "Exp4P"])
def test_regret_against_the_best_expert_stays_under_the_bound(name):
    """A failure means that the weights do not follow the better expert: the bound holds in expectation (Exp4)
    or in 95 % of the runs (Exp4P), and these 20 runs on a drifting world lie far below it."""
    horizon, n, k = 5000, 6, 3
    for seed in range(20):
        rng = np.random.default_rng(seed)
        advice = np.eye(k)[rng.integers(k, size=(horizon, n))]
        advice[:, 0] = 1 / k
        good = advice[:, 4].argmax(axis=1)  # expert 4 names the better arm, in every second third of the time
        p_reward = np.full((horizon, k), 0.3)
        p_reward[np.arange(horizon), good] = 0.7
        p_reward[horizon // 3 : 2 * horizon // 3] = 0.5
        rewards = (rng.random((horizon, k)) < p_reward).astype(float)
        if name == "Exp4":
            agent, bound = aw.Exp4.theoretical(n, k, horizon, seed=seed), aw.bounds.exp4(T=horizon, K=k, N=n)
        else:
            agent, bound = aw.Exp4P(n, k, horizon, 0.05, seed=seed), aw.bounds.exp4p(T=horizon, K=k, N=n, delta=0.05)
        total = agent.play(advice, rewards).rewards.sum()
        best = np.einsum("tnk,tk->n", advice, rewards).max()
        uniform = rewards.mean(axis=1).sum()
        assert best - total < bound
        assert total > uniform + 0.3 * (best - uniform)


def test_advised_is_the_agent_on_the_experts_advice():
    rng = np.random.default_rng(5)
    contexts, rewards = rng.normal(size=(300, 2)), rng.random((300, 3))
    experts = [aw.Constant(1), lambda x: int(x[0] > 0), aw.Linear(rng.normal(size=(3, 2))), lambda x: [0.2, 0.3, 0.5]]
    agent = aw.Advised(aw.Exp4(5, 3, 0.1, seed=6), experts, uniform=True)
    bare = aw.Exp4(5, 3, 0.1, seed=6)
    for x, r in zip(contexts, rewards):
        one_hot = np.eye(3)
        scores = experts[2].weights @ x
        advice = np.array(
            [one_hot[1], one_hot[int(x[0] > 0)], one_hot[scores.argmax()], [0.2, 0.3, 0.5], [1 / 3, 1 / 3, 1 / 3]]
        )
        assert np.array_equal(agent.advice(x), advice)
        assert np.array_equal(agent.probabilities(x), bare.probabilities(advice))
        choice = agent.choose(x)
        assert choice == bare.choose(advice)
        agent.learn(x, choice, r[choice.arm])
        bare.learn(advice, choice, r[choice.arm])
    fast = agent.clone(seed=6)
    played = fast.play(contexts, rewards)
    assert saving.dumps(fast.agent) == saving.dumps(bare)
    assert fast.t == agent.t == 301
    assert played.arms.shape == (300,)


@pytest.mark.parametrize("context", [np.zeros((3, 2)), "a word", 7, ("a", 2), {"age": 3}])
def test_advised_accepts_any_context_that_its_experts_read(context):
    agent = aw.Advised(aw.Exp4P(2, 2, 100, seed=1), [lambda c: 0, lambda c: [0.5, 0.5]])
    agent.learn(context, agent.choose(context), 1.0)
    assert agent.t == 2


def test_advised_saves_unless_an_expert_is_a_plain_function(tmp_path):
    agent = aw.Advised(aw.Exp4P(2, 2, 100, seed=1), [aw.Stump(0, 0.5), aw.Constant(1)], uniform=False)
    x = np.array([0.7])
    agent.learn(x, agent.choose(x), 1.0)
    agent.save(tmp_path / "a.aw")
    again = aw.load(tmp_path / "a.aw")
    assert again.t == 2
    assert np.array_equal(again.probabilities(x), agent.probabilities(x))
    assert [again.choose(x) for _ in range(20)] == [agent.choose(x) for _ in range(20)]
    with pytest.raises(ValueError, match=r"experts\[1\] cannot be saved: function"):
        aw.Advised(aw.Exp4(2, 2), [aw.Constant(1), lambda x: 0]).save(tmp_path / "b.aw")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: aw.Advised(aw.Exp3(2), [aw.Constant(0)]), "sees advice"),
        (lambda: aw.Advised(aw.Exp4(2, 2), [aw.Constant(0)]), "n_experts=2"),
        (lambda: aw.Advised(aw.Exp4(1, 2), [aw.Constant(0)], uniform=True), "n_experts=1"),
        (lambda: aw.Advised(aw.Exp4(1, 2), ["left"]), r"experts\[0\]"),
        (lambda: aw.Advised(aw.Exp4(1, 2), [aw.Constant(0)], sees="all"), "sees"),  # type: ignore[arg-type]
        (lambda: aw.Advised(aw.Exp4(1, 2), [aw.Constant(2)]).choose([1.0]), r"experts\[0\].*arm 2"),
        (lambda: aw.Advised(aw.Exp4(1, 2), [aw.Stump(3, 0.0)]).choose([1.0]), r"experts\[0\]"),
        (lambda: aw.Advised(aw.Exp4(1, 2), [lambda x: x[4]]).choose([1.0]), r"experts\[0\]"),
        (lambda: aw.Advised(aw.Exp4(1, 2), [aw.Constant(0)]).choose([np.nan]), "finite"),
        (lambda: aw.Advised(aw.Exp4(1, 2), [aw.Constant(0)]).choose(), "None"),
        (lambda: aw.Advised(aw.Exp4(1, 2), [aw.Constant(0)]).play([[1.0]], np.zeros((2, 2))), "2 rows"),
    ],
)
def test_advised_refuses_what_it_cannot_use(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_note_carries_the_probabilities():
    assert noted_probabilities(Choice(0, 0.5, [0.5, 0.5]), n_arms=2) == pytest.approx([0.5, 0.5])
