"""Checks of single arguments: each error names the argument, the value and the expected one."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armwise.native.choice import MAX_MAGNITUDE as MAX_MAGNITUDE

# Which view of a round an agent reads.
Sees = Literal["nothing", "features", "shared", "key", "advice"]
# One round as an agent reads it: numbers, a key (any hashable), or None where it sees nothing.
Context = ArrayLike | Hashable
# A block of rounds, one context per row.
Contexts = ArrayLike | list[Hashable] | None
FilePath = str | os.PathLike[str]

FLOAT64 = np.dtype(np.float64)


def wanted_numbers(values: NDArray[np.float64]) -> str:
    """Describe the expected range of numbers, and where the first NaN or too large one is."""
    at = tuple(np.argwhere(~(np.abs(values) <= MAX_MAGNITUDE))[0])
    where = f"{'in row' if len(at) > 1 else 'at'} {at[0]}"
    if not np.isfinite(values[at]):
        return f"finite, got NaN or infinity {where}"
    return f"at most {MAX_MAGNITUDE:g} in size, so that squares do not overflow, got {values[at]:g} {where}"


def short(value: Any) -> str:
    """Describe a value in a message: its type and the beginning of its repr."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def as_floats(name: str, value: Any) -> NDArray[np.float64]:
    """Convert to a C-contiguous, aligned float64 array, without a copy if it is one."""
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
    """Raise ValueError for a masked array, or a list with one in it: NumPy would read the masked values."""
    masked = isinstance(value, np.ma.MaskedArray)
    if masked or (isinstance(value, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in value)):
        kind = "is a masked array" if masked else "holds a masked array"
        raise ValueError(
            f"{name} {kind}, whose mask would be ignored: fill in its missing values first ({name}.filled(...))"
        )


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Check that a number is finite and above zero (or not below, with ``zero``); return it as a float."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be a finite number {'>=' if zero else '>'} 0, got {short(value)}")
    return float(value)


def count(name: str, value: Any, *, least: int = 1) -> int:
    """Check that a number is whole and not below ``least``; return it as an int."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {short(value)}")
    return int(value)


def fraction(name: str, value: Any, *, zero: bool = False, one: bool = False) -> float:
    """Check that a number is strictly between 0 and 1 (``zero`` and ``one`` admit the ends); return it as a float."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not (0 < value < 1 or (zero and value == 0) or (one and value == 1)):
        ends = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise ValueError(f"{name} must be a number in {ends}, got {short(value)}")
    return float(value)
