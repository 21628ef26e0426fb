"""Scale: standardise columns by the first rows, including those that an agent learns from."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from armwise.core.arguments import count
from armwise.features.maps import FeatureMap, Floats


class Scale(FeatureMap):
    """(x - mean) / deviation of each column, cut at +-5: means and deviations of the first ``rows`` rows seen.

    It needs no ``fit``: given ``dim``, the number of columns, it goes into ``Mapped`` as it is, and takes the rows of
    every context whose reward is learnt, those of the other arms too. Means and deviations are renewed when the number
    of rows has doubled, and a last time when it reaches ``rows``; then they are fixed. At each renewal ``Mapped`` lets
    its agent learn all rewards so far again, in their order and with the new features, so that means and widths are
    always those of all rewards under one map. Rows of ``fit`` count too: with ``rows`` of them or more it is fixed from
    the beginning, as other maps are. Nothing is drawn: the same rows in the same order give the same map.

    A column that has not varied is 0, as all are before the first row; one that is still constant when the map is
    fixed stays 0. So a constant column is lost: ``Join([Scale(dim)])`` puts a constant 1 beside the others.

    >>> scale = Scale().fit([[1.0, 7.0], [3.0, 7.0]])
    >>> scale.transform([[4.0, 8.0], [200.0, 7.0]])
    array([[2., 0.],
           [5., 0.]])
    >>> scale.settled, Scale(rows=2).fit([[1.0], [3.0]]).settled
    (False, True)
    """

    LIMIT: ClassVar[float] = 5.0  # standard deviations, as in Columns: one outlier must not decide
    _learnt = ("size", "columns", "_seen", "_used", "_mean", "_squares", "_low", "_high", "_center", "_inverse")

    def __init__(self, dim: int | None = None, rows: int = 256) -> None:
        self.dim = None if dim is None else count("dim", dim)
        self.rows = count("rows", rows)
        self._begin(self.dim or 0)

    def _begin(self, dim: int) -> None:
        self.size = self.columns = dim
        self._seen = self._used = 0  # rows in the statistics, and in the statistics that features use
        self._mean, self._squares = np.zeros(dim), np.zeros(dim)
        self._low, self._high = np.full(dim, np.inf), np.full(dim, -np.inf)
        self._center, self._inverse = np.zeros(dim), np.zeros(dim)

    @property
    def settled(self) -> bool:
        """Whether ``rows`` rows were seen, so that the map is final.

        >>> Scale(dim=3).settled
        False
        """
        return self._seen >= self.rows

    def _fit(self, rows: Floats) -> None:
        if self.dim not in (None, rows.shape[1]):
            raise ValueError(f"rows must have dim={self.dim} columns, got {rows.shape[1]}")
        self._begin(rows.shape[1])
        self._take(rows)
        self._renew()

    def _watch(self, rows: Floats) -> bool:
        if self.settled:
            return False
        self._take(rows)
        if self._seen < 2 * self._used and not self.settled:
            return False
        self._renew()
        return True

    def _take(self, rows: Floats) -> None:
        """Merge sums of squares around the mean without cancellation (Chan, Golub, LeVeque 1979)."""
        if np.abs(rows).max(initial=0.0) > 1e150:
            raise ValueError("rows must be of at most 1e150 in size: their squares overflow")
        n, mean = len(rows), rows.mean(axis=0)
        gap, total = mean - self._mean, self._seen + n
        self._squares = self._squares + ((rows - mean) ** 2).sum(axis=0) + gap**2 * (self._seen * n / total)
        self._mean = self._mean + gap * (n / total)
        self._low, self._high = np.minimum(self._low, rows.min(axis=0)), np.maximum(self._high, rows.max(axis=0))
        self._seen = total

    def _renew(self) -> None:
        deviation = np.maximum(np.sqrt(self._squares / self._seen), 1e-150)
        self._center, self._used = self._mean, self._seen
        self._inverse = np.where(
            self._high > self._low, 1.0 / deviation, 0.0
        )  # a deviation that is only rounding counts as 0

    def _transform(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip((rows - self._center) * self._inverse, -self.LIMIT, self.LIMIT)
