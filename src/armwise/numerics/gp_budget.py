"""A Gaussian process posterior over at most m inducing points: every step costs O(m^2) a query, for ever.

With Kmm = LL' over the points z_1..z_n (n <= m), a row x has features phi = L^-1 k(x) and a residual variance
nu = k(x, x) - phi'phi that the points cannot express. The posterior is Bayesian linear regression on phi whose rewards
have noise + nu (FITC; Snelson and Ghahramani 2006), kept as its precision A = I + sum phi phi' / (noise + nu) = UU',
U upper triangular, and c = U^-1 b. Then mean = g'c and variance = nu + g'g with g = U^-1 phi.

``L`` is packed by rows; ``U`` is packed by columns, so both grow by appending.
"""

from __future__ import annotations

import math

import numpy as np

from armwise.numerics.gp import INDEFINITE, JITTER, Width, multiplier, pick, solve_lower
from armwise.numerics.jit import jit, jit_block
from armwise.numerics.kernels import Program, cross, diagonal

# A point joins while there is room if nu exceeds this share of k(x, x): nearer ones would leave Kmm ill conditioned.
NOVEL = 1e-6
# In a full set it replaces the least novel point if it is this many times as novel.
SWAP = 2.0


@jit
def solve_upper(U: np.ndarray, n: int, V: np.ndarray) -> None:
    """U^-1 v in place for each row v of V.

    >>> V = np.array([[2.0, 4.0]])
    >>> solve_upper(np.array([1.0, 1.0, 4.0]), 2, V)
    >>> V
    array([[1., 1.]])
    """
    for j in range(n - 1, 0, -2):  # two columns at a time: v is then loaded and stored half as often
        start = j * (j + 1) // 2
        p, q = U[start - j : start], U[start : start + j + 1]
        a, b, c = 1.0 / p[j - 1], q[j - 1], 1.0 / q[j]
        for k in range(len(V)):
            v = V[k]
            y = v[j] * c
            x = (v[j - 1] - b * y) * a
            v[j], v[j - 1] = y, x
            for i in range(j - 1):
                v[i] -= x * p[i] + y * q[i]
    if n % 2:
        V[:, 0] /= U[0]


@jit
def features(L: np.ndarray, n: int, V: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Turn the rows k(x) of V into phi; the residual variances nu.

    >>> V = np.array([[1.0]])
    >>> features(np.array([2.0]), 1, V, np.ones(1)), V
    (array([0.75]), array([[0.5]]))
    """
    solve_lower(L, n, V)
    residuals = prior.copy()
    for k in range(len(V)):
        for j in range(n):
            residuals[k] -= V[k, j] * V[k, j]
    return residuals


@jit
def budget_estimate(
    L: np.ndarray, U: np.ndarray, c: np.ndarray, n: int, V: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances from the rows k(x) of V, which are overwritten; a kernel gone wrong has a negative variance.

    >>> budget_estimate(np.ones(1), np.array([2.0]), np.ones(1), 1, np.array([[1.0]]), np.ones(1))
    (array([0.5]), array([0.25]))
    """
    variances = features(L, n, V, prior)
    solve_upper(U, n, V)
    means = np.zeros(len(V))
    for k in range(len(V)):
        if variances[k] >= -INDEFINITE * prior[k]:
            variances[k] = max(variances[k], 0.0)
            for j in range(n):
                means[k] += V[k, j] * c[j]
                variances[k] += V[k, j] * V[k, j]
    return means, variances


@jit
def absorb(U: np.ndarray, c: np.ndarray, n: int, p: np.ndarray, rho: float) -> None:
    """A + pp' and b + rho p by n rotations of the columns (U, p), which carry (c, rho) along; p is used up.

    >>> U, c = np.ones(1), np.zeros(1)
    >>> absorb(U, c, 1, np.array([np.sqrt(3.0)]), np.sqrt(3.0))
    >>> U, c
    (array([2.]), array([1.5]))
    """
    for j in range(n - 1, -1, -1):
        start = j * (j + 1) // 2
        column = U[start : start + j + 1]
        radius = math.hypot(column[j], p[j])
        cos, sin = column[j] / radius, p[j] / radius
        for i in range(j + 1):
            u = column[i]
            column[i] = cos * u + sin * p[i]
            p[i] = cos * p[i] - sin * u
        old = c[j]
        c[j] = cos * old + sin * rho
        rho = cos * rho - sin * old


@jit
def remove(Z: np.ndarray, L: np.ndarray, U: np.ndarray, c: np.ndarray, Q: np.ndarray, n: int, i: int) -> None:
    """Forget inducing point i in O(n^2): the posterior of the others is the old one with f(z_i) integrated out.

    Without its row i, L is triangular again after rotations of its columns; the last feature then feeds no point.
    The same rotations turn the features, hence the rows of U, and rotations of U's columns restore its triangle.
    In A = UU' integrating out the last feature is dropping the last row and column of U.
    """
    M, W = np.zeros((n - 1, n)), np.zeros((n, n))
    for a in range(n):
        start = a * (a + 1) // 2
        for b in range(a + 1):
            if a != i:
                M[a - (a > i), b] = L[start + b]
            W[b, a] = U[start + b]
    for j in range(i, n - 1):
        radius = math.hypot(M[j, j], M[j, j + 1])
        cos, sin = M[j, j] / radius, M[j, j + 1] / radius
        for a in range(j, n - 1):
            left, right = M[a, j], M[a, j + 1]
            M[a, j], M[a, j + 1] = cos * left + sin * right, cos * right - sin * left
        for b in range(j, n):
            upper, lower = W[j, b], W[j + 1, b]
            W[j, b], W[j + 1, b] = cos * upper + sin * lower, cos * lower - sin * upper
        radius = math.hypot(W[j + 1, j + 1], W[j + 1, j])
        cos, sin = W[j + 1, j + 1] / radius, W[j + 1, j] / radius
        for a in range(j + 2):
            left, right = W[a, j], W[a, j + 1]
            W[a, j], W[a, j + 1] = cos * left - sin * right, cos * right + sin * left
        c[j], c[j + 1] = cos * c[j] - sin * c[j + 1], cos * c[j + 1] + sin * c[j]
    for a in range(n - 1):
        start = a * (a + 1) // 2
        for b in range(a + 1):
            L[start + b] = M[a, b]
            U[start + b] = W[b, a]
    for a in range(i, n - 1):
        Z[a] = Z[a + 1]
    keep = np.delete(np.arange(n), i)
    q = Q[i, :n].copy()
    for a in range(n - 1):
        for b in range(n - 1):
            Q[a, b] = Q[keep[a], keep[b]] - q[keep[a]] * q[keep[b]] / q[i]


@jit
def join(
    Z: np.ndarray, L: np.ndarray, U: np.ndarray, c: np.ndarray, n: int, x: np.ndarray, phi: np.ndarray, nu: float
) -> None:
    """Make x inducing point n + 1: a feature of its own, of which nothing is known yet; phi[n] is filled in."""
    start = n * (n + 1) // 2
    for j in range(n):
        L[start + j], U[start + j] = phi[j], 0.0
    phi[n] = math.sqrt(nu)
    L[start + n], U[start + n], c[n] = phi[n], 1.0, 0.0
    Z[n] = x


@jit
def extend_inverse(L: np.ndarray, Q: np.ndarray, n: int, phi: np.ndarray, nu: float) -> None:
    """Q = Kmm^-1 with the point (phi, nu) added, in O(n^2)."""
    a = phi[:n].copy()  # becomes Kmm^-1 k(x) = L'^-1 phi
    for j in range(n - 1, -1, -1):
        start = j * (j + 1) // 2
        a[j] /= L[start + j]
        for k in range(j):
            a[k] -= a[j] * L[start + k]
    for j in range(n):
        Q[n, j] = Q[j, n] = -a[j] / nu
        for k in range(n):
            Q[j, k] += a[j] * a[k] / nu
    Q[n, n] = 1.0 / nu


@jit
def refresh_inverse(L: np.ndarray, Q: np.ndarray, n: int) -> None:
    """Q = Kmm^-1 from L, in O(n^3): done once in n swaps."""
    V = np.eye(n)
    solve_lower(L, n, V)  # row i becomes column i of L^-1
    Q[:n, :n] = V @ V.T.copy()


@jit
def novelty(L: np.ndarray, n: int, i: int) -> float:
    """The residual variance of inducing point i given the others: 1 / (Kmm^-1)_ii.

    >>> novelty(np.array([1.0, 0.5, 2.0]), 2, 1)
    4.0
    """
    v = np.zeros((1, n))
    v[0, i] = 1.0
    solve_lower(L, n, v)
    return 1.0 / np.sum(v * v)


@jit
def budget_append(
    Z: np.ndarray, L: np.ndarray, U: np.ndarray, c: np.ndarray, Q: np.ndarray, state: np.ndarray,
    x: np.ndarray, row: np.ndarray, prior: float, noise: float, reward: float,
) -> float:  # fmt: skip
    """Learn one reward; the variance at x before it. ``state`` holds the number of points and of swaps so far.

    x joins the inducing points if there is room and it is new to them, or takes the place of the least novel one if
    it is SWAP times as novel. Every swap then multiplies det Kmm by SWAP or more, so swaps come to an end.
    """
    n, m = state[0], len(Z)
    phi = np.empty((1, m + 1))
    phi[0, :n] = row[0, :n]
    nu = features(L, n, phi, np.full(1, prior))[0]
    if nu < -INDEFINITE * prior:
        return nu
    nu = max(nu, 0.0)
    g = phi[:, :n].copy()
    solve_upper(U, n, g)
    variance = nu + np.sum(g * g)
    if n < m:
        novel = nu > NOVEL * prior
    else:
        i = int(np.argmax(np.diag(Q)))
        novel = nu * Q[i, i] > SWAP and nu > SWAP * max(novelty(L, n, i), NOVEL * prior)
        if novel:
            remove(Z, L, U, c, Q, n, i)
            for j in range(i, n - 1):
                row[0, j] = row[0, j + 1]
            n -= 1
            phi[0, :n] = row[0, :n]
            nu = features(L, n, phi, np.full(1, prior))[0]
            extend_inverse(L, Q, n, phi[0], nu)
            state[1] += 1
    if novel:
        join(Z, L, U, c, n, x, phi[0], nu)
        n += 1
        nu = 0.0
        if n == m and state[1] % m == 0:  # Q only chooses what to swap; between refreshes its rounding does no harm
            refresh_inverse(L, Q, n)
    state[0] = n
    weight = 1.0 / math.sqrt(max(noise, JITTER * prior) + nu)
    absorb(U, c, n, phi[0] * weight, reward * weight)
    return variance


@jit_block
def budget_play(
    program: Program, Z: np.ndarray, L: np.ndarray, U: np.ndarray, c: np.ndarray, Q: np.ndarray, state: np.ndarray,
    noise: float, width: Width, t: int, gain: float, contexts: np.ndarray, rewards: np.ndarray,
    rng: np.random.Generator, arms: np.ndarray, probabilities: np.ndarray, got: np.ndarray,
) -> tuple[int, float]:  # fmt: skip
    """A block of rounds: how many were played, and the information gain.

    It stops early where a variance shows that the kernel is not positive definite.
    """
    for i in range(len(rewards)):
        X, n = contexts[i], state[0]
        prior = diagonal(program, X)
        V = cross(program, X, Z[:n])
        rows = V.copy()
        means, variances = budget_estimate(L, U, c, n, V, prior)
        if np.any(variances < -INDEFINITE * prior):
            return i, gain
        scale = multiplier(width, len(X), t + i, gain)
        arm, probabilities[i] = pick(means + scale * np.sqrt(np.maximum(variances, 0.0)), rng)
        arms[i], got[i] = arm, rewards[i, arm]
        variance = budget_append(
            Z, L, U, c, Q, state, X[arm], rows[arm : arm + 1], prior[arm], noise, got[i]
        )  # fmt: skip
        gain += 0.5 * math.log1p(max(variance, 0.0) / noise)
    return len(rewards), gain
