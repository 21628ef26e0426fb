"""How the package compiles: one decorator for all kernels, typed for the rest of the code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.
_REORDER = {"reassoc", "contract", "arcp", "nsz"}


def _compiled(kernel: F, fastmath: bool | set[str] = False, nogil: bool = False) -> F:
    return cast(F, numba.njit(cache=True, error_model="numpy", fastmath=fastmath, nogil=nogil)(kernel))


def jit(kernel: F) -> F:
    """Compile on first use, cache on disk.

    The interpreter lock is kept: a step of a few microseconds that gave it away would wait much longer, wherever
    other threads are busy, to have it back.

    >>> from armwise.numerics.weights import importance_weighted  # decorated with @jit
    >>> importance_weighted(1.0, 0.5)
    2.0
    """
    return _compiled(kernel, fastmath=_REORDER)


def jit_block(kernel: F) -> F:
    """``jit`` for a kernel that works through many rounds or rows: it releases the interpreter lock meanwhile.

    >>> from armwise.numerics.kary import ucb1_play  # decorated with @jit_block
    >>> ucb1_play.__name__
    'ucb1_play'
    """
    return _compiled(kernel, fastmath=_REORDER, nogil=True)


def exact(kernel: F) -> F:
    """``jit`` without reordering: the same bits whether a kernel is called alone or compiled into another.

    For kernels that vectorise by hand (see ``simd``), so that the loop and the block of an agent agree to the bit.

    >>> from armwise.numerics.ridge import log_det  # decorated with @exact
    >>> log_det.__name__
    'log_det'
    """
    return _compiled(kernel)


def exact_block(kernel: F) -> F:
    """``exact`` for a kernel that works through many rounds: it releases the interpreter lock meanwhile.

    >>> from armwise.numerics.ridge import play_optimistic  # decorated with @exact_block
    >>> play_optimistic.__name__
    'play_optimistic'
    """
    return _compiled(kernel, nogil=True)
