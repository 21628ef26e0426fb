"""Feature maps: transform columns of numbers before a linear model sees them.

A map is fitted to some rows (``fit``) and then transforms rows into features (``transform``), each row independently.
It is determined by its seed and its rows, and saved with the agent that uses it.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from armwise.core import arguments, saving
from armwise.core.arguments import as_floats, count
from armwise.core.seeds import stream
from armwise.native import maps

Floats = NDArray[np.float64]

MAX_ROWS = 300  # of those whose distances and rewards determine the length scale
_NOISES = (1e-3, 1e-2, 0.1, 1.0, 10.0)  # noise variance over prior variance


class FeatureMap(saving.Saved):
    """Rows of numbers in, rows of features out.

    >>> Columns().fit([[0.0], [1.0], [2.5]]).transform([[2.5]]).round(2)
    array([[1.3 , 1.19]])
    """

    _namespace: ClassVar[str] = "features."
    size: int = 0  # features per row, once fitted
    columns: int = 0  # that a row must have, once fitted

    def fit(self, rows: Any) -> Self:
        """Fit the map to rows, one per example, and return it.

        >>> Columns().fit([[0.0], [1.0], [2.5]]).size
        2
        """
        table = _table("rows", rows)
        if not len(table):
            raise ValueError("rows must have at least one row, got none")
        self._fit(table)
        self.columns = table.shape[1]
        return self

    def transform(self, rows: Any) -> Floats:
        """One row of ``size`` features per row.

        >>> Fourier(count=4, seed=1).fit(np.eye(2)).transform(np.eye(2)).shape
        (2, 4)
        """
        if not self.columns:
            raise ValueError(f"{type(self).__name__} has seen no rows yet: call fit first")
        table = _table("rows", rows)
        if table.shape[1] != self.columns:
            raise ValueError(f"rows must have {self.columns} columns, as those of fit had, got {table.shape[1]}")
        return self._transform(table)

    @property
    def settled(self) -> bool:
        """Whether the map is final; False while it still adapts to rows that an agent learns from (``Scale``).

        >>> Columns().fit([[0.0], [1.0]]).settled
        True
        """
        return True

    def _watch(self, rows: Floats) -> bool:
        """Adapt to rows that an agent learns from; return whether the features of rows have changed."""
        return False

    @abstractmethod
    def _fit(self, rows: Floats) -> None: ...

    @abstractmethod
    def _transform(self, rows: Floats) -> Floats: ...


def _table(name: str, rows: Any) -> Floats:
    try:
        table = as_floats(name, rows)
    except ValueError:
        if _has_text(rows):
            raise ValueError(
                f"{name} must be numbers, got text: number the categories (Columns gives each whole number an "
                "indicator), or take features.Encoder for rows with names and text, features.HashedText for prose"
            ) from None
        raise
    if table.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, one row per example, got shape {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity in row {np.argwhere(~np.isfinite(table))[0][0]}")
    return table


def _has_text(rows: Any) -> bool:
    try:
        cells = np.asarray(rows, object).ravel()
    except ValueError:  # of different lengths: as_floats raises the error
        return False
    return any(isinstance(cell, (str, bytes)) for cell in cells)


class Columns(FeatureMap):
    """Prepare raw columns: small whole numbers as categories, other numbers standardised and ranked among quantiles.

    A column whose rows hold at most ``max_categories`` values, all whole numbers, gets an indicator per value; a value
    that was not seen has none. Any other column gives two features: (x - mean) / deviation, cut at +-5, and its
    position among ``knots`` quantiles, which long tails do not stretch. A constant column gives no feature.

    >>> rows = [[0.0, 1.5], [1.0, 2.5], [2.0, 9.5]]
    >>> Columns().fit(rows).transform(rows).round(2)
    array([[-0.84,  1.  ,  0.  ,  0.  , -1.19],
           [-0.56,  0.  ,  1.  ,  0.  ,  0.  ],
           [ 1.4 ,  0.  ,  0.  ,  1.  ,  1.19]])
    """

    linear: int = 0  # features before the positions
    LIMIT: ClassVar[float] = 5.0  # standard deviations; beyond them, only the position varies
    _learnt = ("size", "columns", "linear", "_numbers", "_means", "_inverses", "_knots", "_categories", "_values")

    def __init__(self, max_categories: int = 12, knots: int = 17) -> None:
        self.max_categories, self.knots = count("max_categories", max_categories), count("knots", knots)
        if self.knots < 2:
            raise ValueError(f"knots must be at least 2, got {self.knots}")

    def _fit(self, rows: Floats) -> None:
        numbers, categories, values = [], [], []
        ordered = np.sort(rows.T, axis=1)
        for j, column in enumerate(ordered):
            seen = column[np.append(True, column[1:] != column[:-1])]
            if len(seen) == 1:
                continue
            if len(seen) <= self.max_categories and (seen == np.round(seen)).all():
                shown = seen[1:] if len(seen) == 2 else seen  # two values need one indicator
                categories += [j] * len(shown)
                values += list(shown)
            else:
                numbers.append(j)
        table = rows[:, numbers]
        self._numbers, self._categories = np.array(numbers, np.int64), np.array(categories, np.int64)
        self._values = np.array(values, np.float64)
        self._means, self._inverses = table.mean(axis=0), 1.0 / np.maximum(table.std(axis=0), 1e-300)
        # The least values with a share of at least 0, 1 / (knots - 1), ..., 1 of the rows up to them.
        ranks = np.ceil(len(rows) * np.linspace(0.0, 1.0, self.knots) - 1.0).clip(min=0.0).astype(np.int64)
        self._knots = ordered[self._numbers][:, ranks]
        self.linear = len(numbers) + len(categories)
        self.size = self.linear + len(numbers)

    def _transform(self, rows: Floats) -> Floats:
        return maps.columns(
            rows, self._numbers, self._means, self._inverses, self._knots, self._categories, self._values, self.LIMIT
        )

    def names(self) -> list[str]:
        """The names of the features, in the order of the columns.

        >>> Columns().fit([[0.0, 1.5], [1.0, 2.5]]).names()
        ['x1', 'x0 = 1', 'position of x1']
        """
        numbers = [f"x{j}" for j in self._numbers]
        shown = [f"x{j} = {value:g}" for j, value in zip(self._categories, self._values)]
        return [*numbers, *shown, *(f"position of {name}" for name in numbers)]


class Fourier(FeatureMap):
    """Random Fourier features of a Gaussian kernel (Rahimi, Recht 2007): a smooth function of all columns together.

    With w drawn from N(0, 1 / length_scale^2) and b uniform, sqrt(2 / count) cos(w'x + b) has inner products close to
    exp(-|x - y|^2 / (2 length_scale^2)). Without a length scale it is the median distance between rows.

    The median knows the rows and not the rewards: rewards may change over much shorter distances, or hardly at all.
    ``fit(rows, rewards, arms)`` adapts the length scale to the first rewards: of 1/16, 1/8, ..., 2 times the median it
    takes the one under which a Gaussian process gives those rewards the largest marginal likelihood, noise and
    variance fitted beside it, and an arm's rewards apart from the others' where ``arms`` says whose they are.

    ``scales=(1/16, 1/4, 1)`` deals the features out in turn to these multiples of the length scale, so that the ridge
    model of an agent weighs them by how they predict: features of a wrong scale get small weights, and the sum of the
    kernels is the prior. Each scale has count / len(scales) of the features; the map itself never changes, so widths
    stay exact.

    >>> rows = np.linspace(0.0, 3.0, 50)[:, None]
    >>> features = Fourier(count=2000, length_scale=1.0, seed=1).fit(rows).transform([[0.0], [1.0]])
    >>> round(float(features[0] @ features[1]), 1)                # exp(-1/2) = 0.61
    0.6
    """

    _learnt = ("size", "columns", "_waves", "_phases", "scale_used")
    TRIED: ClassVar[tuple[float, ...]] = (1.0, 2.0, 0.5, 0.25, 0.125, 0.0625)  # of two that are as good the first

    def __init__(
        self,
        count: int = 256,
        length_scale: float | None = None,
        seed: int = 0,
        scales: Sequence[float] = (1.0,),
    ) -> None:
        self.count, self.seed = arguments.count("count", count), arguments.count("seed", seed, least=0)
        self.length_scale = None if length_scale is None else arguments.positive("length_scale", length_scale)
        self.scales = tuple(float(scale) for scale in scales)
        if not 1 <= len(self.scales) <= self.count or not all(0.0 < scale < np.inf for scale in self.scales):
            raise ValueError(f"scales must be 1 to count={self.count} positive numbers, got {scales!r:.80}")

    def params(self) -> dict[str, Any]:
        return super().params() | {"seed": self.seed}  # the seed is what the map is

    def fit(self, rows: Any, rewards: Any = None, arms: Any = None) -> Self:
        """Fit the map to rows, and to their rewards if given, and return it.

        >>> rows = np.linspace(0.0, 30.0, 200)[:, None]
        >>> round(Fourier(8).fit(rows).scale_used, 2), round(Fourier(8).fit(rows, np.sin(rows[:, 0])).scale_used, 2)
        (8.89, 1.11)
        """
        if rewards is None:
            return super().fit(rows)
        if self.length_scale is not None:
            raise ValueError(f"rewards choose the length scale, and length_scale={self.length_scale} is given already")
        table, brought = _table("rows", rows), as_floats("rewards", rewards)
        whose = np.zeros(len(table), np.int64) if arms is None else np.asarray(arms)
        for name, given in (("rewards", brought), ("arms", whose)):
            if given.shape != (len(table),):
                raise ValueError(f"{name} must be {len(table)} numbers, one per row, got shape {given.shape}")
        if not np.isfinite(brought).all():
            raise ValueError("rewards must be finite, got NaN or infinity")
        super().fit(table)
        self._fit(table, self.scale_used * likeliest_scale(table / self.scale_used, brought, whose, self.TRIED))
        return self

    def _fit(self, rows: Floats, scale: float | None = None) -> None:
        self.scale_used = scale or self.length_scale or median_distance(rows)
        rng = stream(self.seed, "Fourier features")
        # Columns first: a column that is added later leaves the frequencies of the others as they are.
        lengths = self.scale_used * np.resize(self.scales, self.count)
        self._waves = rng.standard_normal((rows.shape[1], self.count)) / lengths
        self._phases = stream(self.seed, "Fourier phases").uniform(0.0, 2.0 * np.pi, self.count)
        self.size = self.count

    def _restore(self, state: dict[str, Any]) -> None:
        if "_frequencies" in state:  # files of 0.1.0 have one row per feature
            state["_waves"] = np.ascontiguousarray(state.pop("_frequencies").T)
        super()._restore(state)

    def _transform(self, rows: Floats) -> Floats:
        return maps.fourier(rows, self._waves, self._phases, float(np.sqrt(2.0 / self.count)))


def median_distance(rows: Floats) -> float:
    """The median distance between two of (at most 300, evenly spaced) rows; 1 where they do not differ."""
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).astype(np.int64)]
    size = float(np.abs(some).max()) if some.size else 0.0
    if size > 0.0 and not 1e-3 < size < 1e6:  # squares of 1e200 overflow, and squares of 1e-9 would count as zero
        unit = 2.0 ** np.floor(np.log2(size))
        distance = median_distance(some / unit)
        return float(distance * unit) if (some != some[0]).any() else 1.0
    norms = np.einsum("ij,ij->i", some, some)
    squares = (norms[:, None] + norms[None, :] - 2.0 * (some @ some.T)).take(_pairs(len(some)))
    median = float(np.sqrt(max(float(np.median(squares, overwrite_input=True)), 0.0))) if len(squares) else 0.0
    return median if median > 1e-6 else 1.0


@functools.lru_cache(maxsize=4)
def _pairs(n: int) -> NDArray[np.int64]:
    """The flat indices of the pairs i < j in an (n, n) matrix."""
    return np.flatnonzero(np.tri(n, k=-1, dtype=bool).T)


def likeliest_scale(rows: Floats, rewards: Floats, arms: NDArray[Any], scales: Sequence[float]) -> float:
    """The length scale that maximises the marginal likelihood of (at most 300 of) the rewards over noise and variance.

    Each arm has its own process around the mean of all rewards; all share one variance and one noise.
    """
    some = np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).astype(np.int64)
    rows, rewards, arms = rows[some], rewards[some] - rewards[some].mean(), arms[some]
    noise, best = np.array(_NOISES)[:, None], (np.inf, scales[0])
    for scale in scales:
        squares, logs = np.zeros(len(_NOISES)), np.zeros(len(_NOISES))
        for arm in np.unique(arms):
            own, r = rows[arms == arm], rewards[arms == arm]
            norms = np.einsum("ij,ij->i", own, own)
            apart = np.maximum(norms[:, None] + norms[None, :] - 2.0 * (own @ own.T), 0.0)
            values, U = np.linalg.eigh(1.0 + np.exp(-0.5 * apart / scale**2))
            values = np.maximum(values, 0.0) + noise
            squares += ((U.T @ r) ** 2 / values).sum(axis=1)
            logs += np.log(values).sum(axis=1)
        costs = len(rewards) * np.log(squares + 1e-300) + logs
        best = min(best, (float(costs.min()), scale), key=lambda pair: pair[0])
    return float(best[1])
