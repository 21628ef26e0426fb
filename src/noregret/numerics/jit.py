"""How the package compiles: one decorator for all kernels, typed for the rest of the code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.
_REORDER = {"reassoc", "contract", "arcp", "nsz"}


def jit(kernel: F) -> F:
    """Compile on first use, cache on disk, release the interpreter lock while it runs.

    >>> from noregret.numerics.weights import importance_weighted  # decorated with @jit
    >>> importance_weighted(1.0, 0.5)
    2.0
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_REORDER)(kernel))


def exact(kernel: F) -> F:
    """``jit`` without reordering: the same bits whether a kernel is called alone or compiled into another.

    For kernels that vectorise by hand (see ``simd``), so that the loop and the block of an agent agree to the bit.

    >>> from noregret.numerics.ridge import log_det  # decorated with @exact
    >>> log_det.__name__
    'log_det'
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(kernel))
