"""Diagnostics: can this log answer the question at all? Weights, overlap, calibration, and a verdict in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.intervals.intervals import Moments
from armwise.offline.logs.formats.lines import Lines
from armwise.offline.logs.rows import SURE, LogBlock

_TOP = 5  # largest weights shown
_TAIL = 4096  # largest weights that the fit of their tail may use
_COMMON = 0.2  # share of the rows from which on a reward is no rare one
_FEW = 10  # rewards other than the most frequent, below which no interval from moments is to be relied on
VERY_FEW = 5  # below which no other interval is
_SURELY = 500  # rows of one reward, beyond which an interval of 3/n says enough
_SYMMETRIC = ("normal", "bootstrap")  # intervals that know nothing of rows not seen
FROM_MOMENTS = (*_SYMMETRIC, "skew-corrected")
_HEAVY = 0.5  # Pareto k of the weights above which they have no variance, which these intervals rest on
_LIGHT = 0.25  # that of amounts before any is seen: below what is warned of, so that twenty ordinary ones are not
_VERY_HEAVY = 0.7  # above which no size of a log is enough (Vehtari et al. 2024), whatever the interval knows
_SPREAD = 5.0  # the largest weight over the mean of those above zero, below which no tail matters
HEAVY_PRODUCT = 0.3  # Pareto k of |w r| and of |r| above which an interval from moments may end too near
_PIECE = 8_192  # rows at a time, whose intermediate results stay in the cache: a third of the time
_POINTS = 200  # of the effective sample size over time
_ENOUGH = 30  # effective rows below which no interval is to be relied on


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of a log and a target by their weights.

    ``ess`` is Kish's effective sample size (sum w)^2 / sum w^2, ``mean_weight`` should be 1, ``no_overlap`` is the
    share of rows whose arm the target never plays, ``unsupported`` the share of the target's decisions for arms that
    the log had no chance to play (as far as it says: where it has whole distributions, or p = 1). ``calibration``
    has for each arm the sum of 1/p over its rows, a row that could have drawn it (1 if the probabilities are right),
    and by how many standard errors that is off (NaN: too few rows).

    >>> from armwise.offline import Log, evaluate
    >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0, 0, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
    >>> found = evaluate(log, [1.0, 0.0], "ips").diagnostics
    >>> round(found.ess), found.mean_weight, found.no_overlap, found.largest[0][1]
    (50, 1.0, 0.5, 2.0)
    """

    n: int
    ess: float
    mean_weight: float
    mean_weight_error: float
    largest: tuple[tuple[int, float], ...]  # (row, weight)
    largest_share: float
    no_overlap: float
    unsupported: float
    calibration: Floats  # (K, 2)
    clipped: float  # share of rows whose probability was raised to the clip
    clipped_weight: float  # how much that took from the mean weight
    pareto_k: float  # of the weights' tail; above 0.5 it is heavy (NaN: too few weights to say)
    outcomes: int  # matching rows whose reward is not the most frequent one
    verdicts: tuple[str, ...]
    histogram: tuple[tuple[float, int], ...] = ()  # (upper edge, rows) of the positive weights
    ess_over_time: tuple[tuple[int, float], ...] = ()  # (rows so far, effective ones)
    balance: tuple[tuple[str, float, int], ...] = ()  # (column, standard errors off, arm), the worst first
    lines: Lines | None = field(default=None, repr=False, compare=False)  # of a CSV file

    def place(self, row: int) -> str:
        """Where a row stands: its line in a CSV file, else its number."""
        return _place(row, self.lines)

    def with_verdict(self, *texts: str) -> Diagnostics:
        """The same with more to say."""
        return replace(self, verdicts=(*self.verdicts, *texts))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        calibration = [[None if np.isnan(x) else float(x) for x in row] for row in self.calibration]
        lists = {name: [list(item) for item in getattr(self, name)]
                 for name in ("largest", "histogram", "ess_over_time", "balance")}  # fmt: skip
        plain = {name: value for name, value in self.__dict__.items() if name != "lines"}
        return {**plain, **lists, "calibration": calibration, "verdicts": list(self.verdicts)}


class Weighing:
    """Collects what the diagnostics need, block by block."""

    def __init__(self, n_arms: int) -> None:
        self._weights = Moments(1)
        self._raw = Moments(1)  # before clipping: only these should have mean 1
        self._zero = self._clipped = 0
        self._unsupported = 0.0
        self._largest: list[tuple[int, float]] = []
        self._tail = np.empty(0)
        self._counts = np.zeros(128, np.int64)  # of weights by half powers of two, from 2^-16
        self._rewards = _Commonest()
        self._over_time: list[tuple[int, float, float]] = []  # rows, sum w, sum w^2
        self.least_probability, self._most_probability = 1.0, 0.0
        self._arm = np.zeros((3, n_arms))  # per arm: rows, sum of 1/p, sum of 1/p^2
        self._offered = np.zeros(n_arms)
        self._by_arm = np.tile([[np.inf], [-np.inf]], n_arms)  # the smallest and largest probability of each arm
        self._possible = np.zeros((2, 64))  # of weights by powers of two: how many decisions, and their weights' sum
        self._products, self._amounts = np.empty(0), np.empty(0)  # the largest |w r|, and the largest |r| where w > 0
        self._lines: Lines | None = None  # of a CSV file

    def add(self, rows: LogBlock, weights: Floats, raw: Floats, unsupported: float = 0.0, numbers: Any = None) -> None:
        """Take in a block: its weights as used and before clipping, and the target's mass on arms it could not draw.

        ``numbers`` are those of its rows in the log, where they are not consecutive.
        """
        self._unsupported += unsupported
        self._weights.add(weights[:, None])
        self._look_at_tail(weights, rows.rewards)
        if raw is not weights:
            self._raw.add(raw[:, None])
            self._clipped += int(np.count_nonzero(weights != raw))
        self._zero += int(len(weights) - np.count_nonzero(raw))
        least = self._largest[-1][1] if len(self._largest) == _TOP else -1.0
        top = np.flatnonzero(weights > least)
        if top.size > _TOP:  # of equal ones the first
            fifth = np.partition(weights[top], top.size - _TOP)[-_TOP]
            above = top[weights[top] > fifth]
            top = np.concatenate([above, top[weights[top] == fifth][: _TOP - above.size]])
        self._largest = sorted(self._largest + [(rows.start + int(i) if numbers is None else int(numbers[i]),
                                                float(weights[i])) for i in top],
                               key=lambda pair: -pair[1])[:_TOP]  # fmt: skip
        self._lines = self._lines if rows.names is None else rows.names.lines
        assert rows.probabilities is not None
        inverse, K = 1.0 / rows.probabilities, self._offered.size
        self.least_probability = min(self.least_probability, float(rows.probabilities.min()))
        self._most_probability = max(self._most_probability, float(rows.probabilities.max()))
        self._arm += np.stack([np.bincount(rows.arms, v, minlength=K) for v in (None, inverse, inverse**2)])
        self._offered += _chances(rows)
        np.minimum.at(self._by_arm[0], rows.arms, rows.probabilities)
        np.maximum.at(self._by_arm[1], rows.arms, rows.probabilities)
        self._look_at_other_arms(rows.probabilities, raw)

    def _look_at_other_arms(self, p: Floats, raw: Floats) -> None:
        """Count decisions by the weight of their row: those that seen rows stand for, and those for other arms.

        What a row's probability leaves is all that its other arms have, about the same each.
        """
        for first in range(0, len(p), _PIECE):
            seen, chance = raw[first : first + _PIECE], p[first : first + _PIECE]
            left = np.flatnonzero(chance < SURE)
            mass = 1.0 - seen[left] * chance[left]  # the target's, on other arms
            other = mass * (self._offered.size - 1.0) / (1.0 - chance[left])
            for weights, decisions in ((seen, seen), (other, mass)):
                place = np.clip(np.frexp(weights)[1] + 16, 0, 63)
                self._possible += [np.bincount(place, decisions, 64), np.bincount(place, decisions * weights, 64)]

    @property
    def possible_weight(self) -> float:
        """The largest weight that rows which were not seen may have.

        In a trial, where each arm has one probability, it was seen. Otherwise as large as other arms' probabilities
        allow; but three rows of it, which chance may leave out, stand for no more decisions than there are.
        """
        least, most = self._by_arm
        if np.all(most - least <= 1e-9, where=most > 0.0):
            return self.largest_weight
        decisions, totals = self._possible
        weights = totals / np.maximum(decisions, 1e-300)
        beyond = np.cumsum(decisions[::-1])[::-1]
        return float(np.minimum(weights, beyond / 3.0).max())

    def merge(self, later: Weighing) -> None:
        """Take in the rows that came after these."""
        self._weights.merge(later._weights)
        self._raw.merge(later._raw)
        self._zero, self._clipped = self._zero + later._zero, self._clipped + later._clipped
        self._unsupported += later._unsupported
        self._largest = sorted([*self._largest, *later._largest], key=lambda pair: -pair[1])[:_TOP]
        self._tail = _with(self._tail, later._tail)
        self._counts += later._counts
        self._rewards.merge(later._rewards)
        before = self._over_time[-1] if self._over_time else (0, 0.0, 0.0)
        self._over_time += [(before[0] + n, before[1] + w, before[2] + w2) for n, w, w2 in later._over_time]
        self._thin_out()
        self.least_probability = min(self.least_probability, later.least_probability)
        self._most_probability = max(self._most_probability, later._most_probability)
        self._arm += later._arm
        self._offered += later._offered
        self._by_arm = np.stack([np.minimum(self._by_arm[0], later._by_arm[0]),
                                 np.maximum(self._by_arm[1], later._by_arm[1])])  # fmt: skip
        self._possible += later._possible
        self._products = _with(self._products, later._products)
        self._amounts = _with(self._amounts, later._amounts)
        self._lines = self._lines or later._lines

    def _thin_out(self) -> None:
        while len(self._over_time) > _POINTS:
            last = self._over_time[-1]
            self._over_time = self._over_time[1::2]
            if self._over_time[-1] != last:
                self._over_time.append(last)

    def _look_at_tail(self, weights: Floats, rewards: Floats) -> None:
        positive = weights > 0
        some = weights[positive]
        self._rewards.add(rewards[positive])
        if some.size:
            place = np.clip(np.ceil(2.0 * np.log2(some)).astype(np.int64) + 32, 0, len(self._counts) - 1)
            self._counts += np.bincount(place, minlength=len(self._counts))
        self._tail = _with(self._tail, some)
        amounts = np.abs(rewards[positive])
        self._products, self._amounts = _with(self._products, some * amounts), _with(self._amounts, amounts)
        n, total, square = self._over_time[-1] if self._over_time else (0, 0.0, 0.0)
        for part in np.array_split(weights, 20 if not n else 1):  # the first block alone may be the whole log
            if part.size:
                n, total, square = n + part.size, total + float(part.sum()), square + float((part**2).sum())
                self._over_time.append((n, total, square))
        self._thin_out()

    @property
    def constant(self) -> bool:
        """Whether all used rows have the same reward."""
        return self._rewards.others == 0 and self._rewards.n > 0

    @property
    def common_reward(self) -> float:
        """The reward of the used rows, where they all have the same."""
        return self._rewards.low

    @property
    def ess(self) -> float:
        """Kish's effective sample size so far."""
        n, mean = self._weights.n, float(self._weights.mean[0])
        second = float(self._weights.covariance[0, 0]) * (n - 1) / n + mean**2 if n else 0.0
        return n * mean**2 / second if second > 0 else 0.0

    @property
    def product_k(self) -> float:
        """The Pareto k of |w r|, or that of |r| where it is smaller: weights alone do not make a few rows decide.

        A log shows how large weights get, as its probabilities do; of how large rewards get it shows only what came.
        """
        return min(pareto_k(each, self._weights.n, _LIGHT) for each in (self._products, self._amounts))

    @property
    def largest_weight(self) -> float:
        """The largest weight seen."""
        return self._largest[0][1] if self._largest else 0.0

    def result(self, interval: str = "normal") -> Diagnostics:
        """The diagnostics, verdicts included: what speaks against this kind of interval."""
        n, mean = self._weights.n, float(self._weights.mean[0])
        ess, k, heavy = self.ess, pareto_k(self._tail, n), _HEAVY if interval in _SYMMETRIC else _VERY_HEAVY
        raw = self._raw if self._raw.n else self._weights
        raw_mean, raw_error = float(raw.mean[0]), float(np.sqrt(raw.covariance[0, 0] / n))
        share = self.largest_weight / (n * mean) if mean > 0 else 0.0
        calibration = self._calibration()
        missing = self._unsupported / n
        verdicts = _verdicts(n, n - self._zero, ess, raw_mean, raw_error, self._largest, share, missing, calibration,
                             self._lines)  # fmt: skip
        # weights that hardly vary have a limit, whatever the shape of their tail
        varied = self.largest_weight > _SPREAD * n * mean / max(n - self._zero, 1)
        varied = varied and self.least_probability < 0.8 * self._most_probability
        if k > heavy and varied and not any("effective sample size" in text for text in verdicts):
            verdicts.append(
                f"the weights have a heavy tail (Pareto k {k:.2f}, above {heavy:g}): a few rows not seen yet may "
                "change the answer by more than the interval says"
            )
        verdicts += _rare(self._rewards, ess, _FEW if interval in FROM_MOMENTS else VERY_FEW)
        edges = tuple((2.0 ** ((i - 32) / 2), int(c)) for i, c in enumerate(self._counts) if c)
        over_time = tuple((m, total**2 / square if square > 0 else 0.0) for m, total, square in self._over_time)
        return Diagnostics(n, ess, raw_mean, raw_error, tuple(self._largest), share, self._zero / n, missing,
                           calibration, self._clipped / n, raw_mean - mean, k, self._rewards.others, tuple(verdicts),
                           edges, over_time, lines=self._lines)  # fmt: skip

    def _calibration(self) -> Floats:
        n, (rows, first, second) = self._weights.n, self._arm
        expected = np.maximum(self._offered, 1.0)
        mean = first / expected
        error = np.sqrt(np.maximum(second / n - (first / n) ** 2, 0.0) / n) * n / expected
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.where((rows >= 30) & (error > 0), (mean - 1.0) / error, np.nan)
        return np.column_stack([mean, off])


class _Commonest:
    """Count the rewards beside the commonest one, the smallest or the largest: clicks, or rare values."""

    def __init__(self) -> None:
        self.n = self._at_low = self._at_high = 0
        self.low, self.high = math.inf, -math.inf

    def add(self, rewards: Floats) -> None:
        if not rewards.size:
            return
        low, high = float(rewards.min()), float(rewards.max())
        if low < self.low:
            self.low, self._at_low = low, 0
        if high > self.high:
            self.high, self._at_high = high, 0
        self._at_low += int(np.count_nonzero(rewards == self.low))
        self._at_high += int(np.count_nonzero(rewards == self.high))
        self.n += rewards.size

    def merge(self, other: _Commonest) -> None:
        low, high = min(self.low, other.low), max(self.high, other.high)
        self._at_low = sum(each._at_low for each in (self, other) if each.low == low)
        self._at_high = sum(each._at_high for each in (self, other) if each.high == high)
        self.low, self.high, self.n = low, high, self.n + other.n

    @property
    def others(self) -> int:
        """Rows without the more frequent of the two ends."""
        return self.n - max(self._at_low, self._at_high)


def _with(largest: Floats, more: Floats) -> Floats:
    """The largest of both above zero that the fit of a tail may use, in any order."""
    least = largest.min() if largest.size == _TAIL else 0.0
    both = np.concatenate([largest, more[more > least]])
    return np.partition(both, both.size - _TAIL)[-_TAIL:] if both.size > _TAIL else both


def _rare(rewards: _Commonest, ess: float, few: int) -> list[str]:
    if rewards.n == 0 or rewards.others >= few or (rewards.others == 0 and ess > _SURELY):
        return []
    if rewards.others == 0:
        return [f"all {rewards.n:,} matching rows have the reward {rewards.low:g}: they say nothing of rarer "
                "rewards"]  # fmt: skip
    verb = "differs" if rewards.others == 1 else "differ"
    return [f"few different rewards: {rewards.others} of {rewards.n:,} matching rows {verb} from the most frequent "
            f"reward, where an interval needs about {few}"]  # fmt: skip


def pareto_k(weights: Floats, n: int, prior: float = _HEAVY) -> float:
    """The shape of a generalised Pareto distribution fitted to the largest of n weights; NaN if there are too few.

    The tail is the largest min(n / 5, 3 sqrt(n)) weights (Vehtari et al. 2024), fitted as Zhang and Stephens (2009) do,
    and the shape is shrunk towards ``prior``, which counts as ten rows.
    """
    size = int(min(0.2 * n, 3.0 * math.sqrt(n), _TAIL - 1, len(weights) - 1))
    if size < 5:
        return math.nan
    largest = np.sort(weights)[-size - 1 :]
    x = largest[1:] - largest[0]
    if x[size // 2] <= 1e-9 * largest[0]:  # at least half of the tail is one weight: it has no tail
        return 0.0
    x = x[x > 0]
    m = 30 + int(math.sqrt(len(x)))
    grid = 1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    grid = 1.0 / x[-1] + grid / (3.0 * x[int(len(x) / 4 + 0.5) - 1])
    shapes = np.log1p(-grid[:, None] * x).mean(axis=1)
    fit = len(x) * (np.log(-grid / shapes) - shapes - 1.0)
    with np.errstate(over="ignore"):
        posterior = 1.0 / np.exp(fit - fit[:, None]).sum(axis=1)
    b = float((grid * posterior).sum() / posterior.sum())
    k = float(np.log1p(-b * x).mean())
    return (len(x) * k + 10.0 * prior) / (len(x) + 10.0)


def _chances(rows: LogBlock) -> Any:
    """In how many rows each arm could have been drawn, as far as the log says."""
    assert rows.probabilities is not None
    if rows.support is not None:
        return rows.support.sum(axis=0)
    open_ = rows.probabilities < SURE
    if open_.all():
        return len(rows) if rows.available is None else rows.available.sum(axis=0)
    sure = np.bincount(rows.arms[~open_], minlength=rows.n_arms)
    return sure + (np.count_nonzero(open_) if rows.available is None else rows.available[open_].sum(axis=0))


def _place(row: int, lines: Lines | None) -> str:
    return f"row {row}" if lines is None else lines.place(row)


def _verdicts(
    n: int, matched: int, ess: float, mean: float, error: float, largest: list[tuple[int, float]], share: float,
    missing: float, calibration: Floats, lines: Lines | None,
) -> list[str]:  # fmt: skip
    found = []
    size = f"effective sample size {ess:,.0f} of {n:,}"
    if missing > 0.001:
        found.append(
            f"in {missing:.1%} of its decisions the target plays an arm that this log never tries there, so nothing "
            f"says what they would earn (the weights average {mean:.3g}, not 1)"
        )
    if ess < 0.01 * n and ess < 1000:
        found.append(f"this log cannot answer the question: {size}")
    elif ess < _ENOUGH:
        found.append(f"too few rows answer the question: {size}, where an interval needs about {_ENOUGH}")
    elif ess < 0.01 * n or (ess < 0.1 * matched and ess < 500):  # rows of other arms are no fault
        found.append(f"this log barely answers the question: {size} ({ess / n:.1%})")
    if n >= 100 and share > 0.1:
        found.append(f"one row carries {share:.0%} of all weight ({_place(largest[0][0], lines)}, weight "
                     f"{largest[0][1]:,.1f})")  # fmt: skip
    short = n < 100 or ess < _ENOUGH  # then the error of the mean says little, unless it is zero
    if abs(mean - (1.0 - missing)) > max(5.0 * error, 0.02) and (n >= 100 or ess >= _ENOUGH or error < 1e-9):
        cause = "it never plays some arms that the target wants, or" if mean < 1 else "some rows are missing, or"
        chance = ", or this is chance" if short else ""
        found.append(f"the weights average {mean:.3g}, not 1: {cause} its probabilities are wrong{chance}")
    wrong = np.flatnonzero(np.abs(calibration[:, 1]) > 6.0)
    if wrong.size:
        worst = wrong[np.argmax(np.abs(calibration[wrong, 1]))]
        found.append(
            f"the logged probabilities do not match how often arms appear ({wrong.size} arms; arm {worst}: rows "
            f"weighted by 1/p make {calibration[worst, 0]:.0%} of the log, expected 100%)"
        )
    return found


def rare_rewards(rewards: Floats, few: int = _FEW, weights: Floats | None = None) -> list[str]:
    """Return whether almost all matching rows, whose rewards these are, earned the same: their variance says little.

    With ``weights`` effective rows count: a row that hardly weighs has seen little of what is asked for.
    """
    weights = np.ones(len(rewards)) if weights is None else weights
    total = float(weights.sum())
    if not total > 0.0:
        return []
    rows = total**2 / float((weights**2).sum())
    share = 1.0 - float(np.bincount(np.unique(rewards, return_inverse=True)[1], weights).max()) / total
    other = rows * share
    if other >= few - 1e-6 or (other >= few / 2 and share >= _COMMON):  # seven of twenty are not rare
        return []
    verb = "differs" if round(other) == 1 else "differ"
    return [f"few different rewards: {other:.0f} of {rows:,.0f} matching rows {verb} from the most frequent reward, "
            f"where an interval needs about {few}"]  # fmt: skip
