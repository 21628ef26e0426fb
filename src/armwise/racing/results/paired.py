"""Paired differences: every agent meets the same worlds, so the variation of the worlds cancels."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.core.agent import Floats
from armwise.core.tools.extras import needs

if TYPE_CHECKING:
    from armwise.racing.results.result import Result


@dataclass(frozen=True)
class PairedDifference:
    """Mean of (agent's final regret - other's) over the seeds that both finished; if negative, the agent is better.

    ``p_value`` is that of the two-sided paired t-test, NaN with fewer than two seeds. ``adjusted`` is Holm's adjusted
    p-value over all pairs compared together.
    """

    agent: str
    other: str
    mean: float
    std_error: float
    unpaired_std_error: float  # the standard error if the two agents had met independent worlds
    seeds: int
    p_value: float
    adjusted: float = math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The t interval of the mean difference."""
        if self.seeds < 2:
            return (math.nan, math.nan)
        with needs():
            from scipy.special import stdtrit

        half = float(stdtrit(self.seeds - 1, 0.5 + level / 2)) * self.std_error
        return self.mean - half, self.mean + half


def differences(result: Result, against: str | None = None) -> list[PairedDifference]:
    """Compare all pairs of agents, in the order they were given, or all against one; adjust p-values by Holm."""
    if against is not None and against not in result.finishers:
        raise ValueError(f"against must be an agent that finished a run, one of {result.finishers}, got {against!r}")
    names = result.finishers
    pairs = list(itertools.combinations(names, 2)) if against is None else [(n, against) for n in names if n != against]
    found = [_difference(result, first, second) for first, second in pairs]
    adjusted = holm([each.p_value for each in found])
    return [PairedDifference(**(vars(each) | {"adjusted": float(p)})) for each, p in zip(found, adjusted, strict=True)]


def _difference(result: Result, first: str, second: str) -> PairedDifference:
    mine = {run.seed: run.regret[-1] for run in result.runs_of(first)}
    theirs = {run.seed: run.regret[-1] for run in result.runs_of(second)}
    seeds = sorted(mine.keys() & theirs.keys())
    a, b = np.array([mine[s] for s in seeds]), np.array([theirs[s] for s in seeds])
    n, apart = len(seeds), a - b
    if n < 2:
        return PairedDifference(first, second, float(apart.mean()) if n else math.nan, math.nan, math.nan, n, math.nan)
    mean, error = float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(n)
    unpaired = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / n)
    return PairedDifference(first, second, mean, error, unpaired, n, _p_value(mean, error, n))


def _p_value(mean: float, error: float, n: int) -> float:
    with needs():
        from scipy.special import stdtr

    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2.0 * stdtr(n - 1, -abs(mean) / error))


def holm(p_values: list[float]) -> Floats:
    """Adjust p-values by Holm's step-down method: rejecting those below 0.05 keeps the family-wise error at 0.05."""
    p = np.array(p_values, np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order, adjusted = known[np.argsort(p[known], kind="stable")], np.full(len(p), np.nan)
    worst = 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * p[i]))
        adjusted[i] = worst
    return adjusted
