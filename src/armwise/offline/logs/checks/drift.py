"""Drift: rewards and shares of the arms in consecutive parts of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from armwise.core.agent import Floats

if TYPE_CHECKING:
    from armwise.offline.logs.log import Log

MAX_ARMS = 6  # named in a verdict
_ENOUGH = 10.0  # effective rows of an arm in a part, below which it is not judged
_RARE = 1e-4  # chance of a false alarm


@dataclass(frozen=True)
class DriftCheck:
    """Rewards and shares of the arms in consecutive parts of a log; rows are weighted by 1/p where that is known.

    ``values`` (parts, arms) are each arm's estimated rewards in a part, ``errors`` their standard errors, NaN where
    an arm has too few rows; ``shares`` how often the log played it; ``rows`` the number of the first row of each part.
    ``p_values`` are those of "the arm earns the same in all parts".
    """

    rows: tuple[int, ...]
    arms: tuple[str, ...]
    values: Floats
    errors: Floats
    shares: Floats
    p_values: Floats

    @property
    def verdict(self) -> str:
        """Name the arms that drift beyond chance; empty if none does."""
        drifting = [arm for arm, p in zip(self.arms, self.p_values, strict=True) if p < _RARE / len(self.arms)]
        if not drifting:
            return ""
        some = ", ".join(drifting[:MAX_ARMS]) + (", ..." if len(drifting) > MAX_ARMS else "")
        return f"{some} {'does' if len(drifting) == 1 else 'do'} not earn the same in all parts of the log"

    def plot(self, path: Any = None) -> Any:
        """Reward and share of the arms over the rows, as a matplotlib figure (written to ``path`` if given)."""
        from armwise.offline.results import figures

        return figures.saved(figures.drift_figure(self), path)


def drift_of(log: Log, parts: int) -> DriftCheck:
    """See ``Log.drift``."""
    n = len(log) if log.counted else sum(len(rows) for rows in log.batches(contexts=False))
    parts, K = max(1, min(parts, n)), log.n_arms
    sums = np.zeros((5, parts, K))  # rows, weights, their squares, weighted rewards, weighted squares
    for rows in log.batches(contexts=False):
        part = (np.arange(rows.start, rows.start + len(rows)) * parts) // n
        weight = np.ones(len(rows)) if rows.probabilities is None else 1.0 / rows.probabilities
        place = part * K + rows.arms
        for total, each in zip(sums, (np.ones(len(rows)), weight, weight**2, weight * rows.rewards,
                                      weight * rows.rewards**2), strict=True):  # fmt: skip
            total += np.bincount(place, each, minlength=parts * K).reshape(parts, K)
    count, weights, squares, first, second = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        effective = weights**2 / squares
        values = first / weights
        spread = np.maximum(second / weights - values**2, 0.0)
        overall = first.sum(axis=0) / weights.sum(axis=0)
        # the spread of the arm in the whole log: that of a part without a reward would be none
        pooled = np.maximum(second.sum(axis=0) / weights.sum(axis=0) - overall**2, 0.0)
        errors = np.sqrt(np.maximum(spread, 0.5 * pooled) / effective)
        judged = effective >= _ENOUGH
        z = np.where(judged & (pooled > 0), (values - overall) ** 2 / (pooled / effective), 0.0)
    p_values = chdtrc(np.maximum(judged.sum(axis=0) - 1, 1), z.sum(axis=0))
    names = [f"arm {k}" for k in range(K)] if log.arm_names is None else [str(name) for name in log.arm_names]
    most = np.argsort(-count.sum(axis=0), kind="stable")
    starts = tuple(int(-(-i * n // parts)) for i in range(parts))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = count / count.sum(axis=1, keepdims=True)
    return DriftCheck(starts, tuple(names[k] for k in most), np.where(judged, values, np.nan)[:, most],
                 np.where(judged, errors, np.nan)[:, most], shares[:, most], np.asarray(p_values)[most])  # fmt: skip
