"""The tabular world: C distinct contexts, each with its own arms' rewards (survey 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.agent import count, fraction
from armwise.environments.base import (
    BEST_ARM_EACH_ROUND,
    BEST_ARM_IN_EXPECTATION,
    BEST_ARM_IN_HINDSIGHT,
    BEST_MAP,
    Block,
    Blocks,
    Environment,
    block_sizes,
)


class Tabular(Environment):
    """Contexts 0 .. C-1 come uniformly; each context's best arm pays 1 with chance 1/2 + gap/2, others 1/2 - gap/2.

    With ``n_contexts=1`` it is the plain K-armed world.

    >>> block = next(Tabular(n_contexts=4, n_arms=3).blocks(horizon=100, seed=1))
    >>> sorted(set(block.view("key")))
    [0, 1, 2, 3]
    """

    comparator = BEST_MAP

    def __init__(self, n_contexts: int = 10, n_arms: int = 5, *, gap: float = 0.4) -> None:
        self.n_contexts = count("n_contexts", n_contexts)
        self.n_arms = count("n_arms", n_arms, least=2)
        self.gap = fraction("gap", gap, one=True)

    @property
    def comparators(self) -> tuple[str, ...]:
        same = (BEST_MAP, BEST_ARM_EACH_ROUND)
        return (*same, BEST_ARM_IN_HINDSIGHT, BEST_ARM_IN_EXPECTATION) if self.n_contexts == 1 else same

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        best = rng.integers(self.n_arms, size=self.n_contexts)
        means = np.full((self.n_contexts, self.n_arms), 0.5 - self.gap / 2)
        means[np.arange(self.n_contexts), best] = 0.5 + self.gap / 2
        for T in block_sizes(horizon, self.n_arms):
            keys = rng.integers(self.n_contexts, size=T)
            expected = means[keys]
            rewards = (rng.random(expected.shape) < expected).astype(np.float64)
            yield Block({"key": keys.tolist(), "n_keys": self.n_contexts}, rewards, expected)

    def reward_class(self) -> dict[str, Any]:
        highest = 0.5 + self.gap / 2
        return {"view": "shared", "norm": highest * self.n_contexts**0.5, "noise": 0.5, "ceiling": highest}

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms, "C": self.n_contexts, "gap": self.gap}
