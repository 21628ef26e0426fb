"""Cells of a table as numbers: plain numbers, percentages, yes and no; and messages about all other cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from armwise.core.agent import Floats

WHOLE_COLUMN = -1  # the row of a problem that a whole column has
_YES, _NO = frozenset({"yes", "y", "true", "t"}), frozenset({"no", "n", "false", "f"})
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+\s*%?")


def number(cell: Any) -> float | None:
    """Parse the number in a cell; None if it is not a number, NaN if it is empty."""
    if cell is None:
        return float("nan")
    text = cell.strip() if isinstance(cell, str) else cell
    if text == "":
        return float("nan")
    try:
        if isinstance(text, str) and text.endswith("%"):
            return float(text[:-1]) / 100.0
        return float(text)
    except (TypeError, ValueError):
        return None


def outcome(cell: Any) -> float | None:
    """Parse a cell of rewards or probabilities: yes is 1, no is 0."""
    word = cell.strip().lower() if isinstance(cell, str) else None
    return 1.0 if word in _YES else 0.0 if word in _NO else number(cell)


def outcomes(role: str, column: str, values: np.ndarray) -> tuple[Floats, dict[int, str]]:
    """A column of numbers, NaN where a cell holds none; and by row what to say of such a cell."""
    try:
        return np.ascontiguousarray(values, dtype=np.float64), {}
    except (TypeError, ValueError):
        pass
    read = [outcome(value) for value in values.tolist()]
    numbers = np.array([np.nan if each is None else each for each in read])
    unread = [i for i, each in enumerate(read) if each is None]
    if has_decimal_commas([values[i] for i in unread]):
        some = shown([values[i] for i in unread])
        return numbers, {WHOLE_COLUMN: f"{role} has {some} in column {column!r}: {DECIMAL_REMEDY}"}
    if 2 * len(unread) > len(values):  # not some bad rows, but another column
        some = shown([values[i] for i in unread])
        hint = " (yes and no are read as 1 and 0, other words are not)" if len(set(values.tolist())) == 2 else ""
        said = f"column {column!r} holds {some}, expected numbers: is it the right column?{hint}"
        return numbers, {WHOLE_COLUMN: said}
    return numbers, {i: f"{role} is {values[i]!r:.60} in column {column!r}, expected a number" for i in unread}


DECIMAL_REMEDY = "for decimal commas, read the file with decimal=',' (--decimal ,)"


def has_decimal_commas(cells: Sequence[Any]) -> bool:
    """Return whether most of these cells are numbers with a decimal comma."""
    commas = sum(isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell.strip()) is not None for cell in cells)
    return 2 * commas > len(cells)


def words_as_outcomes(values: np.ndarray) -> str:
    """The reading of the words in a column of rewards or probabilities; empty if it has none."""
    if values.dtype.kind in "biufMm":
        return ""
    words = dict.fromkeys(cell.strip() for cell in values.tolist() if isinstance(cell, str))
    read = {word: outcome(word) for word in words}
    other = sorted(((word, x) for word, x in read.items() if x is not None and not _is_plain(word)),
                   key=lambda pair: -pair[1])  # fmt: skip
    return ", ".join(f"{word} = {x:g}" for word, x in other[:4]) + (", ..." if len(other) > 4 else "")


def _is_plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""
    return True


def shown(cells: Sequence[Any], most: int = 3) -> str:
    """Quote a few distinct cells for messages."""
    return ", ".join(sorted({repr(cell)[:40] for cell in cells[:100]})[:most])
