"""A ridge over the nodes of a graph: A = L + lam I + sum e_a e_a', so theta holds the mean of every node.

With L = Q diag(l) Q' and the rows of Q as features, V = Q' A Q, hence x_a' V^-1 x_a = (A^-1)_aa and x_a.alpha_hat is
theta_a: the kernels of ``ridge`` serve as they stand, in the basis of the nodes, without the eigenvectors.
"""

from __future__ import annotations

import numpy as np

from noregret.numerics import ridge
from noregret.numerics.choice import best_arms
from noregret.numerics.jit import jit


@jit
def refresh_widths(F: np.ndarray, widths: np.ndarray) -> None:
    """sqrt((A^-1)_aa) of every node: the norm of row a of S.

    >>> widths = np.empty(2)
    >>> refresh_widths(np.array([[[3.0, 4.0], [9.0, 2.0]]]), widths)
    >>> widths
    array([5., 2.])
    """
    n = widths.size
    for a in range(n):
        total = 0.0
        for i in range(a, n):
            total += F[0, a, i] * F[0, a, i]
        widths[a] = np.sqrt(total)


@jit
def learn(
    F: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    theta: np.ndarray,
    age: np.ndarray,
    widths: np.ndarray,
    arm: int,
    reward: float,
    period: int,
) -> None:
    """One node's reward; means and widths of all nodes follow, in O(n) for each of n directions.

    >>> v, widths = np.ones((1, 1)), np.ones(1)
    >>> learn(np.ones((1, 1, 1)), v, 0 * v, 0 * v, np.zeros(1, np.int64), widths, 0, 1.0, 9)
    >>> widths ** 2
    array([0.5])
    """
    n = widths.size
    x = np.zeros(n)
    x[arm] = 1.0
    ridge.learn(F, diagonal, b, theta, age, 0, x, reward, 1.0, 1.0, period, np.empty((4, n)))
    refresh_widths(F, widths)


@jit
def play(
    F: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    theta: np.ndarray,
    age: np.ndarray,
    widths: np.ndarray,
    c: float,
    rewards: np.ndarray,
    period: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """SpectralUCB over a block of rounds: arms, probabilities, rewards.

    >>> v = np.ones((1, 1))
    >>> play(np.ones((1, 1, 1)), v, 0 * v, 0 * v, np.zeros(1, np.int64), np.ones(1), 1.0, np.ones((2, 1)), 9,
    ...     np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        ties = best_arms(theta[0] + c * widths)
        arm = ties[0] if ties.size == 1 else ties[int(rng.random() * ties.size)]
        arms[t], probabilities[t], got[t] = arm, 1.0 / ties.size, rewards[t, arm]
        learn(F, diagonal, b, theta, age, widths, arm, got[t], period)
    return arms, probabilities, got
