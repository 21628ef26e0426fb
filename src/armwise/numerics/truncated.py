"""Least squares on the leading eigenvectors of a Gram matrix: LinREL's estimate for a block of arms."""

from __future__ import annotations

import numpy as np

from armwise.numerics.jit import jit


@jit
def estimate(
    basis: np.ndarray, k: int, theta: np.ndarray, X: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Means x.theta and widths scale ||w|| + ||v~|| of the rows of X.

    Column i of ``basis`` is an eigenvector: one that is cut for i < k, one that is kept, over sqrt(l_i), from k on.

    >>> estimate(np.array([[0.0, 0.5], [1.0, 0.0]]), 1, np.array([2.0, 0.0]), np.array([[4.0, 3.0]]), 10.0)
    (array([8.]), array([23.]))
    """
    K, d = X.shape
    P = np.dot(X, basis)
    means, widths = np.dot(X, theta), np.empty(K)
    for a in range(K):
        cut, kept = 0.0, 0.0
        for i in range(k):
            cut += P[a, i] * P[a, i]
        for i in range(k, d):
            kept += P[a, i] * P[a, i]
        widths[a] = scale * np.sqrt(kept) + np.sqrt(cut)
    return means, widths
