"""Measured rates: the slope of regret over T on logarithmic axes, with its interval over the seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.core.agent import Floats
from armwise.core.tools.extras import needs

if TYPE_CHECKING:
    from armwise.racing.results.result import Result


@dataclass(frozen=True)
class Slope:
    """Regret grows like T^value between the first horizon and the last; ``low`` to ``high`` is a 95 % interval."""

    value: float
    low: float
    high: float
    horizons: tuple[int, ...]
    seeds: int

    @property
    def sublinear(self) -> bool:
        """Whether the printed interval excludes slope 1, that is, whether regret per round decreases significantly."""
        return round(self.high, 2) < 1.0

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def slope(results: list[Result], name: str) -> Slope | str:
    """Fit the slope of final regret over races of growing horizons, each with an agent made for its horizon.

    The slope is that of a line through the logarithms of horizon and mean regret; the interval is Student's t with the
    jackknife error over seeds. Returns a sentence if regret is not positive or there are too few seeds.
    """
    seeds = set.intersection(*({run.seed for run in result.runs_of(name)} for result in results))
    if len(seeds) < 3 or len(results) < 2:
        return "fewer than three seeds finished: too few for an interval"
    table = np.array([[run.regret[-1] for run in result.runs_of(name) if run.seed in seeds] for result in results])
    horizons = np.array([result.horizon for result in results], np.float64)
    if len(set(horizons)) < 2:
        return "all races have the same horizon: a slope needs at least two"
    n = table.shape[1]
    whole = _line(horizons, table.mean(axis=1))
    parts = np.array([_line(horizons, np.delete(table, i, axis=1).mean(axis=1)) for i in range(n)])
    if not np.isfinite(whole) or not np.isfinite(parts).all():
        return "regret is not positive at every horizon, so it has no slope on logarithmic axes"
    with needs():
        from scipy.special import stdtrit

    error = math.sqrt((n - 1) / n * float(((parts - parts.mean()) ** 2).sum()))
    half = float(stdtrit(n - 1, 0.975)) * error
    return Slope(whole, whole - half, whole + half, tuple(int(T) for T in horizons), n)


def _line(horizons: Floats, regret: Floats) -> float:
    if (regret <= 0).any():
        return math.nan
    x, y = np.log(horizons), np.log(regret)
    x = x - x.mean()
    return float((x * y).sum() / (x**2).sum())
