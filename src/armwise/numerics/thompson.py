"""Posterior sampling over ridge models: draws, their winners, and blocks of rounds; both lanes call these.

The order of the random stream is part of the contract between the lanes: first all standard normals of a round, draw
by draw; then, only if some draw ties, one uniform number a draw; then, with several draws, one to choose among the
winners. (Outside of a block the numbers are drawn by the caller: a generator is slow to hand to a compiled function.)
"""

from __future__ import annotations

import numpy as np

from armwise.numerics import ridge
from armwise.numerics.choice import best_arms, draw
from armwise.numerics.jit import jit, jit_block


@jit
def scale(t: int, v: float, coefficient: float, delta: float) -> float:
    """The posterior scale of round t: v, plus coefficient sqrt(ln(t / delta)) for the schedule (0 leaves a number).

    >>> scale(5, 0.5, 0.0, 1.0), round(scale(1, 0.0, 2.0, np.exp(-4.0)), 9)
    (0.5, 4.0)
    """
    if coefficient == 0.0:
        return v
    more: float = coefficient * np.sqrt(np.log(t / delta))
    return v + more


@jit
def winner(scores: np.ndarray, u: float) -> int:
    """The arm with the largest score; ``u`` in [0, 1) picks among ties, and with u < 0 a tie answers -1.

    >>> winner(np.array([0.1, 0.9]), -1.0), winner(np.array([0.9, 0.9]), -1.0), winner(np.array([0.9, 0.9]), 0.5)
    (1, -1, 1)
    """
    ties = best_arms(scores)
    if ties.size > 1 and u < 0.0:
        return -1
    arm: int = ties[0] if ties.size == 1 else ties[int(u * ties.size)]
    return arm


@jit
def posterior_scores(models: np.ndarray, X: np.ndarray, v: float, z: np.ndarray) -> np.ndarray:
    """Scores under one draw from the posterior: X mu with mu = theta + v W'z ~ N(theta, v^2 A^-1).

    With one model an arm, x.mu_a ~ N(x.theta_a, v^2 x' A_a^-1 x) independently, so one normal an arm is the whole draw.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0; models[0, 8, 0] = 3.0
    >>> posterior_scores(models, np.array([[2.0]]), 0.5, np.array([4.0]))
    array([10.])
    """
    if len(models) > 1:
        means, widths = ridge.estimate_all(models, X[0])
        for m in range(len(models)):
            means[m] += v * widths[m] * z[m]
        return means
    K, d = X.shape
    W, mu, scores = models[0], np.zeros(d), np.empty(K)
    for i in range(d):
        vz = v * z[i]
        for j in range(i + 1):
            mu[j] += vz * W[i, j]
    for j in range(d):
        mu[j] += W[W.shape[1], j]
    for a in range(K):
        total = 0.0
        for j in range(d):
            total += X[a, j] * mu[j]
        scores[a] = total
    return scores


@jit
def compete(models: np.ndarray, X: np.ndarray, v: float, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """How many draws (rows of Z) each arm wins. With ``u`` empty a tie makes the first count -1: draw u, call again.

    >>> models = np.zeros((1, 9, 8)); models[0, 8, 0] = 3.0
    >>> compete(models, np.array([[1.0], [2.0]]), 0.5, np.ones((5, 1)), np.empty(0))
    array([0., 5.])
    """
    counts = np.zeros(len(models) if len(models) > 1 else len(X))
    for i in range(len(Z)):
        arm = winner(posterior_scores(models, X, v, Z[i]), u[i] if u.size else -1.0)
        if arm < 0:
            counts[0] = -1.0
            return counts
        counts[arm] += 1.0
    return counts


@jit_block
def play(
    models: np.ndarray,
    grams: np.ndarray,
    moments: np.ndarray,
    contexts: np.ndarray,
    rewards: np.ndarray,
    lam: float,
    discount: float,
    first: int,
    v: float,
    coefficient: float,
    delta: float,
    draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thompson sampling over a block that begins at round ``first``: arms, how many draws each won, rewards.

    Contexts as in ``ridge.play_optimistic``; forgetting as in ``ridge.learn``.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
    >>> none = np.zeros((1, 0, 0))
    >>> play(models, none, none[0], np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 1.0, 1, 0.5, 0.0, 1.0, 3,
    ...     np.random.default_rng(1))
    (array([0, 0]), array([3., 3.]), array([1., 1.]))
    """
    T, disjoint = len(rewards), len(models) > 1
    arms, wins, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    Z, u, none = np.empty((draws, len(models) if disjoint else contexts.shape[2])), np.empty(draws), np.empty(0)
    for t in range(T):
        for i in range(draws):
            for j in range(Z.shape[1]):
                Z[i, j] = rng.standard_normal()
        scaled = scale(first + t, v, coefficient, delta)
        counts = compete(models, contexts[t], scaled, Z, none)
        if counts[0] < 0.0:
            for i in range(draws):
                u[i] = rng.random()
            counts = compete(models, contexts[t], scaled, Z, u)
        arm = int(np.argmax(counts)) if draws == 1 else draw(counts, draws * rng.random())
        arms[t], wins[t], got[t] = arm, counts[arm], rewards[t, arm]
        m, row = (arm, 0) if disjoint else (0, arm)
        ridge.learn(models, grams, moments, m, contexts[t], row, rewards[t, arm], lam, discount)
    return arms, wins, got
