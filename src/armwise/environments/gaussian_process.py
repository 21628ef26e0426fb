"""The kernel world: expected rewards are a draw from a Gaussian process (survey 4.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count, positive
from armwise.core.seeds import stream
from armwise.environments.environment import Block, Blocks, Environment, block_sizes

MAX_GREEDY_POINTS = 2_000  # of the greedy approximation of the information gain


class GaussianProcess(Environment):
    """f is drawn from GP(0, k) over C contexts times K arms; a round shows one context's arms, f plus normal noise.

    A row of features is the context's ``context_dim`` numbers followed by the arm's ``arm_dim``. With
    ``n_contexts=1`` (and ``context_dim=0``) it is the fixed arm set of GP-UCB. ``kernel`` is any k(X, Y) -> matrix;
    by default exp(-|x - y|^2 / (2 length_scale^2)). Rewards are not bounded; with ``bounded=True`` f is instead a sum
    of three bumps k(., x_i) with values in [0, 0.9] (so of norm <f, f> <= 2.43), and a reward is 1 with chance f.

    >>> world = GaussianProcess(n_arms=20, arm_dim=2)
    >>> next(world.blocks(horizon=10, seed=1)).view("features").shape
    (10, 20, 2)
    """

    def __init__(
        self,
        n_arms: int = 30,
        arm_dim: int = 2,
        *,
        n_contexts: int = 1,
        context_dim: int = 0,
        length_scale: float = 0.3,
        kernel: Callable[[Any, Any], Any] | None = None,
        noise: float = 0.1,
        bounded: bool = False,
        points_seed: int = 0,
    ) -> None:
        self.n_arms, self.arm_dim = count("n_arms", n_arms, least=2), count("arm_dim", arm_dim)
        self.n_contexts = count("n_contexts", n_contexts)
        self.context_dim = count("context_dim", context_dim, least=0)
        if (self.n_contexts > 1) != (self.context_dim > 0):
            raise ValueError(f"{n_contexts} contexts of {context_dim} numbers: give both, or one context of 0 numbers")
        self.length_scale, self.kernel = positive("length_scale", length_scale), kernel
        self.bounded = bool(bounded)
        self.noise, self.points_seed = positive("noise", noise), count("points_seed", points_seed, least=0)
        self._gains: dict[float, tuple[Floats, Floats]] = {}  # by noise

    @property
    def points(self) -> Floats:
        """All contexts with all arms: (n_contexts, n_arms, context_dim + arm_dim), fixed by ``points_seed``.

        >>> GaussianProcess(n_arms=5, n_contexts=3, context_dim=1).points.shape
        (3, 5, 3)
        """
        rng = stream(self.points_seed, "points")
        arms = rng.random((self.n_arms, self.arm_dim))
        contexts = rng.random((self.n_contexts, self.context_dim))
        return np.concatenate(
            [
                np.broadcast_to(contexts[:, None], (self.n_contexts, self.n_arms, self.context_dim)),
                np.broadcast_to(arms[None], (self.n_contexts, self.n_arms, self.arm_dim)),
            ],
            axis=2,
        )

    def covariance(self, X: Floats, Y: Floats) -> Floats:
        """k between the rows of X and the rows of Y.

        >>> GaussianProcess().covariance(np.zeros((1, 2)), np.zeros((1, 2)))
        array([[1.]])
        """
        if self.kernel is not None:
            return np.asarray(self.kernel(X, Y), dtype=np.float64)
        square = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
        covariance: Floats = np.exp(-square / (2.0 * self.length_scale**2))
        return covariance

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        points = self.points
        flat = points.reshape(-1, points.shape[2])
        f = self._draw(flat, rng).reshape(points.shape[:2])
        for T in block_sizes(horizon, points[0].size):
            context = rng.integers(self.n_contexts, size=T)
            expected = f[context]
            if self.bounded:
                rewards = (rng.random(expected.shape) < expected).astype(np.float64)
            else:
                rewards = expected + self.noise * rng.standard_normal(expected.shape)
            views = {"features": np.ascontiguousarray(points[context])}
            if self.n_contexts > 1:
                views |= {"key": context.tolist(), "shared": points[context, 0, : self.context_dim]}
            yield Block(views, rewards, expected)

    def _draw(self, points: Floats, rng: np.random.Generator) -> Floats:
        covariance = self.covariance(points, points)
        if self.bounded:
            bumps = rng.random((3, 1)) * covariance[rng.choice(len(points), 3, replace=len(points) < 3)]
            f: Floats = bumps.sum(axis=0)
            f *= 0.9 / f.max()
            return f
        # A little more than rounding keeps the factor positive definite; it is far below the noise.
        factor = np.linalg.cholesky(covariance + 1e-9 * len(points) * np.eye(len(points)))
        f = factor @ rng.standard_normal(len(points))
        return f

    def information_gain(self, T: int, noise: float | None = None) -> float:
        """An upper bound on gamma_T at the world's noise or another: the smaller of two upper bounds.

        One is the greedy maximum of 1/2 ln det(I + K / noise^2) over T points, times e / (e - 1); the other is every
        point taken T times, 1/2 ln det(I + T K / noise^2).

        >>> GaussianProcess(n_arms=10).information_gain(5) < 30
        True
        """
        noise = self.noise if noise is None else noise
        if noise not in self._gains:
            self._gains[noise] = self._greedy_gains(noise)
        eigenvalues, greedy = self._gains[noise]
        every = 0.5 * float(np.log1p(T * eigenvalues / noise**2).sum())
        return min(every, float(greedy[T - 1]) * math.e / (math.e - 1.0)) if len(greedy) >= T else every

    def _greedy_gains(self, noise: float) -> tuple[Floats, Floats]:
        """The eigenvalues of the covariance of all points, and the greedy gains of 1, 2, ... points."""
        flat = self.points.reshape(-1, self.points.shape[2])
        posterior = self.covariance(flat, flat)
        eigenvalues = np.maximum(np.linalg.eigvalsh(posterior), 0.0)
        steps = np.empty(MAX_GREEDY_POINTS)
        for t in range(len(steps)):
            best = int(np.argmax(np.diag(posterior)))
            variance = posterior[best, best]
            steps[t] = 0.5 * math.log1p(variance / noise**2)
            posterior = posterior - np.outer(posterior[:, best], posterior[best]) / (variance + noise**2)
        return eigenvalues, np.cumsum(steps)

    @property
    def span(self) -> float:  # type: ignore[override]
        """With probability 0.95 no two points of a draw differ by more: 2 sqrt(2 ln(40 n)) prior deviations.

        >>> GaussianProcess(bounded=True).span
        1.0
        """
        if self.bounded:
            return 1.0
        n = self.n_contexts * self.n_arms
        return 2.0 * math.sqrt(2.0 * math.log(40 * n) * self._largest_variance)

    @cached_property
    def _largest_variance(self) -> float:
        flat = self.points.reshape(-1, self.points.shape[2])
        return float(np.diag(self.covariance(flat, flat)).max())

    def reward_class(self) -> dict[str, Any]:
        if self.bounded:
            return {
                "view": "features",
                "kernel": self.covariance,
                "norm": math.sqrt(2.43),
                "noise": 0.5,
                "ceiling": 0.9,
            }
        return {"view": "features", "kernel": self.covariance, "drawn": True, "noise": self.noise}

    def constants(self) -> dict[str, Any]:
        flat = self.points.reshape(-1, self.points.shape[2])
        known = {
            "K": self.n_arms,
            "sigma": self.noise,
            "points": flat,
            "covariance": self.covariance(flat, flat),
            "kappa": self._largest_variance,
            "gamma_T": lambda noise: lambda T: self.information_gain(T, noise),
        }
        # A reward of 0 or 1 is less than 1 from its mean; three bumps of height at most 0.9 have <f, f> <= 2.43.
        return known | {"B": 2.43, "sigma": 1.0, "d_tilde": len(flat)} if self.bounded else known
