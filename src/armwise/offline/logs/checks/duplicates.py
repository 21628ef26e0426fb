"""Duplicate rows: rows that equal another in every column more often than chance explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.logs.labels import Ints

MAX_SAMPLE = 50_000  # rows examined
_MIN_COPIES = 20  # copies below which no warning is given
_MIN_SHARE = 0.005  # share of the rows below which no warning is given
_ALL = 0.998  # of the rows that share a context with another: if so many share the outcome, they are copies
_SAID = (
    "{:,} of {:,} rows are copies of other rows in every column: remove them, or if they are decisions of the same "
    "user, count them together (cluster=, --cluster)"
)
_RICH = 0.05  # different contexts as a share of the rows, from which on they hardly repeat by chance


def copies(outcome: Sequence[np.ndarray], others: Sequence[np.ndarray], probabilities: Floats | None) -> str:
    """Return a warning about copies among these rows; empty if chance explains them.

    ``outcome`` are the arms and rewards, ``others`` all other columns. Discrete contexts repeat by chance, so rows are
    copies only if rows with the same contexts have the same arm and reward far more often than the probabilities of
    the arms allow, or if contexts hardly repeat and all rows that share one share the outcome, too.
    """
    n = len(outcome[0])
    if not others or n < 2 * _MIN_COPIES:
        return ""
    context = _combined([_ids(values) for values in others])
    whole = _combined([context, *(_ids(values) for values in outcome)])
    n_copies = n - (int(whole.max()) + 1)
    if n_copies < max(_MIN_COPIES, _MIN_SHARE * n):
        return ""
    times = _times(whole)
    if times > 1:
        n_copies = n - n // times
        return _SAID.format(n_copies, n)
    pairs, equal = _pairs(context), _pairs(whole)
    by_chance = 1.0 if probabilities is None else float(np.mean(probabilities))
    different = int(context.max()) + 1
    all_equal = different > _RICH * n and n_copies > _ALL * (n - different)
    if not (all_equal or equal > (0.5 + 0.5 * by_chance) * pairs):
        return ""
    return _SAID.format(n_copies, n)


def _times(ids: Ints) -> int:
    """Return how often every row is there, as in a file that was joined twice: 1 unless all counts have a divisor."""
    counts = np.bincount(ids)
    rest = np.delete(counts, ids[-1])  # of a longer log the last row may have lost its copies
    return int(np.gcd.reduce(rest)) if len(rest) >= _MIN_COPIES else 1


def _ids(values: np.ndarray) -> Ints:
    """Equal values as equal numbers from 0."""
    if values.ndim > 1:
        flat = values.reshape(len(values), -1).astype(np.float64)
        values = flat @ np.random.default_rng(0).normal(size=flat.shape[1])  # equal for equal rows, and for no others
    if values.dtype.kind in "biufMm":
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(str(value), len(numbers)) for value in values.tolist()], np.int64)


def _combined(ids: Sequence[Ints]) -> Ints:
    """Equal rows of several columns of numbers as equal numbers from 0."""
    found = ids[0]
    for column in ids[1:]:
        found = np.unique(found * (int(column.max()) + 1) + column, return_inverse=True)[1].astype(np.int64)
    return found


def _pairs(ids: Ints) -> float:
    counts = np.bincount(ids).astype(np.float64)
    return float((counts * (counts - 1.0) / 2.0).sum())
