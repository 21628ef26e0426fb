"""Diagnostics: can this log answer the question at all? Weights, overlap, calibration, and a verdict in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.agent import Floats
from armwise.offline.intervals import Moments
from armwise.offline.rows import SURE, Rows

_TOP = 5  # largest weights kept
_ENOUGH = 30  # effective rows below which no interval is to be relied on


class WeakLogWarning(UserWarning):
    """The log hardly supports the estimate; the message says why.

    >>> issubclass(WeakLogWarning, UserWarning)
    True
    """


@dataclass(frozen=True)
class Diagnostics:
    """What the weights say about a log and a target.

    ``ess`` is Kish's effective sample size (sum w)^2 / sum w^2, ``mean_weight`` should be 1, ``no_overlap`` is the
    share of rows whose arm the target never plays, ``unsupported`` the share of the target's decisions for arms that
    the log had no chance to play (as far as it says: where it has whole distributions, or p = 1). ``calibration``
    has for each arm the sum of 1/p over its rows, a row that could have drawn it (1 if the probabilities are right),
    and by how many standard errors that is off (NaN: too few rows).

    >>> from armwise.offline import Log, evaluate
    >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
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
    verdicts: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        calibration = [[None if np.isnan(x) else float(x) for x in row] for row in self.calibration]
        return {**self.__dict__, "largest": [list(pair) for pair in self.largest], "calibration": calibration,
                "verdicts": list(self.verdicts)}  # fmt: skip


class Weighing:
    """Collects what the diagnostics need, block by block."""

    def __init__(self, n_arms: int) -> None:
        self._weights = Moments(1)
        self._raw = Moments(1)  # before clipping: only these should have mean 1
        self._zero = self._clipped = 0
        self._unsupported = 0.0
        self._largest: list[tuple[int, float]] = []
        self._arm = np.zeros((3, n_arms))  # per arm: rows, sum of 1/p, sum of 1/p^2
        self._offered = np.zeros(n_arms)

    def add(self, rows: Rows, weights: Floats, raw: Floats, unsupported: float = 0.0) -> None:
        """Take in a block: its weights as used and before clipping, and the target's mass on arms it could not draw."""
        self._unsupported += unsupported
        self._weights.add(weights[:, None])
        if raw is not weights:
            self._raw.add(raw[:, None])
            self._clipped += int(np.count_nonzero(weights != raw))
        self._zero += int(len(weights) - np.count_nonzero(raw))
        least = self._largest[-1][1] if len(self._largest) == _TOP else -1.0
        top = np.flatnonzero(weights > least)
        if top.size > _TOP:
            top = top[np.argpartition(weights[top], top.size - _TOP)[-_TOP:]]
        self._largest = sorted(self._largest + [(rows.start + int(i), float(weights[i])) for i in top],
                               key=lambda pair: -pair[1])[:_TOP]  # fmt: skip
        assert rows.probabilities is not None
        inverse, K = 1.0 / rows.probabilities, self._offered.size
        self._arm += np.stack(
            [np.bincount(rows.arms, v, minlength=K) for v in (np.ones(len(rows)), inverse, inverse**2)]
        )
        self._offered += _chances(rows)

    @property
    def largest_weight(self) -> float:
        """The largest weight seen."""
        return self._largest[0][1] if self._largest else 0.0

    def result(self) -> Diagnostics:
        """The diagnostics, verdicts included."""
        n, mean = self._weights.n, float(self._weights.mean[0])
        second = float(self._weights.covariance[0, 0]) * (n - 1) / n + mean**2
        ess = n * mean**2 / second if second > 0 else 0.0
        raw = self._raw if self._raw.n else self._weights
        raw_mean, raw_error = float(raw.mean[0]), float(np.sqrt(raw.covariance[0, 0] / n))
        share = self.largest_weight / (n * mean) if mean > 0 else 0.0
        calibration = self._calibration()
        missing = self._unsupported / n
        verdicts = _verdicts(n, ess, raw_mean, raw_error, self._largest, share, missing, calibration)
        return Diagnostics(n, ess, raw_mean, raw_error, tuple(self._largest), share, self._zero / n, missing,
                           calibration, self._clipped / n, raw_mean - mean, tuple(verdicts))  # fmt: skip

    def _calibration(self) -> Floats:
        n, (rows, first, second) = self._weights.n, self._arm
        expected = np.maximum(self._offered, 1.0)
        mean = first / expected
        error = np.sqrt(np.maximum(second / n - (first / n) ** 2, 0.0) / n) * n / expected
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.where((rows >= 30) & (error > 0), (mean - 1.0) / error, np.nan)
        return np.column_stack([mean, off])


def _chances(rows: Rows) -> Any:
    """In how many rows each arm could have been drawn, as far as the log says."""
    assert rows.probabilities is not None
    if rows.support is not None:
        return rows.support.sum(axis=0)
    open_ = rows.probabilities < SURE
    if open_.all():
        return len(rows) if rows.available is None else rows.available.sum(axis=0)
    sure = np.bincount(rows.arms[~open_], minlength=rows.n_arms)
    return sure + (np.count_nonzero(open_) if rows.available is None else rows.available[open_].sum(axis=0))


def _verdicts(
    n: int, ess: float, mean: float, error: float, largest: list[tuple[int, float]], share: float, missing: float,
    calibration: Floats,
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
    elif ess < 0.01 * n or (ess < 0.1 * n and ess < 500):
        found.append(f"this log barely answers the question: {size} ({ess / n:.1%})")
    if n >= 100 and share > 0.1:
        found.append(f"one row carries {share:.0%} of all weight (row {largest[0][0]}, weight {largest[0][1]:,.1f})")
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
