"""OnlineCover's estimates: the default must find the best policy of its class whatever the rewards look like."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import armwise as aw


def test_the_default_finds_the_perfect_policy_where_no_linear_model_can():
    """Rewards depend on x0 x1, which no linear model sees: a regret near chance (1,500) means that the policies are
    taught a regression's mistakes, as estimator="dm" does."""
    policies = [
        lambda x: int(x[0] * x[1] > 0),
        lambda x: int(x[0] * x[1] <= 0),
        lambda x: 0,
        lambda x: 1,
    ]
    regrets = []
    for seed in range(3):
        rng = np.random.default_rng([seed, 17])
        X = rng.choice([-1.0, 1.0], (2500, 2))
        means = np.where(np.arange(2) == (X[:, :1] * X[:, 1:] > 0), 0.8, 0.2)
        agent = aw.OnlineCover(policies, n_arms=2, seed=seed)
        arms = agent.play(X, (rng.random(means.shape) < means).astype(float)).arms
        regrets.append(float((0.8 - means[np.arange(2500), arms]).sum()))
    assert agent.estimator == "dr"
    assert max(regrets) < 150, regrets


@pytest.mark.parametrize("estimator", [None, "dm", "iwr"])
def test_over_linear_policies_the_first_one_is_the_regression_of_what_was_played(estimator):
    """Ridge over the rounds in which each arm was played, as they are or, for "iwr", each weighed 1 / p."""
    rng = np.random.default_rng(5)
    agent = aw.OnlineCover(aw.LinearOracle(3, lam=0.3, intercept=False), 2, estimator=estimator, seed=1)
    X, rewards = rng.normal(size=(60, 3)), rng.random((60, 2))
    played = agent.play(X, rewards)
    assert agent.estimator == (estimator or "dm") and len(set(played.probabilities)) > 10
    for arm, theta in enumerate(agent._policies[0].best().weights):
        at = played.arms == arm
        A, w = X[at], 1 / played.probabilities[at] if estimator == "iwr" else np.ones(at.sum())
        np.testing.assert_allclose(
            theta, np.linalg.solve(0.3 * np.eye(3) + (A.T * w) @ A, (A.T * w) @ rewards[at, arm])
        )


def test_digits_are_learnt_by_linear_policies():
    """Two orders of 1,797 digits, right or wrong alone: below 34 % wrong. Rounds weighed 1 / p have 39 %, policies that
    learn a changing model's guesses more: then rare arms with a large weight decide what all policies do."""
    X, y = load_digits(return_X_y=True)
    wrong = []
    for seed in (1, 4):
        order = np.random.default_rng(seed).permutation(len(y))
        agent = aw.OnlineCover(aw.LinearOracle(64), 10, seed=seed)
        wrong.append(1 - agent.play(X[order] / 16, np.eye(10)[y[order]]).rewards.mean())
    assert np.mean(wrong) < 0.34, wrong
