"""The tabular world: C distinct contexts, each with its own arms' rewards (survey 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import Floats, count, fraction, positive
from armwise.environments.environment import (
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

    With ``n_contexts=1`` it is the plain K-armed world. With ``prior=(a, b)`` every chance is drawn from Beta(a, b)
    instead, and ``gap`` is not used.

    >>> block = next(Tabular(n_contexts=4, n_arms=3).blocks(horizon=100, seed=1))
    >>> sorted(set(block.view("key")))
    [0, 1, 2, 3]
    """

    comparator = BEST_MAP

    def __init__(
        self, n_contexts: int = 10, n_arms: int = 5, *, gap: float = 0.4, prior: tuple[float, float] | None = None
    ) -> None:
        self.n_contexts = count("n_contexts", n_contexts)
        self.n_arms = count("n_arms", n_arms, least=2)
        self.gap = fraction("gap", gap, one=True)
        if prior is not None and (not isinstance(prior, (tuple, list)) or len(prior) != 2):
            raise ValueError(f"prior must be (a, b) of a Beta distribution, got {prior!r}")
        self.prior = None if prior is None else (positive("prior[0]", prior[0]), positive("prior[1]", prior[1]))

    @property
    def comparators(self) -> tuple[str, ...]:
        same = (BEST_MAP, BEST_ARM_EACH_ROUND)
        return (*same, BEST_ARM_IN_HINDSIGHT, BEST_ARM_IN_EXPECTATION) if self.n_contexts == 1 else same

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        means = self._means(rng)
        for T in block_sizes(horizon, self.n_arms):
            keys = rng.integers(self.n_contexts, size=T)
            expected = means[keys]
            rewards = (rng.random(expected.shape) < expected).astype(np.float64)
            yield Block({"key": keys.tolist(), "n_keys": self.n_contexts}, rewards, expected)

    def _means(self, rng: np.random.Generator) -> Floats:
        if self.prior is not None:
            return rng.beta(*self.prior, size=(self.n_contexts, self.n_arms))
        best = rng.integers(self.n_arms, size=self.n_contexts)
        means = np.full((self.n_contexts, self.n_arms), 0.5 - self.gap / 2)
        means[np.arange(self.n_contexts), best] = 0.5 + self.gap / 2
        return means

    def reward_class(self) -> dict[str, Any]:
        highest = 0.5 + self.gap / 2 if self.prior is None else 1.0
        return {"view": "shared", "norm": highest * self.n_contexts**0.5, "noise": 0.5, "ceiling": highest}

    def constants(self) -> dict[str, Any]:
        known: dict[str, Any] = {"gap": self.gap} if self.prior is None else {"prior": self.prior}
        return {"K": self.n_arms, "C": self.n_contexts, **known}
