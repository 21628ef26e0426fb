"""Composition of maps (``Chain``, ``Join``), and two small maps: quantile bins and crosses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from armwise.core.arguments import count
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
    """Apply maps one after the other.

    >>> rows = np.random.default_rng(1).normal(size=(50, 3))
    >>> from armwise.features.maps import Columns, Fourier
    >>> Chain([Columns(), Fourier(64)]).fit(rows).transform(rows).shape
    (50, 64)
    """

    _learnt = ("size", "columns")

    def __init__(self, maps: Sequence[FeatureMap]) -> None:
        self.maps = _maps(maps)
        if all(before.size == after.columns for before, after in pairwise(self.maps)):
            self.columns, self.size = self.maps[0].columns, self.maps[-1].size  # 0 of those that need a fit

    def _fit(self, rows: Floats) -> None:
        for each in self.maps:
            rows = each.fit(rows).transform(rows)
        self.size = self.maps[-1].size

    @property
    def settled(self) -> bool:
        """Whether no map of it changes any more.

        >>> from armwise.features.standardise import Scale
        >>> Chain([Scale(), Bins()]).fit(np.eye(3)).settled
        False
        """
        return all(each.settled for each in self.maps)

    def _watch(self, rows: Floats) -> bool:
        changed = False
        for each in self.maps:
            changed |= each._watch(rows)
            rows = each.transform(rows)
        return changed

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
        known = {each.columns for each in self.maps}
        if len(known) == 1 and known != {0}:  # as Scale(dim) is, or what was fitted before: no fit is needed
            self.columns, self.size = known.pop(), sum(each.size for each in self.maps) + int(self.constant)

    def _fit(self, rows: Floats) -> None:
        self.size = sum(each.fit(rows).size for each in self.maps) + int(self.constant)

    @property
    def settled(self) -> bool:
        """Whether no map of it changes any more.

        >>> from armwise.features.standardise import Scale
        >>> Join([Scale(), Bins()]).fit(np.eye(3)).settled
        False
        """
        return all(each.settled for each in self.maps)

    def _watch(self, rows: Floats) -> bool:
        changed = [each._watch(rows) for each in self.maps]  # all of them, also after one that changes
        return any(changed)

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
        edges = [at[at < column.max()] for at, column in zip(edges, rows.T)]  # x > the largest value is never true
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
