"""The level of single intervals, and the p-values, that make several of them hold at once."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from armwise.core.agent import Floats
from armwise.core.seeds import stream

_DRAWS = 20_000
_FEW = 20  # draws beyond a deviation, below which Bonferroni is the better guess of their share
_ROUNDING = 1e-9  # eigenvalue of a correlation below which it is zero
_STILL = 1e-12  # standard deviation, beside the largest, below which an estimate does not move


def simultaneous_level(covariance: Floats, level: float, seed: int = 0) -> float:
    """The level at which single intervals cover all of these estimates at once: from their largest deviation."""
    largest = _largest_deviations(covariance, seed)
    if largest is None:
        return level
    quantile = float(np.quantile(largest, level))
    quantile = min(quantile, float(-ndtri((1.0 - level) / (2.0 * len(covariance)))))  # Bonferroni is never beaten
    return 1.0 - 2.0 * float(ndtr(-quantile))


def simultaneous_p(covariance: Floats, p_values: Floats, seed: int = 0) -> Floats:
    """The p-values of several estimates, each below 1 - level where its interval, one of all at once, misses 0."""
    largest = _largest_deviations(covariance, seed)
    if largest is None:
        return p_values
    bonferroni = np.minimum(1.0, p_values * len(covariance))
    beyond = len(largest) - np.searchsorted(np.sort(largest), -ndtri(p_values / 2.0))
    drawn = np.fmin(bonferroni, np.maximum(p_values, beyond / _DRAWS))
    return np.where(beyond < _FEW, bonferroni, drawn)


def _largest_deviations(covariance: Floats, seed: int) -> Floats | None:
    """Draws of the largest deviation of these estimates, in standard errors; None where fewer than two move."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    moving = np.isfinite(spread) & (spread > _STILL * np.max(spread, where=np.isfinite(spread), initial=0.0))
    if moving.sum() < 2:
        return None
    spread = spread[moving]
    correlation = covariance[np.ix_(moving, moving)] / np.outer(spread, spread)
    # The symmetric root, without directions that are only rounding: it moves no more than the correlation does, while
    # eigenvectors turn at will where eigenvalues are equal. Parts of a log on a cluster then give the same level.
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.where(values > _ROUNDING, values, 0.0)) @ vectors.T
    z = stream(seed, "simultaneous").standard_normal((_DRAWS, len(values))) @ root.T
    return np.asarray(np.abs(z).max(axis=1))
