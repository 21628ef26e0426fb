"""The simplex method for the small linear programs of RandomizedUCB, in which a point inside is known to begin with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from armwise.agent import Floats

_TINY = 1e-11  # of reduced costs and pivots: what is smaller is rounding
_STANDING = 20  # pivots without progress before the rule changes to Bland's, which never goes round in circles
_MOST = 50_000  # pivots; far fewer are needed


class Solved(NamedTuple):
    """The least c.x, x itself, and the price of each row: by how much the least would fall if its limit rose by 1."""

    least: float
    x: Floats
    prices: Floats


def minimise(c: Floats, A: Floats, b: Floats) -> Solved:
    """min c.x such that A x <= b and x >= 0, where b >= 0, so that x = 0 is allowed (Dantzig 1947, in exchange form).

    >>> minimise(np.array([-3.0, -2.0]), np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([4.0, 3.0]))
    Solved(least=-11.0, x=array([3., 1.]), prices=array([2., 1.]))
    """
    m, n = A.shape
    if b.min() < 0.0:
        raise ValueError(f"b must be at least 0, so that x = 0 is allowed, got {b.min()}")
    # Row i: what is basic there = last column - (the other columns) . (what is not basic). Last row: the objective.
    T = np.vstack([np.column_stack([A, b]), np.append(c, 0.0)])
    basic, free = np.arange(n, n + m), np.arange(n)  # x, then the rows' slacks
    standing = 0
    for _ in range(_MOST):
        costs = T[-1, :-1]
        candidates = np.flatnonzero(costs < -_TINY)
        if not candidates.size:
            break
        column = int(candidates[free[candidates].argmin()] if standing > _STANDING else costs.argmin())
        row = _leaving(T[:-1, column], T[:-1, -1], basic, standing > _STANDING)
        standing = 0 if T[row, -1] > 0.0 else standing + 1
        _exchange(T, row, column)
        basic[row], free[column] = free[column], basic[row]
    else:
        raise RuntimeError(f"a linear program of {m} rows and {n} columns was not solved in {_MOST} pivots")
    values, prices = np.zeros(n + m), np.zeros(n + m)
    values[basic], prices[free] = T[:-1, -1], T[-1, :-1]
    return Solved(-float(T[-1, -1]), values[:n], prices[n:].clip(min=0.0))


def _leaving(column: Floats, limits: Floats, basic: np.ndarray, first: bool) -> int:
    """The row that limits the column's growth most; of several the one with the largest pivot, or the first by name."""
    rows = np.flatnonzero(column > _TINY)
    if not rows.size:
        raise RuntimeError("a linear program has no least value")
    ratios = limits[rows] / column[rows]
    rows = rows[ratios <= ratios.min() + _TINY]
    return int(rows[basic[rows].argmin() if first else column[rows].argmax()])


def _exchange(T: Floats, row: int, column: int) -> None:
    """What is basic in the row and what is free in the column change places."""
    pivot = T[row, column]
    new, old = T[row] / pivot, T[:, column].copy()
    T -= np.outer(old, new)
    T[row] = new
    T[:, column] = -old / pivot
    T[row, column] = 1.0 / pivot
    np.maximum(T[:-1, -1], 0.0, out=T[:-1, -1])  # rounding must not leave the allowed side
