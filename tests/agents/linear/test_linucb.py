"""LinUCB against the formula: explicit inverses, full history, round by round."""

# mypy: disable-error-code="misc, var-annotated"

import numpy as np
import pytest

import armwise as aw
from armwise.agents.linear.ridge_agent import width_of


def reference_scores(X, history, alpha, lam, dim):
    """Algorithm 1 as printed: A and b summed over the whole history, A inverted."""
    rows, rewards = np.array([x for x, _ in history]).reshape(-1, dim), np.array([r for _, r in history])
    A, b = lam * np.eye(dim) + rows.T @ rows, rows.T @ rewards
    inverse = np.linalg.inv(A)
    if isinstance(alpha, aw.Ellipsoid):
        ratio = np.sqrt(np.linalg.det(A) / np.linalg.det(lam * np.eye(dim)))
        alpha = alpha.noise * np.sqrt(2 * np.log(ratio / alpha.delta)) + np.sqrt(lam) * alpha.norm
    return X @ inverse @ b + alpha * np.sqrt(np.einsum("ai,ij,aj->a", X, inverse, X))


@pytest.mark.parametrize(
    "alpha", [0.0, 0.7, aw.Ellipsoid(noise=0.3, norm=2.0, delta=0.1)], ids=["greedy", "number", "ellipsoid"]
)
@pytest.mark.parametrize("lam", [0.2, 3.0])
@pytest.mark.parametrize("dim", [1, 5, 8, 19])
def test_shared_scores_follow_the_formula_with_changing_arms_and_late_rewards(alpha, lam, dim):
    rng = np.random.default_rng(dim)
    agent = aw.LinUCB(dim, alpha, lam, seed=1)
    theta = rng.normal(size=dim)
    history, waiting = [], []
    for t in range(150):
        X = rng.normal(size=(rng.integers(1, 9), dim)) * (rng.random(dim) < 0.7)  # zeros among the features
        scores = reference_scores(X, history, alpha, lam, dim)
        np.testing.assert_allclose(agent._scores(X), scores, rtol=1e-9, atol=1e-9)
        choice = agent.choose(X)
        assert scores[choice.arm] >= scores.max() - 1e-9
        waiting.append((X, choice, float(X[choice.arm] @ theta + rng.normal())))
        if t % 7 == 6:  # a week's rewards arrive together, in any order
            for i in rng.permutation(len(waiting)):
                X, choice, reward = waiting[i]
                agent.learn(X, choice, reward)
                history.append((X[choice.arm], reward))
            waiting.clear()


@pytest.mark.parametrize("alpha", [0.7, aw.Ellipsoid(noise=0.3, norm=2.0, delta=0.1)], ids=["number", "ellipsoid"])
def test_disjoint_scores_follow_the_formula(alpha):
    rng = np.random.default_rng(3)
    K, dim, lam = 6, 11, 0.4
    agent = aw.LinUCB(dim, alpha, lam, n_arms=K, seed=1)
    history = [[] for _ in range(K)]
    waiting = []
    for t in range(300):
        x = rng.normal(size=dim)
        scores = np.array([reference_scores(x[None], history[a], alpha, lam, dim)[0] for a in range(K)])
        np.testing.assert_allclose(agent._scores(x), scores, rtol=1e-9, atol=1e-9)
        choice = agent.choose(x)
        assert scores[choice.arm] >= scores.max() - 1e-9
        waiting.append((x, choice, float(rng.normal())))
        if t % 5 == 4:
            for i in rng.permutation(5):
                x, choice, reward = waiting[i]
                agent.learn(x, choice, reward)
                history[choice.arm].append((x, reward))
            waiting.clear()


def test_fading_keeps_the_ridge_and_weighs_the_rest_by_age():
    rng = np.random.default_rng(5)
    dim, lam, discount = 4, 0.6, 0.9
    agent = aw.LinUCB(dim, 0.5, lam, discount=discount, seed=1)
    A, b = lam * np.eye(dim), np.zeros(dim)
    for _ in range(400):
        X = rng.normal(size=(5, dim))
        inverse = np.linalg.inv(A)
        scores = X @ inverse @ b + 0.5 * np.sqrt(np.einsum("ai,ij,aj->a", X, inverse, X))
        np.testing.assert_allclose(agent._scores(X), scores, rtol=1e-9, atol=1e-9)
        choice = agent.choose(X)
        x, reward = X[choice.arm], float(rng.normal())
        agent.learn(X, choice, reward)
        A = discount * (A - lam * np.eye(dim)) + lam * np.eye(dim) + np.outer(x, x)
        b = discount * b + reward * x


def test_fading_follows_a_world_that_turns_around():
    """If forgetting did nothing, 2000 rounds of the old world would outweigh 300 of the new one."""
    X = np.tile(np.eye(2), (2000, 1, 1))
    steady, fading = aw.LinUCB(2, 0.3, seed=1), aw.LinUCB(2, 0.3, discount=0.98, seed=1)
    for agent in (steady, fading):
        agent.play(X, np.tile([0.9, 0.1], (2000, 1)))
    late = [agent.play(X[:300], np.tile([0.1, 0.9], (300, 1))).rewards.mean() for agent in (steady, fading)]
    assert late[1] > 0.6 > 0.4 > late[0]


def test_ties_at_the_cold_start_are_broken_uniformly():
    counts = np.zeros(5)
    for seed in range(2000):
        choice = aw.LinUCB(3, 1.0, seed=seed).choose(np.ones((5, 3)))
        assert choice.probability == pytest.approx(0.2)
        counts[choice.arm] += 1
    assert np.all(np.abs(counts / 2000 - 0.2) < 5 * np.sqrt(0.16 / 2000))


def test_regret_stays_under_the_bound_and_grows_no_faster_than_it():
    """Theorem 3 with the ellipsoid's alpha; a failure means widths too small, or learning from the wrong arm."""
    d, K, T, noise, delta = 5, 10, 4000, 0.1, 0.05
    over, curves = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)
        X = rng.normal(size=(T, K, d))
        X /= np.linalg.norm(X, axis=2, keepdims=True)
        means = X @ theta
        agent = aw.LinUCB(d, aw.Ellipsoid(noise, 1.0, delta), 1.0, seed=seed)
        played = agent.play(X, means + noise * rng.normal(size=(T, K)))
        regret = np.cumsum(means.max(axis=1) - means[np.arange(T), played.arms])
        over += regret[-1] > aw.LinUCB.theory.regret_bound(T=T, d=d, R=noise, S=1.0, L=1.0, lam=1.0, delta=delta)
        curves.append(regret)
    assert over == 0
    mean = np.mean(curves, axis=0)
    slope = np.polyfit(np.log([500, 1000, 2000, 4000]), np.log(mean[[499, 999, 1999, 3999]]), 1)[0]
    assert slope < aw.LinUCB.theory.exponent + 0.1


def test_the_width_is_that_of_the_prior_mean():
    assert width_of(None, [0.0, 1.0]) == 2
    assert width_of(3, None) == 3
    assert width_of(None, None) is None
