"""Intervals for column means and smooth functions of them: normal, bootstrap, empirical Bernstein, anytime-valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from armwise.core.agent import Floats, fraction, positive
from armwise.core.seeds import stream
from armwise.native.sequences import STATE, advance_lower

IntervalKind = Literal[
    "auto", "cressie-read", "skew-corrected", "normal", "bootstrap", "bernstein", "betting", "sequence"
]
_MAX_SHARE = 0.9  # share of the rows in one cluster above which the jackknife is uninformative
INTERVALS: tuple[IntervalKind, ...] = get_args(IntervalKind)


class Moments:
    """Running means and covariance of columns, added block by block without losing digits (Chan et al. 1979).

    Where a square is too large for a number, the covariance is infinite or NaN.
    """

    def __init__(self, n_columns: int) -> None:
        self.n = 0
        self.mean = np.zeros(n_columns)
        self._scatter = np.zeros((n_columns, n_columns))

    @np.errstate(over="ignore", invalid="ignore")
    def add(self, columns: Floats) -> None:
        """Take in an (n, m) block."""
        n = len(columns)
        if n == 0:
            return
        mean = columns.mean(axis=0)
        centred = columns - mean
        self._join(n, mean, centred.T @ centred)

    @np.errstate(over="ignore", invalid="ignore")
    def merge(self, other: Moments) -> None:
        """Take in the rows that another has seen."""
        self._join(other.n, other.mean, other._scatter)

    def _join(self, n: int, mean: Floats, scatter: Floats) -> None:
        if n == 0:
            return
        shift, total = mean - self.mean, self.n + n
        if self.n:  # the first block moves nothing, and zero times the square of a huge mean would not be zero
            scatter = scatter + np.outer(shift, shift) * (self.n * n / total)
        self._scatter += scatter
        self.mean = self.mean + shift * (n / total)
        self.n = total

    @property
    def covariance(self) -> Floats:
        """The sample covariance (n - 1 below)."""
        return self._scatter / max(self.n - 1, 1)


class Blocks:
    """Sums of consecutive rows, at most ``limit`` of them: what a bootstrap resamples, in bounded memory.

    Up to ``limit`` rows a block is one row and the bootstrap the usual one; past it neighbours are merged, twice as
    many rows a block each time. Resampling thousands of block sums gives the same spread as resampling rows.
    """

    def __init__(self, n_columns: int, limit: int = 16_384) -> None:
        self._limit, self._size, self._filled = limit, 1, 0
        self._sums = np.zeros((min(limit, 64), n_columns + 1))  # the last column counts rows

    def add(self, columns: Floats) -> None:
        """Take in an (n, m) block of rows."""
        values, start, n = columns.T, 0, len(columns)  # sums run along the columns
        while start < n:
            if self._filled and self._sums[self._filled - 1, -1] < self._size:  # the last block is not full
                short = min(int(self._size - self._sums[self._filled - 1, -1]), n - start)
                self._sums[self._filled - 1, :-1] += values[:, start : start + short].sum(axis=1)
                self._sums[self._filled - 1, -1] += short
                start += short
                continue
            if self._filled == self._limit:
                self._halve()
                continue
            taken = min(n - start, self._size * (self._limit - self._filled))
            whole, rest = divmod(taken, self._size)
            self._grow(whole + 1)
            full = values[:, start : start + whole * self._size].reshape(len(values), whole, self._size)
            new = self._sums[self._filled : self._filled + whole]
            new[:, :-1], new[:, -1] = np.einsum("mws->mw", full).T, self._size  # a quarter of the time of sum(axis=2)
            self._filled += whole
            if rest:
                self._sums[self._filled, :-1] = values[:, start + taken - rest : start + taken].sum(axis=1)
                self._sums[self._filled, -1] = rest
                self._filled += 1
            start += taken

    def _grow(self, more: int) -> None:
        """Make room for more blocks, never beyond the limit."""
        wanted = min(self._filled + more, self._limit)
        if wanted > len(self._sums):
            room = np.zeros((min(max(wanted, 2 * len(self._sums)), self._limit), self._sums.shape[1]))
            room[: self._filled] = self._sums[: self._filled]
            self._sums = room

    def _halve(self) -> None:
        """Merge neighbours, so that a block has twice as many rows."""
        some = (self._filled + 1) // 2
        even, odd = self._sums[0 : self._filled : 2].copy(), self._sums[1 : self._filled : 2]
        even[: len(odd)] += odd
        self._sums[:some], self._sums[some:] = even, 0.0
        self._filled, self._size = some, self._size * 2

    def merge(self, later: Blocks) -> None:
        """Take in the rows after these. Blocks are as in one pass where these are a multiple of ``block_size(all)``."""
        while self._size < later._size or (self._filled + -(-later.counts.sum() // self._size)) > self._limit:
            self._halve()
        while later._size < self._size:
            later._halve()
        new = later._sums[: later._filled]
        self._grow(len(new))
        self._sums[self._filled : self._filled + len(new)] = new
        self._filled += len(new)

    @property
    def sums(self) -> Floats:
        """(blocks, m) sums."""
        return self._sums[: self._filled, :-1]

    @property
    def counts(self) -> Floats:
        """Return the number of rows of each block."""
        return self._sums[: self._filled, -1]

    def influence(self, mean: Floats, gradient: Floats) -> Floats:
        """The part of each block in the error of a linear combination of the column means, times the number of rows."""
        centred: Floats = (self.sums - self.counts[:, None] * mean) @ gradient
        return centred


def block_size(n: int, limit: int = 16_384) -> int:
    """Return the number of rows per block of ``Blocks`` after n rows."""
    return 1 << max(0, (max(n, 1) - 1) // limit).bit_length()


class Clusters:
    """Sums over the rows of each cluster (a user, a shop), whose rows are dependent."""

    def __init__(self, n_columns: int) -> None:
        self._place: dict[Any, int] = {}
        self._sums = np.zeros((64, n_columns + 1))  # the last column counts rows

    def add(self, columns: Floats, clusters: Any) -> None:
        """Take in a block of rows and the cluster of each."""
        names, first, inverse = np.unique(np.asarray(clusters), return_index=True, return_inverse=True)
        order, places = np.argsort(first), np.empty(len(names), np.int64)  # in the order in which they come
        places[order] = [self._place.setdefault(name, len(self._place)) for name in names[order].tolist()]
        places = places[inverse]
        self._grow()
        rows = np.column_stack([columns, np.ones(len(columns))])
        for j in range(rows.shape[1]):
            self._sums[: len(self._place), j] += np.bincount(places, rows[:, j], minlength=len(self._place))

    def merge(self, later: Clusters) -> None:
        """Take in the rows that another has seen."""
        places = np.array([self._place.setdefault(name, len(self._place)) for name in later._place], dtype=np.int64)
        self._grow()
        self._sums[places] += later._sums[: later.n]  # a cluster is there once, so no place comes twice

    def _grow(self) -> None:
        while len(self._place) > len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])

    @property
    def n(self) -> int:
        """The number of clusters."""
        return len(self._place)

    @property
    def sums(self) -> Floats:
        """(clusters, m) sums."""
        return self._sums[: self.n, :-1]

    @property
    def counts(self) -> Floats:
        """Return the number of rows of each cluster."""
        return self._sums[: self.n, -1]

    def covariance(self, mean: Floats, n: int) -> Floats:
        """n times the covariance of the column means, by the jackknife over clusters (CV3: MacKinnon & White 1985).

        What a large cluster has pulled the mean towards itself is given back by 1 - its share of the rows.
        """
        share = np.minimum(self.counts / n, _MAX_SHARE)[:, None]
        centred = (self.sums - self.counts[:, None] * mean) / (1.0 - share)
        covariance: Floats = centred.T @ centred / n * ((self.n - 1.0) / self.n)
        return covariance

    def effective(self, column: Floats) -> float:
        """Return the effective number of equal clusters if a cluster's variance grows with its squared ``column``."""
        squares = np.square(column)
        return float(squares.sum() ** 2 / max(float(squares @ squares), 1e-300))

    def influence(self, mean: Floats, gradient: Floats) -> Floats:
        """The part of each cluster in the error of a linear combination of column means, times the number of rows."""
        centred: Floats = (self.sums - self.counts[:, None] * mean) @ gradient
        return centred


def skewness_of(influence: Floats) -> float:
    """The skewness of the sum of independent terms with mean zero."""
    error = math.sqrt(float(influence @ influence))
    return float(((influence / error) ** 3).sum()) if 0.0 < error < math.inf else 0.0


def freedom(scores: Floats) -> float:
    """Degrees of freedom of the scores' variance: few rows that carry most of it are few (Satterthwaite 1946)."""
    squares = (scores - scores.mean()) ** 2
    total = float(squares.sum())
    if not 0.0 < total < math.inf:
        return 1.0
    relative = float(((squares / total) ** 2).sum()) - 1.0 / len(squares)  # the variance's own, over its square
    return max(1.0, 2.0 / max(relative, 1e-12))


def normal(value: Any, variance: Any, n: int, level: float = 0.95, *, units: float | None = None) -> tuple[Any, Any]:
    """value +- z sqrt(variance / n); Student's quantile where there are few independent ``units`` (clusters)."""
    half = _quantile(level, n, units) * np.sqrt(variance / n)
    return value - half, value + half


def _quantile(level: float, n: int, units: float | None) -> float:
    few = units is not None and units < n
    return float(stdtrit(max(units - 1.0, 1.0), 0.5 + level / 2) if few else ndtri(0.5 + level / 2))  # type: ignore[operator]


def skewed_interval(
    value: float, influence: Floats, level: float = 0.95, *, error: float | None = None, units: float = math.inf
) -> tuple[float, float]:
    """The interval around a value, given each row's part in its error; wider on the side of their skewness.

    Where a few rows carry the spread (one buyer in twenty, at twenty times the mean), a mean that is too low comes
    with an error that is too small, and a symmetric interval misses on that side. So the ends are those of Hall's
    (1992) transformation of t, which removes its skewness to second order, as a bootstrap-t does, without resampling.
    Its quantile is Student's with the degrees of freedom of the variance, and less than ``units`` (clusters, effective
    rows). ``error`` is the standard error, where it is not that of the influence.
    """
    error = math.sqrt(float(influence @ influence)) if error is None else error
    if not (error > 0.0 and math.isfinite(error)):
        return value - error, value + error
    z = float(stdtrit(max(min(freedom(influence), units - 1.0), 1.0), 0.5 + level / 2))
    skewness = skewness_of(influence)
    return value - _hall(z, skewness) * error, value - _hall(-z, skewness) * error


def _hall(x: float, skewness: float) -> float:
    """The t whose transformation t + skewness t^2 / 3 + skewness^2 t^3 / 27 + skewness / 6 is x."""
    if abs(skewness) < 1e-6:
        return x
    return 3.0 / skewness * (float(np.cbrt(1.0 + skewness * (x - skewness / 6.0))) - 1.0)


def p_value_of(ends: Callable[[float], tuple[float, float]]) -> float:
    """The smallest 1 - level whose interval, ``ends`` of a level, misses 0; 1 if none does."""

    def misses(alpha: float) -> bool:
        low, high = ends(1.0 - alpha)
        return low > 0.0 or high < 0.0

    if not misses(1.0 - 1e-6):
        return 1.0
    low, high = math.log(1e-15), 0.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if misses(math.exp(middle)) else (middle, high)
    return math.exp(high)


def normal_p(value: float, variance: float, n: int, *, units: float | None = None) -> float:
    """The two-sided p-value of no difference that goes with ``normal``: below 1 - level where its interval misses 0."""
    error = math.sqrt(variance / n)
    if not error > 0:
        return float(value == 0)
    z = abs(value) / error
    return 2.0 * float(ndtr(-z) if units is None or units >= n else stdtr(max(units - 1.0, 1.0), -z))


def bernstein_p(value: float, variance: float, n: int, spread: float) -> float:
    """The p-value that goes with ``bernstein``: the smallest 1 - level whose interval misses 0."""
    # |value| = sqrt(2 v L / n) + 7 s L / (3 (n - 1)), L = ln(4 / p): a quadratic in sqrt(L)
    a, b = 7.0 * spread / (3.0 * max(n - 1, 1)), math.sqrt(2.0 * variance / n)
    root = (-b + math.sqrt(b * b + 4.0 * a * abs(value))) / (2.0 * a)
    return min(1.0, 4.0 * math.exp(-(root**2)))


def bootstrap_p(
    blocks: Blocks | Clusters, value: Callable[[Floats], Any], *, resamples: int = 1000, seed: int = 0
) -> float:
    """The p-value that goes with ``bootstrap``: the smallest 1 - level whose interval misses 0, at least 2 / B."""
    drawn = np.asarray(value(np.concatenate(list(_resampled(blocks.sums, blocks.counts, resamples, seed)))))
    drawn = np.sort(drawn[np.isfinite(drawn)])
    if not drawn.size:
        return math.nan
    # where 0 lies among the quantiles, between two resamples as np.quantile has it
    share = float(np.interp(0.0, drawn, np.linspace(0.0, 1.0, drawn.size), left=0.0, right=1.0))
    return min(1.0, max(2.0 * min(share, 1.0 - share), 2.0 / (drawn.size + 1)))


def bernstein(value: Any, variance: Any, n: int, level: float = 0.95, *, spread: Any) -> tuple[Any, Any]:
    """Maurer & Pontil's (2009) empirical Bernstein bound, two-sided, for scores in an interval of length ``spread``."""
    log = np.log(4.0 / (1.0 - level))  # each side has half of the failure probability
    half = np.sqrt(2.0 * variance * log / n) + 7.0 * spread * log / (3.0 * max(n - 1, 1))
    return value - half, value + half


def bootstrap(
    blocks: Blocks | Clusters,
    values: list[Callable[[Floats], Any]],
    level: float = 0.95,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[tuple[float, float]]:
    """Percentile intervals of functions of the column means; each resample is normalised by itself."""
    means = np.concatenate(list(_resampled(blocks.sums, blocks.counts, resamples, seed)))
    ends = (0.5 - level / 2, 0.5 + level / 2)
    found = []
    for value in values:
        drawn = np.asarray(value(means))
        drawn = drawn[np.isfinite(drawn)]  # a resample without any match has no self-normalised value
        low, high = np.quantile(drawn, ends) if drawn.size else (np.nan, np.nan)
        found.append((float(low), float(high)))
    return found


def _resampled(sums: Floats, counts: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """(some, m) means of the columns over resampled blocks, until there are ``resamples``."""
    rng, n = stream(seed, "bootstrap"), len(sums)
    at_once = max(1, min(resamples, 2_000_000 // max(n, 1)))
    for start in range(0, resamples, at_once):
        some = min(at_once, resamples - start)
        picked = rng.integers(0, n, (some, n), dtype=np.int32) + n * np.arange(some, dtype=np.int64)[:, None]
        times = np.bincount(picked.ravel(), minlength=some * n).reshape(some, n).astype(np.float64)
        yield times @ sums / (times @ counts)[:, None]


class ConfidenceSequence:
    """An interval for a mean that is valid at all times at once, for any number of looks and any stopping rule.

    Values lie in [low, high]. With importance ``weights`` (mean 1, any size) the mean is that of weight * value: the
    upper end comes from the weighted distance to ``high``, so no limit on the weights is needed (Waudby-Smith, Wu,
    Ramdas, Karampatziakis & Mineiro 2022). Smaller weights than the true ones (clipping) keep both ends valid.
    ``max_weight`` is a guess of the largest weight: a good one makes the interval narrower, a bad one not invalid. It
    may be set again between updates, from what came before.

    >>> sequence = ConfidenceSequence()
    >>> _ = sequence.update([1, 0, 1, 1] * 250)
    >>> sequence.n, bool(sequence.low < 0.75 < sequence.high), bool(sequence.high - sequence.low < 0.2)
    (1000, True, True)
    """

    def __init__(self, level: float = 0.95, low: float = 0.0, high: float = 1.0, max_weight: float = 1.0) -> None:
        self.level = fraction("level", level)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(f"low and high must be finite with low < high, got {low} and {high}")
        self._least, self._most = float(low), float(high)
        self.max_weight = positive("max_weight", max_weight)
        self._sides = np.zeros((2, STATE))

    def update(self, values: Any, weights: Any = None) -> tuple[Floats, Floats]:
        """Add one value or many, in order; return the ends of the interval after each.

        >>> low, high = ConfidenceSequence().update([1, 0, 1])
        >>> low.shape
        (3,)
        """
        x = (np.atleast_1d(np.asarray(values, np.float64)) - self._least) / (self._most - self._least)
        if x.ndim != 1 or not (np.all(x >= -1e-9) and np.all(x <= 1 + 1e-9)):
            raise ValueError(f"values must be numbers in [{self._least:g}, {self._most:g}]")
        x = np.clip(x, 0.0, 1.0)
        w = 1.0 if weights is None else np.atleast_1d(np.asarray(weights, np.float64))
        if weights is not None and (np.shape(w) != x.shape or not np.all(np.isfinite(w) & (w >= 0))):
            raise ValueError("weights must be finite numbers >= 0, one for each value")
        low, high = np.empty(len(x)), np.empty(len(x))
        log = np.log(2.0 / (1.0 - self.level))
        scale = max(1.0, self.max_weight)
        advance_lower(self._sides[0], w * x, log, scale, low)
        advance_lower(self._sides[1], w * (1.0 - x), log, scale, high)
        width = self._most - self._least
        return self._least + width * low, self._most - width * high

    @property
    def n(self) -> int:
        """The number of values so far."""
        return int(self._sides[0, 0])

    @property
    def low(self) -> float:
        """The lower end now."""
        return self._least + (self._most - self._least) * float(self._sides[0, 6])

    @property
    def high(self) -> float:
        """The upper end now."""
        return self._most - (self._most - self._least) * float(self._sides[1, 6])


def confidence_sequence(
    values: Any,
    weights: Any = None,
    *,
    level: float = 0.95,
    low: float = 0.0,
    high: float = 1.0,
    max_weight: float = 1.0,
) -> tuple[Floats, Floats]:
    """The ends of a confidence sequence after each value; rows of a 2-d array are separate sequences.

    >>> low, high = confidence_sequence(np.ones((2, 50)))
    >>> low.shape, bool(low[0, -1] > 0.6), high[0, -1]
    ((2, 50), True, np.float64(1.0))
    """
    table = np.atleast_2d(np.asarray(values, np.float64))
    w = [None] * len(table) if weights is None else np.atleast_2d(np.asarray(weights, np.float64))
    ends = [ConfidenceSequence(level, low, high, max_weight).update(row, v) for row, v in zip(table, w, strict=True)]
    lows, highs = np.stack([pair[0] for pair in ends]), np.stack([pair[1] for pair in ends])
    return (lows[0], highs[0]) if np.ndim(values) == 1 else (lows, highs)
