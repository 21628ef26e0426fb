"""Ridge regression one row at a time, kept as a triangular factor of the inverse Gram matrix.

A model of dimension d is one (D + 1, D) array, D = d rounded up to a multiple of eight:

- rows 0..D-1: W, lower triangular, with A^-1 = W'W. Then x' A^-1 x = ||W x||^2, ln det A = -2 sum ln W_ii, and
  theta + v W'z with z standard normal is a posterior sample;
- row D: theta = A^-1 b.

Learning a row turns W by Carlson's triangular square-root step (Carlson 1973; Bierman 1977, ch. V). Unlike an updated
inverse it never subtracts nearly equal matrices: after 10^6 updates at condition number 10^6 the relative error of
widths and estimates is about 1e-12, so neither A nor b has to be kept. Padding rows are zero and stay zero.
"""

from __future__ import annotations

import numpy as np

from armwise.numerics.choice import all_finite, best_arms, finite, first_best
from armwise.numerics.jit import exact, exact_block
from armwise.numerics.simd import LANES, fma, load, splat, store, total, totals


@exact
def project(model: np.ndarray, x: np.ndarray, p: np.ndarray) -> float:
    """Write W x into ``p`` (x and p padded to D); return ||W x||^2 = x' A^-1 x.

    >>> model = np.zeros((9, 8)); model[0, 0] = 0.5
    >>> project(model, 2 * np.eye(8)[0], np.empty(8))
    1.0
    """
    D = x.size
    square = splat(0.0)
    for i in range(0, D, 8):
        r = i * D
        s0, s1, s2, s3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        s4, s5, s6, s7 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for j in range(0, i + 8, 8):  # W is zero beyond
            v = load(x, j)
            s0 = fma(load(model, r + j), v, s0)
            s1 = fma(load(model, r + D + j), v, s1)
            s2 = fma(load(model, r + 2 * D + j), v, s2)
            s3 = fma(load(model, r + 3 * D + j), v, s3)
            s4 = fma(load(model, r + 4 * D + j), v, s4)
            s5 = fma(load(model, r + 5 * D + j), v, s5)
            s6 = fma(load(model, r + 6 * D + j), v, s6)
            s7 = fma(load(model, r + 7 * D + j), v, s7)
        sums = totals(s0, s1, s2, s3, s4, s5, s6, s7)
        store(p, i, sums)
        square = fma(sums, sums, square)
    return total(square)


@exact
def dot(a: np.ndarray, start: int, b: np.ndarray) -> float:
    """a.flat[start : start + b.size] . b, for b padded to a multiple of eight.

    >>> dot(np.arange(16.0), 8, np.ones(8))
    92.0
    """
    s = splat(0.0)
    for j in range(0, b.size, 8):
        s = fma(load(a, start + j), load(b, j), s)
    return total(s)


@exact
def update(model: np.ndarray, x: np.ndarray, reward: float) -> None:
    """A += x x', b += r x: Carlson's step on W, and theta to match (x of length d or D).

    >>> model = np.zeros((9, 8)); model[0, 0] = 1.0
    >>> update(model, np.ones(1), 1.0)
    >>> model[8, :1], model[0, :1] ** 2
    (array([0.5]), array([0.5]))
    """
    D = model.shape[1]
    work = np.zeros((3, D))
    v, p, k = work[0], work[1], work[2]
    for i in range(x.size):
        v[i] = x[i]
    width, error = project(model, v, p), reward - dot(model, D * D, v)
    if not finite(width * error):
        raise ValueError("context must be finite (and its square must not overflow)")
    before = 1.0
    for i in range(D):
        after = before + p[i] * p[i]
        root = np.sqrt(before * after)
        keep, take, add = splat(before / root), splat(-p[i] / root), splat(p[i])
        for j in range(0, (i & ~7) + 8, 8):
            row, sofar = load(model, i * D + j), load(k, j)
            store(model, i * D + j, fma(keep, row, fma(take, sofar, splat(0.0))))
            store(k, j, fma(add, row, sofar))
        before = after
    step = splat(error / before)  # k is now A^-1 x before the update
    for j in range(0, D, 8):
        store(model, D * D + j, fma(step, load(k, j), load(model, D * D + j)))


@exact
def log_det(model: np.ndarray, d: int) -> float:
    """ln det A, from the diagonal of W.

    >>> model = np.zeros((9, 8)); model[0, 0] = np.exp(-1.5)
    >>> float(log_det(model, 1))
    3.0
    """
    result = 0.0
    for i in range(d):
        result -= 2.0 * np.log(model[i, i])
    return result


@exact
def refit(model: np.ndarray, A: np.ndarray, b: np.ndarray) -> None:
    """W and theta computed afresh from A and b.

    >>> model = np.zeros((9, 8))
    >>> refit(model, np.array([[4.0]]), np.array([2.0]))
    >>> model[0, :1], model[8, :1]
    (array([0.5]), array([0.5]))
    """
    d, D = b.size, model.shape[1]
    inverse = np.linalg.solve(np.linalg.cholesky(A), np.eye(d))
    moments = np.dot(inverse, b)
    for i in range(d):
        theta = 0.0
        for j in range(i + 1):
            model[i, j] = inverse[i, j]
        for j in range(i, d):
            theta += inverse[j, i] * moments[j]
        model[D, i] = theta


@exact
def learn_row(models: np.ndarray, m: int, X: np.ndarray, row: int, reward: float) -> None:
    """Learn row ``row`` of X, all of it checked, into model ``m``.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
    >>> learn_row(models, 0, np.ones((1, 1)), 0, 1.0)
    >>> models[0, 8, :1]
    array([0.5])
    """
    if not all_finite(X):
        raise ValueError("context must be finite, got NaN or infinity")
    update(models[m], X[row], reward)


@exact
def learn(
    models: np.ndarray,
    grams: np.ndarray,
    moments: np.ndarray,
    m: int,
    X: np.ndarray,
    row: int,
    reward: float,
    lam: float,
    discount: float,
) -> None:
    """``learn_row``, where what was learnt before may fade and the ridge stays: A = lam I + sum discount^age x x'.

    Forgetting is by time: with every reward all models fade, so that the width of one that rests grows. Fading moves
    every eigenvalue, so A and b are kept and W is computed afresh, in O(d^3) for each model.

    >>> models, A = np.zeros((1, 9, 8)), np.ones((1, 1, 1))
    >>> learn(models, A, np.zeros((1, 1)), 0, np.ones((1, 1)), 0, 1.0, 1.0, 0.5)
    >>> A, models[0, 8, :1]
    (array([[[2.]]]), array([0.5]))
    """
    if discount == 1.0:
        update(models[m], X[row], reward)
        return
    x = X[row]
    d = x.size
    for i in range(d):
        if not finite(x[i] * x[i]):
            raise ValueError("context must be finite (and its square must not overflow)")
    for k in range(len(models)):
        A, b, w = grams[k], moments[k], 1.0 if k == m else 0.0
        for i in range(d):
            b[i] = discount * b[i] + w * reward * x[i]
            for j in range(d):
                A[i, j] = discount * A[i, j] + w * x[i] * x[j]
            A[i, i] += (1.0 - discount) * lam
        refit(models[k], A, b)


@exact
def multiplier(model: np.ndarray, d: int, lam: float, alpha: float, noise: float, delta: float) -> float:
    """alpha + R sqrt(2 ln(det(A)^1/2 det(lam I)^-1/2 / delta)): the ellipsoid's width; R = 0 leaves a plain number.

    >>> multiplier(np.eye(9)[:, :8], 8, 1.0, 0.5, 0.0, 0.1)
    0.5
    """
    if noise == 0.0:
        return alpha
    return alpha + noise * np.sqrt(max(0.0, log_det(model, d) - d * np.log(lam)) - 2.0 * np.log(delta))


@exact
def estimate_into(model: np.ndarray, X: np.ndarray, means: np.ndarray, widths: np.ndarray) -> None:
    """Means x.theta and widths sqrt(x' A^-1 x) of every row of X under one model.

    >>> model = np.zeros((9, 8)); model[0, 0] = 0.5; model[8, 0] = 3.0
    >>> means, widths = np.empty(1), np.empty(1)
    >>> estimate_into(model, np.array([[2.0]]), means, widths)
    >>> means, widths
    (array([6.]), array([1.]))
    """
    K, d = X.shape
    D = model.shape[1]
    arms = np.zeros((D + 1, LANES))  # eight rows of X side by side, a feature a line; the last line is for results
    for start in range(0, K, LANES):
        n = min(LANES, K - start)
        for a in range(n):
            for i in range(d):
                arms[i, a] = X[start + a, i]
        square, mean = splat(0.0), splat(0.0)
        for i in range(0, D, 4):
            s0, s1, s2, s3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for j in range(i + 4):  # W is zero beyond
                v = load(arms, LANES * j)
                s0 = fma(splat(model[i, j]), v, s0)
                s1 = fma(splat(model[i + 1, j]), v, s1)
                s2 = fma(splat(model[i + 2, j]), v, s2)
                s3 = fma(splat(model[i + 3, j]), v, s3)
            square = fma(s0, s0, fma(s1, s1, fma(s2, s2, fma(s3, s3, square))))
        for j in range(d):
            mean = fma(splat(model[D, j]), load(arms, LANES * j), mean)
        store(arms, LANES * D, square)
        for a in range(n):
            widths[start + a] = np.sqrt(arms[D, a])
        store(arms, LANES * D, mean)
        for a in range(n):
            means[start + a] = arms[D, a]


@exact
def estimate_all_into(models: np.ndarray, x: np.ndarray, means: np.ndarray, widths: np.ndarray) -> None:
    """Mean and width of one row x under every model.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
    >>> means, widths = np.empty(1), np.empty(1)
    >>> estimate_all_into(models, np.array([2.0]), means, widths)
    >>> means, widths
    (array([6.]), array([1.]))
    """
    work = np.zeros((2, models.shape[2]))
    v, p = work[0], work[1]
    D = v.size
    for i in range(x.size):
        v[i] = x[i]
    for m in range(len(models)):
        widths[m] = np.sqrt(project(models[m], v, p))
        means[m] = dot(models[m], D * D, v)


@exact
def estimate_all(models: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``estimate_all_into`` with arrays of its own.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
    >>> estimate_all(models, np.array([2.0]))
    (array([6.]), array([1.]))
    """
    means, widths = np.empty(len(models)), np.empty(len(models))
    estimate_all_into(models, x, means, widths)
    return means, widths


@exact
def optimistic(models: np.ndarray, X: np.ndarray, lam: float, alpha: float, noise: float, delta: float) -> np.ndarray:
    """Mean plus multiplier times width: of each row under the one model, or of the one row under each model.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
    >>> optimistic(models, np.array([[2.0]]), 4.0, 0.1, 0.0, 1.0)
    array([6.1])
    """
    M, d = len(models), X.shape[1]
    K = len(X) if M == 1 else M
    both = np.empty((2, K))
    scores, widths = both[0], both[1]
    if M == 1:
        estimate_into(models[0], X, scores, widths)
    else:
        estimate_all_into(models, X[0], scores, widths)
    width = multiplier(models[0], d, lam, alpha, noise, delta)
    for a in range(K):
        if M > 1 and noise > 0.0:
            width = multiplier(models[a], d, lam, alpha, noise, delta)
        scores[a] += width * widths[a]
        if not finite(scores[a]):
            raise ValueError("context must be finite (and its square must not overflow)")
    return scores


@exact
def choose_optimistic(
    models: np.ndarray, X: np.ndarray, lam: float, alpha: float, noise: float, delta: float
) -> tuple[int, int]:
    """The first arm with the largest optimistic score, and how many arms tie with it.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5
    >>> choose_optimistic(models, np.array([[1.0], [2.0], [2.0]]), 4.0, 0.1, 0.0, 1.0)
    (1, 2)
    """
    return first_best(optimistic(models, X, lam, alpha, noise, delta))


@exact_block
def play_optimistic(
    models: np.ndarray,
    grams: np.ndarray,
    moments: np.ndarray,
    contexts: np.ndarray,
    rewards: np.ndarray,
    lam: float,
    discount: float,
    alpha: float,
    noise: float,
    delta: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Optimism over a block of rounds; ``contexts`` is (T, K, d) for one model, (T, 1, d) for one model an arm.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
    >>> none = np.zeros((1, 0, 0))
    >>> play_optimistic(models, none, none[0], np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 1.0, 1.0, 0.0, 1.0,
    ...     np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T, disjoint = len(rewards), len(models) > 1
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        scores = optimistic(models, contexts[t], lam, alpha, noise, delta)
        arm, ties = first_best(scores)
        if ties > 1:
            arm = best_arms(scores)[int(rng.random() * ties)]
        arms[t], probabilities[t], got[t] = arm, 1.0 / ties, rewards[t, arm]
        m, row = (arm, 0) if disjoint else (0, arm)
        learn(models, grams, moments, m, contexts[t], row, rewards[t, arm], lam, discount)
    return arms, probabilities, got
