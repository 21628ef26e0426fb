"""Sums over rounds for every policy of an explicit class at once: the inner loops of the oracle agents.

``table[j, h]`` is the arm that policy h recommends in the j-th distinct context.
"""

from __future__ import annotations

import numpy as np

from armwise.numerics.jit import jit


@jit
def policy_totals(table: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Each policy's total of ``rewards[j, table[j, h]]`` over the rows, in one pass over the table.

    >>> policy_totals(np.array([[0, 1], [1, 1]], np.uint8), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([5., 6.])
    """
    n, N = table.shape
    totals = np.zeros(N)
    for j in range(n):
        for h in range(N):
            totals[h] += rewards[j, table[j, h]]
    return totals


@jit
def add_rewards(totals: np.ndarray, row: np.ndarray, rewards: np.ndarray) -> None:
    """One more row: each policy's total grows by the reward of the arm it recommends.

    >>> totals = np.zeros(3)
    >>> add_rewards(totals, np.array([0, 1, 1], np.uint8), np.array([0.0, 2.0]))
    >>> totals
    array([0., 2., 2.])
    """
    for h in range(row.size):
        totals[h] += rewards[row[h]]


@jit
def arm_masses(table: np.ndarray, weights: np.ndarray, n_arms: int) -> np.ndarray:
    """W[j, a]: the total weight of the policies that recommend arm a in row j.

    >>> arm_masses(np.array([[0, 1, 1]], np.uint8), np.array([0.5, 0.25, 0.25]), 3)
    array([[0.5, 0.5, 0. ]])
    """
    n, N = table.shape
    masses = np.zeros((n, n_arms))
    for j in range(n):
        for h in range(N):
            masses[j, table[j, h]] += weights[h]
    return masses


@jit
def smoothed(masses: np.ndarray, mu: float) -> np.ndarray:
    """(1 - K mu) W + mu: every arm keeps a probability of at least mu.

    >>> smoothed(np.array([1.0, 0.0]), 0.25)
    array([0.75, 0.25])
    """
    W: np.ndarray = (1.0 - masses.shape[-1] * mu) * masses + mu
    return W
