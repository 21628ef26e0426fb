"""Kernel functions in blocks: a kernel is a small postfix program, so that sums and products are compiled too.

A program is ``(ops, args)``, one row an instruction: ops = (kind, first column, one past the last or -1), args = its
two numbers. Leaves push a matrix, ``ADD`` and ``MULTIPLY`` join the two on top.
"""

from __future__ import annotations

import math

import numpy as np

from armwise.numerics.jit import jit

CONSTANT, LINEAR, POLYNOMIAL, RBF, MATERN12, MATERN32, MATERN52, ADD, MULTIPLY = range(9)
Program = tuple[np.ndarray, np.ndarray]


@jit
def _from_product(kind: int, a: float, b: float, s: float) -> float:
    if kind == LINEAR:
        return s
    return (s + b) ** int(a)  # POLYNOMIAL: degree, offset


@jit
def _from_distance(kind: int, scale: float, s: float) -> float:
    """The stationary kernels, from the squared distance ``s``."""
    if kind == RBF:
        return math.exp(-0.5 * s / (scale * scale))
    z = math.sqrt(s) / scale
    if kind == MATERN12:
        return math.exp(-z)
    if kind == MATERN32:
        z *= math.sqrt(3.0)
        return (1.0 + z) * math.exp(-z)
    z *= math.sqrt(5.0)
    return (1.0 + z + z * z / 3.0) * math.exp(-z)


@jit
def _leaf(op: np.ndarray, arg: np.ndarray, X: np.ndarray, Z: np.ndarray, out: np.ndarray) -> None:
    kind, low = op[0], op[1]
    high = op[2] if op[2] >= 0 else X.shape[1]
    a, b = arg[0], arg[1]
    for i in range(len(X)):
        if kind == CONSTANT:
            out[i] = a
            continue
        x = X[i, low:high]
        if i > 0 and np.all(x == X[i - 1, low:high]):  # arms that share their context, as in CGPUCB
            out[i] = out[i - 1]
            continue
        for j in range(len(Z)):
            z = Z[j, low:high]
            s = 0.0
            if kind <= POLYNOMIAL:
                for c in range(x.size):
                    s += x[c] * z[c]
                out[i, j] = _from_product(kind, a, b, s)
            else:
                for c in range(x.size):
                    s += (x[c] - z[c]) ** 2
                out[i, j] = _from_distance(kind, a, s)


@jit
def cross(program: Program, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """k(x, z) for the rows of X (down) and of Z (across).

    >>> rbf = np.array([[RBF, 0, -1]]), np.array([[1.0, 0.0]])
    >>> cross(rbf, np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679]])
    """
    ops, args = program
    stack = np.empty((len(ops) // 2 + 1, len(X), len(Z)))
    top = 0
    for i in range(len(ops)):
        if ops[i, 0] == ADD:
            top -= 1
            stack[top - 1] += stack[top]
        elif ops[i, 0] == MULTIPLY:
            top -= 1
            stack[top - 1] *= stack[top]
        else:
            _leaf(ops[i], args[i], X, Z, stack[top])
            top += 1
    return stack[0]


@jit
def diagonal(program: Program, X: np.ndarray) -> np.ndarray:
    """k(x, x) for the rows of X.

    >>> rbf = np.array([[RBF, 0, -1]]), np.array([[1.0, 0.0]])
    >>> diagonal(rbf, np.eye(2))
    array([1., 1.])
    """
    values = np.empty(len(X))
    for i in range(len(X)):
        values[i] = cross(program, X[i : i + 1], X[i : i + 1])[0, 0]
    return values
