"""Policies ready to use: constant, uniform, linear, stump, tree. Each can be saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armwise.core.agent import Floats, count
from armwise.core.saving import Saved
from armwise.native.choice import row_argmax

Ints = NDArray[np.int64]


class Policy(Saved, ABC):
    """A fixed map from a context to an arm (or to a distribution); a plain function of a context is one too.

    A subclass answers ``many`` contexts; one context is then a block of one.

    >>> class Alternate(Policy):
    ...     def many(self, contexts):
    ...         return np.arange(len(contexts)) % 2
    >>> Alternate()("any context")
    0
    """

    def __call__(self, context: Any) -> int | Floats:
        answer = self.many(np.asarray(context)[None])[0]
        return int(answer) if np.ndim(answer) == 0 else answer

    @abstractmethod
    def many(self, contexts: Any) -> Ints | Floats:
        """The answers to n contexts: (n,) arms, or (n, K) distributions.

        >>> Constant(1).many(np.zeros((3, 2)))
        array([1, 1, 1])
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r:.60}' for k, v in self.params().items())})"


class Constant(Policy):
    """Always the same arm.

    >>> Constant(2)("whatever the context")
    2
    """

    def __init__(self, arm: int) -> None:
        self.arm = count("arm", arm, least=0)

    def __call__(self, context: Any) -> int:
        return self.arm

    def many(self, contexts: Any) -> Ints:
        return np.full(len(contexts), self.arm)


class Uniform(Policy):
    """Every arm with the same probability: the uniform expert that the bounds of Exp4 and Exp4P ask for.

    >>> Uniform(n_arms=4)("whatever the context")
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, n_arms: int) -> None:
        self.n_arms = count("n_arms", n_arms)

    def __call__(self, context: Any) -> Floats:
        return np.full(self.n_arms, 1.0 / self.n_arms)

    def many(self, contexts: Any) -> Floats:
        return np.full((len(contexts), self.n_arms), 1.0 / self.n_arms)


class Linear(Policy):
    """The arm with the largest linear score, the first of them where several tie.

    ``weights`` of shape (K, d) score a shared context (d,), arm a by weights[a] . x + bias[a]; weights of shape
    (d,) score the rows of a features context (K, d).

    >>> Linear([[1.0, 0.0], [0.0, 1.0]])([0.2, 0.7])
    1
    >>> Linear([1.0, -1.0])([[0.5, 0.5], [0.5, 0.1]])
    1
    """

    def __init__(self, weights: ArrayLike, bias: ArrayLike | None = None) -> None:
        self.weights = _finite("weights", weights)
        if self.weights.ndim not in (1, 2) or 0 in self.weights.shape:
            raise ValueError(f"weights must have shape (d,) or (K, d), got {self.weights.shape}")
        self.bias = None if bias is None else _finite("bias", bias)
        if self.bias is not None and (self.weights.ndim == 1 or self.bias.shape != self.weights.shape[:1]):
            raise ValueError(
                f"bias must have one number for each row of a (K, d) array of weights, got shape {self.bias.shape} "
                f"with weights of shape {self.weights.shape}"
            )

    def many(self, contexts: Any) -> Ints:
        block = np.asarray(contexts, dtype=np.float64)
        shared = self.weights.ndim == 2
        if block.ndim != 3 - shared or block.shape[-1] != self.weights.shape[-1]:
            d = self.weights.shape[-1]
            raise ValueError(f"a context must have shape {f'({d},)' if shared else f'(K, {d})'}, got {block.shape[1:]}")
        scores = block @ self.weights.T
        return row_argmax(scores if self.bias is None else scores + self.bias)


class Stump(Policy):
    """Arm ``low`` where one feature is at most a threshold, arm ``high`` above it.

    >>> stump = Stump(feature=1, threshold=0.5, low=0, high=2)
    >>> stump([9.0, 0.5]), stump([9.0, 0.6])
    (0, 2)
    """

    def __init__(self, feature: int, threshold: float, low: int = 0, high: int = 1) -> None:
        self.feature = count("feature", feature, least=0)
        self.threshold = float(threshold)
        if np.isnan(self.threshold):
            raise ValueError("threshold must be a number, got NaN")
        self.low, self.high = count("low", low, least=0), count("high", high, least=0)

    def many(self, contexts: Any) -> Ints:
        block = _shared(contexts, self.feature + 1)
        return np.where(block[:, self.feature] <= self.threshold, self.low, self.high)


class Tree(Policy):
    """A decision tree as arrays: node n sends a context to ``left[n]`` if its feature is at most the threshold.

    ``left`` is -1 at a leaf, which plays ``arms[n]``. Node 0 is the root.

    >>> tree = Tree(feature=[0, 0, 0], threshold=[1.5, 0.0, 0.0], left=[1, -1, -1], right=[2, -1, -1], arms=[0, 3, 1])
    >>> tree.many([[1.0], [2.0]])
    array([3, 1])
    """

    def __init__(
        self, feature: ArrayLike, threshold: ArrayLike, left: ArrayLike, right: ArrayLike, arms: ArrayLike
    ) -> None:
        self.feature, self.left = np.asarray(feature, np.int64), np.asarray(left, np.int64)
        self.right, self.arms = np.asarray(right, np.int64), np.asarray(arms, np.int64)
        self.threshold = np.asarray(threshold, np.float64)
        n = self.left.size
        sizes = {name: value.shape for name, value in self.params().items()}
        if n == 0 or set(sizes.values()) != {(n,)}:
            raise ValueError(f"the arrays of a tree must have one entry for each of n >= 1 nodes, got {sizes}")
        inner = np.flatnonzero(self.left >= 0)
        for name, child in (("left", self.left), ("right", self.right)):
            # A child that follows its parent in the array makes loops impossible.
            if np.any(child[inner] <= inner) or np.any(child[inner] >= n):
                raise ValueError(f"{name} must point from a node to a later node of the tree")
        if np.any(self.feature[inner] < 0) or np.any(self.arms[self.left < 0] < 0):
            raise ValueError("features of inner nodes and arms of leaves must be >= 0")
        if np.isnan(self.threshold[inner]).any():
            raise ValueError("threshold must be a number at every inner node, got NaN")

    @classmethod
    def from_sklearn(cls, fitted: Any, arms: ArrayLike | None = None) -> Self:
        """From a fitted scikit-learn tree, which is then no longer needed.

        A classifier's leaf plays the class it predicts, which must be an arm (``arms[i]`` is the arm of
        ``fitted.classes_[i]``, if the classes are not arms themselves). A regressor's leaf plays the output with
        the largest value.

        >>> from sklearn.tree import DecisionTreeClassifier
        >>> fitted = DecisionTreeClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
        >>> Tree.from_sklearn(fitted).many([[0.2], [0.8]])
        array([0, 1])
        """
        nodes = getattr(fitted, "tree_", None)
        if nodes is None:
            raise ValueError(f"fitted must be a fitted scikit-learn decision tree, got {fitted!r:.80}")
        values = nodes.value  # (nodes, outputs, classes)
        if hasattr(fitted, "classes_"):
            if values.shape[1] != 1:
                raise ValueError(f"fitted predicts {values.shape[1]} outputs: expected a classifier of one")
            names = np.asarray(fitted.classes_ if arms is None else arms)
            if len(names) != len(fitted.classes_) or names.dtype.kind not in "biu" or names.min() < 0:
                raise ValueError(f"each class must be an arm, got classes {names!r:.80}: give arms=[...], one a class")
            best = names.astype(np.int64)[values[:, 0, :].argmax(axis=1)]
        else:
            best = values[:, :, 0].argmax(axis=1)
            best = best if arms is None else np.asarray(arms, np.int64)[best]
        inner = nodes.children_left >= 0
        return cls(np.where(inner, nodes.feature, 0), np.where(inner, nodes.threshold, 0.0),
                   nodes.children_left, nodes.children_right, best)  # fmt: skip

    def many(self, contexts: Any) -> Ints:
        inner = self.left >= 0
        # scikit-learn compares single-precision features, so we do: the same leaf for the same context.
        block = _shared(contexts, int(self.feature[inner].max(initial=-1)) + 1).astype(np.float32)
        at, rows = np.zeros(len(block), np.int64), np.arange(len(block))
        while rows.size:
            rows = rows[inner[at[rows]]]
            node = at[rows]
            below = block[rows, self.feature[node]] <= self.threshold[node]
            at[rows] = np.where(below, self.left[node], self.right[node])
        return self.arms[at]


def _finite(name: str, value: ArrayLike) -> Floats:
    array = np.array(value, dtype=np.float64)  # a copy, so that the policy cannot change
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


def _shared(contexts: Any, least: int) -> Floats:
    block = np.asarray(contexts, dtype=np.float64)
    if block.ndim != 2 or block.shape[1] < least:
        raise ValueError(f"a context must have shape (d,) with d >= {least}, got {block.shape[1:]}")
    return block
