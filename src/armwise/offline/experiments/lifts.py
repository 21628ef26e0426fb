"""Lifts of arms over control for one metric, unit by unit, with intervals that hold at every moment.

Of the units in an arm and in control, let pi be a unit's chance of the arm among the two, known when it was assigned,
g = min(pi, 1 - pi), and m the means of earlier units. Then X = g (m_arm - m_control) + f (y - m), with f = g / pi for
a unit in the arm and -g / (1 - pi) for one in control, has mean g (mu_arm - mu_control) whatever happened before, and
is within 1 of its prediction g (m_arm - m_control) for values in [0, 1]. So the boundaries of ``mixtures`` hold for
sum X - lift sum g: under ramps and splits that follow the outcomes too. Weights g keep a ramp's first units, rare in
the arm, from ruling the sum.

Without a cap the boundary is one for normal sums, and sum X is none while it is skewed: where an arm is rarer than
control and few units have the large values, its mean and its squares are small together, and it looks worse. So sum X,
in standard deviations, is corrected for its skewness as it would be without a difference (Hall 1992), where that makes
it smaller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.experiments.mixtures import (
    best_rho,
    gamma_bound,
    log_gamma_mixture,
    log_normal_mixture,
    normal_bound,
)

TYPICAL_VARIANCE = 0.05  # of values in [0, 1], where nobody says what to expect
MEMORY = 10.0  # units of the pooled mean in the prediction of an arm's next value
MAX_TIMES = 1e4  # control's mean, beyond which a relative lift has no upper end


class LiftSequence:
    """One metric's sums: ``update`` takes units in the order in which their values became known.

    ``alpha`` is the risk of each side of each arm's lift. With ``cap`` values lie in [0, cap] and the risk is proved;
    with None it is asymptotic, and nothing is decided before an arm and control have ``start`` units each.
    ``planned`` is at about how many units the intervals shall be narrowest, ``variance`` the
    expected one of a value (in units of cap^2). ``shape`` makes as many independent copies, for simulations.
    """

    def __init__(
        self, n_arms: int, *, control: int = 0, alpha: float = 0.025, cap: float | None = 1.0, planned: float = 10_000,
        variance: float | None = None, start: int = 500, tolerance: tuple[float, float] = (0.0, 0.0),
        shape: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self.n_arms, self.control, self.alpha, self.cap, self.start = n_arms, control, alpha, cap, start
        self._unit = 1.0 if cap is None else float(cap)  # values are measured in it
        self._planned = 2.0 * planned / n_arms  # units of an arm and control
        self._margins = tolerance[0] / self._unit, tolerance[1] / self._unit
        self._log = math.log(1.0 / alpha)
        spread = TYPICAL_VARIANCE if variance is None else variance
        self._rho: Any = (
            best_rho(self._planned * spread, alpha) if cap is not None else np.full((n_arms, *shape), np.nan)
        )
        zeros = np.zeros((n_arms, *shape))
        self.units, self._totals, self._own = zeros.copy(), zeros.copy(), zeros.copy()
        self._sizes, self._squares = zeros.copy(), zeros.copy()  # of an arm's values
        # per arm: sums of X's part of the arm and of control, of their squares, of g
        self._up, self._down, self._up2, self._down2, self._g = (zeros.copy() for _ in range(5))
        # per arm, without a cap: units, squares and cubes of deviations; of g-weights, what scales the sum's moments
        self._moments = np.zeros((5, n_arms, *shape))
        self.above, self.below = (
            zeros.copy(),
            zeros.copy(),
        )  # units when a lift was first proved to be > 0, < 0; 0: not yet
        self.clipped = np.zeros(shape, dtype=np.int64)  # values outside [0, cap]

    @property
    def n(self) -> Floats:
        """Units so far."""
        counted: Floats = self.units.sum(axis=0)
        return counted

    def update(self, arms: Any, shares: Any, values: Any) -> None:
        """Take in units: their arms, each one's chance of every arm when it was assigned, their values."""
        arms, p = np.asarray(arms), np.asarray(shares, float)
        y = np.asarray(values, float) / self._unit
        if arms.shape[-1] == 0:
            return
        if self.cap is not None:
            self.clipped = self.clipped + ((y < 0.0) | (y > 1.0)).sum(axis=-1)
            y = np.clip(y, 0.0, 1.0)
        mine = [arms == a for a in range(self.n_arms)]
        counts = [self._before(each, self.units[a]) for a, each in enumerate(mine)]
        sums = [self._before(each * y, self._totals[a]) for a, each in enumerate(mine)]
        pooled = sum(sums) / (sum(counts) + 1.0)
        means = [(s + MEMORY * pooled) / (c + MEMORY) for s, c in zip(sums, counts, strict=True)]
        for a, each in enumerate(mine):
            self._own[a] += (each * np.square(y - means[a])).sum(axis=-1)
        seen = self.n
        for a in range(self.n_arms):
            if a != self.control:
                self._compare(a, mine, p, y, means, counts, seen)
        for a, each in enumerate(mine):
            self.units[a] += each.sum(axis=-1)
            self._totals[a] += (each * y).sum(axis=-1)
            self._sizes[a] += (each * np.abs(y)).sum(axis=-1)
            self._squares[a] += (each * np.square(y)).sum(axis=-1)

    @staticmethod
    def _before(values: Any, carried: Floats) -> Floats:
        """The running sum before each unit."""
        running: Floats = np.cumsum(values, axis=-1, dtype=float)
        before: Floats = running - values + np.asarray(carried)[..., None]
        return before

    def _compare(
        self, a: int, mine: list[Any], p: Floats, y: Floats, means: list[Floats], counts: list[Floats], seen: Floats
    ) -> None:
        c = self.control
        both = p[..., a] + p[..., c]
        with np.errstate(invalid="ignore", divide="ignore"):
            pi = np.where(both > 0.0, p[..., a] / both, 0.5)
            g = np.minimum(pi, 1.0 - pi)
            scale = 1.0 / np.maximum(pi, 1.0 - pi)  # g / pi is (1 - pi) scale
        pair = mine[a] | mine[c]
        up = mine[a] * ((1.0 - pi) * scale) * (y - means[a])
        down = mine[c] * (pi * scale) * (y - means[c])
        weight = pair * g
        paths = []
        for total, step in (
            (self._up, up + weight * means[a]), (self._down, down + weight * means[c]),
            (self._up2, np.square(up)), (self._down2, np.square(down)), (self._g, weight),
        ):  # fmt: skip
            path = np.cumsum(step, axis=-1) + total[a][..., None]
            total[a] = path[..., -1]
            paths.append(path)
        lift, squares = paths[0] - paths[1], paths[2] + paths[3]
        if self.cap is None:
            ready = np.minimum(counts[a] + mine[a], counts[c] + mine[c]) >= self.start
            spread = np.square(scale) * pi * (1.0 - pi)
            d = mine[a] * (y - means[a]) + mine[c] * (y - means[c])
            steps = pair, np.square(d), d**3, pair * spread, pair * spread * scale * (1.0 - 2.0 * pi)
            moments = []
            for total, step in zip(self._moments, steps, strict=True):
                path = np.cumsum(step, axis=-1, dtype=float) + total[a][..., None]
                total[a] = path[..., -1]
                moments.append(path)
            skew = _skewness(*moments)
            self._settle_rho(a, ready, squares, counts[a] + counts[c])
        else:
            ready, skew = np.True_, np.zeros(1)
        place = seen[..., None] + np.arange(1, y.shape[-1] + 1)
        self._decide(self.above, a, lift - self._margins[1] * paths[4], squares, ready, skew, place)
        self._decide(self.below, a, -(lift + self._margins[0] * paths[4]), squares, ready, -skew, place)

    def _settle_rho(self, a: int, ready: Any, squares: Floats, pairs: Floats) -> None:
        """Where the start is reached in this block: make the intervals narrowest at the planned number of units."""
        first = np.argmax(ready, axis=-1)
        now = np.isnan(self._rho[a]) & ready.any(axis=-1)
        if now.any():
            v = np.take_along_axis(squares, first[..., None], axis=-1)[..., 0]
            n = np.take_along_axis(pairs, first[..., None], axis=-1)[..., 0] + 1.0
            at = np.maximum(v, 1e-300) * np.maximum(self._planned / n, 1.0)
            self._rho[a] = np.where(now, at * best_rho(1.0, self.alpha), self._rho[a])

    def _decide(self, found: Floats, a: int, s: Floats, v: Floats, ready: Any, skew: Floats, place: Floats) -> None:
        """Note the first unit at which the boundary is crossed."""
        if self.cap is None:
            s = _corrected(s, v, skew)
        # no mixture crosses below that of the best lam in hindsight
        maybe = ready & (s > 0.0) & (np.square(s) >= 2.0 * v * (self._log - 0.7)) & (v > 0.0)
        maybe &= (found[a] == 0.0)[..., None]
        if not maybe.any():
            return
        crossed = np.zeros(maybe.shape, dtype=bool)
        if self.cap is None:
            rho = np.broadcast_to(self._rho[a][..., None], maybe.shape)[maybe]
            crossed[maybe] = log_normal_mixture(s[maybe], v[maybe], rho) >= self._log
        else:
            crossed[maybe] = log_gamma_mixture(s[maybe], v[maybe], self._rho) >= self._log
        first = np.take_along_axis(np.broadcast_to(place, maybe.shape), np.argmax(crossed, -1)[..., None], -1)[..., 0]
        found[a] = np.where((found[a] == 0.0) & crossed.any(axis=-1), first, found[a])

    # ------------------------------------------------------------------ numbers now

    @property
    def means(self) -> Floats:
        """The mean of each arm's own units (NaN: it has none)."""
        with np.errstate(invalid="ignore"):
            found: Floats = self._unit * np.where(self.units > 0, self._totals / np.maximum(self.units, 1.0), np.nan)
        return found

    @property
    def standard_errors(self) -> Floats:
        """The standard error of each arm's own mean, as for a fixed number of units."""
        found: Floats = self._unit * np.sqrt(self._own) / np.maximum(self.units, 1.0)
        return found

    @property
    def events(self) -> Floats:
        """The number of units that make up each arm's sum: for amounts it is smaller where some are large."""
        found: Floats = np.square(self._sizes) / np.maximum(self._squares, 1e-300)
        return found

    def ready(self, a: int) -> Any:
        """Return whether intervals of an arm's lift can be given."""
        enough = np.minimum(self.units[a], self.units[self.control])
        return (enough >= self.start) if self.cap is None else (enough >= 1)

    def skewness(self, a: int) -> Floats:
        """The skewness of an arm's sum without a difference between arms, where values have no cap."""
        return _skewness(*self._moments[:, a])

    def estimate(self, a: int) -> Floats:
        """The lift of an arm over control: a weighted mean over units where shares moved."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = self._unit * (self._up[a] - self._down[a]) / self._g[a]
        return found

    def half_width(self, a: int, more: float = 1.0) -> Floats:
        """Half of the width of the lift's interval, now or once there are ``more`` times as many units."""
        v, g = more * (self._up2[a] + self._down2[a]), more * self._g[a]
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = self._unit * self._bound(v, a) / g
        return found

    def _bound(self, v: Any, a: int) -> Floats:
        if self.cap is None:
            return normal_bound(v, self.alpha, self._rho[a])
        return gamma_bound(v, self.alpha, self._rho)

    def interval(self, a: int) -> tuple[Floats, Floats]:
        """The lift's interval now; infinite where nothing can be said yet."""
        middle, half = self.estimate(a), self.half_width(a)
        below = above = half
        if self.cap is None:
            with np.errstate(invalid="ignore", divide="ignore"):
                deviation = self._unit * np.sqrt(self._up2[a] + self._down2[a]) / self._g[a]
                skew = self.skewness(a)
                below, above = (deviation * _uncorrected(half / deviation, each) for each in (skew, -skew))
        known = self.ready(a) & np.isfinite(half)
        low, high = np.where(known, middle - below, -np.inf), np.where(known, middle + above, np.inf)
        if self.cap is None:
            return low, high
        return np.maximum(low, -self._unit), np.minimum(high, self._unit)

    def relative(self, a: int) -> tuple[float, float, float]:
        """The lift as a share of control's mean, and its interval: q - 1 where mean - q control is not ruled out."""
        up, down = float(self._up[a]), float(self._down[a])
        middle = up / down - 1.0 if down > 0.0 else math.nan
        if not self.ready(a) or not down > 0.0:
            least = -1.0 if self.cap is not None else -math.inf
            return max(middle, least), least, math.inf

        def outside(q: float, sign: float) -> bool:
            v, s = float(self._up2[a]) + q * q * float(self._down2[a]), sign * (up - q * down)
            if s <= 0.0 or v <= 0.0:
                return False
            if self.cap is None:
                s = float(_corrected(s, v, sign * self.skewness(a)))
                return bool(log_normal_mixture(s, v, self._rho[a]) > self._log)
            return bool(log_gamma_mixture(s, v, self._rho, max(1.0, q)) > self._log)

        ends = []
        for sign, start, stop in ((1.0, 0.0, up / down), (-1.0, MAX_TIMES, up / down)):
            if not outside(start, sign):
                ends.append(start)
                continue
            for _ in range(60):
                half = 0.5 * (start + stop)
                start, stop = (half, stop) if outside(half, sign) else (start, half)
            ends.append(stop)
        low, high = ends[0] - 1.0, ends[1] - 1.0 if ends[1] < MAX_TIMES else math.inf
        return min(max(middle, low), high), low, high

    def arm_interval(self, a: int) -> tuple[float, float]:
        """The interval of the mean of an arm's own units."""
        n = float(self.units[a])
        if n < (self.start if self.cap is None else 1):
            return (-math.inf, math.inf) if self.cap is None else (0.0, self._unit)
        v, share = float(self._own[a]), 2.0 / self.n_arms
        if self.cap is None:
            rho = max(v, 1e-300) * max(self._planned / (n * share), 1.0) * best_rho(1.0, self.alpha)
            half = float(normal_bound(v, self.alpha, rho))
        else:
            half = float(gamma_bound(v, self.alpha, self._rho / 2.0))
        middle = float(self.means[a])
        low, high = middle - self._unit * half / n, middle + self._unit * half / n
        return (low, high) if self.cap is None else (max(low, 0.0), min(high, self._unit))


def _skewness(n: Any, squares: Any, cubes: Any, weights: Any, odd_weights: Any) -> Floats:
    """Of a weighted sum of deviations, from their pooled moments; 0 where all are 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = cubes * odd_weights * np.sqrt(n) / (squares * weights) ** 1.5
    skew: Floats = np.where(squares * weights > 0.0, found, 0.0)
    return skew


def _corrected(s: Any, v: Any, skew: Any) -> Floats:
    """A positive sum whose squares sum to ``v``, without what its skewness adds: Hall's cubic, where it is smaller."""
    with np.errstate(invalid="ignore", divide="ignore"):
        t = s / np.sqrt(v)
        found: Floats = np.sqrt(v) * np.minimum(t, t + skew / 6.0 + skew * t**2 / 3.0 + skew**2 * t**3 / 27.0)
    shrunk: Floats = np.where(v > 0.0, found, s)
    return shrunk


def _uncorrected(t: Any, skew: Any) -> Floats:
    """The number of standard deviations that ``_corrected`` makes ``t`` of."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 3.0 / skew * (np.cbrt(1.0 + skew * (t - skew / 6.0)) - 1.0)
    ends: Floats = np.where(np.abs(skew) > 1e-6, np.maximum(t, found), t)
    return ends
