"""The logistic world: clicks whose log-odds are linear (survey 4.1.4, Algorithm 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import count, positive
from armwise.environments.environment import Block, Blocks, Environment, block_sizes, unit_rows


class Logistic(Environment):
    """r is 1 with probability 1 / (1 + exp(-scale x . theta)), else 0; x and theta are unit vectors.

    >>> block = next(Logistic(n_arms=5, dim=10).blocks(horizon=200, seed=1))
    >>> sorted(set(block.rewards.ravel().tolist()))
    [0.0, 1.0]
    """

    def __init__(self, n_arms: int = 10, dim: int = 20, *, scale: float = 6.0) -> None:
        self.n_arms = count("n_arms", n_arms, least=2)
        self.dim = count("dim", dim)
        self.scale = positive("scale", scale)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        theta = unit_rows(rng, (self.dim,)) * self.scale
        for T in block_sizes(horizon, self.n_arms * self.dim):
            X = unit_rows(rng, (T, self.n_arms, self.dim))
            expected = 1.0 / (1.0 + np.exp(-(X @ theta)))
            rewards = (rng.random(expected.shape) < expected).astype(np.float64)
            yield Block({"features": X}, rewards, expected)

    def reward_class(self) -> dict[str, Any]:
        return {"view": "features", "link": "logistic", "norm": self.scale, "ceiling": 1.0}
