"""FastCB against its formula, and what it is for: less exploration where the best loss is small."""

import numpy as np
import pytest

import armwise as aw

K, D = 3, 4


def naive(y, gamma):
    """The paper's allocation over predicted losses; the mean over which of the best arms is taken for the best."""
    best = np.flatnonzero(y <= y.min() + 1e-12)
    p = np.zeros(len(y))
    for b in best:
        q = np.array([y[b] / (len(y) * y[b] + gamma * (y[a] - y[b])) if a != b else 0.0 for a in range(len(y))])
        q[b] = 1.0 - q.sum()
        p += q / len(best)
    return p


@pytest.mark.parametrize("shared", [False, True])
def test_probabilities_are_the_formula_over_ridge(shared):
    rng = np.random.default_rng(1)
    agent = aw.FastCB(D, n_arms=K if shared else None, gamma=2.0, exponent=0.4, scale=0.5, lam=0.3, seed=1)
    A = np.array([0.3 * np.eye(D) for _ in range(K if shared else 1)])
    moment = np.zeros((len(A), D))
    for t in range(1, 80):
        context = rng.random(D) if shared else rng.random((K, D))
        rows = np.tile(context, (K, 1)) if shared else context
        theta = [np.linalg.solve(A[i], moment[i]) for i in range(len(A))]
        estimate = np.array([rows[a] @ theta[a if shared else 0] for a in range(K)])
        losses = np.clip(1.0 - estimate, 1.0 / (t + 1), 1.0)
        np.testing.assert_allclose(agent.probabilities(context), naive(losses, 4.0 * t**0.4), atol=1e-9)
        choice = agent.choose(context)
        reward = float(rng.random() < rows[choice.arm].mean())
        agent.learn(context, choice, reward)
        i = choice.arm if shared else 0
        A[i] += np.outer(rows[choice.arm], rows[choice.arm])
        moment[i] += reward * rows[choice.arm]


def test_it_explores_less_than_squarecb_where_an_arm_never_fails_and_not_where_all_often_do():
    """Arm 0 always pays: with the same gamma FastCB leaves it less often. With rates of .1 its floor is SquareCB's."""
    X = np.tile(np.eye(K), (600, 1, 1))
    sure, poor = np.tile([1.0, 0.2, 0.2], (600, 1)), np.tile([0.1, 0.02, 0.02], (600, 1))
    for rewards, at_most in ((sure, 0.5), (poor, 1.3)):
        off = {}
        for make in (aw.FastCB, aw.SquareCB):
            agent = make(K, gamma=3.0, lam=0.1, seed=1)
            agent.play(X, rewards)
            off[make] = 1.0 - agent.probabilities(np.eye(K))[0]
        assert 0.0 < off[aw.FastCB] <= at_most * off[aw.SquareCB]


def test_a_perfect_arm_does_not_end_exploration():
    """An estimate of 1 or more is a loss of 1 / (t + 1), so no arm's probability is 0."""
    agent = aw.FastCB(2, lam=1e-6, seed=1)
    for _ in range(50):
        agent.learn(np.eye(2), aw.Choice(1, 0.5), 1.0)
    assert 0.0 < agent.probabilities(np.eye(2))[0] < 0.01


def test_its_row_claims_no_number():
    assert aw.FastCB.theory.regret_bound is None
