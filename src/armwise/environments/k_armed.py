"""The K-armed world without contexts: each arm's rewards have a mean that is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armwise.core.agent import Floats, positive
from armwise.environments.environment import (
    BEST_ARM_EACH_ROUND,
    BEST_ARM_IN_EXPECTATION,
    BEST_ARM_IN_HINDSIGHT,
    Block,
    Blocks,
    Environment,
    block_sizes,
)


class KArmed(Environment):
    """Arm a pays 1 with probability ``means[a]``, else 0; with ``noise`` an amount, normal around ``means[a]``.

    >>> block = next(KArmed([0.02, 0.03]).blocks(horizon=1000, seed=1))
    >>> block.rewards.shape, block.rewards.mean(axis=0)
    ((1000, 2), array([0.019, 0.029]))
    """

    comparator = BEST_ARM_IN_EXPECTATION

    def __init__(self, means: Sequence[float] | Floats, *, noise: float | None = None) -> None:
        self.means = np.array(means, np.float64)
        if self.means.ndim != 1 or self.means.size < 2 or not np.isfinite(self.means).all():
            raise ValueError(f"means must be a list of at least two numbers, got {means!r:.80}")
        self.noise = None if noise is None else positive("noise", noise)
        if noise is None and not ((self.means >= 0.0) & (self.means <= 1.0)).all():
            raise ValueError(f"means must lie in [0, 1] without noise: they are chances of a reward; got {means!r:.80}")
        self.n_arms = self.means.size

    @property
    def comparators(self) -> tuple[str, ...]:
        return BEST_ARM_EACH_ROUND, BEST_ARM_IN_HINDSIGHT, BEST_ARM_IN_EXPECTATION

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        for T in block_sizes(horizon, self.n_arms):
            expected = np.tile(self.means, (T, 1))
            if self.noise is None:
                rewards = (rng.random(expected.shape) < expected).astype(np.float64)
            else:
                rewards = expected + self.noise * rng.standard_normal(expected.shape)
            yield Block({}, rewards, expected)

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms, "means": self.means.tolist(), **({} if self.noise is None else {"R": self.noise})}
