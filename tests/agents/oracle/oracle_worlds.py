"""Small worlds for the oracle agents: contexts are rows of a table of actions, and one policy is right everywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Planted(NamedTuple):
    """``table[i, h]`` is what policy h plays in context i; policy ``best`` always plays the best arm."""

    table: np.ndarray
    means: np.ndarray
    best: int

    def rounds(self, T: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        contexts = rng.integers(len(self.table), size=T)
        rewards = (rng.random((T, self.means.shape[1])) < self.means[contexts]).astype(float)
        return contexts[:, None].astype(float), rewards

    def regret(self, contexts: np.ndarray, arms: np.ndarray) -> float:
        rows = contexts[:, 0].astype(int)
        return float((self.means[rows].max(axis=1) - self.means[rows, arms]).sum())


def planted(n_contexts: int, N: int, K: int, seed: int, *, gap: float = 0.5, agree: float = 0.0) -> Planted:
    """Policies play at random, except that each follows the best one in a share ``agree`` of the contexts."""
    rng = np.random.default_rng(seed)
    right = rng.integers(K, size=n_contexts)
    table = rng.integers(K, size=(n_contexts, N))
    table = np.where(rng.random((n_contexts, N)) < agree, right[:, None], table)
    best = int(rng.integers(N))
    table[:, best] = right
    means = np.full((n_contexts, K), 0.5 - gap / 2)
    means[np.arange(n_contexts), right] += gap
    return Planted(table, means, best)
