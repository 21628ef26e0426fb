"""Exploration over regression estimates: inverse-gap weighting and confidence sets, step and block."""

from __future__ import annotations

import numpy as np

from armwise.numerics.choice import TIE, draw, tied_probabilities
from armwise.numerics.jit import jit, jit_block
from armwise.numerics.ridge import estimate_all_into, estimate_into, learn_row

UNTOUCHED = 1.0 - 1e-9  # of its length, which a row keeps in the norm lam A^-1 as long as the data say nothing about it


@jit
def inverse_gap(means: np.ndarray, gamma: float) -> np.ndarray:
    """p_a = 1 / (K + gamma (best - mean_a)) for all arms but the best, which has the rest (Foster and Rakhlin 2020).

    Arms that tie for the best are averaged over which of them is it.

    >>> inverse_gap(np.array([0.5, 1.0]), 4.0)
    array([0.25, 0.75])
    >>> inverse_gap(np.array([1.0, 1.0]), 4.0)
    array([0.5, 0.5])
    """
    K = means.size
    top = means.max()
    p = np.empty(K)
    others, n_best = 0.0, 0
    for a in range(K):
        if means[a] >= top - TIE:
            p[a] = -1.0
            n_best += 1
        else:
            p[a] = 1.0 / (K + gamma * (top - means[a]))
            others += p[a]
    for a in range(K):
        if p[a] < 0.0:
            p[a] = (1.0 - others) / n_best
    return p


@jit
def estimates(models: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and widths: of each row under the one model, or of the one row under each model.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
    >>> estimates(models, np.array([[2.0]]))
    (array([6.]), array([1.]))
    """
    K = len(X) if len(models) == 1 else len(models)
    means, widths = np.empty(K), np.empty(K)
    if len(models) == 1:
        estimate_into(models[0], X, means, widths)
    else:
        estimate_all_into(models, X[0], means, widths)
    for a in range(K):
        if not np.isfinite(means[a] * widths[a]):
            raise ValueError("context must be finite (and its square must not overflow)")
    return means, widths


@jit
def cut(
    means: np.ndarray, widths: np.ndarray, radius: float, X: np.ndarray, lam: float
) -> tuple[np.ndarray, np.ndarray]:
    """The bounds mean -+ radius width, cut to [0, 1]; [0, 1] itself where the data say nothing about the row.

    That is where lam x' A^-1 x = x'x: x is orthogonal to all rows learnt, and only the ridge holds the estimate.

    >>> cut(np.array([0.5, 0.0]), np.array([0.2, 2.0]), 0.1, np.array([[1.0], [2.0]]), 1.0)
    (array([0.48, 0.  ]), array([0.52, 1.  ]))
    """
    low, high = np.empty(means.size), np.empty(means.size)
    for a in range(means.size):
        x, norm2 = X[a if len(X) > 1 else 0], 0.0
        for i in range(x.size):
            norm2 += x[i] * x[i]
        if norm2 > 0.0 and lam * widths[a] * widths[a] >= UNTOUCHED * norm2:
            low[a], high[a] = 0.0, 1.0
            continue
        low[a] = min(1.0, max(0.0, means[a] - radius * widths[a]))
        high[a] = min(1.0, max(0.0, means[a] + radius * widths[a]))
    return low, high


@jit
def confident(low: np.ndarray, high: np.ndarray, elimination: bool) -> np.ndarray:
    """Uniform over the arms with the largest upper bound (Foster et al. 2018, Algorithm 2); with ``elimination`` over
    the arms whose upper bound reaches the largest lower bound (Algorithm 1).

    >>> low, high = np.array([0.4, 0.3, 0.0]), np.array([0.6, 0.5, 0.2])
    >>> confident(low, high, False), confident(low, high, True)
    (array([1., 0., 0.]), array([0.5, 0.5, 0. ]))
    """
    if not elimination:
        return tied_probabilities(high)
    floor = low.max() - TIE
    p = np.zeros(low.size)
    n = 0
    for a in range(low.size):
        if high[a] >= floor:
            n += 1
    for a in range(low.size):
        if high[a] >= floor:
            p[a] = 1.0 / n
    return p


@jit
def gap_scale(t: int, scale: float, exponent: float) -> float:
    """gamma_t = scale t^exponent.

    >>> gap_scale(4, 10.0, 0.5)
    20.0
    """
    return scale * float(t) ** exponent


@jit
def confidence(t: int, K: int, mellowness: float) -> float:
    """sqrt(beta_t), beta_t = mellowness ln(K t) the excess loss that a regressor in the confidence set may have.

    >>> confidence(1, 1, 0.5)
    0.0
    """
    return np.sqrt(mellowness * np.log(float(K) * float(t)))


@jit_block
def squarecb_play(
    models: np.ndarray,
    scale: float,
    exponent: float,
    t: int,
    contexts: np.ndarray,
    rewards: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """SquareCB over a block of rounds that begins at round t; contexts (T, K, d), or (T, 1, d) for one model an arm.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
    >>> squarecb_play(models, 1.0, 0.5, 1, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T, disjoint = len(rewards), len(models) > 1
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for i in range(T):
        p = inverse_gap(estimates(models, contexts[i])[0], gap_scale(t + i, scale, exponent))
        arm = draw(p, rng.random())
        arms[i], probabilities[i], got[i] = arm, p[arm], rewards[i, arm]
        learn_row(models, arm if disjoint else 0, contexts[i], 0 if disjoint else arm, rewards[i, arm])
    return arms, probabilities, got


@jit_block
def regcb_play(
    models: np.ndarray,
    lam: float,
    mellowness: float,
    elimination: bool,
    t: int,
    contexts: np.ndarray,
    rewards: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """RegCB over a block of rounds that begins at round t; contexts (T, K, d), or (T, 1, d) for one model an arm.

    >>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
    >>> regcb_play(models, 1.0, 0.1, False, 1, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T, K = rewards.shape
    disjoint = len(models) > 1
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for i in range(T):
        means, widths = estimates(models, contexts[i])
        p = confident(*cut(means, widths, confidence(t + i, K, mellowness), contexts[i], lam), elimination)
        arm = draw(p, rng.random())
        arms[i], probabilities[i], got[i] = arm, p[arm], rewards[i, arm]
        learn_row(models, arm if disjoint else 0, contexts[i], 0 if disjoint else arm, rewards[i, arm])
    return arms, probabilities, got
