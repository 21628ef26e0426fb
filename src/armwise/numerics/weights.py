"""Exponential weights in log space, and the unbiased reward estimator (survey 2)."""

from __future__ import annotations

import numpy as np

from armwise.numerics.jit import exact, jit


@jit
def importance_weighted(reward: float, probability: float) -> float:
    """The estimate r / p of the played arm's reward; every other arm's is 0 (survey 2).

    >>> importance_weighted(0.5, 0.25)
    2.0
    """
    return reward / probability


@jit
def normalised(log_weights: np.ndarray) -> np.ndarray:
    """The weights' distribution; the largest exponent is taken out first, so nothing overflows.

    >>> normalised(np.array([1e6, 1e6]))
    array([0.5, 0.5])
    """
    w = np.exp(log_weights - log_weights.max())
    return w / w.sum()


@jit
def mixed(log_weights: np.ndarray, gamma: float) -> np.ndarray:
    """The weights' distribution with a share ``gamma`` spread uniformly.

    >>> mixed(np.zeros(4), 0.2)
    array([0.25, 0.25, 0.25, 0.25])
    """
    return (1.0 - gamma) * normalised(log_weights) + gamma / log_weights.size


@exact
def floored(p: np.ndarray, epsilon: float) -> np.ndarray:
    """A distribution with a share ``epsilon`` spread uniformly: no entry is below epsilon / K.

    >>> floored(np.array([1.0, 0.0]), 0.2)
    array([0.9, 0.1])
    """
    result = np.empty(p.size)
    for a in range(p.size):
        result[a] = (1.0 - epsilon) * p[a] + epsilon / p.size
    return result
