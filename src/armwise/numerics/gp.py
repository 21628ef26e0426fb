"""Gaussian process posteriors, one step at a time: a growing Cholesky factor, and a fixed set of arms.

Triangles are packed: row i of a lower triangle begins at i (i + 1) / 2, so that a factor grows by appending.
"""

from __future__ import annotations

import math

import numpy as np

from armwise.numerics.choice import best_arms
from armwise.numerics.jit import jit, jit_block
from armwise.numerics.kernels import Program, cross, diagonal

# The noise variance counts as at least this share of k(x, x): points that coincide then leave the factor invertible.
JITTER = 1e-12
# A variance below minus this share of k(x, x) is no rounding: the kernel is not positive definite.
INDEFINITE = 1e-4

FIXED, FINITE_ARMS, AGNOSTIC = range(3)
Width = tuple[int, float, float]


@jit
def multiplier(width: Width, K: int, t: int, gain: float) -> float:
    """What multiplies the posterior's standard deviation: a number, or sqrt(beta_t) of a schedule.

    >>> multiplier((FIXED, 1.5, 0.0), 10, 1, 0.0)
    1.5
    >>> round(multiplier((FINITE_ARMS, 0.1, 0.0), 10, 1, 0.0) ** 2, 4)   # 2 ln(K t^2 pi^2 / (6 delta))
    10.2057
    >>> multiplier((AGNOSTIC, 0.1, 2.0), 10, 1, 0.0)                      # 2 B + 300 gamma_t ln^3(t / delta)
    2.0
    """
    kind, a, b = width
    if kind == FIXED:
        return a
    if kind == FINITE_ARMS:
        return math.sqrt(2.0 * math.log(K * t * t * math.pi**2 / (6.0 * a)))
    return math.sqrt(2.0 * b + 300.0 * gain * math.log(t / a) ** 3)


@jit
def pick(scores: np.ndarray, rng: np.random.Generator) -> tuple[int, float]:
    """One of the arms that tie for the largest score, and its probability.

    >>> pick(np.array([0.0, 1.0]), np.random.default_rng(1))
    (1, 1.0)
    """
    arms = best_arms(scores)
    if arms.size == 1:
        return arms[0], 1.0
    return arms[int(rng.random() * arms.size)], 1.0 / arms.size


@jit
def _finish(i: int, v: np.ndarray, s: float, t: float, p_inverse: float, q_left: float, q_inverse: float) -> None:
    """Entries i and i + 1 of L^-1 v from the sums s and t over the entries before them."""
    v[i] = (v[i] - s) * p_inverse
    v[i + 1] = (v[i + 1] - t - q_left * v[i]) * q_inverse


@jit
def solve_lower(L: np.ndarray, n: int, V: np.ndarray) -> None:
    """L^-1 v in place for each row v of V.

    Two rows of L meet four v at once: six loads then feed eight products.

    >>> V = np.array([[2.0, 5.0]])
    >>> solve_lower(np.array([2.0, 1.0, 4.0]), 2, V)
    >>> V
    array([[1., 1.]])
    """
    fours = len(V) - len(V) % 4
    for i in range(0, n - 1, 2):
        start = i * (i + 1) // 2
        p, q = L[start : start + i + 1], L[start + i + 1 : start + 2 * i + 3]
        a, b, c = 1.0 / p[i], q[i], 1.0 / q[i + 1]
        for k in range(0, fours, 4):
            v0, v1, v2, v3 = V[k], V[k + 1], V[k + 2], V[k + 3]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(i):
                s0 += p[j] * v0[j]
                s1 += p[j] * v1[j]
                s2 += p[j] * v2[j]
                s3 += p[j] * v3[j]
                t0 += q[j] * v0[j]
                t1 += q[j] * v1[j]
                t2 += q[j] * v2[j]
                t3 += q[j] * v3[j]
            _finish(i, v0, s0, t0, a, b, c)
            _finish(i, v1, s1, t1, a, b, c)
            _finish(i, v2, s2, t2, a, b, c)
            _finish(i, v3, s3, t3, a, b, c)
        for k in range(fours, len(V)):
            v0 = V[k]
            s0, t0 = 0.0, 0.0
            for j in range(i):
                s0 += p[j] * v0[j]
                t0 += q[j] * v0[j]
            _finish(i, v0, s0, t0, a, b, c)
    if n % 2:
        p = L[n * (n - 1) // 2 : n * (n + 1) // 2]
        for k in range(len(V)):
            v0 = V[k]
            s0 = 0.0
            for j in range(n - 1):
                s0 += p[j] * v0[j]
            v0[n - 1] = (v0[n - 1] - s0) / p[n - 1]


@jit
def growing_estimate(
    L: np.ndarray, c: np.ndarray, n: int, V: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means v'c and variances k(x, x) - v'v, v = L^-1 k(x), from K + noise I = LL' and c = L^-1 r; V becomes v.

    >>> growing_estimate(np.array([2.0]), np.array([1.0]), 1, np.array([[1.0]]), np.ones(1))
    (array([0.5]), array([0.75]))
    """
    solve_lower(L, n, V)
    means, variances = np.zeros(len(V)), prior.copy()
    for k in range(len(V)):
        for j in range(n):
            means[k] += V[k, j] * c[j]
            variances[k] -= V[k, j] * V[k, j]
    return means, variances


@jit
def growing_append(
    L: np.ndarray, c: np.ndarray, n: int, row: np.ndarray, prior: float, noise: float, reward: float
) -> float:
    """Add a row to L and an entry to c in O(n^2); the variance at x before it. Nothing is written if that is negative.

    >>> L, c = np.zeros(1), np.zeros(1)
    >>> growing_append(L, c, 0, np.zeros((1, 0)), 1.0, 3.0, 4.0), L, c
    (1.0, array([2.]), array([2.]))
    """
    solve_lower(L, n, row)
    variance, residual = prior, reward
    for j in range(n):
        variance -= row[0, j] * row[0, j]
        residual -= row[0, j] * c[j]
    if variance >= -INDEFINITE * prior:
        pivot = math.sqrt(max(variance, 0.0) + max(noise, JITTER * prior))
        start = n * (n + 1) // 2
        for j in range(n):
            L[start + j] = row[0, j]
        L[start + n] = pivot
        c[n] = residual / pivot
    return variance


@jit_block
def growing_play(
    program: Program, Z: np.ndarray, L: np.ndarray, c: np.ndarray, n: int, noise: float,
    width: Width, t: int, gain: float, contexts: np.ndarray, rewards: np.ndarray, rng: np.random.Generator,
    arms: np.ndarray, probabilities: np.ndarray, got: np.ndarray,
) -> tuple[int, float]:  # fmt: skip
    """A block of rounds over a growing factor with room for them: how many were played, and the information gain.

    It stops early where a variance shows that the kernel is not positive definite.
    """
    for i in range(len(rewards)):
        X = contexts[i]
        prior, V = diagonal(program, X), cross(program, X, Z[:n])
        rows = V.copy()
        means, variances = growing_estimate(L, c, n, V, prior)
        if np.any(variances < -INDEFINITE * prior):
            return i, gain
        scale = multiplier(width, len(X), t + i, gain)
        arm, probabilities[i] = pick(means + scale * np.sqrt(np.maximum(variances, 0.0)), rng)
        arms[i], got[i] = arm, rewards[i, arm]
        variance = growing_append(L, c, n, rows[arm : arm + 1], prior[arm], noise, got[i])
        Z[n] = X[arm]
        n += 1
        gain += 0.5 * math.log1p(max(variance, 0.0) / noise)
    return len(rewards), gain


@jit
def arms_append(mean: np.ndarray, cov: np.ndarray, arm: int, noise: float, reward: float) -> float:
    """Condition the posterior over a fixed set of arms on one reward, in O(K^2); the variance of the arm before it.

    >>> mean, cov = np.zeros(2), np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> arms_append(mean, cov, 0, 1.0, 2.0), mean
    (1.0, array([1. , 0.5]))
    """
    variance = cov[arm, arm]
    column = cov[arm].copy()
    step = 1.0 / (max(variance, 0.0) + noise)
    mean += column * (step * (reward - mean[arm]))
    for a in range(len(mean)):
        weight = column[a] * step
        for b in range(len(mean)):
            cov[a, b] -= weight * column[b]
    return variance


@jit
def arms_refresh(
    prior: np.ndarray, counts: np.ndarray, sums: np.ndarray, noise: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> None:
    """The same posterior from scratch in O(K^3): rewards of one arm count as one reward, their mean, of noise / n.

    >>> mean, cov = np.zeros(1), np.zeros((1, 1))
    >>> arms_refresh(np.eye(1), np.array([3]), np.array([6.0]), np.ones(1), mean, cov)
    >>> mean, cov
    (array([1.5]), array([[0.25]]))
    """
    K = len(mean)
    S = np.sqrt(counts / noise)
    B = np.eye(K)  # I + SKS: no eigenvalue below 1, whatever the counts
    for a in range(K):
        for b in range(K):
            B[a, b] += S[a] * prior[a, b] * S[b]
    right = np.empty((K, K))
    for a in range(K):
        right[a] = S[a] * prior[a]
    cov[:] = prior - np.ascontiguousarray(right.T) @ np.linalg.solve(B, right)
    mean[:] = cov @ (sums / noise)


@jit
def arms_learn(
    prior: np.ndarray, mean: np.ndarray, cov: np.ndarray, counts: np.ndarray, sums: np.ndarray,
    age: int, period: int, noise: np.ndarray, gain: float, arm: int, reward: float,
) -> tuple[float, int]:  # fmt: skip
    """One reward, with a refresh every ``period`` of them so that rounding cannot add up: the gain and the age."""
    variance = arms_append(mean, cov, arm, noise[arm], reward)
    counts[arm] += 1
    sums[arm] += reward
    age += 1
    if age >= period:
        arms_refresh(prior, counts, sums, noise, mean, cov)
        age = 0
    return gain + 0.5 * math.log1p(max(variance, 0.0) / noise[arm]), age


@jit_block
def arms_play(
    points: np.ndarray, prior: np.ndarray, mean: np.ndarray, cov: np.ndarray, counts: np.ndarray, sums: np.ndarray,
    age: int, period: int, noise: np.ndarray,
    width: Width, t: int, gain: float, contexts: np.ndarray, rewards: np.ndarray, rng: np.random.Generator,
    arms: np.ndarray, probabilities: np.ndarray, got: np.ndarray,
) -> tuple[int, float, int]:  # fmt: skip
    """Rounds over a fixed set of arms, up to the first that offers others: how many, the gain, the age."""
    for i in range(len(rewards)):
        if not np.array_equal(contexts[i], points):
            return i, gain, age
        scale = multiplier(width, len(points), t + i, gain)
        scores = np.empty(len(mean))
        for a in range(len(mean)):
            scores[a] = mean[a] + scale * math.sqrt(max(cov[a, a], 0.0))
        arm, probabilities[i] = pick(scores, rng)
        arms[i], got[i] = arm, rewards[i, arm]
        gain, age = arms_learn(prior, mean, cov, counts, sums, age, period, noise, gain, arm, got[i])
    return len(rewards), gain, age
