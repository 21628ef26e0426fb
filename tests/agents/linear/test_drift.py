"""Forgetting is by time: an arm's width grows while it rests, with ``discount`` and with ``window``, on every path."""

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.models.ridge import Ridge

FORGETTING = [{"discount": 0.99}, {"window": 300}]
AGENTS = {"LinUCB": aw.LinUCB, "LinThompson": aw.LinThompson}


def change(T=1500):
    """Arm 0 pays .9 and arm 1 .5 for T rounds, then arm 0 .5 and arm 1 .9: the best arm so far gives nothing away."""
    rng = np.random.default_rng([4, 11])
    means = np.repeat([[0.9, 0.5], [0.5, 0.9]], T, axis=0)
    return np.ones((2 * T, 1)), (rng.random((2 * T, 2)) < means).astype(float)


@pytest.mark.parametrize("forgetting", FORGETTING, ids=["discount", "window"])
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("n_arms", [2, None], ids=["disjoint", "shared"])
def test_a_change_of_the_best_arm_is_found(name, n_arms, forgetting):
    """A failure means that a resting arm is never tried again: the new best arm would be played 0 of 1,500 times."""
    X, rewards = change()
    contexts = X if n_arms else np.broadcast_to(np.eye(2), (len(X), 2, 2))
    agent = AGENTS[name](1 if n_arms else 2, n_arms=n_arms, seed=1, **forgetting)
    arms = agent.play(contexts, rewards).arms
    assert arms[1000:1500].mean() < 0.3  # the old world is learnt
    assert arms[2000:].mean() > 0.7  # and so is the new one


@pytest.mark.parametrize("forgetting", [{"discount": 0.9}, {"window": 25}], ids=["discount", "window"])
def test_the_models_are_those_of_the_weighted_history(forgetting):
    """A = lam I + sum w_i x x' over everything learnt, w_i by age in rewards, whichever model learnt them."""
    rng = np.random.default_rng(2)
    d, M, lam = 4, 3, 0.7
    model = Ridge(d, lam, M, **forgetting)
    history = []
    for _ in range(120):
        history.append((int(rng.integers(M)), rng.normal(size=d), float(rng.normal())))
        model.update(history[-1][1], history[-1][2], history[-1][0])
    for m in range(M):
        A, b = lam * np.eye(d), np.zeros(d)
        for age, (which, x, r) in enumerate(reversed(history)):
            w = forgetting.get("discount", 1.0) ** age if age < forgetting.get("window", len(history)) else 0.0
            if which == m:
                A, b = A + w * np.outer(x, x), b + w * r * x
        np.testing.assert_allclose(model.theta[m], np.linalg.solve(A, b), atol=1e-9)
        W = model.factor(m)
        np.testing.assert_allclose(W.T @ W, np.linalg.inv(A), atol=1e-9)


@pytest.mark.parametrize("n_arms", [3, None], ids=["disjoint", "shared"])
@pytest.mark.parametrize("forgetting", [{}, {"discount": 0.95}, {"window": 20}], ids=["none", "discount", "window"])
@pytest.mark.parametrize("name", AGENTS)
def test_play_the_loop_and_a_reloaded_agent_agree_by_default(name, forgetting, n_arms):
    rng = np.random.default_rng(3)
    contexts, rewards = 5.0 * rng.normal(size=(150, 3, 4)), rng.normal(size=(150, 3))
    if n_arms:
        contexts = np.ascontiguousarray(contexts[:, 0])
    agent = AGENTS[name](4, n_arms=n_arms, seed=2, **forgetting)
    loop = agent.clone(seed=2)
    played = agent.play(contexts[:90], rewards[:90])
    for t in range(90):
        choice = loop.choose(contexts[t])
        assert choice.arm == played.arms[t]
        loop.learn(contexts[t], choice, rewards[t, choice.arm])
    assert saving.dumps(agent) == saving.dumps(loop)
    again = saving.loads(saving.dumps(agent))
    rest = [each.play(contexts[90:], rewards[90:]).arms.tolist() for each in (agent, again)]
    assert rest[0] == rest[1]
    fresh = agent.clone(seed=2)
    assert fresh.play(contexts[:90], rewards[:90]).arms.tolist() == played.arms.tolist()


def test_two_ways_to_forget_are_one_too_many():
    with pytest.raises(ValueError, match="choose one way to forget"):
        aw.LinUCB(2, discount=0.9, window=10)
    with pytest.raises(ValueError, match="window must be a whole number >= 1, got int 0"):
        aw.LinThompson(2, window=0)
