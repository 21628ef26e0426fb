"""Infinite policy classes, and one representative for each labelling of given contexts (survey 5.3)."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from math import comb
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count
from armwise.core.saving import Saved
from armwise.core.seeds import stream
from armwise.policies.fixed import Constant, Ints, Linear, Policy, Stump
from armwise.policies.planar import above, separations


class Representatives(Saved, ABC):
    """N policies that label some contexts in N different ways: indexable, and evaluated in one call.

    >>> found = Stumps(dim=1).representatives(np.array([[1.0], [2.0]]), n_arms=2)
    >>> len(found), found[2], found.votes(np.array([[1.2]]))
    (4, Stump(feature=0, threshold=1.5, low=0, high=1), array([[0, 1, 0, 1]]))
    """

    _namespace = "policies."

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, i: int) -> Policy: ...

    @abstractmethod
    def votes(self, contexts: Floats) -> Ints:
        """The arms of all N representatives on n contexts (n, d), as (n, N).

        >>> Stumps(dim=1).representatives(np.array([[1.0], [2.0]]), n_arms=2).votes(np.array([[1.8]]))
        array([[0, 1, 1, 0]])
        """


class Splits(Representatives):
    """The constants 0..K-1, then every two-sided split with every ordered pair of arms (a below, b above)."""

    n_arms: int
    n_splits: int

    @abstractmethod
    def _above(self, contexts: Floats) -> np.ndarray:
        """Return whether each split puts each context above, as an (n, S) array."""

    @abstractmethod
    def _split(self, i: int, low: int, high: int) -> Policy:
        """Split i with its two arms."""

    def _arm_pairs(self) -> list[tuple[int, int]]:
        return list(itertools.permutations(range(self.n_arms), 2))

    def __len__(self) -> int:
        return self.n_arms + self.n_splits * self.n_arms * (self.n_arms - 1)

    def __getitem__(self, i: int) -> Policy:
        if not 0 <= i < len(self):
            raise IndexError(i)
        if i < self.n_arms:
            return Constant(i)
        pair, split = divmod(i - self.n_arms, self.n_splits)
        return self._split(split, *self._arm_pairs()[pair])

    def votes(self, contexts: Floats) -> Ints:
        sides = self._above(contexts)
        votes = np.empty((len(contexts), len(self)), np.int64)
        votes[:, : self.n_arms] = np.arange(self.n_arms)
        for i, (low, high) in enumerate(self._arm_pairs()):
            start = self.n_arms + i * self.n_splits
            part = votes[:, start : start + self.n_splits]
            part[:] = low
            np.copyto(part, high, where=sides)
        return votes


class StumpSplits(Splits):
    """Splits of one feature at a threshold."""

    def __init__(self, feature: Ints, threshold: Floats, n_arms: int) -> None:
        self.feature, self.threshold, self.n_arms, self.n_splits = feature, threshold, n_arms, len(feature)

    def _above(self, contexts: Floats) -> np.ndarray:
        return contexts[:, self.feature] > self.threshold

    def _split(self, i: int, low: int, high: int) -> Stump:
        return Stump(int(self.feature[i]), float(self.threshold[i]), low, high)


class PlanarSplits(Splits):
    """Splits of the plane by lines through pairs of points, each rotated infinitesimally (``planar.above``)."""

    def __init__(self, points: Floats, pairs: Ints, n_arms: int) -> None:
        self.points, self.pairs, self.n_arms, self.n_splits = points, pairs, n_arms, len(pairs)
        self._p, self._q = points[pairs[:, 0]], points[pairs[:, 1]]

    def _above(self, contexts: Floats) -> np.ndarray:
        return above(self._p, self._q, contexts[:, None])

    def _split(self, i: int, low: int, high: int) -> HalfPlane:
        return HalfPlane(self._p[i], self._q[i], low, high)


class HalfPlane(Policy):
    """Arm ``high`` left of the line from p to q, rotated infinitesimally counter-clockwise, else arm ``low``.

    >>> policy = HalfPlane(np.array([0.0, 0.0]), np.array([1.0, 0.0]), low=0, high=1)
    >>> policy([0.5, 2.0]), policy([0.0, 0.0]), policy([1.0, 0.0])
    (1, 1, 0)
    """

    _namespace = "policies."

    def __init__(self, p: Floats, q: Floats, low: int = 0, high: int = 1) -> None:
        self.p, self.q, self.low, self.high = np.asarray(p, float), np.asarray(q, float), low, high

    def many(self, contexts: Any) -> Ints:
        return np.where(above(self.p, self.q, np.asarray(contexts, dtype=float)), self.high, self.low)


class LinearSample(Representatives):
    """Linear policies with weights (N, K, d) and biases (N, K)."""

    def __init__(self, weights: Floats, bias: Floats) -> None:
        self.weights, self.bias = weights, bias

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, i: int) -> Linear:
        return Linear(self.weights[i], self.bias[i])

    def votes(self, contexts: Floats) -> Ints:
        best: Ints = np.argmax(np.einsum("nd,mkd->nmk", contexts, self.weights) + self.bias, axis=2)
        return best


class PolicyClass(Saved, ABC):
    """A class of policies on contexts in R^d that can name one member for each labelling of given contexts."""

    _namespace = "policies."
    dim: int

    @abstractmethod
    def dimension(self, n_arms: int) -> int:
        """The VC dimension of the class (two arms); with more arms, of its two-sided parts.

        >>> PlanarSeparators().dimension(n_arms=2)
        3
        """

    @abstractmethod
    def most(self, n: int, n_arms: int) -> int:
        """The largest number of representatives that n contexts can need.

        >>> Stumps(dim=1).most(n=10, n_arms=2)
        20
        """

    @abstractmethod
    def representatives(self, contexts: Floats, n_arms: int, rng: np.random.Generator | None = None) -> Representatives:
        """One policy for each distinct labelling of the contexts (n, d) by the class; the K constants come first.

        >>> len(PlanarSeparators().representatives(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), n_arms=2))
        8
        """

    def holds(self, policy: Any) -> bool:
        """Return whether this policy is known to be in the class.

        >>> Stumps(dim=1).holds(Stump(0, 0.5)), Stumps(dim=1).holds(Stump(1, 0.5))
        (True, False)
        """
        return isinstance(policy, Constant)


class Stumps(PolicyClass):
    """All axis-aligned threshold stumps on ``dim`` features: any feature, any threshold, any two arms. Exact.

    n contexts with one feature of distinct values need n - 1 splits: 2n representatives with two arms. Features that
    split the contexts alike share a representative.

    >>> len(Stumps(dim=1).representatives(np.arange(5.0)[:, None], n_arms=2))
    10
    """

    def __init__(self, dim: int) -> None:
        self.dim = count("dim", dim)

    def dimension(self, n_arms: int) -> int:
        n = 1  # each feature isolates two sets of n/2 up to complement: n is shattered iff there are enough (Gey 2018)
        while comb(n + 1, (n + 1) // 2) <= 2 * self.dim:
            n += 1
        return n

    def most(self, n: int, n_arms: int) -> int:
        return n_arms + n_arms * (n_arms - 1) * self.dim * (n - 1)

    def representatives(self, contexts: Floats, n_arms: int, rng: np.random.Generator | None = None) -> StumpSplits:
        features, thresholds, labels = [], [], []
        for j in range(self.dim):
            values = np.unique(contexts[:, j])
            low, high = values[:-1], values[1:]
            middle = low + (high - low) / 2
            middle = np.where((low <= middle) & (middle < high), middle, low)  # neighbours in floating point
            sides = contexts[:, j] > middle[:, None]
            features.append(np.full(len(middle), j))
            thresholds.append(middle)
            labels.append(np.packbits(sides ^ sides[:, :1], axis=1))  # a split and its complement are one split
        _, first = np.unique(np.concatenate(labels), axis=0, return_index=True)
        first.sort()
        return StumpSplits(np.concatenate(features)[first], np.concatenate(thresholds)[first], n_arms)

    def holds(self, policy: Any) -> bool:
        return super().holds(policy) or (isinstance(policy, Stump) and policy.feature < self.dim)


class PlanarSeparators(PolicyClass):
    """All linear separators of the plane: any line, any two arms. Exact, in degenerate positions too.

    n points in general position need n (n - 1) / 2 splits: n^2 - n + 2 representatives with two arms, so that a round
    costs O(n^2).

    >>> points = np.random.default_rng(1).normal(size=(10, 2))
    >>> len(PlanarSeparators().representatives(points, n_arms=2))
    92
    """

    def __init__(self) -> None:
        self.dim = 2

    def dimension(self, n_arms: int) -> int:
        return 3

    def most(self, n: int, n_arms: int) -> int:
        return n_arms + n_arms * (n_arms - 1) * n * (n - 1) // 2

    def representatives(self, contexts: Floats, n_arms: int, rng: np.random.Generator | None = None) -> PlanarSplits:
        points = np.unique(contexts, axis=0)
        return PlanarSplits(points, separations(points), n_arms)

    def holds(self, policy: Any) -> bool:
        planar = isinstance(policy, Linear) and policy.weights.shape == (2, 2)
        return super().holds(policy) or planar or isinstance(policy, HalfPlane)


class SampledLinear(PolicyClass):
    """Linear policies argmax_a (w_a . x + b_a) in R^d, represented by those found among ``n_samples`` random ones.

    A sample, not an enumeration: labellings that no drawn policy makes have no representative, and the bound of VE
    competes with those that have one. Directions are drawn uniformly in the contexts' standardised coordinates.

    >>> found = SampledLinear(dim=3, n_samples=100).representatives(np.eye(3), 2, np.random.default_rng(1))
    >>> len(found)
    8
    """

    def __init__(self, dim: int, n_samples: int = 10_000) -> None:
        self.dim, self.n_samples = count("dim", dim), count("n_samples", n_samples)

    def dimension(self, n_arms: int) -> int:
        return (self.dim + 1) * (n_arms - 1)

    def most(self, n: int, n_arms: int) -> int:
        return n_arms + self.n_samples

    def representatives(self, contexts: Floats, n_arms: int, rng: np.random.Generator | None = None) -> LinearSample:
        rng = stream(0, "representatives") if rng is None else rng
        mean, spread = contexts.mean(axis=0), contexts.std(axis=0)
        weights = rng.standard_normal((self.n_samples, n_arms, self.dim)) / np.where(spread > 0.0, spread, 1.0)
        bias = rng.standard_normal((self.n_samples, n_arms)) - weights @ mean
        weights = np.concatenate([np.zeros((n_arms, n_arms, self.dim)), weights])  # the constants
        bias = np.concatenate([np.eye(n_arms), bias])
        labels = np.concatenate([LinearSample(weights, bias).votes(x[None]) for x in contexts]).T
        _, first = np.unique(labels, axis=0, return_index=True)
        first.sort()
        return LinearSample(weights[first], bias[first])
