"""Checks of single arguments: each error names the argument, what came and what was expected."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armwise.native.choice import LARGEST as LARGEST

# Which view of a round an agent reads.
Sees = Literal["nothing", "features", "shared", "key", "advice"]
# One round as an agent reads it: numbers, a key (any hashable), or None where it sees nothing.
Context = ArrayLike | Hashable
# A block of rounds, one context per row.
Contexts = ArrayLike | list[Hashable] | None
FilePath = str | os.PathLike[str]

FLOAT64 = np.dtype(np.float64)


def wanted_numbers(values: NDArray[np.float64]) -> str:
    """What is expected of numbers, some of which are NaN or too large, and where the first of those is.

    >>> wanted_numbers(np.array([[1.0, 2.0], [1e200, 3.0]]))
    'at most 1e+150 in size, so that squares do not overflow, got 1e+200 in row 1'
    """
    at = tuple(np.argwhere(~(np.abs(values) <= LARGEST))[0])
    where = f"{'in row' if len(at) > 1 else 'at'} {at[0]}"
    if not np.isfinite(values[at]):
        return f"finite, got NaN or infinity {where}"
    return f"at most {LARGEST:g} in size, so that squares do not overflow, got {values[at]:g} {where}"


def short(value: Any) -> str:
    """The type and the beginning of a value, for a message.

    >>> short([1, 2])
    'list [1, 2]'
    """
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def as_floats(name: str, value: Any) -> NDArray[np.float64]:
    """A C-contiguous, aligned float64 array, without a copy where it already is one.

    >>> as_floats("X", [1, 2])
    array([1., 2.])
    """
    if type(value) is np.ndarray and value.dtype is FLOAT64 and value.flags.c_contiguous and value.flags.aligned:
        return value
    refuse_masked(name, value)
    try:
        raw = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array of numbers, got rows of different lengths") from None
    if raw.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be an array of numbers, got {short(value)}")
    return np.require(raw, np.float64, ("C", "A"))


def refuse_masked(name: str, value: Any) -> None:
    """A ValueError for a masked array, or a list with one in it: NumPy would read what the mask hides.

    >>> refuse_masked("X", np.ma.masked_equal([1.0, -9.0], -9.0))
    Traceback (most recent call last):
    ...
    ValueError: X is a masked array, whose mask would be ignored: fill in its missing values first (X.filled(...))
    """
    masked = isinstance(value, np.ma.MaskedArray)
    if masked or (isinstance(value, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in value)):
        kind = "is a masked array" if masked else "holds a masked array"
        raise ValueError(
            f"{name} {kind}, whose mask would be ignored: fill in its missing values first ({name}.filled(...))"
        )


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above zero (or not below, with ``zero``), as a float.

    >>> positive("lam", -1)
    Traceback (most recent call last):
    ...
    ValueError: lam must be a finite number > 0, got int -1
    """
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be a finite number {'>=' if zero else '>'} 0, got {short(value)}")
    return float(value)


def count(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number not below ``least``, as an int.

    >>> count("dim", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: dim must be a whole number >= 1, got float 2.5
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {short(value)}")
    return int(value)


def fraction(name: str, value: Any, *, zero: bool = False, one: bool = False) -> float:
    """A number strictly between 0 and 1 (``zero`` and ``one`` admit the ends), as a float.

    >>> fraction("delta", 1.5)
    Traceback (most recent call last):
    ...
    ValueError: delta must be a number in (0, 1), got float 1.5
    """
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not (0 < value < 1 or (zero and value == 0) or (one and value == 1)):
        ends = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise ValueError(f"{name} must be a number in {ends}, got {short(value)}")
    return float(value)
