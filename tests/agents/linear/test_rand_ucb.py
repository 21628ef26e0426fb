"""RandUCB against its paper, written down naively: a multiplier at a time, with a matrix that is inverted anew."""

import math
from typing import Any

import numpy as np
import pytest

import armwise as aw


def naive(agent: aw.RandUCB, X: np.ndarray, rows: np.ndarray, rewards: np.ndarray, lam: float) -> np.ndarray:
    """The probabilities after these rows and rewards; noise, centre and its number of rewards are the agent's."""
    A = lam * np.eye(X.shape[1]) + rows.T @ rows
    theta = np.linalg.solve(A, rows.T @ (rewards - agent._model.centre))
    largest = math.sqrt(2.0 * math.log(1.0 + agent._noise.learnt))
    p = np.zeros(len(X))
    total = 0.0
    for i in range(agent.points):
        z = largest * (agent.low + (1.0 - agent.low) * i / (agent.points - 1))
        q = math.exp(-((z - agent.low * largest) ** 2) / (2.0 * agent.spread**2))
        scores = [x @ theta + z * agent._noise.deviation * math.sqrt(x @ np.linalg.solve(A, x)) for x in X]
        p[int(np.argmax(scores))] += q
        total += q
    return p / total


@pytest.mark.parametrize(("points", "low", "spread"), [(20, 0.35, 0.5), (7, 0.0, 2.0)])
def test_probabilities_are_those_of_a_naive_version(points, low, spread):
    rng = np.random.default_rng(1)
    agent = aw.RandUCB(3, 0.5, points=points, low=low, spread=spread, seed=2)
    rows: list[np.ndarray] = []
    rewards: list[float] = []
    seen: set[int] = set()
    for _ in range(80):
        X = rng.normal(size=(4, 3))
        if len(rows) > 2:  # before there is a noise all arms tie
            p = agent.probabilities(X)
            np.testing.assert_allclose(p, naive(agent, X, np.array(rows), np.array(rewards), 0.5), atol=1e-9)
            seen.add(int((p > 0.0).sum()))
        choice = agent.choose(X)
        reward = float(X[choice.arm] @ [0.4, -0.3, 0.1] + rng.normal())
        agent.learn(X, choice, reward)
        rows.append(X[choice.arm])
        rewards.append(reward)
    assert max(seen) > 1  # it is not LinUCB


def test_arms_are_played_as_often_as_was_said():
    """4,000 choices without learning: a frequency off by 4 standard errors fails in one of 16,000 runs."""
    agent = aw.RandUCB(1, n_arms=3, seed=3)
    for arm, n in enumerate((20, 8, 6)):  # means .5, .375, .33: fewer rewards, wider
        for t in range(n):
            agent.learn([1.0], aw.Choice(arm, None), float(t < (10, 3, 2)[arm]))
    p = agent.probabilities([1.0])
    arms = agent.choose_many(np.ones((4000, 1))).arms
    errors = np.sqrt(p * (1.0 - p) / 4000)
    assert (np.abs(np.bincount(arms, minlength=3) / 4000 - p) <= 4.0 * errors + 1e-12).all()
    assert (p > 0.0).sum() > 1


def test_no_run_is_stuck():
    """Arms at .4 and .6, 20 runs of 2,000 rounds: a rule that is stuck in a sixth of them passes in one of 40."""
    for seed in range(20):
        R = (np.random.default_rng(seed).random((2000, 2)) < [0.4, 0.6]).astype(float)
        assert aw.RandUCB(1, n_arms=2, seed=seed).play(np.ones((2000, 1)), R).arms[-300:].mean() > 0.5


def test_a_shift_of_the_rewards_changes_no_choice():
    rng = np.random.default_rng(5)
    X, R = rng.normal(size=(200, 3)), np.round(rng.normal(size=(200, 2)) * 1024) / 1024
    arms = [aw.RandUCB(3, n_arms=2, seed=1).play(X, R + shift).arms.tolist() for shift in (0.0, 1000.0)]
    assert arms[0] == arms[1]


def test_bad_arguments_are_named():
    wrong: list[tuple[str, Any]] = [("points", 0), ("low", 1.5), ("spread", 0.0), ("scale", -1.0), ("n_arms", 0)]
    for argument, value in wrong:
        with pytest.raises(ValueError, match=argument):
            aw.RandUCB(2, **{argument: value})
