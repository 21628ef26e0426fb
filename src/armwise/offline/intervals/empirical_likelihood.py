"""Empirical likelihood for policies that a log hardly tries: right in the limit for any probabilities.

The value v of a policy, with rewards in [0, 1], has two sides: E[w r] <= v and E[w (1 - r)] <= 1 - v, where "less" is
for decisions that had no chance. Together they say that the weights average 1 at most, which the likelihood knows as
well: chance effects of too many heavy rows are not taken for reward.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from armwise.core.agent import Floats
from armwise.native.likelihood import largest

_FINE = 1e-4  # of the range: how exact the ends are, outwards
_ANGLES = (np.arange(720) + 0.5) * (math.pi / 360.0)
_MIN_CRITICAL = 1e-12  # not 0: the best values tie
_TIED = 5e-9  # log likelihoods closer than this are equal up to rounding
_UNSEEN, _RAREST = 2.5, 0.3  # the law's skewness over that of a log, which lacks the rarest rows; the least share


def likelihood(
    up: Floats, down: Floats, weights: Floats, cap: float, limits: tuple[float, float], level: float = 0.95, *,
    short: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """The interval for t given E[up] <= t and E[down] <= cap - t, where up + down <= cap on average.

    Owen's (1988, 2001) empirical likelihood of both inequalities, against that of the last one alone; ``critical`` has
    its limit. ``limits`` are those of t. ``short`` says that the weights certainly average less than 1: then t has no
    single value that the log could tell, and each end holds with ``level`` (Imbens and Manski 2004).
    """
    z = critical(_spread(up, down, weights), 1.0 - (1.0 - level) * 0.5 / heavier(weights))
    budget = 0.5 * max(z, float(ndtri(level)) if short else 0.0) ** 2
    up, down, counts = _merged(up, down, weights)
    most = up + down - cap
    budget += _TIED + largest(np.zeros_like(up), 0.0, most, counts, math.inf)
    low = _lowest(up, most, counts, limits, budget)
    return low, cap - _lowest(down, most, counts, (cap - limits[1], cap - limits[0]), budget)


def heavier(weights: Floats) -> float:
    """The share of logs like this one whose weights average more than 1, though they do so in expectation: below 1/2.

    Rare heavy weights are missing from most logs. Where they are, no end can miss, as the missing weight may have been
    anything, so an end misses in the other logs alone: fewer than the normal limit's half. To first order in the
    skewness of the mean weight the share is 1/2 - skewness / (6 sqrt(2 pi)) (Edgeworth 1905); a log shows less of it
    than there is. ``_UNSEEN`` was set on logs of SquareCB for a share of .4. Of 1,000 rounds of today's default it is
    .45 and .40 is said, which makes an interval of .95 a little narrower: there it held in .952 of 1,164 cases.
    """
    spread = weights - weights.mean()
    variance = float(spread @ spread)
    if not variance > 0.0:
        return 0.5
    skewness = float((spread**3).sum()) / variance**1.5
    return float(np.clip(0.5 - _UNSEEN * skewness / (6.0 * math.sqrt(2.0 * math.pi)), _RAREST, 0.5))


def _lowest(u: Floats, s: Floats, counts: Floats, limits: tuple[float, float], budget: float) -> float:
    """The largest t below which every one is ruled out: the likelihood of E[u] <= t rises with t."""
    low, high = limits

    def excess(t: float) -> float:
        return largest(u, t, s, counts, budget + 4.0) - budget

    if excess(low) < 0.0:
        return low
    if excess(high) >= 0.0:
        return high
    fine = (high - low) * _FINE
    return max(low, float(brentq(excess, low, high, xtol=fine)) - fine)


def _merged(up: Floats, down: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """The same rows with those of weight zero, most of a log, counted where they are alike."""
    none = weights <= 0.0
    _, first, counts = np.unique(up[none], return_index=True, return_counts=True)
    if len(first) > 0.5 * none.sum():
        return up, down, np.ones(len(up))
    rows = np.concatenate([np.flatnonzero(none)[first], np.flatnonzero(~none)])
    return up[rows], down[rows], np.concatenate([counts, np.ones(int((~none).sum()))])


def _spread(up: Floats, down: Floats, weights: Floats) -> Floats:
    """The covariance of a row's (up, down) up to a factor; few heavy rows must not decide which of the two is wider."""
    U = np.column_stack([up, down])
    damped = (U / np.maximum(weights, 1.0)[:, None]).T @ U
    second, mean = float((U**2).sum()) / len(U), U.mean(axis=0)
    if not second > (1.0 + 1e-9) * float(mean @ mean):  # all rows are the same
        return np.eye(2)
    return np.asarray(damped / np.trace(damped) * second - np.outer(mean, mean))


def critical(covariance: Floats, level: float = 0.95) -> float:
    """The bound that the root of twice either end's log likelihood ratio exceeds with chance 1 - level in the limit.

    Where the weights average 1 exactly: in polar coordinates of the limit's normal vector both statistics are
    R^2 k(angle), so the probability is the mean of exp(-z^2 / (2 k)) over the angles. If the weights do not vary it is
    the normal quantile; if they vary much, less: an end misses only with weights that the other inequality allows.
    """
    if level <= 0.0:  # a low level, of which ``heavier`` leaves nothing: what fits the log best, and no more
        return _MIN_CRITICAL
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-9 * values.max())
    root = vectors * np.sqrt(values)
    S = root @ root.T
    Z = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)]) @ root.T
    beyond = np.maximum(Z.sum(axis=1), 0.0) ** 2 / S.sum()
    k = np.maximum(_to_cone(Z, S), _to_cone(Z[:, ::-1], S[::-1, ::-1])) - beyond
    k = np.maximum(k, 1e-12)
    rate = -0.5 / k

    def beyond_z(z: float) -> float:
        return float(np.exp(z * z * rate).mean()) - (1.0 - level)

    return float(brentq(beyond_z, 0.0, float(ndtri(0.5 + level / 2.0)) + 1.0, xtol=1e-12))


def _to_cone(Z: Floats, S: Floats) -> Floats:
    """Squared distances, measured by S^-1, to the points with x_0 <= 0 and x_0 + x_1 <= 0."""
    first, total, variance = Z[:, 0], Z.sum(axis=1), float(S.sum())
    edge = np.where(Z[:, 1] - S[0, 1] / S[0, 0] * first <= 0.0, first**2 / S[0, 0], np.inf)  # to x_0 = 0
    line = np.where(first - (S[0, 0] + S[0, 1]) / variance * total <= 0.0, total**2 / variance, np.inf)
    corner = np.einsum("ni,ij,nj->n", Z, np.linalg.inv(S), Z)
    away = np.minimum(np.where(first > 0.0, edge, np.inf), np.where(total > 0.0, line, np.inf))
    return np.asarray(np.where((first <= 0.0) & (total <= 0.0), 0.0, np.minimum(away, corner)))
