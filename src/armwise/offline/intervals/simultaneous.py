"""The level of single intervals that makes several of them hold at once."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from armwise.core.agent import Floats
from armwise.core.seeds import stream

_ROUNDING = 1e-9  # eigenvalue of a correlation below which it is zero
_STILL = 1e-12  # standard deviation, beside the largest, below which an estimate does not move


def simultaneous_level(covariance: Floats, level: float, seed: int = 0, draws: int = 20_000) -> float:
    """The level at which single intervals cover all of these estimates at once: from their largest deviation."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    moving = np.isfinite(spread) & (spread > _STILL * np.max(spread, where=np.isfinite(spread), initial=0.0))
    if moving.sum() < 2:
        return level
    spread = spread[moving]
    correlation = covariance[np.ix_(moving, moving)] / np.outer(spread, spread)
    # The symmetric root, without directions that are only rounding: it moves no more than the correlation does, while
    # eigenvectors turn at will where eigenvalues are equal. Parts of a log on a cluster then give the same level.
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.where(values > _ROUNDING, values, 0.0)) @ vectors.T
    z = stream(seed, "simultaneous").standard_normal((draws, len(values))) @ root.T
    quantile = float(np.quantile(np.abs(z).max(axis=1), level))
    quantile = min(quantile, float(-ndtri((1.0 - level) / (2.0 * len(covariance)))))  # Bonferroni is never beaten
    return 1.0 - 2.0 * float(ndtr(-quantile))
