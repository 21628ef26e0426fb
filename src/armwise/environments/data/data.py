"""Data sets as worlds: each row is a context with the rewards of all arms; classification and regression sets."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from armwise.core.agent import Floats, count
from armwise.core.arguments import refuse_masked
from armwise.core.tools.extras import needs
from armwise.environments.data.frames import columns, is_frame, read_frame, read_labelled
from armwise.environments.environment import Block, Blocks, Environment, block_sizes


class Rows(Environment):
    """Rows with full information: context X[i] and the reward rewards[i, a] of every arm a; the seed draws their order.

    X is an array, or a data frame with numbers, categories and texts (see ``frames.columns``): its numbers are then
    standardised, and a column of ones is added. An array of shape (n, K, d) holds per-arm features. ``arms``, one row
    of features per arm (an array or a data frame), turns a shared context into per-arm features: the arm's features,
    and their products with the context's. ``expected`` is the expected reward of each arm if ``rewards`` holds noisy
    draws; ``costs`` (n, K) is the cost of each arm, for agents with a budget. A race longer than the data goes through
    the rows again in a new order.

    >>> world = Rows(X=np.eye(3), rewards=np.eye(3))
    >>> len(next(world.blocks(horizon=7, seed=1)))
    3
    >>> Rows(X=np.eye(3), rewards=np.eye(3), arms=np.ones((3, 2))).width("features")
    8
    """

    def __init__(self, X: Any, rewards: Any, expected: Any = None, arms: Any = None, costs: Any = None) -> None:
        _same_order(X, rewards)
        if is_frame(X):
            self.X = np.column_stack([columns("X", X, scale=True), np.ones(len(X))])
        else:
            self.X = _numbers("X", X, 3 if np.ndim(X) == 3 else 2)
        self.arm_names = [str(name) for name in rewards.columns] if is_frame(rewards) else None
        self.rewards = _numbers("rewards", rewards, 2)
        self.expected = None if expected is None else _numbers("expected", expected, 2)
        if len(self.X) != len(self.rewards) or len(self.X) == 0:
            raise ValueError(
                f"X has {len(self.X)} rows and rewards {len(self.rewards)}: expected as many, at least one"
            )
        if self.expected is not None and self.expected.shape != self.rewards.shape:
            raise ValueError(f"expected has shape {self.expected.shape}, rewards {self.rewards.shape}")
        self.costs = None if costs is None else _numbers("costs", costs, 2)
        if self.costs is not None and self.costs.shape != self.rewards.shape:
            raise ValueError(f"costs has shape {self.costs.shape}, rewards {self.rewards.shape}")
        self.n_arms = self.rewards.shape[1]
        if self.X.ndim == 3 and self.X.shape[1] != self.n_arms:
            raise ValueError(f"X has features of {self.X.shape[1]} arms, rewards of {self.n_arms}: expected as many")
        self.arms = (
            None if arms is None else columns("arms", arms, scale=True) if is_frame(arms) else _numbers("arms", arms, 2)
        )
        if self.arms is not None and (self.X.ndim == 3 or len(self.arms) != self.n_arms):
            raise ValueError(
                f"arms must have one row per arm ({self.n_arms}) beside a shared X, got shape {self.arms.shape}"
            )

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        rewards: str | list[str],
        context: list[str] | None = None,
        *,
        costs: str | list[str] | None = None,
    ) -> Self:
        """A Parquet or CSV file of full information: the columns that begin with ``rewards`` (or a list of columns)
        are the arms' rewards, those that begin with ``costs`` what they cost; ``context`` are the columns that agents
        see, by default all the others.

        >>> Rows.from_file("nowhere.parquet", rewards="score ")
        Traceback (most recent call last):
        ...
        ValueError: nowhere.parquet: no such file
        """
        frame = read_frame(path)
        names = [str(name) for name in frame.columns]
        worth, spent = _group(names, rewards), [] if costs is None else _group(names, costs)
        seen = [name for name in names if name not in {*worth, *spent}] if context is None else context
        for what, group in (("rewards", worth), ("context", seen), *([("costs", spent)] if costs is not None else [])):
            unknown = [name for name in group if name not in names]
            if not group or unknown:
                problem = f"no column {unknown[0]!r}" if unknown else "no column fits"
                raise ValueError(f"{path}: {what}: {problem}; it has {', '.join(names[:20])}")
        arms = [name.removeprefix(rewards) if isinstance(rewards, str) else name for name in worth]
        if isinstance(costs, str) and set(spent) == {costs + arm for arm in arms}:
            spent = [costs + arm for arm in arms]  # in the order of the rewards
        for prefix in {name.removesuffix(arms[0]) for name in seen if name.endswith(arms[0])}:
            if context is None and isinstance(rewards, str) and all(prefix + arm in seen for arm in arms):
                raise ValueError(
                    f"{path}: the columns {prefix!r} ... come once per arm, as the rewards do, and agents would see "
                    f"them before they choose: give costs={prefix!r}, or say with context which columns they see"
                )
        table = frame[worth].set_axis(arms, axis=1)
        return cls(frame[seen], table, costs=frame[spent].to_numpy() if spent else None)

    @property
    def n_rows(self) -> int:
        """The number of rounds before a row comes again.

        >>> Rows(X=np.eye(3), rewards=np.eye(3)).n_rows
        3
        """
        return len(self.X)

    def _tables(self, rows: Any) -> tuple[Floats, Floats]:
        expected = self.rewards if self.expected is None else self.expected
        return self.rewards[rows], expected[rows]

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        left = horizon
        while left:
            order = rng.permutation(len(self.X))[:left]
            start = 0
            for T in block_sizes(len(order), self._numbers_per_round):
                rows = order[start : start + T]
                costs = None if self.costs is None else self.costs[rows]
                yield Block(self._views(rows), *self._tables(rows), costs=costs)
                start += T
            left -= len(order)

    @property
    def _numbers_per_round(self) -> int:
        if self.arms is not None:
            return int(self.n_arms * self.arms.shape[1] * (1 + self.X.shape[1]))
        return int(np.prod(self.X.shape[1:])) + self.n_arms

    def _views(self, rows: Any) -> dict[str, Any]:
        seen = self.X[rows]
        if self.X.ndim == 3:
            return {"features": seen}
        if self.arms is None:
            return {"shared": seen}
        crossed = np.einsum("ti,kj->tkij", seen, self.arms).reshape(len(seen), self.n_arms, -1)
        own = np.broadcast_to(self.arms, (len(seen), *self.arms.shape))
        return {"shared": seen, "features": np.concatenate([own, crossed], axis=2)}


def _group(names: list[str], wanted: str | list[str]) -> list[str]:
    return [name for name in names if name.startswith(wanted)] if isinstance(wanted, str) else list(wanted)


def _same_order(X: Any, rewards: Any) -> None:
    """Refuse two data frames with the same index in different orders: rows are paired by position."""
    if not all(is_frame(frame) and hasattr(frame, "index") for frame in (X, rewards)):
        return  # arrays and polars frames have no index
    if not X.index.equals(rewards.index) and set(X.index) == set(rewards.index):
        raise ValueError("X and rewards have the same index in different orders: sort both, or reset their index")


class Classification(Rows):
    """A classification set: the arms are the classes, and the right one pays 1 (any X, y).

    Columns are standardised (``scale=False`` leaves them) and a column of ones is added.

    >>> world = Classification(X=[[0.0], [1.0], [2.0]], y=["no", "yes", "yes"])
    >>> world.classes, world.n_arms
    (['no', 'yes'], 2)
    """

    def __init__(self, X: Any, y: Any, *, scale: bool = True) -> None:
        labels = _labels(y)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got {len(classes)}")
        if len(classes) > max(50, len(labels) // 2):
            raise ValueError(f"y has {len(classes)} distinct values in {len(labels)} rows: that is not a class label")
        self.classes: list[Any] = classes.tolist()
        self.y, self.scale = labels, bool(scale)
        self._codes = codes.astype(np.int64)
        super().__init__(_prepared(X, self.scale, len(labels)), np.zeros((len(labels), 1)))
        self.n_arms = len(classes)

    def params(self) -> dict[str, Any]:
        # The stored columns are already scaled: a copy made from them must not scale them again.
        return {"X": self.X[:, :-1], "y": self.y, "scale": False}

    def _tables(self, rows: Any) -> tuple[Floats, Floats]:
        rewards = np.zeros((len(rows), self.n_arms))
        rewards[np.arange(len(rows)), self._codes[rows]] = 1.0
        return rewards, rewards

    @classmethod
    def from_sklearn(cls, name: str) -> Self:
        """One of scikit-learn's own sets: iris, wine, digits, breast_cancer (or covtype, which it downloads).

        >>> Classification.from_sklearn("iris").n_arms
        3
        """
        X, y = _from_sklearn(name)
        return cls(X, y)

    @classmethod
    def from_openml(cls, name: str, version: int | str = "active") -> Self:
        """A set of openml.org, through scikit-learn (which downloads and keeps it)."""
        return cls(*_from_openml(name, version))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], label: str | None = None) -> Self:  # type: ignore[override]
        """A Parquet or CSV file, its columns as they come; ``label`` is what agents should get right (by default the
        column called label, class or target, or else the last).

        >>> Classification.from_file("nowhere.parquet", label="y")
        Traceback (most recent call last):
        ...
        ValueError: nowhere.parquet: no such file
        """
        X, y = read_labelled(path, label)
        try:
            return cls(X, y)
        except ValueError as error:
            raise ValueError(f"{path}, label {label!r}: {error}") from None


class Regression(Rows):
    """A regression set: each arm is a prediction (quantiles of y), and pays 1 - |y - prediction| / range.

    >>> Regression(X=[[0.0], [1.0], [2.0], [3.0]], y=[0.0, 1.0, 2.0, 3.0], n_arms=2).predictions
    array([0.75, 2.25])
    """

    def __init__(self, X: Any, y: Any, *, n_arms: int = 5, scale: bool = True) -> None:
        self.y = _numbers("y", y, 1)
        n_arms = count("n_arms", n_arms, least=2)
        reach = float(np.ptp(self.y)) if len(self.y) else 0.0
        if reach == 0.0:
            raise ValueError("y must have at least two different values")
        self.predictions = np.quantile(self.y, (np.arange(n_arms) + 0.5) / n_arms)
        rewards = 1.0 - np.abs(self.y[:, None] - self.predictions) / reach
        self.scale = bool(scale)
        super().__init__(_prepared(X, self.scale, len(self.y)), rewards)

    def params(self) -> dict[str, Any]:
        return {"X": self.X[:, :-1], "y": self.y, "n_arms": self.n_arms, "scale": False}

    @classmethod
    def from_sklearn(cls, name: str, n_arms: int = 5) -> Self:
        """One of scikit-learn's own sets, such as diabetes.

        >>> Regression.from_sklearn("diabetes").n_arms
        5
        """
        return cls(*_from_sklearn(name), n_arms=n_arms)

    @classmethod
    def from_openml(cls, name: str, version: int | str = "active", n_arms: int = 5) -> Self:
        """A set of openml.org, through scikit-learn (which downloads and keeps it)."""
        return cls(*_from_openml(name, version), n_arms=n_arms)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], label: str, n_arms: int = 5) -> Self:  # type: ignore[override]
        """A Parquet or CSV file whose column ``label`` is the number to predict."""
        X, y = read_labelled(path, label)
        try:
            return cls(X, y, n_arms=n_arms)
        except ValueError as error:
            raise ValueError(f"{path}, label {label!r}: {error}") from None


def _from_sklearn(name: str) -> tuple[Any, Any]:
    with needs("sklearn"):
        from sklearn import datasets

    make = getattr(datasets, f"load_{name}", None) or getattr(datasets, f"fetch_{name}", None)
    if make is None:
        known = sorted(n[5:] for n in dir(datasets) if n.startswith("load_") and "file" not in n)
        raise ValueError(f"scikit-learn has no data set {name!r}; it has {', '.join(known)}")
    X, y = make(return_X_y=True)
    return X, y


def _from_openml(name: str, version: int | str) -> tuple[Any, Any]:
    with needs("sklearn"):
        from sklearn.datasets import fetch_openml

    frame, y = fetch_openml(name, version=version, return_X_y=True, as_frame=True)
    return columns("X", frame), np.asarray(y)


def _prepared(X: Any, scale: bool, rows: int) -> Floats:
    table = columns("X", X) if is_frame(X) else _numbers("X", X, 2)
    if len(table) != rows:
        raise ValueError(f"X has {len(table)} rows and y {rows}: expected as many")
    if scale:
        spread = table.std(axis=0)
        table = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([table, np.ones(rows)])


def _labels(y: Any) -> np.ndarray:
    refuse_masked("y", y)
    labels = np.asarray(y)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(f"y must have one label per row, got shape {labels.shape}")
    missing = [i for i, each in enumerate(labels.tolist()) if not isinstance(each, str) and _missing(each)]
    if missing:
        raise ValueError(
            f"y must have a label in every row, got none in row {missing[0]} (and {len(missing) - 1} more)"
        )
    return labels.astype(str) if labels.dtype == object else labels


def _missing(value: Any) -> bool:
    """Whether a value is None, NaN (which does not equal itself), NaT or pandas' NA (which cannot be compared)."""
    return value is None or str(value) in ("<NA>", "NaT") or bool(value != value)


def _numbers(name: str, value: Any, ndim: int) -> Floats:
    refuse_masked(name, value)
    try:
        if np.iscomplexobj(value):
            raise TypeError("complex")
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers") from None
    if table.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, got shape {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return table
