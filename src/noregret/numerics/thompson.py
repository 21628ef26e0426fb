"""Posterior sampling over ridge models: draws, their winners, and blocks of rounds; both lanes call these."""

from __future__ import annotations

import numpy as np

from noregret.numerics import ridge
from noregret.numerics.choice import best_arms, draw
from noregret.numerics.jit import jit


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
def winner(scores: np.ndarray, rng: np.random.Generator) -> int:
    """The arm with the largest score, ties broken uniformly.

    >>> winner(np.array([0.1, 0.9]), np.random.default_rng(1))
    1
    """
    ties = best_arms(scores)
    arm: int = ties[0] if ties.size == 1 else ties[int(rng.random() * ties.size)]
    return arm


@jit
def posterior_scores(models: np.ndarray, X: np.ndarray, v: float, rng: np.random.Generator) -> np.ndarray:
    """Scores under one draw from the posterior: X mu with mu = theta + v W'z ~ N(theta, v^2 A^-1).

    With one model an arm, x.mu_a ~ N(x.theta_a, v^2 x' A_a^-1 x) independently, so one normal an arm is the whole draw.

    >>> models = np.zeros((1, 9, 8)); models[0, 8, 0] = 3.0
    >>> posterior_scores(models, np.array([[2.0]]), 0.5, np.random.default_rng(1))
    array([6.])
    """
    if len(models) > 1:
        means, widths = ridge.estimate_all(models, X[0])
        for m in range(len(models)):
            means[m] += v * widths[m] * rng.standard_normal()
        return means
    K, d = X.shape
    W, mu, scores = models[0], np.zeros(d), np.empty(K)
    for i in range(d):
        z = v * rng.standard_normal()
        for j in range(i + 1):
            mu[j] += z * W[i, j]
    for j in range(d):
        mu[j] += W[W.shape[1], j]
    for a in range(K):
        total = 0.0
        for j in range(d):
            total += X[a, j] * mu[j]
        scores[a] = total
    return scores


@jit
def frequencies(models: np.ndarray, X: np.ndarray, v: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    """How often each arm wins among ``draws`` draws from the posterior.

    >>> models = np.zeros((1, 9, 8)); models[0, 8, 0] = 3.0
    >>> frequencies(models, np.array([[1.0], [2.0]]), 0.5, 5, np.random.default_rng(1))
    array([0., 1.])
    """
    counts = np.zeros(len(models) if len(models) > 1 else len(X))
    for _ in range(draws):
        counts[winner(posterior_scores(models, X, v, rng), rng)] += 1.0
    return counts / draws


@jit
def choose(models: np.ndarray, X: np.ndarray, v: float, draws: int, rng: np.random.Generator) -> tuple[int, float]:
    """An arm and its probability (NaN for a single draw, which does not tell it).

    >>> models = np.zeros((1, 9, 8)); models[0, 8, 0] = 3.0
    >>> choose(models, np.array([[1.0], [2.0]]), 0.5, 5, np.random.default_rng(1))
    (1, 1.0)
    """
    if draws == 1:
        return winner(posterior_scores(models, X, v, rng), rng), np.nan
    p = frequencies(models, X, v, draws, rng)
    arm = draw(p, rng.random())
    return arm, p[arm]


@jit
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
    """Thompson sampling over a block that begins at round ``first``; contexts as in ``ridge.play_optimistic``.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
    >>> none = np.zeros((1, 0, 0))
    >>> play(models, none, none[0], np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 1.0, 1, 0.5, 0.0, 1.0, 3,
    ...     np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T, disjoint = len(rewards), len(models) > 1
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        arm, p = choose(models, contexts[t], scale(first + t, v, coefficient, delta), draws, rng)
        arms[t], probabilities[t], got[t] = arm, p, rewards[t, arm]
        m, row = (arm, 0) if disjoint else (0, arm)
        ridge.learn(models, grams, moments, m, contexts[t], row, rewards[t, arm], lam, discount)
    return arms, probabilities, got
