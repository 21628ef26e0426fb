"""Common parts of agents without contexts: estimates from counts, and many draws from one distribution."""

from __future__ import annotations

import numpy as np

from armwise.core.agent import Choices, Floats
from armwise.native.choice import draw


def kary_estimates(totals: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Mean rewards (0 before the first) and widths 1 / sqrt(n) (infinite before the first)."""
    widths = np.full(counts.size, np.inf)
    np.divide(1.0, np.sqrt(counts), out=widths, where=counts > 0.0)
    return totals / np.maximum(counts, 1.0), widths


def draw_many(p: Floats, rng: np.random.Generator, n: int, *, ties: bool = False) -> Choices:
    """``n`` arms from one distribution, with the numbers of the stream that one by one would take.

    ``ties`` is for an index agent, whose distribution is uniform over the arms that tie, and which takes no number
    where only one is best.
    """
    if ties:
        best = np.flatnonzero(p)
        places = (rng.random(n) * best.size).astype(np.int64) if best.size > 1 else np.zeros(n, np.int64)
        arms = best[places]
        return Choices(arms, np.full(n, 1.0 / best.size))
    arms = np.array([draw(p, u) for u in rng.random(n).tolist()], np.int64)
    return Choices(arms, p[arms])
