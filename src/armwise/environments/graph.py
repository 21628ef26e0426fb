"""The graph world: arms are nodes, and neighbours have like rewards (for SpectralUCB; Valko et al. 2014)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from armwise.core.agent import Floats, count, positive
from armwise.core.seeds import stream
from armwise.environments.environment import (
    BEST_ARM_EACH_ROUND,
    BEST_ARM_IN_EXPECTATION,
    BEST_ARM_IN_HINDSIGHT,
    BEST_NODE,
    Block,
    Blocks,
    Environment,
    block_sizes,
    bounded_noise,
    noise_level,
    reach,
)


class Graph(Environment):
    """A smooth function on a graph: expected rewards combine the ``smooth`` slowest eigenvectors of its Laplacian.

    ``kind`` is ``"neighbours"`` (random points of the unit square joined to their nearest), ``"grid"`` (a square
    grid), or give ``laplacian`` yourself. The features view of a node is its row of eigenvectors.

    >>> world = Graph(n_arms=36, kind="grid")
    >>> world.laplacian.shape, world.laplacian[0, 0].item()
    ((36, 36), 2.0)
    """

    comparator = BEST_NODE
    same_as = (BEST_ARM_EACH_ROUND, BEST_ARM_IN_HINDSIGHT, BEST_ARM_IN_EXPECTATION)

    def __init__(
        self,
        n_arms: int = 100,
        *,
        kind: Literal["neighbours", "grid"] = "neighbours",
        neighbours: int = 6,
        smooth: int = 6,
        noise: float = 0.1,
        laplacian: Any = None,
        graph_seed: int = 0,
    ) -> None:
        self.kind, self.neighbours = kind, count("neighbours", neighbours)
        self.noise, self.graph_seed = noise_level(noise), count("graph_seed", graph_seed, least=0)
        self._own_laplacian = None if laplacian is None else _checked(laplacian)
        if self._own_laplacian is not None:
            self.laplacian = self._own_laplacian
        elif kind == "grid":
            self.laplacian = _laplacian(_grid(count("n_arms", n_arms, least=2)))
        elif kind == "neighbours":
            points = stream(self.graph_seed, "graph").random((count("n_arms", n_arms, least=2), 2))
            self.laplacian = _laplacian(_nearest(points, self.neighbours))
        else:
            raise ValueError(f'kind must be "neighbours" or "grid" (or give a Laplacian), got {kind!r}')
        self.n_arms = len(self.laplacian)
        self.smooth = count("smooth", smooth, least=2)
        if self.smooth > self.n_arms:
            raise ValueError(f"smooth must be at most n_arms={self.n_arms}, got {smooth}")
        self._eigenvalues, self._eigenvectors = np.linalg.eigh(self.laplacian)

    def params(self) -> dict[str, Any]:
        return super().params() | {"laplacian": self._own_laplacian}  # a graph that was drawn is drawn again

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        slow = self._eigenvectors[:, 1 : self.smooth]
        shape = slow @ rng.standard_normal(self.smooth - 1)
        means = 0.5 + reach(self.noise) * shape / np.abs(shape).max()
        for T in block_sizes(horizon, self.n_arms):
            expected = np.broadcast_to(means, (T, self.n_arms))
            rewards = expected + bounded_noise(rng, (T, self.n_arms), self.noise)
            yield _GraphBlock(self._eigenvectors, rewards, expected)

    def norm(self, lam: float = 0.01) -> float:
        """C, no less than sqrt(f' (L + lam I) f) for every f this world can draw: what SpectralUCB asks for.

        >>> Graph(n_arms=36, kind="grid", noise=0.0).norm(lam=0.01) < 5
        True
        """
        ripple = (
            self.n_arms * reach(self.noise) ** 2
        )  # ||f - 1/2||^2 is at most this, all of it in the slow eigenvectors
        level = self.n_arms * 0.25
        return math.sqrt(float(self._eigenvalues[self.smooth - 1]) * ripple + positive("lam", lam) * (ripple + level))

    def reward_class(self) -> dict[str, Any]:
        lam = 0.01
        return {
            "view": "features",  # rows of the eigenvectors: f = x . alpha, alpha' (diag(l) + lam I) alpha <= C^2
            "kernel": lambda X, Z: (X / (self._eigenvalues + lam)) @ Z.T,
            "norm": self.norm(lam),
            "noise": max(self.noise, 1e-3),
            "ceiling": 1.0,
        }

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms, "R": self.noise, "laplacian": self.laplacian, "norm": self.norm}


class _GraphBlock(Block):
    def __init__(self, eigenvectors: Floats, rewards: Floats, expected: Floats) -> None:
        super().__init__({}, rewards, expected)
        self._eigenvectors = eigenvectors

    def _derive_features(self) -> Floats:
        return np.ascontiguousarray(np.broadcast_to(self._eigenvectors, (len(self), *self._eigenvectors.shape)))

    def _derive_shared(self) -> Floats:
        return np.ones((len(self), 1))


def _grid(n: int) -> Floats:
    side = math.isqrt(n)
    if side * side != n:
        raise ValueError(f"n_arms must be a square number for a grid, got {n}")
    path = np.eye(side, k=1) + np.eye(side, k=-1)
    adjacency: Floats = np.kron(path, np.eye(side)) + np.kron(np.eye(side), path)
    return adjacency


def _nearest(points: Floats, neighbours: int) -> Floats:
    n = len(points)
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1)[:, : min(neighbours, n - 1)]
    adjacency = np.zeros((n, n))
    adjacency[np.arange(n)[:, None], nearest] = 1.0
    return np.maximum(adjacency, adjacency.T)


def _laplacian(adjacency: Floats) -> Floats:
    laplacian: Floats = np.diag(adjacency.sum(axis=1)) - adjacency
    return laplacian


def _checked(value: Any) -> Floats:
    laplacian = np.array(value.toarray() if hasattr(value, "toarray") else value, dtype=np.float64)
    square = laplacian.ndim == 2 and laplacian.shape[0] == laplacian.shape[1] >= 2
    if not square or not np.allclose(laplacian, laplacian.T) or not np.allclose(laplacian.sum(axis=1), 0.0):
        raise ValueError("laplacian must be symmetric with rows that sum to 0: degrees less edge weights")
    if (laplacian - np.diag(np.diag(laplacian))).max() > 1e-9:
        raise ValueError("laplacian must have edge weights >= 0 (so no positive entry off the diagonal)")
    return laplacian
