"""Checks and draws that every decision needs: finite input, ties, sampling from a distribution."""

from __future__ import annotations

import numpy as np

from armwise.numerics.jit import jit, jit_block

_LARGEST = float(np.finfo(np.float64).max)
TIE = 1e-12  # scores this close to the largest are ties


@jit
def finite(value: float) -> bool:
    """Whether a number is neither NaN nor infinite.

    np.isfinite compiles to x - x, which reordered sums may cancel before they are looked at; a comparison is safe.

    >>> finite(np.nan), finite(-np.inf), finite(1e308)
    (False, False, True)
    """
    return abs(value) <= _LARGEST


@jit
def all_finite(values: np.ndarray) -> bool:
    """Whether no entry of a C-contiguous array is NaN or infinite.

    >>> all_finite(np.array([1.0, np.nan]))
    False
    """
    for value in values.ravel():  # noqa: SIM110 - a generator does not compile
        if not finite(value):
            return False
    return True


@jit
def first_best(scores: np.ndarray) -> tuple[int, int]:
    """The first arm within 1e-12 of the largest score, and how many arms are.

    >>> first_best(np.array([0.5, 1.0, 1.0]))
    (1, 2)
    """
    top = scores[0]
    for score in scores:
        if score > top:
            top = score
    first, ties = -1, 0
    for arm in range(scores.size):
        if scores[arm] >= top - TIE:
            ties += 1
            if first < 0:
                first = arm
    return first, ties


@jit
def best_arms(scores: np.ndarray) -> np.ndarray:
    """The arms whose score lies within 1e-12 of the largest.

    >>> best_arms(np.array([0.5, 1.0, 1.0]))
    array([1, 2])
    """
    top = scores[0]
    for score in scores:
        if score > top:
            top = score
    arms = np.empty(scores.size, np.int64)
    n = 0
    for arm in range(scores.size):
        if scores[arm] >= top - TIE:
            arms[n] = arm
            n += 1
    return arms[:n]


@jit
def draw(probabilities: np.ndarray, u: float) -> int:
    """The arm at which the running total of ``probabilities`` passes ``u`` in [0, 1).

    >>> draw(np.array([0.25, 0.75]), 0.5)
    1
    """
    total, last = 0.0, 0
    for arm in range(probabilities.size):
        if probabilities[arm] > 0.0:
            total += probabilities[arm]
            last = arm
            if u < total:
                return arm
    return last  # rounding left the total a hair under u


@jit
def tied_probabilities(scores: np.ndarray) -> np.ndarray:
    """Uniform over the arms that tie for the largest score.

    >>> tied_probabilities(np.array([0.5, 1.0, 1.0]))
    array([0. , 0.5, 0.5])
    """
    arms = best_arms(scores)
    p = np.zeros(scores.size)
    for arm in arms:
        p[arm] = 1.0 / arms.size
    return p


@jit_block
def row_argmax(scores: np.ndarray) -> np.ndarray:
    """The first largest entry of every row: np.argmax, quicker over short rows.

    >>> row_argmax(np.array([[0.5, 1.0, 1.0], [2.0, 1.0, 0.0]]))
    array([1, 0])
    """
    best = np.empty(len(scores), np.int64)
    for t in range(len(scores)):
        arm, top = 0, scores[t, 0]
        for a in range(1, scores.shape[1]):
            if scores[t, a] > top:
                arm, top = a, scores[t, a]
        best[t] = arm
    return best
