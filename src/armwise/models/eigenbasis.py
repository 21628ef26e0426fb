"""The smoothest functions on a graph: eigenvectors of its Laplacian with the smallest eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.core.tools.extras import needs

MAX_ENVELOPE = 5e7  # entries of the envelope, up to which a sparse factor fits in memory
_DEGREE, _PASSES = 12, 5  # of the polynomial filter: under a minute for 10^5 nodes


def smoothest(laplacian: Any, count: int) -> tuple[Floats, Floats]:
    """The ``count`` smallest eigenvalues of a Laplacian, dense or sparse, and the (n, count) eigenvectors as columns.

    Of a sparse matrix whose factor is small (paths, grids, neighbour graphs) they come from shift-inverted Lanczos
    iterations; of any other, from a filtered subspace: then they are the Ritz pairs of a subspace that is nearly the
    eigenvectors' own. Either way v' L v is exactly the eigenvalue given, which is what a ridge needs of them.
    """
    n = laplacian.shape[0]
    if isinstance(laplacian, np.ndarray) or 3 * count > n:
        values, vectors = np.linalg.eigh(laplacian if isinstance(laplacian, np.ndarray) else laplacian.toarray())
        return values[:count], np.ascontiguousarray(vectors[:, :count])
    return _inverted(laplacian, count) if _envelope(laplacian) <= MAX_ENVELOPE else _filtered(laplacian, count)


def _envelope(laplacian: Any) -> float:
    with needs():
        from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(laplacian, symmetric_mode=True)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = np.repeat(place, np.diff(laplacian.indptr))
    first = np.arange(len(order))
    np.minimum.at(first, rows, place[laplacian.indices])
    return float(np.sum(np.arange(len(order)) - first))


def _inverted(laplacian: Any, count: int) -> tuple[Floats, Floats]:
    with needs():
        from scipy.sparse.linalg import eigsh

    shift = -1e-7 * float(laplacian.diagonal().mean() or 1.0)  # below zero: L - shift I has a factor
    start = np.random.default_rng(0).standard_normal(laplacian.shape[0])  # the same basis every time
    values, vectors = eigsh(laplacian.tocsc(), count, sigma=shift, which="LM", v0=start)
    order = np.argsort(values)
    return values[order], np.ascontiguousarray(vectors[:, order])


def _filtered(laplacian: Any, count: int) -> tuple[Floats, Floats]:
    """Chebyshev-filtered subspace iteration (Zhou, Saad, Tiago, Chelikowsky 2006)."""
    high = float(abs(laplacian).sum(axis=1).max())  # no eigenvalue is larger (Gershgorin)
    values, X = _ritz(laplacian, np.random.default_rng(0).standard_normal((laplacian.shape[0], count)))
    for _ in range(_PASSES):
        low = float(values[-1])  # what lies above is damped, what lies below grows
        middle, half = (high + low) / 2, max((high - low) / 2, 1e-12 * high)
        before, now = X, (laplacian @ X - middle * X) / half
        for _ in range(_DEGREE - 1):
            before, now = now, 2 * (laplacian @ now - middle * now) / half - before
        values, X = _ritz(laplacian, now)
    return values, np.ascontiguousarray(X)


def _ritz(laplacian: Any, X: Floats) -> tuple[Floats, Floats]:
    Q, _ = np.linalg.qr(X)
    values, rotation = np.linalg.eigh(Q.T @ (laplacian @ Q))
    return values, Q @ rotation
