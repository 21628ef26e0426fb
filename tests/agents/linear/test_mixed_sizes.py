"""Rows of very different sizes are refused without a trace, or learnt; very many arms cost what one does to learn."""

import copy

import numpy as np
import pytest

import armwise as aw
from armwise.core.saving import dumps, loads
from armwise.models.ridge import Ridge
from armwise.native import fits

X = np.array([[1.0, 1.0]])
HUGE = X * [1e8, 7e7]
FORGETTING = [
    lambda: aw.LinUCB(2, discount=0.9, seed=1),
    lambda: aw.LinUCB(2, alpha=1.0, lam=0.1, discount=0.9, seed=1),
    lambda: aw.LinThompson(2, discount=0.9, seed=1),
    lambda: aw.EpsilonGreedy(1, model=Ridge(2, 0.1, 1, discount=0.9), seed=1),
    lambda: aw.Explore(aw.LinUCB(2, discount=0.9, seed=1), 0.0, seed=1),
]


def first(agent):
    agent.learn(X[0] if agent.sees == "shared" else X, aw.Choice(0, 1.0), 1.0)
    return HUGE[0] if agent.sees == "shared" else HUGE


@pytest.mark.parametrize("make", FORGETTING)
def test_a_row_that_is_refused_changes_nothing_and_is_named(make):
    agent = make()
    huge = first(agent)
    before, estimated = dumps(agent), agent.estimate(X)
    for refused in (
        lambda: agent.learn(huge, aw.Choice(0, 1.0), 1.0),
        lambda: agent.learn_many(huge[None], [aw.Choice(0, 1.0)], [1.0]),
    ):
        with pytest.raises(ValueError, match=r"context is too large for a ridge of 0\.1 .* scale the features"):
            refused()
        assert dumps(agent) == before
    with pytest.raises(ValueError, match="context is too large"):
        agent.play(huge[None], [[1.0]])  # has drawn an arm, and learnt nothing
    np.testing.assert_array_equal(agent.estimate(X), estimated)
    assert agent.t == 2


def test_a_ridge_that_a_refused_row_would_settle_stays_open():
    model = Ridge(dim=2, discount=0.5)
    before = dumps(model)
    with pytest.raises(ValueError, match="context"):
        model.learn(np.array([[1e150, 1e150]]), 0, 1e200)
    assert dumps(model) == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: aw.LinUCB(2, alpha=1.0, lam=0.1, window=5, seed=1),
        lambda: aw.LinThompson(2, v=1.0, lam=0.1, window=5, seed=1),
    ],
)
def test_a_window_gets_over_a_huge_row(make):
    """Sums lose all other rows beside it: the model is then fitted to the rows, and the sums taken anew after it."""
    agent, rng = make(), np.random.default_rng(1)
    first(agent)
    agent.learn(HUGE, aw.Choice(0, 1.0), 1.0)
    rows, rewards = rng.random((9, 1, 2)), rng.random(9)
    for t in range(9):
        agent.learn(rows[t], aw.Choice(0, 1.0), rewards[t])
        if t < 4:  # it is still in the window
            known = np.concatenate([X, HUGE, rows[: t + 1, 0]])[-5:]
            targets = np.concatenate([[1.0, 1.0], rewards[: t + 1]])[-5:]
            stacked = np.concatenate([np.sqrt(0.1) * np.eye(2), known])
            theta = np.linalg.lstsq(stacked, np.concatenate([np.zeros(2), targets]), rcond=None)[0]
            np.testing.assert_allclose(agent.estimate(np.eye(2))[0], theta, rtol=1e-6)
    last = rows[-5:, 0]
    theta = np.linalg.solve(0.1 * np.eye(2) + last.T @ last, last.T @ rewards[-5:])
    np.testing.assert_allclose(agent.estimate(np.eye(2))[0], theta, rtol=1e-9)


@pytest.mark.parametrize("name", ["LinUCB", "LinThompson", "SquareCB", "RegCB"])
def test_the_noise_of_many_arms_is_learnt_from_those_that_learnt(name):
    """What a reward costs must not grow with the number of arms: a model that has learnt nothing is not looked at."""
    agent, x, rng = getattr(aw, name)(3, n_arms=500, seed=1), np.ones(3), np.random.default_rng(1)
    for _ in range(9):
        agent.learn(x, agent.choose(x), float(rng.random()))
    assert 0 < fits.explained(agent._model.models, 3)[-1] <= 9


@pytest.mark.parametrize("settings", [{}, {"window": 7}, {"discount": 0.9}, {"prior_mean": [0.1, 0.2, 0.3]}])
def test_the_noise_is_that_of_all_models(settings):
    """A loaded agent goes on as the one saved, to the bit, wherever it was saved: no estimate is kept beside."""
    rng = np.random.default_rng(2)
    agent = aw.LinUCB(3, n_arms=6, seed=1, **settings)
    for t in range(60):
        x = rng.random(3)
        agent.learn(x, agent.choose(x), float(rng.random()))
        if t == 20:
            agent.add_arm()
        if t == 40:
            agent.remove_arm(2)
        again, one = loads(dumps(agent)), copy.deepcopy(agent)
        for each in (again, one):
            for _ in range(3):
                each.learn(x, aw.Choice(1, None), 0.7)
        assert dumps(again) == dumps(one)


SHARED = {"n_arms": 3}


@pytest.mark.parametrize("size", [1e-160, 1e-155, 1e-140, 1e-100])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LinUCB", {}),
        ("LinUCB", SHARED),
        ("LinUCB", {"discount": 0.9}),
        ("LinUCB", {"window": 3}),
        ("LinThompson", {}),
        ("SquareCB", {}),
        ("SquareCB", SHARED),
        ("RegCB", {}),
        ("FastCB", {}),
        ("HybridLinUCB", {"n_arms": 3, "shared": 1}),
        ("EpsilonGreedy", {"model": None}),
    ],
)
def test_tiny_rows_do_not_shut_out_those_that_come_after_them(name, settings, size):
    """A ridge of 1e-320 would make a row of length 1 overflow, and the agent refuse it for good."""
    if name == "EpsilonGreedy":
        agent = aw.EpsilonGreedy(model=Ridge(3), seed=1)
    else:
        agent = getattr(aw, name)(3, seed=1, **settings)
    for X in [size * np.eye(3)] * 5 + [np.eye(3)] * 5:
        context = X.sum(axis=0) if agent.sees == "shared" else X
        choice = agent.choose(context)
        agent.learn(context, choice, 1.0)
    assert np.isfinite(agent.probabilities(context)).all()
