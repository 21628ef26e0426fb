"""Memory as the kernels want it: rows of a multiple of eight numbers that start where a cache line starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LANES = 8


def padded(n: int) -> int:
    """The smallest multiple of eight not below n."""
    return -(-n // LANES) * LANES


def aligned_zeros(*shape: int) -> NDArray[np.float64]:
    """Zeros whose first entry starts a cache line, so that no load of eight straddles two."""
    size = int(np.prod(shape))
    room = np.zeros(size + LANES)
    start = -(room.ctypes.data // 8) % LANES
    return room[start : start + size].reshape(shape)
