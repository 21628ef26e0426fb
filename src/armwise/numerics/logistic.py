"""Logistic regression with a diagonal Gaussian posterior, over sparse rows: nothing here costs more than the non-zeros.

Rows are in CSR form over the coordinates that occur, ``found``: row j holds the entries e in ``indptr[j] :
indptr[j + 1]``, each the number ``data[e]`` at coordinate ``found[place[e]]``. ``found`` is in increasing order, so
that a draw of the coordinates does not depend on the order of the rows. ``posterior`` holds the mean m_i and the
precision q_i of coordinate i side by side, so that one read from memory brings both.
"""

from __future__ import annotations

import numpy as np

from armwise.numerics.jit import jit, jit_block
from armwise.numerics.thompson import winner

_STEPS = 100  # Newton steps; a strongly convex fit takes about five
_SMALL = 1e-22  # of the objective: where rounding ends the descent


@jit
def sparse_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The non-zeros of a dense array in CSR form: indptr, indices, data.

    >>> sparse_rows(np.array([[0.0, 2.0], [3.0, 0.0]]))
    (array([0, 1, 2]), array([1, 0]), array([2., 3.]))
    """
    K, d = X.shape
    indptr = np.zeros(K + 1, np.int64)
    for a in range(K):
        n = 0
        for i in range(d):
            n += X[a, i] != 0.0
        indptr[a + 1] = indptr[a] + n
    indices, data = np.empty(indptr[K], np.int64), np.empty(indptr[K])
    n = 0
    for a in range(K):
        for i in range(d):
            if X[a, i] != 0.0:
                indices[n], data[n] = i, X[a, i]
                n += 1
    return indptr, indices, data


@jit
def _margins(indptr: np.ndarray, place: np.ndarray, data: np.ndarray, w: np.ndarray, s: np.ndarray) -> None:
    """s = X w."""
    for j in range(s.size):
        s[j] = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            s[j] += data[e] * w[place[e]]


@jit
def compete(
    posterior: np.ndarray,
    indptr: np.ndarray,
    found: np.ndarray,
    place: np.ndarray,
    data: np.ndarray,
    Z: np.ndarray,
    u: np.ndarray,
) -> np.ndarray:
    """How many draws w = m + z / sqrt(q) (rows z of Z) each row wins, with the largest x.w; ties as in ``thompson``.

    >>> rows = np.array([0, 1, 2]), np.array([7]), np.array([0, 0]), np.array([1.0, 2.0])
    >>> compete(np.ones((9, 2)), *rows, np.array([[1.0], [-3.0], [2.0]]), np.empty(0))
    array([1., 2.])
    """
    K, n = indptr.size - 1, found.size
    mean, deviation, w = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        mean[i], deviation[i] = posterior[found[i], 0], 1.0 / np.sqrt(posterior[found[i], 1])
    scores, counts = np.empty(K), np.zeros(K)
    for k in range(len(Z)):
        for i in range(n):
            w[i] = mean[i] + deviation[i] * Z[k, i]
        _margins(indptr, place, data, w, scores)
        arm = winner(scores, u[k] if u.size else -1.0)
        if arm < 0:
            counts[0] = -1.0
            return counts
        counts[arm] += 1.0
    return counts


@jit
def _loss(u: np.ndarray, q: np.ndarray, s: np.ndarray, rewards: np.ndarray) -> float:
    """1/2 sum q u^2 + sum ln(1 + e^s) - r s, without overflow; for r in {0, 1} the log loss with y = 2r - 1."""
    total = 0.0
    for i in range(u.size):
        total += 0.5 * q[i] * u[i] * u[i]
    for j in range(s.size):
        total += max(s[j], 0.0) + np.log1p(np.exp(-abs(s[j]))) - rewards[j] * s[j]
    return total


@jit
def _step(
    indptr: np.ndarray, place: np.ndarray, data: np.ndarray, q: np.ndarray, h: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, float]:
    """Newton's step -H^-1 g, H = diag(q) + X' diag(h) X, by conjugate gradients; and the decrement g' H^-1 g.

    Preconditioned by diag(H): H is a diagonal plus as many ranks as there are rows, so few iterations do.
    """
    n, rows = q.size, h.size
    D = q.copy()
    for j in range(rows):
        for e in range(indptr[j], indptr[j + 1]):
            D[place[e]] += h[j] * data[e] * data[e]
    x, r, s, Hp = np.zeros(n), -g, np.empty(rows), np.empty(n)
    z = r / D
    p = z.copy()
    rz = np.dot(r, z)
    enough = 1e-14 * rz  # each step then gains seven digits; Newton needs no more
    for _ in range(2 * min(n, rows) + 20):
        _margins(indptr, place, data, p, s)
        for i in range(n):
            Hp[i] = q[i] * p[i]
        for j in range(rows):
            for e in range(indptr[j], indptr[j + 1]):
                Hp[place[e]] += h[j] * s[j] * data[e]
        alpha = rz / np.dot(p, Hp)
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * Hp[i]
            z[i] = r[i] / D[i]
        before, rz = rz, np.dot(r, z)
        if rz <= enough:
            break
        for i in range(n):
            p[i] = z[i] + rz / before * p[i]
    return x, -np.dot(g, x)


@jit_block
def fit(
    posterior: np.ndarray,
    indptr: np.ndarray,
    found: np.ndarray,
    place: np.ndarray,
    data: np.ndarray,
    rewards: np.ndarray,
) -> None:
    """One batch: move m to the minimiser w of 1/2 sum q (w - m)^2 + loss, then q += sum x^2 p (1 - p) at it.

    Newton's method with backtracking; the coordinates that do not occur keep their prior.

    >>> posterior = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> fit(posterior, np.array([0, 1]), np.array([1]), np.array([0]), np.array([1.0]), np.array([1.0]))
    >>> posterior.round(4)
    array([[0.    , 1.    ],
           [0.4011, 1.2402]])
    """
    n, rows = found.size, rewards.size
    prior, precision = np.empty(n), np.empty(n)
    for i in range(n):
        prior[i], precision[i] = posterior[found[i], 0], posterior[found[i], 1]
    u, g, s, trial, p = np.zeros(n), np.empty(n), np.empty(rows), np.empty(rows), np.empty(rows)
    _margins(indptr, place, data, prior, s)
    loss = _loss(u, precision, s, rewards)
    for _ in range(_STEPS):
        for j in range(rows):
            p[j] = 1.0 / (1.0 + np.exp(-s[j]))
        for i in range(n):
            g[i] = precision[i] * u[i]
        for j in range(rows):
            for e in range(indptr[j], indptr[j + 1]):
                g[place[e]] += (p[j] - rewards[j]) * data[e]
        step, decrement = _step(indptr, place, data, precision, p * (1.0 - p), g)
        if not decrement > _SMALL * loss:
            break
        size = 1.0
        while size > 1e-10:  # Armijo; the last steps change the loss by less than it rounds, hence the slack
            _margins(indptr, place, data, prior + u + size * step, trial)
            better = _loss(u + size * step, precision, trial, rewards)
            if better <= loss - 1e-4 * size * decrement + 1e-14 * loss:
                break
            size *= 0.5
        u += size * step
        s[:], loss = trial, better
    for i in range(n):
        posterior[found[i], 0] = prior[i] + u[i]
    for j in range(rows):
        p[j] = 1.0 / (1.0 + np.exp(-s[j]))
        for e in range(indptr[j], indptr[j + 1]):
            posterior[found[place[e]], 1] += data[e] * data[e] * p[j] * (1.0 - p[j])
