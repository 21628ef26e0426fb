"""Paired differences: every agent met the same worlds, so what the worlds share cancels in the difference."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.core.agent import Floats
from armwise.core.extras import needs

if TYPE_CHECKING:
    from armwise.racing.results.result import Result


@dataclass(frozen=True)
class Difference:
    """Mean of (agent's final regret - other's) over the seeds both finished; negative: the agent does better.

    ``p_value`` is of the paired t-test, two-sided; NaN with fewer than two seeds. ``adjusted`` is Holm's for all the
    pairs that were compared together.
    """

    agent: str
    other: str
    mean: float
    std_error: float
    unpaired_std_error: float  # what it would be for independent worlds
    seeds: int
    p_value: float
    adjusted: float = math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The t interval of the mean difference.

        >>> Difference("A", "B", mean=-2.0, std_error=0.5, unpaired_std_error=1.0, seeds=11, p_value=0.0).interval()
        (-3.11..., -0.88...)
        """
        if self.seeds < 2:
            return (math.nan, math.nan)
        with needs():
            from scipy.special import stdtrit

        half = float(stdtrit(self.seeds - 1, 0.5 + level / 2)) * self.std_error
        return self.mean - half, self.mean + half


def differences(result: Result, against: str | None = None) -> list[Difference]:
    """All pairs of agents in the order they were given, or all against one; with Holm's adjustment over them.

    >>> import armwise as aw
    >>> agents = {"wide": aw.LinUCB(4, alpha=2.0), "narrow": aw.LinUCB(4, alpha=0.1)}
    >>> result = aw.race(agents, aw.environments.Linear(5, 4), horizon=300, seeds=6)
    >>> [pair] = differences(result)
    >>> pair.mean > 0 and pair.adjusted < 0.05
    True
    """
    if against is not None and against not in result.finishers:
        raise ValueError(f"against must be an agent that finished a run, one of {result.finishers}, got {against!r}")
    names = result.finishers
    pairs = list(itertools.combinations(names, 2)) if against is None else [(n, against) for n in names if n != against]
    found = [_difference(result, first, second) for first, second in pairs]
    adjusted = holm([each.p_value for each in found])
    return [Difference(**(vars(each) | {"adjusted": float(p)})) for each, p in zip(found, adjusted, strict=True)]


def _difference(result: Result, first: str, second: str) -> Difference:
    mine = {run.seed: run.regret[-1] for run in result.runs_of(first)}
    theirs = {run.seed: run.regret[-1] for run in result.runs_of(second)}
    seeds = sorted(mine.keys() & theirs.keys())
    a, b = np.array([mine[s] for s in seeds]), np.array([theirs[s] for s in seeds])
    n, apart = len(seeds), a - b
    if n < 2:
        return Difference(first, second, float(apart.mean()) if n else math.nan, math.nan, math.nan, n, math.nan)
    error = float(apart.std(ddof=1)) / math.sqrt(n)
    unpaired = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / n)
    return Difference(first, second, float(apart.mean()), error, unpaired, n, _p_value(float(apart.mean()), error, n))


def _p_value(mean: float, error: float, n: int) -> float:
    with needs():
        from scipy.special import stdtr

    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2.0 * stdtr(n - 1, -abs(mean) / error))


def holm(p_values: list[float]) -> Floats:
    """Holm's step-down adjustment: all adjusted values below 0.05 are wins at a family-wise level of 0.05.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.array(p_values, np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order, adjusted = known[np.argsort(p[known], kind="stable")], np.full(len(p), np.nan)
    worst = 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * p[i]))
        adjusted[i] = worst
    return adjusted
