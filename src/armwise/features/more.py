"""Maps from maps (``Chain``, ``Join``), and three small ones: quantile bins, crosses, hashed words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from armwise.arguments import count, short
from armwise.features.maps import FeatureMap, Floats


def _maps(maps: Sequence[Any]) -> list[FeatureMap]:
    checked = list(maps)
    if not checked:
        raise ValueError("maps must hold at least one feature map, got none")
    for i, each in enumerate(checked):
        if not isinstance(each, FeatureMap):
            raise ValueError(f"maps[{i}] must be a feature map, such as features.Columns(), got {each!r:.80}")
    return checked


class Chain(FeatureMap):
    """Each map reads what the one before it gave.

    >>> rows = np.random.default_rng(1).normal(size=(50, 3))
    >>> from armwise.features.maps import Columns, Fourier
    >>> Chain([Columns(), Fourier(64)]).fit(rows).transform(rows).shape
    (50, 64)
    """

    _learnt = ("size", "columns")

    def __init__(self, maps: Sequence[FeatureMap]) -> None:
        self.maps = _maps(maps)

    def _fit(self, rows: Floats) -> None:
        for each in self.maps:
            rows = each.fit(rows).transform(rows)
        self.size = self.maps[-1].size

    def _transform(self, rows: Floats) -> Floats:
        for each in self.maps:
            rows = each.transform(rows)
        return rows


class Join(FeatureMap):
    """The features of several maps of the same row side by side, after a constant 1 (``constant=False``: without it).

    >>> from armwise.features.maps import Columns, Fourier
    >>> rows = np.random.default_rng(1).normal(size=(50, 3))
    >>> Join([Columns(), Chain([Columns(), Fourier(64)])]).fit(rows).size
    71
    """

    _learnt = ("size", "columns")

    def __init__(self, maps: Sequence[FeatureMap], constant: bool = True) -> None:
        self.maps, self.constant = _maps(maps), bool(constant)

    def _fit(self, rows: Floats) -> None:
        self.size = sum(each.fit(rows).size for each in self.maps) + int(self.constant)

    def _transform(self, rows: Floats) -> Floats:
        parts = [np.ones((len(rows), int(self.constant))), *(each.transform(rows) for each in self.maps)]
        return np.concatenate(parts, axis=1)


class Bins(FeatureMap):
    """Stumps at the quantiles: per column ``count`` - 1 indicators of x > (the i-th of ``count`` quantiles).

    A linear model of them is any step function of each column. Quantiles that coincide give one stump.

    >>> Bins(count=4).fit(np.arange(8.0)[:, None]).transform([[0.0], [3.5], [7.0]])
    array([[0., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """

    _learnt = ("size", "columns", "_edges", "_columns")

    def __init__(self, count: int = 8) -> None:
        self.count = _at_least_two(count)

    def _fit(self, rows: Floats) -> None:
        levels = np.arange(1, self.count) / self.count
        edges = [np.unique(np.quantile(column, levels, method="inverted_cdf")) for column in rows.T]
        edges = [at[at < column.max()] for at, column in zip(edges, rows.T)]  # x > the largest says nothing
        self._columns = np.repeat(np.arange(rows.shape[1]), [len(at) for at in edges])
        self._edges = np.concatenate(edges)
        self.size = len(self._edges)

    def _transform(self, rows: Floats) -> Floats:
        return (rows[:, self._columns] > self._edges).astype(np.float64)


class Cross(FeatureMap):
    """All products of one of the first ``context`` columns with one of the others: context times arm, where rows are
    a context's numbers followed by an arm's.

    >>> Cross(context=2).fit(np.ones((1, 4))).transform([[1.0, 2.0, 3.0, 5.0]])
    array([[ 3.,  5.,  6., 10.]])
    """

    _learnt = ("size", "columns")

    def __init__(self, context: int) -> None:
        self.context = count("context", context)

    def _fit(self, rows: Floats) -> None:
        if not self.context < rows.shape[1]:
            raise ValueError(f"rows must have more than context={self.context} columns, got {rows.shape[1]}")
        self.size = self.context * (rows.shape[1] - self.context)

    def _transform(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore"):
            products: Floats = rows[:, : self.context, None] * rows[:, None, self.context :]
        if not np.isfinite(products).all():
            raise ValueError("rows are too large to be crossed: products of context and arm overflow; scale them first")
        return products.reshape(len(rows), -1)


def _at_least_two(value: int) -> int:
    if count("count", value) < 2:
        raise ValueError(f"count must be at least 2, got {value}")
    return int(value)


def hashed_text(texts: Iterable[str], size: int = 256, seed: int = 0) -> Floats:
    """One row of ``size`` numbers per text: its words, and pairs of neighbours, each in the place its hash says.

    Words are runs of letters and digits, in lower case. BLAKE2b under ``seed`` gives the place and the sign, so that
    any process gives the same row; a row has length 1, or is 0 if the text has no word.

    >>> rows = hashed_text(["Red shoes", "red SHOES!", "a blue hat"], size=64)
    >>> bool((rows[0] == rows[1]).all()), round(float(rows[0] @ rows[0]), 6)
    (True, 1.0)
    """
    wide = count("size", size)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not -(2**63) <= seed < 2**63:
        raise ValueError(f"seed must be a whole number of at most 64 bits, got {short(seed)}")
    key = int(seed).to_bytes(8, "little", signed=True)
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise ValueError(f"texts must be a list of strings, one per row, got {short(texts)}: put one text in a list")
    rows = []
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts[{i}] must be a string, got {text!r:.80}")
        row = np.zeros(wide)
        words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        for token in words + [f"{one} {two}" for one, two in pairwise(words)]:
            code = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8, key=key).digest(), "little")
            row[code % (1 << 63) % wide] += -1.0 if code >> 63 else 1.0
        rows.append(row / max(float(np.linalg.norm(row)), 1e-300))
    return np.array(rows).reshape(-1, wide)
