"""The K-armed agents against formulas written out over the whole history."""

# mypy: disable-error-code="attr-defined, misc, var-annotated"

import math

import numpy as np
import pytest

import armwise as aw
from armwise import Choice
from armwise.core.saving import dumps, loads
from armwise.models.ridge import Ridge

MAKERS = {
    "Exp3": lambda seed=None: aw.Exp3(n_arms=4, gamma=0.2, seed=seed),
    "UCB1": lambda seed=None: aw.UCB1(n_arms=4, scale=0.7, seed=seed),
    "EpsilonGreedy": lambda seed=None: aw.EpsilonGreedy(n_arms=4, epsilon=0.3, decay=0.25, seed=seed),
    "BetaThompson": lambda seed=None: aw.BetaThompson(n_arms=4, prior=(0.5, 2.0), seed=seed),
    "BetaThompson, 7 draws": lambda seed=None: aw.BetaThompson(n_arms=4, draws=7, seed=seed),
}
MEANS = np.array([0.2, 0.35, 0.5, 0.8])


def reference(name, history, K=4):
    """The distribution over arms after a history of (arm, probability, reward), by the definition."""
    t = len(history) + 1
    mean = [np.mean([r for a, _, r in history if a == arm] or [0.0]) for arm in range(K)]
    n = [sum(a == arm for a, _, _ in history) for arm in range(K)]
    if name == "Exp3":
        w = np.array([math.exp(0.2 / K * sum(r / p for a, p, r in history if a == arm)) for arm in range(K)])
        return 0.8 * w / w.sum() + 0.2 / K
    if name == "UCB1":
        score = np.array([mean[a] + 0.7 * math.sqrt(2 * math.log(t) / n[a]) if n[a] else math.inf for a in range(K)])
        best = score >= score.max() - 1e-12
        return best / best.sum()
    epsilon = 0.3 * t**-0.25
    best = np.array(mean) >= max(mean) - 1e-12
    return (1 - epsilon) * best / best.sum() + epsilon / K


@pytest.mark.parametrize("name", ["Exp3", "UCB1", "EpsilonGreedy"])
@pytest.mark.parametrize("delay", [0, 6])
def test_probabilities_follow_the_formula_round_by_round(name, delay):
    agent, rng = MAKERS[name](seed=1), np.random.default_rng(2)
    history, waiting = [], []
    for _ in range(150):
        expected = reference(name, history)
        np.testing.assert_allclose(agent.probabilities(), expected, rtol=1e-9)
        choice = agent.choose()
        assert choice.probability == pytest.approx(expected[choice.arm])
        waiting.append((choice, float(rng.random() < MEANS[choice.arm])))
        rng.shuffle(waiting)  # rewards come late and in any order
        while len(waiting) > delay:
            choice, reward = waiting.pop()
            agent.learn(None, choice, reward)
            history.append((choice.arm, choice.probability, reward))


def test_beta_posterior_counts_successes_and_failures_fractions_included():
    agent, rng = MAKERS["BetaThompson"](seed=1), np.random.default_rng(2)
    successes, failures = np.full(4, 0.5), np.full(4, 2.0)
    for _ in range(60):
        choice = agent.choose()
        assert choice.probability is None
        reward = rng.random()
        agent.learn(None, choice, reward)
        successes[choice.arm] += reward
        failures[choice.arm] += 1 - reward
    # Ten thousand posterior draws by NumPy: a wrong posterior parameter would move a frequency by far more than 0.03.
    wins = np.bincount(rng.beta(successes, failures, (10_000, 4)).argmax(axis=1), minlength=4) / 10_000
    np.testing.assert_allclose(agent.probabilities(), wins, atol=0.03)
    drawn = np.bincount([agent.choose().arm for _ in range(5_000)], minlength=4) / 5_000
    np.testing.assert_allclose(drawn, wins, atol=0.03)


def test_several_draws_report_the_probability_that_the_arm_wins():
    """Against 200,000 posterior draws by NumPy, whose frequencies have a standard error below 0.0012."""
    agent = MAKERS["BetaThompson, 7 draws"](seed=3)
    for _ in range(100):
        p = agent.probabilities()
        choice = agent.choose()
        assert choice.probability == p[choice.arm] > 0
        agent.learn(None, choice, MEANS[choice.arm])
    draws = np.random.default_rng(5).beta(agent._successes, agent._failures, (200_000, 4))
    np.testing.assert_allclose(agent.probabilities(), np.bincount(draws.argmax(axis=1), minlength=4) / 2e5, atol=0.006)


@pytest.mark.parametrize("name", MAKERS)
def test_play_is_the_loop(name):
    rewards = (np.random.default_rng(4).random((300, 4)) < MEANS).astype(float)
    looped, played = MAKERS[name](seed=5), MAKERS[name](seed=5)
    choices = []
    for row in rewards:
        choices.append(looped.choose())
        looped.learn(None, choices[-1], row[choices[-1].arm])
    first, second = played.play(None, rewards[:120]), played.play(None, rewards[120:])
    np.testing.assert_array_equal(np.r_[first.arms, second.arms], [c.arm for c in choices])
    probabilities = [np.nan if c.probability is None else c.probability for c in choices]
    np.testing.assert_allclose(np.r_[first.probabilities, second.probabilities], probabilities, rtol=1e-12)
    assert dumps(looped) == dumps(played)


@pytest.mark.parametrize("name", MAKERS)
def test_a_saved_agent_continues_exactly(name):
    rewards = np.random.default_rng(4).random((200, 4))
    agent = MAKERS[name](seed=5)
    agent.play(None, rewards[:77])
    again = loads(dumps(agent))
    np.testing.assert_array_equal(agent.play(None, rewards[77:]).arms, again.play(None, rewards[77:]).arms)
    assert agent.t == again.t == 201
    assert dumps(agent.clone(seed=9)) == dumps(MAKERS[name](seed=9))  # a clone has learnt nothing


@pytest.mark.parametrize("name", MAKERS)
def test_finds_the_best_arm(name):
    """A failure means exploration or estimation is broken: uniform play has a mean reward of 0.4625."""
    rewards = (np.random.default_rng(6).random((4_000, 4)) < MEANS).astype(float)
    assert MAKERS[name](seed=7).play(None, rewards).rewards[1_000:].mean() > 0.66


def test_exp3_regret_stays_below_its_bound_against_an_adversary():
    """Rewards that switch the best arm half way, all known in advance: the expected regret over 20 runs is bounded."""
    T, K = 4_000, 4
    rewards = np.full((T, K), 0.3)
    rewards[: T // 2, 0], rewards[T // 2 :, 1] = 0.9, 1.0
    regrets = [
        rewards.sum(axis=0).max() - aw.Exp3.theoretical(K, T, seed=seed).play(None, rewards).rewards.sum()
        for seed in range(20)
    ]
    assert 0 < np.mean(regrets) < aw.Exp3.theory.regret_bound(T=T, K=K)


@pytest.mark.parametrize(
    ("name", "letters"),
    [("UCB1", {}), ("EpsilonGreedy", {"epsilon": 0.1}), ("BetaThompson", {})],
)
def test_stochastic_regret_stays_below_the_bound(name, letters):
    """Arms' rates drawn uniformly (the prior of BetaThompson), 30 worlds: the mean regret is what the bounds bound."""
    T, K, regrets = 5_000, 5, []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rates = rng.random(K)
        agent = getattr(aw, name)(n_arms=K, **letters, seed=seed)
        arms = agent.play(None, (rng.random((T, K)) < rates).astype(float)).arms
        regrets.append((rates.max() - rates[arms]).sum())
    assert 0 < np.mean(regrets) < getattr(aw, name).theory.regret_bound(T=T, K=K, **letters)


@pytest.mark.parametrize("n_models", [1, 3])
def test_epsilon_greedy_over_a_model_follows_the_ridge_estimate(n_models):
    rng = np.random.default_rng(8)
    agent = aw.EpsilonGreedy(model=Ridge(dim=2, lam=0.5, n_models=n_models), epsilon=0.2, seed=1)
    A = [0.5 * np.eye(2) for _ in range(n_models)]
    b = [np.zeros(2) for _ in range(n_models)]
    for _ in range(60):
        context = rng.normal(size=(3, 2)) if n_models == 1 else rng.normal(size=2)
        X = context if n_models == 1 else np.tile(context, (3, 1))
        means = np.array([X[a] @ np.linalg.solve(A[a % n_models], b[a % n_models]) for a in range(3)])
        best = means >= means.max() - 1e-12
        np.testing.assert_allclose(agent.probabilities(context), 0.8 * best / best.sum() + 0.2 / 3, rtol=1e-9)
        choice, reward = agent.choose(context), rng.normal()
        agent.learn(context, choice, reward)
        A[choice.arm % n_models] += np.outer(X[choice.arm], X[choice.arm])
        b[choice.arm % n_models] += reward * X[choice.arm]
    again = loads(dumps(agent))
    np.testing.assert_array_equal(again.probabilities(context), agent.probabilities(context))
    assert agent.clone().probabilities(context) == pytest.approx(np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: aw.UCB1(n_arms=0), "n_arms must be a whole number >= 1"),
        (lambda: aw.UCB1(n_arms=2, scale=-1), "scale must be a finite number >= 0"),
        (lambda: aw.EpsilonGreedy(), "n_arms must be a whole number"),
        (lambda: aw.EpsilonGreedy(n_arms=2, epsilon=1.5), "epsilon must be a number in"),
        (lambda: aw.EpsilonGreedy(n_arms=2, model=Ridge(dim=2, n_models=3)), "leave n_arms out"),
        (lambda: aw.BetaThompson(n_arms=2, draws=0), "draws must be a whole number"),
        (lambda: aw.BetaThompson(n_arms=2, prior=(0, 1)), r"prior\[0\] must be"),
        (lambda: aw.BetaThompson(n_arms=2, prior=3), "prior must be a pair"),  # type: ignore[arg-type]
        (lambda: aw.Exp3(n_arms=2, gamma=0), "gamma must be a number in"),
    ],
)
def test_impossible_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("context", "choice", "reward"),
    [
        (None, Choice(4, 0.5), 1.0),
        (None, Choice(-1, 0.5), 1.0),
        (None, Choice(0, 0.0), 1.0),
        (None, Choice(0, 0.5), 1.1),
        (None, Choice(0, 0.5), math.nan),
        ("x", Choice(0, 0.5), 1.0),
        (None, 0, 1.0),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(name, context, choice, reward):
    agent = MAKERS[name](seed=1)
    agent.play(None, np.random.default_rng(1).random((20, 4)))
    before = dumps(agent)
    with pytest.raises(ValueError):
        agent.learn(context, choice, reward)
    with pytest.raises(ValueError):
        agent.play(None, np.full((2, 3), 0.5))
    assert dumps(agent) == before
