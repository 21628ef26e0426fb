"""Ridge regression one row at a time, kept as a triangular factor of the inverse Gram matrix.

A model of dimension d is a (d, d) array ``F`` that holds two triangles, and three vectors:

- upper triangle and diagonal of ``F``: S with A^-1 = S S'. Then x' A^-1 x = ||S'x||^2 is a sum of rows of S, which
  skips the zeros of x, and a posterior sample is theta + v S z. S is updated by Carlson's triangular square-root
  step (Carlson 1973; Bierman 1977, ch. V), which never subtracts two nearly equal matrices as an updated inverse would;
- strict lower triangle of ``F`` and ``diagonal``: A itself, from which S is computed afresh on a schedule, so that
  rounding does not add up;
- ``b`` the moment vector, ``theta`` = A^-1 b.
"""

from __future__ import annotations

import numpy as np

from noregret.numerics.choice import best_arms
from noregret.numerics.jit import jit


@jit
def project(F: np.ndarray, x: np.ndarray, p: np.ndarray) -> float:
    """Write S'x into ``p``; return ||S'x||^2 = x' A^-1 x.

    >>> p = np.empty(2)
    >>> project(np.array([[0.5, 0.0], [9.0, 1.0]]), np.array([2.0, 1.0]), p), p
    (2.0, array([1., 1.]))
    """
    d = x.size
    for i in range(d):
        p[i] = 0.0
    for j in range(d):
        xj = x[j]
        if xj != 0.0:
            for i in range(j, d):
                p[i] += xj * F[j, i]
    total = 0.0
    for i in range(d):
        total += p[i] * p[i]
    return total


@jit
def _turn(F: np.ndarray, p: np.ndarray, keep: np.ndarray, take: np.ndarray, k: np.ndarray) -> None:
    """Carlson's step on all rows of S; ``k`` becomes S p. Four rows at a time hide the latency of the running sums."""
    d = p.size
    j = 0
    while j + 4 <= d:
        k0 = k1 = k2 = k3 = 0.0
        for i in range(j, j + 3):  # the corner, where the four rows have not all begun
            s0 = F[j, i]
            F[j, i] = keep[i] * s0 - take[i] * k0
            k0 += p[i] * s0
            if i > j:
                s1 = F[j + 1, i]
                F[j + 1, i] = keep[i] * s1 - take[i] * k1
                k1 += p[i] * s1
            if i > j + 1:
                s2 = F[j + 2, i]
                F[j + 2, i] = keep[i] * s2 - take[i] * k2
                k2 += p[i] * s2
        for i in range(j + 3, d):
            a, b, c = keep[i], take[i], p[i]
            s0, s1, s2, s3 = F[j, i], F[j + 1, i], F[j + 2, i], F[j + 3, i]
            F[j, i] = a * s0 - b * k0
            F[j + 1, i] = a * s1 - b * k1
            F[j + 2, i] = a * s2 - b * k2
            F[j + 3, i] = a * s3 - b * k3
            k0 += c * s0
            k1 += c * s1
            k2 += c * s2
            k3 += c * s3
        k[j], k[j + 1], k[j + 2], k[j + 3] = k0, k1, k2, k3
        j += 4
    while j < d:
        k0 = 0.0
        for i in range(j, d):
            s0 = F[j, i]
            F[j, i] = keep[i] * s0 - take[i] * k0
            k0 += p[i] * s0
        k[j] = k0
        j += 1


@jit
def update(
    F: np.ndarray, diagonal: np.ndarray, b: np.ndarray, theta: np.ndarray, x: np.ndarray, reward: float, work: np.ndarray
) -> None:
    """A += x x', b += r x, with S and theta to match; ``work`` is (4, d) scratch.

    >>> F, diagonal, b, theta = np.eye(1), np.ones(1), np.zeros(1), np.zeros(1)
    >>> update(F, diagonal, b, theta, np.ones(1), 1.0, np.empty((4, 1)))
    >>> diagonal, theta, F ** 2
    (array([2.]), array([0.5]), array([[0.5]]))
    """
    d = x.size
    p, keep, take, k = work[0], work[1], work[2], work[3]
    project(F, x, p)
    error, total = reward, 1.0
    for i in range(d):
        error -= x[i] * theta[i]
        more = total + p[i] * p[i]
        root = np.sqrt(total * more)
        keep[i] = total / root
        take[i] = p[i] / root
        total = more
    _turn(F, p, keep, take, k)
    step = error / total
    for i in range(d):
        theta[i] += step * k[i]
        xi = x[i]
        if xi != 0.0:
            b[i] += reward * xi
            diagonal[i] += xi * xi
            for j in range(i):
                F[i, j] += xi * x[j]


@jit
def refresh(F: np.ndarray, diagonal: np.ndarray, b: np.ndarray, theta: np.ndarray) -> None:
    """Compute S and theta afresh from A and b.

    >>> F, theta = np.zeros((2, 2)), np.zeros(2)
    >>> refresh(F, np.array([4.0, 1.0]), np.array([4.0, 3.0]), theta)
    >>> F, theta
    (array([[0.5, 0. ], [0. , 1. ]]), array([1., 3.]))
    """
    d = b.size
    A = np.empty((d, d))
    for i in range(d):
        A[i, i] = diagonal[i]
        for j in range(i):
            A[i, j] = F[i, j]
            A[j, i] = F[i, j]
    L = np.linalg.cholesky(A)
    inverse = np.linalg.solve(L, np.eye(d))  # lower triangular: L^-1, and S is its transpose
    for j in range(d):
        for i in range(j, d):
            F[j, i] = inverse[i, j]
    moments = np.dot(inverse, b)
    for j in range(d):
        total = 0.0
        for i in range(j, d):
            total += F[j, i] * moments[i]
        theta[j] = total


@jit
def learn(
    F: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    theta: np.ndarray,
    age: np.ndarray,
    model: int,
    x: np.ndarray,
    reward: float,
    lam: float,
    discount: float,
    period: int,
    work: np.ndarray,
) -> None:
    """Update one of several models; refresh it every ``period`` updates.

    With ``discount`` < 1 what was learnt before fades, the ridge stays: A = lam I + sum discount^age x x'. The fading
    changes every eigenvalue, so the factor is computed afresh.

    >>> F, v = np.eye(1)[None], np.ones((1, 1))
    >>> learn(F, v, 0 * v, 0 * v, np.zeros(1, np.int64), 0, np.ones(1), 1.0, 1.0, 1.0, 9, np.empty((4, 1)))
    >>> v
    array([[2.]])
    """
    d = x.size
    if discount == 1.0:
        update(F[model], diagonal[model], b[model], theta[model], x, reward, work)
        age[model] += 1
        if age[model] >= period:
            refresh(F[model], diagonal[model], b[model], theta[model])
            age[model] = 0
        return
    for i in range(d):
        b[model, i] = discount * b[model, i] + reward * x[i]
        diagonal[model, i] = discount * (diagonal[model, i] - lam) + lam + x[i] * x[i]
        for j in range(i):
            F[model, i, j] = discount * F[model, i, j] + x[i] * x[j]
    refresh(F[model], diagonal[model], b[model], theta[model])


@jit
def log_det(F: np.ndarray) -> float:
    """ln det A, from the diagonal of S.

    >>> float(log_det(0.5 * np.eye(2)) / np.log(2.0))
    4.0
    """
    total = 0.0
    for i in range(len(F)):
        total -= 2.0 * np.log(F[i, i])
    return total


@jit
def multiplier(F: np.ndarray, lam: float, alpha: float, noise: float, delta: float) -> float:
    """The width multiplier alpha + R sqrt(2 ln(det(A)^1/2 det(lam I)^-1/2 / delta)); R = 0 leaves a plain number.

    >>> multiplier(np.eye(2), 1.0, 0.5, 0.0, 0.1)
    0.5
    """
    if noise == 0.0:
        return alpha
    return alpha + noise * np.sqrt(log_det(F) - len(F) * np.log(lam) - 2.0 * np.log(delta))


@jit
def estimate(F: np.ndarray, theta: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means x.theta and widths sqrt(x' A^-1 x) of every row of X under one model.

    >>> estimate(np.eye(2), np.array([1.0, 2.0]), np.array([[3.0, 4.0]]))
    (array([11.]), array([5.]))
    """
    K, d = X.shape
    means, widths, p = np.empty(K), np.empty(K), np.empty(d)
    for a in range(K):
        widths[a] = np.sqrt(project(F, X[a], p))
        total = 0.0
        for i in range(d):
            total += X[a, i] * theta[i]
        means[a] = total
    return means, widths


@jit
def estimate_all(F: np.ndarray, theta: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and width of one row x under every model.

    >>> estimate_all(np.eye(2)[None], np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))
    (array([11.]), array([5.]))
    """
    M, d = theta.shape
    means, widths, p = np.empty(M), np.empty(M), np.empty(d)
    for m in range(M):
        widths[m] = np.sqrt(project(F[m], x, p))
        total = 0.0
        for i in range(d):
            total += x[i] * theta[m, i]
        means[m] = total
    return means, widths


@jit
def optimistic(
    F: np.ndarray, theta: np.ndarray, X: np.ndarray, lam: float, alpha: float, noise: float, delta: float
) -> np.ndarray:
    """Mean plus multiplier times width. One model and many rows, or many models and one row.

    >>> optimistic(np.eye(2)[None], np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), 1.0, 0.1, 0.0, 0.1)
    array([11.5])
    """
    M = len(theta)
    if M == 1:
        means, widths = estimate(F[0], theta[0], X)
        means += multiplier(F[0], lam, alpha, noise, delta) * widths
        return means
    means, widths = estimate_all(F, theta, X[0])
    for m in range(M):
        means[m] += multiplier(F[m], lam, alpha, noise, delta) * widths[m]
    return means


@jit
def play_optimistic(
    F: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    theta: np.ndarray,
    age: np.ndarray,
    contexts: np.ndarray,
    rewards: np.ndarray,
    lam: float,
    discount: float,
    period: int,
    alpha: float,
    noise: float,
    delta: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Optimism over a block of rounds; ``contexts`` is (T, K, d) for one model, (T, 1, d) for one model an arm.

    >>> one = np.ones((1, 1))
    >>> play_optimistic(np.ones((1, 1, 1)), one, 0 * one, 0 * one, np.zeros(1, np.int64), np.ones((2, 1, 1)),
    ...     np.ones((2, 1)), 1.0, 1.0, 9, 1.0, 0.0, 0.1, np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T, disjoint = len(rewards), len(theta) > 1
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    work = np.empty((4, contexts.shape[2]))
    for t in range(T):
        ties = best_arms(optimistic(F, theta, contexts[t], lam, alpha, noise, delta))
        arm = ties[0] if ties.size == 1 else ties[int(rng.random() * ties.size)]
        arms[t], probabilities[t], got[t] = arm, 1.0 / ties.size, rewards[t, arm]
        x = contexts[t, 0 if disjoint else arm]
        learn(F, diagonal, b, theta, age, arm if disjoint else 0, x, rewards[t, arm], lam, discount, period, work)
    return arms, probabilities, got
