"""The probability that each arm is the best under a posterior: what Thompson sampling plays with.

Independent arms need one integral each, P(a wins) = int f_a(y) prod_(b != a) F_b(y) dy, done by Gauss-Legendre
quadrature over pieces that are narrow wherever some arm's distribution bends. Two Gaussian arms have a closed form,
and so have arms whose covariance is a diagonal plus one common factor, given that factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from armwise.agent import Floats
from armwise.numerics.choice import tied_probabilities

LEAST = 1e-12  # no arm's probability is less, so that importance weights exist whatever is played
_STEPS = np.array([-9.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 9.0])  # in deviations of an arm
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_FACTOR_NODES, _FACTOR_WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_SAME = 1e-9  # relative to the variances: covariances this close are equal


def floored(p: Floats) -> Floats:
    """A distribution in proportion to p, in which no arm has less than ``LEAST``.

    >>> bool(floored(np.array([1.0, 0.0]))[1] > 0.0)
    True
    """
    p = np.maximum(p, LEAST)
    normalised: Floats = p / p.sum()
    return normalised


def smoothed_wins(wins: Floats) -> Floats:
    """The wins of M draws and of one more that falls on every arm alike: never zero, whatever won.

    >>> smoothed_wins(np.array([3.0, 0.0]))
    array([0.875, 0.125])
    """
    smoothed: Floats = (wins + 1.0 / wins.size) / (wins.sum() + 1.0)
    return smoothed


def gaussian(means: Floats, covariance: Floats) -> Floats | None:
    """P(arm has the largest score) for jointly Gaussian scores; None where that is more than an integral or two.

    Exact for two arms, for independent arms, and for arms that share one factor: covariance = diagonal + w w'.

    >>> gaussian(np.array([0.0, 1.0]), np.diag([0.5, 0.5])).round(4)
    array([0.1587, 0.8413])
    """
    K = means.size
    if K == 1:
        return np.ones(1)
    if K == 2:
        variance = covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
        if variance <= 1e-26 * max(1.0, float(np.abs(means).max()) ** 2):  # below what the means are known to
            return floored(tied_probabilities(means))
        from scipy.special import ndtr  # slow to import

        first = float(ndtr((means[0] - means[1]) / math.sqrt(variance)))
        return floored(np.array([first, 1.0 - first]))
    loadings = _common_factor(covariance)
    if loadings is None:
        return None
    own = np.sqrt(np.maximum(np.diag(covariance) - loadings**2, 0.0))
    if np.ptp(loadings) <= _SAME * np.abs(loadings).max(initial=0.0):  # a shift that all arms share decides nothing
        return _independent(means, own)
    total = np.zeros(K)
    for z, weight in zip(_FACTOR_NODES, _FACTOR_WEIGHTS):
        total += weight * _independent(means + z * loadings, own)
    return floored(total)


def beta(successes: Floats, failures: Floats) -> Floats:
    """P(arm has the largest rate) for independent Beta posteriors.

    In the angle y = sin^2(angle) a Beta is nearly Gaussian of deviation 1 / (2 sqrt(n)), and its density is finite at
    both ends for parameters from 1/2 on.

    >>> beta(np.array([1.0, 2.0]), np.array([1.0, 1.0])).round(4)
    array([0.3333, 0.6667])
    """
    from scipy.special import betainc, betaln  # slow to import

    a, b = successes[:, None], failures[:, None]
    logs = betaln(a, b)

    def distribution(angle: Floats) -> tuple[Floats, Floats]:
        sine, cosine = np.sin(angle), np.cos(angle)
        y = sine**2
        with np.errstate(divide="ignore"):
            density = 2.0 * np.exp((2 * a - 1) * np.log(sine) + (2 * b - 1) * np.log(cosine) - logs)
        return density, np.asarray(betainc(a, b, y), np.float64)

    rates, spreads = successes / (successes + failures), 0.5 / np.sqrt(successes + failures)
    return _integrate(np.arcsin(np.sqrt(rates)), spreads, distribution, 0.0, 0.5 * math.pi)


def _independent(means: Floats, deviations: Floats) -> Floats:
    """Independent Gaussian arms. A deviation of (nearly) zero beside the others' is a jump: it gets a narrow width."""
    from scipy.special import ndtr  # slow to import

    widest = float(deviations.max())
    if widest <= 1e-13 * max(1.0, float(np.abs(means).max())):  # below what the means themselves are known to
        return floored(tied_probabilities(means))
    spread = np.maximum(deviations, 1e-9 * widest)
    centre, scale = means[:, None], spread[:, None]

    def distribution(y: Floats) -> tuple[Floats, Floats]:
        z = (y - centre) / scale
        return np.exp(-0.5 * z * z) / (scale * math.sqrt(2 * math.pi)), ndtr(z)

    return _integrate(means, spread, distribution, -math.inf, math.inf)


def _integrate(
    centres: Floats,
    spreads: Floats,
    distribution: Callable[[Floats], tuple[Floats, Floats]],
    low: float,
    high: float,
) -> Floats:
    """int f_a prod_(b != a) F_b over the pieces that the arms' own steps cut."""
    cuts = (centres[:, None] + spreads[:, None] * _STEPS).ravel()
    low = max(low, float((centres - 9.0 * spreads).max()))  # below it one arm's F is nothing
    high = min(high, float((centres + 9.0 * spreads).max()))
    cuts = np.unique(np.concatenate([[low], cuts[(cuts > low) & (cuts < high)], [high]]))
    half = 0.5 * np.diff(cuts)[:, None]
    nodes = (0.5 * (cuts[1:] + cuts[:-1])[:, None] + half * _NODES).ravel()
    density, below = distribution(nodes)
    # prod_(b != a) F_b, from both ends: a quotient by F_a would divide by nothing.
    before, after = np.ones_like(below), np.ones_like(below)
    np.cumprod(below[:-1], axis=0, out=before[1:])
    after[:-1] = np.cumprod(below[:0:-1], axis=0)[::-1]
    return floored((density * before * after) @ (half * _WEIGHTS).ravel())


def _common_factor(covariance: Floats) -> Floats | None:
    """w with covariance[a, b] = w_a w_b for all a != b, and w_a^2 at most the variance; None if there is none."""
    K, variances = len(covariance), np.diag(covariance)
    off = covariance - np.diag(variances)
    slack = _SAME * float(variances.max(initial=0.0))
    if np.abs(off).max() <= slack:
        return np.zeros(K)
    w = np.zeros(K)
    loaded = np.flatnonzero(np.abs(off).max(axis=0) > slack)  # the others are independent of everything
    if loaded.size < 3:
        return None  # two correlated arms among others: any split of their covariance will do, and none is at hand
    i, j, k = loaded[:3]
    square = off[i, j] * off[i, k] / off[j, k] if off[j, k] != 0.0 else -1.0
    if square <= 0.0:
        return None
    w[i] = math.sqrt(square)
    rest = loaded[loaded != i]
    w[rest] = off[i, rest] / w[i]
    explained = np.outer(w, w)
    np.fill_diagonal(explained, 0.0)
    if np.abs(off - explained).max() > slack or np.any(w**2 > variances + slack):
        return None
    return w
