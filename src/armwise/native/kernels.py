"""Kernel functions in blocks, each a small postfix program (native/kernels.hpp)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from armwise.native._native import kernels as _kernels

Program = tuple[NDArray[np.int64], NDArray[np.float64]]

CONSTANT, LINEAR, POLYNOMIAL = _kernels.CONSTANT, _kernels.LINEAR, _kernels.POLYNOMIAL
RBF, MATERN12, MATERN32, MATERN52 = _kernels.RBF, _kernels.MATERN12, _kernels.MATERN32, _kernels.MATERN52
ADD, MULTIPLY = _kernels.ADD, _kernels.MULTIPLY
cross = _kernels.cross
diagonal = _kernels.diagonal
