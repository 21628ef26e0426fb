"""Thompson's probabilities: honest, exactly what the arm is drawn from, and never zero."""

# mypy: disable-error-code="arg-type, assignment"

import numpy as np
import pytest
from scipy.integrate import quad_vec
from scipy.stats import beta, norm

import armwise as aw
from armwise.native import winning


def naive(distributions):
    """P(each is the largest), by SciPy's adaptive quadrature; a distribution of arrays is one per arm."""
    low, high = distributions.ppf(1e-12).min(), distributions.ppf(1 - 1e-12).max()
    others = ~np.eye(len(distributions.mean()), dtype=bool)

    def density(y):
        return distributions.pdf(y) * np.where(others, distributions.cdf(y), 1.0).prod(axis=1)

    return quad_vec(density, low, high, points=np.unique(distributions.mean()), epsrel=1e-8, norm="max")[0]


def test_independent_gaussians_against_adaptive_quadrature():
    rng = np.random.default_rng(1)
    for K in (2, 3, 6):
        means, deviations = rng.normal(size=K), rng.uniform(0.05, 2.0, K)
        expected = naive(norm(means, deviations))
        np.testing.assert_allclose(winning.gaussian(means, np.diag(deviations**2)), expected, atol=1e-6)


def test_beta_posteriors_against_adaptive_quadrature():
    rng = np.random.default_rng(2)
    for K in (2, 3, 6):
        a, b = rng.uniform(1.0, 40.0, (2, K))
        np.testing.assert_allclose(winning.beta(a, b), naive(beta(a, b)), atol=1e-6)


def test_a_common_factor_against_two_million_draws():
    """Three arms over shared features always have one if their covariances agree in sign; 5 standard errors."""
    rng = np.random.default_rng(3)
    means, loadings = rng.normal(size=4), rng.uniform(0.5, 1.5, 4)
    covariance = np.diag(rng.uniform(0.1, 1.0, 4)) + np.outer(loadings, loadings)
    p = winning.gaussian(means, covariance)
    draws = rng.multivariate_normal(means, covariance, 400_000).argmax(axis=1)
    np.testing.assert_allclose(p, np.bincount(draws, minlength=4) / 400_000, atol=5 * 0.0008)


def test_what_cannot_be_integrated_is_not_pretended():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(5, 5))
    assert winning.gaussian(np.zeros(5), root @ root.T) is None


@pytest.mark.parametrize("deviation", [0.0, 1e-30])
def test_arms_without_doubt_share_or_win(deviation):
    p = winning.gaussian(np.array([1.0, 0.0, 1.0]), np.diag([deviation**2] * 3))
    np.testing.assert_allclose(p, [0.5, 0.0, 0.5], atol=1e-9)


def frozen(kind, draws):
    """An agent that is sure enough that some arms win hardly ever, and a context for it."""
    rng = np.random.default_rng(5)
    if kind == "BetaThompson":
        agent = aw.BetaThompson(4, draws=draws, seed=1)
        for arm, rate in enumerate((0.3, 0.5, 0.6, 0.9)):
            for _ in range(20):
                agent.learn(None, aw.Choice(arm, None), rate)
        return agent, None, 4
    if kind == "LogisticThompson":
        agent, K = aw.LogisticThompson(3, 0.5, draws=draws, seed=1), 4
    else:
        K = 2 if kind == "two arms" else 4
        agent = aw.LinThompson(3, v=0.5, n_arms=K if kind == "disjoint" else None, draws=draws, seed=1)
    X = rng.normal(size=(K, 3))
    context = X[0] if kind == "disjoint" else X
    for _ in range(40):
        arm = int(rng.integers(K))
        agent.learn(context, aw.Choice(arm, None), float(arm >= K - 2))
    return agent, context, K


KINDS = ["two arms", "shared", "disjoint", "LogisticThompson", "BetaThompson"]


@pytest.mark.parametrize("draws", [2, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_importance_weights_are_unbiased_over_frozen_rounds(kind, draws):
    """The mean of 1{arm} / p is 1 for every arm. Frequencies of M draws as probabilities would read 1 - (1 - q)^M:
    0.1 for an arm that wins one draw in twenty."""
    agent, context, K = frozen(kind, draws)
    n = 4_000 if kind in ("shared", "LogisticThompson") else 1_000  # an exact distribution is the same every round
    weights = np.zeros((n, K))
    for t in range(n):
        choice = agent.choose(context)
        weights[t, choice.arm] = 1.0 / choice.probability
    error = weights.std(axis=0) / np.sqrt(n)
    seen = agent.probabilities(context) > 1e-3  # an arm that comes up fewer than ten times says nothing here
    assert np.all(np.abs(weights.mean(axis=0) - 1.0)[seen] < 5 * error[seen] + 1e-9), weights.mean(axis=0)


@pytest.mark.parametrize("kind", ["two arms", "disjoint", "BetaThompson"])
def test_a_hundred_thousand_thompson_rounds_weighed_by_the_exact_probability(kind):
    """Arms as pure Thompson sampling draws them, compiled, from a posterior that stays: every arm's mean of 1{arm} / p
    is 1 up to 5 standard errors, sqrt((1 - p) / (n p)). More means that the integral is not what is played."""
    n, (agent, context, K) = 100_000, frozen(kind, 1)
    if kind == "BetaThompson":
        play = np.array([agent._choose(None).arm for _ in range(n)])
        wins = np.bincount(play, minlength=K)
    else:
        wins = agent._wins(context, n, agent._rng)
    p = agent.probabilities(context)
    seen = n * p > 20  # an arm that comes up a handful of times says nothing here
    assert seen.sum() >= 2
    assert np.all(np.abs(wins / (n * p) - 1.0)[seen] < 5 * np.sqrt((1 - p) / (n * p))[seen]), wins / (n * p)


def test_a_hundred_thousand_rounds_drawn_from_smoothed_wins():
    """Two draws per round, four arms whose chances cannot be integrated. With frequencies as probabilities the rarest
    arm's mean of 1{arm} / p would be 1 - (1 - q)^2, below 0.2."""
    n, (agent, context, K) = 100_000, frozen("shared", 2)
    total, squares = np.zeros(K), np.zeros(K)
    for _ in range(n):
        choice = agent._choose(context)
        total[choice.arm] += 1.0 / choice.probability
        squares[choice.arm] += 1.0 / choice.probability**2
    error = np.sqrt(squares / n - (total / n) ** 2) / np.sqrt(n)
    assert np.all(np.abs(total / n - 1.0) < 5 * error), total / n
    q = agent._wins(context, n, agent._rng) / n
    assert q.min() < 0.1  # or the comparison above would show nothing


@pytest.mark.parametrize("draws", [1, 2, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_choose_and_probabilities_agree_and_no_arm_has_none(kind, draws):
    agent, context, K = frozen(kind, draws)
    for _ in range(20):
        p = agent.probabilities(context)
        assert p.min() > 0.0 and p.sum() == pytest.approx(1.0, abs=1e-12)
        choice = agent.choose(context)
        assert choice.probability == (None if draws == 1 else p[choice.arm])
    if kind in ("two arms", "disjoint", "BetaThompson"):  # exact, so that the number of draws does not matter
        one, _, _ = frozen(kind, 1)
        np.testing.assert_allclose(agent.probabilities(context), one.probabilities(context), atol=1e-12)
        wins = np.bincount([one.choose(context).arm for _ in range(4000)], minlength=K) / 4000
        np.testing.assert_allclose(wins, one.probabilities(context), atol=5 * 0.008)
