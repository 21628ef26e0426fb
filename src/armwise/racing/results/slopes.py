"""Measured rates: the slope of regret over T on logarithmic axes, with its interval over the seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.core.agent import Floats
from armwise.core.extras import needs

if TYPE_CHECKING:
    from armwise.racing.results.result import Result


@dataclass(frozen=True)
class Slope:
    """Regret grows like T^value between the first horizon and the last; ``low`` to ``high`` is a 95 % interval.

    >>> print(Slope(0.52, 0.47, 0.57, (1000, 8000), 20))
    0.52 (0.47 to 0.57)
    """

    value: float
    low: float
    high: float
    horizons: tuple[int, ...]
    seeds: int

    @property
    def sublinear(self) -> bool:
        """Whether the interval, as it is printed, excludes slope 1: regret per round goes down here, beyond chance."""
        return round(self.high, 2) < 1.0

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def slope(results: list[Result], name: str) -> Slope | str:
    """The slope of an agent's final regret over races of growing horizons, each with an agent made for its horizon.

    A line through the logarithms of horizon and mean regret; the interval is Student's with the jackknife's error over
    the seeds. A sentence, where regret is not positive (it has no logarithm) or seeds are too few.

    >>> import armwise as aw
    >>> def at(T):
    ...     return aw.race([aw.Exp3(n_arms=3, gamma=1.0)], aw.environments.Tabular(2, 3), horizon=T, seeds=6)
    >>> round(slope([at(200), at(400), at(800)], "Exp3").value, 1)  # arms at random
    1.0
    """
    seeds = set.intersection(*({run.seed for run in result.runs_of(name)} for result in results))
    if len(seeds) < 3 or len(results) < 2:
        return "fewer than three seeds finished, which is no interval"
    table = np.array([[run.regret[-1] for run in result.runs_of(name) if run.seed in seeds] for result in results])
    horizons = np.array([result.horizon for result in results], np.float64)
    if len(set(horizons)) < 2:
        return "all races have the same horizon, which is no line"
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
