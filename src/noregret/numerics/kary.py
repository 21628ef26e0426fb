"""K-armed agents, step and block: one kernel for both lanes."""

from __future__ import annotations

import numpy as np

from noregret.numerics.choice import draw
from noregret.numerics.jit import jit
from noregret.numerics.weights import importance_weighted, mixed


@jit
def exp3_learn(log_weights: np.ndarray, gamma: float, arm: int, probability: float, reward: float) -> None:
    """w_a *= exp(gamma r_hat_a / K), in log space.

    >>> log_weights = np.zeros(2)
    >>> exp3_learn(log_weights, 0.5, 1, 0.5, 1.0)
    >>> log_weights
    array([0. , 0.5])
    """
    log_weights[arm] += gamma * importance_weighted(reward, probability) / log_weights.size


@jit
def exp3_play(
    log_weights: np.ndarray, gamma: float, rewards: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exp3 over a block of rounds: arms, probabilities, rewards.

    >>> exp3_play(np.zeros(1), 0.5, np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        p = mixed(log_weights, gamma)
        arm = draw(p, rng.random())
        arms[t], probabilities[t], got[t] = arm, p[arm], rewards[t, arm]
        exp3_learn(log_weights, gamma, arm, p[arm], rewards[t, arm])
    return arms, probabilities, got
