"""Intervals for bounded rewards: empirical likelihood of the Cressie-Read family, and betting (fixed n or any time)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from armwise.core.agent import Floats


@dataclass(frozen=True)
class Reach:
    """The range of an unseen row: weights in [0, max_weight], and extreme scores offset + slope * weight.

    For IPS a row scores w r, so (offset, slope) is (0, lowest reward) below and (0, highest) above. For DR it scores
    q(target) + w (r - q), so the lowest is min q(target) + w (lowest reward - max q).
    """

    offset: float
    slope: float
    max_weight: float = math.inf


def cressie_read(
    n: float,
    mean: Floats,
    covariance: Floats,
    low: Reach,
    high: Reach,
    level: float = 0.95,
    *,
    units: float | None = None,
) -> tuple[float, float]:
    """The interval for E[score] given E[weight] = 1 (Karampatziakis, Langford & Mineiro 2020, with the -2 divergence).

    ``mean`` and ``covariance`` are those of the rows' (weight, score); nothing else of the data is needed, so the
    interval streams. One unseen row is added at its worst, and the ends are those of E_Q[score] over all Q on these
    n + 1 rows with E_Q[weight] = 1 whose divergence exceeds the least possible by at most the quantile of
    F(1, ``units``) (``units``: independent rows or clusters, by default n).
    """
    budget = float(stdtrit(max((units or n) - 1.0, 1.0), 0.5 + level / 2) ** 2)  # the quantile of F(1, n - 1)
    below = _lowest(n, mean, covariance, low, budget)
    flip = np.array([1.0, -1.0])
    mirrored = Reach(-high.offset, -high.slope, high.max_weight)
    above = -_lowest(n, mean * flip, covariance * np.outer(flip, flip), mirrored, budget)
    return below, above


def _lowest(n: float, mean: Floats, covariance: Floats, worst: Reach, budget: float) -> float:
    """min E_Q[score]. Shifted by slope * weight, whose expectation is known, the unseen row scores ``offset``."""
    shift = np.array([[1.0, 0.0], [-worst.slope, 1.0]])
    mean, spread = shift @ mean, shift @ covariance @ shift.T * ((n - 1.0) / n)
    if math.isinf(worst.max_weight):
        fakes = [_with_row(n, mean, spread, 0.0, worst.offset), _with_unbounded_weight(n, mean, spread)]
    else:
        fakes = [_with_row(n, mean, spread, w, worst.offset) for w in (0.0, worst.max_weight)]
    least = min(fake.cost for fake in fakes)  # of E_Q[weight] = 1 alone
    return worst.slope + min(fake.lowest(least + budget) for fake in fakes)


@dataclass(frozen=True)
class _Tilted:
    """Q on N points: 1 + u_i each, with sum u_i^2 the divergence. ``cost`` is the least that E_Q[weight] = 1 takes.

    The cheapest u moves the score to ``score``; what divergence is left moves it on by sd sqrt(left / N), where sd is
    that of the score's part that the weights do not explain. ``free``: E_Q[weight] <= 1 is enough (a row of unbounded
    weight and no probability makes up the rest).
    """

    N: float
    score: float
    sd: float
    cost: float
    free: tuple[float, float, float, float] | None = None  # mean weight, covariance, mean score, its sd

    def lowest(self, divergence: float) -> float:
        left = divergence - self.cost
        if left < 0.0:
            return math.inf
        if self.free is not None:
            mean_weight, covariance, mean_score, sd = self.free
            step = math.sqrt((divergence - 1.0 - 1.0 / self.N) / self.N) if divergence > 1.0 + 1.0 / self.N else 0.0
            if mean_weight - step * (covariance / sd if sd > 0 else 0.0) <= 1.0:
                return mean_score - step * sd
        return self.score - math.sqrt(left / self.N) * self.sd


def _with_row(n: float, mean: Floats, spread: Floats, weight: float, score: float) -> _Tilted:
    """With one more row of this weight and score."""
    N = n + 1.0
    gap = np.array([weight, score]) - mean
    centre, cov = mean + gap / N, spread * (n / N) + np.outer(gap, gap) * (n / N**2)
    return _tilted(N, centre, cov, 0.0)


def _with_unbounded_weight(n: float, mean: Floats, spread: Floats) -> _Tilted:
    """With one more row of unbounded weight, which keeps no probability (u = -1, at a cost of 1 + 1/n)."""
    fixed = 1.0 + 1.0 / n
    inner = _tilted(n, mean, spread, fixed)
    free = (float(mean[0]), float(spread[0, 1]), float(mean[1]), math.sqrt(max(float(spread[1, 1]), 0.0)))
    cost = fixed if mean[0] <= 1.0 else inner.cost
    return _Tilted(n, inner.score, inner.sd, cost, free)


def _tilted(N: float, mean: Floats, cov: Floats, fixed: float) -> _Tilted:
    miss = 1.0 - float(mean[0])
    if cov[0, 0] <= 1e-12 * max(1.0, float(mean[0]) ** 2):  # all weights are the same: there is nothing to tilt
        cost = fixed if abs(miss) < 1e-9 else math.inf
        return _Tilted(N, float(mean[1]), math.sqrt(max(float(cov[1, 1]), 0.0)), cost)
    slope = float(cov[0, 1] / cov[0, 0])
    rest = math.sqrt(max(float(cov[1, 1]) - slope * float(cov[0, 1]), 0.0))
    return _Tilted(N, float(mean[1]) + slope * miss, rest, fixed + N * miss**2 / float(cov[0, 0]))


class Bets:
    """Betting for and against every candidate value (Waudby-Smith & Ramdas 2024; off-policy: Waudby-Smith et al. 2022).

    For each candidate v the capital is the product of 1 + lam_s (x_s - m(v)): if v is the value it is a fair game that
    hardly ever (in a share 1 - level of all logs, at any time) makes one rich, so candidates that do are ruled out.
    ``x`` needs no upper limit: those for the lower end (w r) and for the upper (w (high - r)) are never negative.
    lam_s is sqrt(2 ln(2/alpha) / (variance so far * n)) with a known number ``n`` of rows, and with s ln(1 + s)
    instead of n for an interval at all times, never more than 3/4 of what would risk all. ``scale`` is about how large
    x gets: it makes the first bets cautious, which changes the width and never the validity.
    """

    def __init__(
        self, low: float, high: float, level: float = 0.95, n: int | None = None, *, floor: float | None = None,
        ceiling: float | None = None, scale: float = 1.0, candidates: int = 500,
    ) -> None:  # fmt: skip
        self._candidates = np.linspace(low, high, candidates + 1)
        floor, ceiling = low if floor is None else floor, high if ceiling is None else ceiling
        self._width = (high - floor, ceiling - low)  # so that means lie in [0, 1]
        means = ((self._candidates - floor) / self._width[0], (ceiling - self._candidates) / self._width[1])
        self._sides = [_Wealth(m, math.log(2.0 / (1.0 - level)), n, scale) for m in means]

    def add(self, above_floor: Floats, below_ceiling: Floats) -> None:
        """Take in rows: score - floor and ceiling - score, or for IPS w (r - low) and w (high - r)."""
        for side, x, width in zip(self._sides, (above_floor, below_ceiling), self._width, strict=True):
            side.add(np.maximum(x, 0.0) / width)

    @property
    def low(self) -> float:
        """The lower end: every smaller candidate is ruled out."""
        ruled_out = self._sides[0].ruled_out
        return float(
            self._candidates[max(int(np.argmin(ruled_out)) - 1, 0)] if not ruled_out.all() else self._candidates[-1]
        )

    @property
    def high(self) -> float:
        """The upper end."""
        ruled_out = self._sides[1].ruled_out[::-1]
        last = int(np.argmin(ruled_out)) - 1
        return float(self._candidates[::-1][max(last, 0)] if not ruled_out.all() else self._candidates[0])

    def path(self) -> tuple[Floats, Floats]:
        """The ends after each row that was taken in."""
        ends = []
        for side, candidates in zip(self._sides, (self._candidates, self._candidates[::-1]), strict=True):
            when = np.maximum.accumulate(side.when if candidates is self._candidates else side.when[::-1])
            ruled_out = np.searchsorted(when, np.arange(1.0, side.seen + 1.0), side="right")
            ends.append(candidates[np.maximum(ruled_out - 1, 0)])
        return ends[0], ends[1]


def betting(
    above_floor: Floats, below_ceiling: Floats, low: float, high: float, level: float = 0.95, *, scale: float = 1.0
) -> tuple[float, float]:
    """The interval of ``Bets`` for rows that are all there: candidates are tried only where its ends may lie.

    The capital against a candidate falls as the candidate approaches the value, so those ruled out are all on one side.
    """
    log, width = math.log(2.0 / (1.0 - level)), high - low
    below, above = (_ruled_out(np.maximum(x, 0.0) / width, log, scale) for x in (above_floor, below_ceiling))
    return low + width * below, high - width * above


def _ruled_out(x: Floats, log_inverse_alpha: float, scale: float, parts: int = 16) -> float:
    """Up to where candidate means in [0, 1] are ruled out, to 1 / parts^3."""
    start, end = 0.0, 1.0
    for _ in range(3):
        edges = np.linspace(start, end, parts + 1)
        wealth = _Wealth(edges[1:], log_inverse_alpha, len(x), scale)
        wealth.add(x)
        out = int(np.argmin(wealth.ruled_out)) if not wealth.ruled_out.all() else parts
        start, end = edges[out], edges[min(out + 1, parts)]
    return float(start)


class _Wealth:
    """The capital of one side for every candidate mean, and which candidates it has ruled out."""

    def __init__(self, means: Floats, log_inverse_alpha: float, n: int | None, scale: float) -> None:
        self._means, self._log, self._n = means, log_inverse_alpha, n
        self._scale, self._prior = max(scale, 1.0), 0.25 if scale <= 1.0 else scale
        self._capital = np.zeros(len(means))
        self.when = np.full(len(means), np.inf)  # the row that ruled it out
        self.seen = self._sum = self._scatter = 0.0

    @property
    def ruled_out(self) -> np.ndarray:
        """Which candidates are ruled out."""
        return np.asarray(np.isfinite(self.when))

    def add(self, x: Floats) -> None:
        for start in range(0, len(x), 2048):
            self._add(x[start : start + 2048])

    def _add(self, x: Floats) -> None:
        t = self.seen + np.arange(1, len(x) + 1)
        sums = self._sum + np.concatenate([[0.0], np.cumsum(x)])
        mean = (0.5 + sums[1:]) / (t + 1.0)  # after each row
        scatter = self._scatter + np.concatenate([[0.0], np.cumsum((x - mean) ** 2)])
        # before each row, which the bet must not know: about ``scale`` rows have to say that it is small
        variance = (self._prior * self._scale + scatter[:-1]) / (t - 1.0 + self._scale)
        clock = float(self._n) if self._n is not None else t * np.log(1.0 + t)
        bet = np.sqrt(2.0 * self._log / (variance * clock))
        left = np.flatnonzero(~self.ruled_out)
        means = self._means[left]
        with np.errstate(divide="ignore"):
            most = 0.75 / means
        gains = np.minimum(bet[:, None], most[None, :]) * (x[:, None] - means[None, :])
        capital = self._capital[left] + np.cumsum(np.log1p(gains), axis=0)
        rich = capital >= self._log
        self.when[left] = np.where(rich.any(axis=0), t[np.argmax(rich, axis=0)], np.inf)
        self._capital[left] = capital[-1]
        self.seen, self._sum, self._scatter = float(t[-1]), sums[-1], scatter[-1]
