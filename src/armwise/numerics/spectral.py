"""A ridge over the nodes of a graph: A = L + lam I + sum e_a e_a', so theta holds the mean of every node.

With L = Q diag(l) Q' and the rows of Q as features, V = Q' A Q, hence x_a' V^-1 x_a = (A^-1)_aa and x_a.alpha_hat is
theta_a: the kernels of ``ridge`` serve as they stand, in the basis of the nodes, without the eigenvectors.
"""

from __future__ import annotations

import numpy as np

from armwise.numerics import ridge
from armwise.numerics.choice import best_arms
from armwise.numerics.jit import jit, jit_block


@jit
def node_widths(model: np.ndarray, widths: np.ndarray) -> None:
    """sqrt((A^-1)_aa) of every node, the norm of column a of W; A^-1 = W'W.

    >>> model, widths = np.zeros((9, 8)), np.empty(2)
    >>> model[:2, :2] = [[3.0, 0.0], [4.0, 2.0]]
    >>> node_widths(model, widths)
    >>> widths
    array([5., 2.])
    """
    n = widths.size
    widths[:] = 0.0
    for i in range(n):
        for a in range(i + 1):
            widths[a] += model[i, a] * model[i, a]
    for a in range(n):
        widths[a] = np.sqrt(widths[a])


@jit
def learn(model: np.ndarray, widths: np.ndarray, arm: int, reward: float) -> None:
    """One node's reward; means and widths of all nodes follow, in O(n) for each of n directions.

    >>> model, widths = np.zeros((9, 8)), np.ones(1)
    >>> model[0, 0] = 1.0
    >>> learn(model, widths, 0, 1.0)
    >>> (widths ** 2).round(9)
    array([0.5])
    """
    x = np.zeros(model.shape[1])
    x[arm] = 1.0
    ridge.update(model, x, reward)
    node_widths(model, widths)


@jit
def scores(model: np.ndarray, widths: np.ndarray, c: float) -> np.ndarray:
    """theta_a + c widths_a of every node.

    >>> scores(np.ones((9, 8)), np.ones(2), 0.5)
    array([1.5, 1.5])
    """
    return model[model.shape[1], : widths.size] + c * widths


@jit_block
def play(
    model: np.ndarray, widths: np.ndarray, c: float, rewards: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """SpectralUCB over a block of rounds: arms, probabilities, rewards.

    >>> model = np.zeros((9, 8))
    >>> model[0, 0] = 1.0
    >>> play(model, np.ones(1), 1.0, np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        ties = best_arms(scores(model, widths, c))
        arm = ties[0] if ties.size == 1 else ties[int(rng.random() * ties.size)]
        arms[t], probabilities[t], got[t] = arm, 1.0 / ties.size, rewards[t, arm]
        learn(model, widths, arm, rewards[t, arm])
    return arms, probabilities, got
