"""Linear worlds: the expected reward of an arm is a dot product (survey 4.1); fixed, drifting, hierarchical."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count, fraction, positive
from armwise.core.seeds import stream
from armwise.environments.environment import (
    Block,
    Blocks,
    Environment,
    block_sizes,
    bounded_noise,
    noise_level,
    reach,
    unit_rows,
)

_HALF = math.sqrt(0.5)


class Linear(Environment):
    """E[r | x] = x . theta with ||x|| <= 1, ||theta|| <= 1 and rewards in [0, 1].

    A row of features is (1, u) / sqrt(2), u a random direction, so that the expected reward is
    1/2 + s (u . v) for a hidden direction v. ``disjoint=True`` is the world of one context for all arms and one
    hidden direction an arm (Li et al. 2010). The noise is uniform, with ``noise`` its standard deviation.

    >>> block = next(Linear(n_arms=10, dim=20, noise=0.1).blocks(horizon=500, seed=3))
    >>> block.view("features").shape
    (500, 10, 20)
    >>> bool(block.rewards.min() >= 0 and block.rewards.max() <= 1)
    True
    """

    def __init__(self, n_arms: int = 10, dim: int = 20, *, noise: float = 0.1, disjoint: bool = False) -> None:
        self.n_arms = count("n_arms", n_arms, least=2)
        self.dim = count("dim", dim, least=2)
        self.noise = noise_level(noise)
        self.disjoint = bool(disjoint)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        K, d, start = self.n_arms, self.dim, 0
        hidden = self._hidden(rng)
        for T in block_sizes(horizon, d if self.disjoint else K * d):
            contexts = np.empty((T, d) if self.disjoint else (T, K, d))
            contexts[..., 0] = _HALF
            contexts[..., 1:] = unit_rows(rng, (*contexts.shape[:-1], d - 1)) * _HALF
            theta = self._theta(self._direction(hidden, start, T))
            expected = contexts @ (theta.T if self.disjoint else theta)
            if expected.ndim == 3:  # theta changes every round
                expected = expected[..., 0]
            rewards = expected + bounded_noise(rng, (T, K), self.noise)
            yield Block({"shared" if self.disjoint else "features": contexts}, rewards, expected)
            start += T

    def _theta(self, direction: Floats) -> Floats:
        """The weights whose expected reward is 1/2 + reach (u . direction)."""
        intercept = np.full((*direction.shape[:-1], 1), 0.5)
        return math.sqrt(2.0) * np.concatenate([intercept, reach(self.noise) * direction], axis=-1)

    def _hidden(self, rng: np.random.Generator) -> Floats:
        return unit_rows(rng, (self.n_arms, self.dim - 1) if self.disjoint else (self.dim - 1,))

    def _direction(self, hidden: Floats, start: int, T: int) -> Floats:
        return hidden

    def constants(self) -> dict[str, Any]:
        norm = math.sqrt(2.0) * math.hypot(0.5, reach(self.noise))
        view = "shared" if self.disjoint else "features"
        return {"K": self.n_arms, "R": self.noise, "S": norm, "L": 1.0, "d": self.dim, "linear": view}

    def reward_class(self) -> dict[str, Any] | None:
        known = self.constants()
        if "linear" not in known:
            return None
        return {"view": known["linear"], "norm": known["S"], "noise": max(known["R"], 1e-3), "ceiling": 1.0}


class Drifting(Linear):
    """A linear world whose hidden direction turns: one full circle in ``period`` rounds.

    >>> early, *_, late = Drifting(n_arms=5, dim=4, period=20_000, noise=0.0).blocks(horizon=20_000, seed=1)
    >>> len(late) > 0
    True
    """

    def __init__(self, n_arms: int = 10, dim: int = 20, *, noise: float = 0.1, period: float = 20_000.0) -> None:
        super().__init__(n_arms, dim, noise=noise)
        self.period = positive("period", period)
        if self.dim < 3:
            raise ValueError(f"dim must be at least 3 for a direction that turns, got {dim}")

    def _hidden(self, rng: np.random.Generator) -> Floats:
        plane, _ = np.linalg.qr(rng.standard_normal((self.dim - 1, 2)))
        return plane.T

    def _theta(self, direction: Floats) -> Floats:
        return super()._theta(direction)[..., None]  # (T, d, 1): one product per round

    def _direction(self, hidden: Floats, start: int, T: int) -> Floats:
        angle = 2.0 * math.pi * (start + np.arange(T)) / self.period
        turned: Floats = np.cos(angle)[:, None] * hidden[0] + np.sin(angle)[:, None] * hidden[1]
        return turned

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms}  # no bound of the survey holds where theta moves


class Hierarchical(Linear):
    """A linear world whose theta lies near a known k-dimensional subspace (for CoFineUCB).

    ``profiles(n)`` gives the weights of n past users, from which an agent may learn the subspace;
    ``residual`` is the share of a user's direction that the subspace does not explain.

    >>> world = Hierarchical(dim=30, subspace_dim=4, residual=0.1)
    >>> world.profiles(100).shape
    (30, 100)
    """

    def __init__(
        self,
        n_arms: int = 10,
        dim: int = 30,
        *,
        noise: float = 0.1,
        subspace_dim: int = 4,
        residual: float = 0.1,
        subspace_seed: int = 0,
    ) -> None:
        super().__init__(n_arms, dim, noise=noise)
        self.subspace_dim = count("subspace_dim", subspace_dim, least=2)
        if self.subspace_dim > self.dim:
            raise ValueError(f"subspace_dim must be at most dim={self.dim}, got {subspace_dim}")
        self.residual = fraction("residual", residual, zero=True, one=True)
        self.subspace_seed = count("subspace_seed", subspace_seed, least=0)

    @property
    def basis(self) -> Floats:
        """Directions of the subspace, the intercept apart: (dim - 1, subspace_dim - 1), orthonormal.

        >>> Hierarchical(dim=30, subspace_dim=4).basis.shape
        (29, 3)
        """
        rng = stream(self.subspace_seed, "subspace")
        basis, _ = np.linalg.qr(rng.standard_normal((self.dim - 1, self.subspace_dim - 1)))
        return basis

    def _hidden(self, rng: np.random.Generator) -> Floats:
        user: Floats = self._users(rng, 1)[0]
        return user

    def _users(self, rng: np.random.Generator, n: int) -> Floats:
        coarse = unit_rows(rng, (n, self.subspace_dim - 1)) @ self.basis.T
        fine = unit_rows(rng, (n, self.dim - 1))
        mixed = math.sqrt(1.0 - self.residual**2) * coarse + self.residual * fine
        users: Floats = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
        return users

    def profiles(self, n: int) -> Floats:
        """The weight vectors of n other users, one a column: what a service would know from its past.

        >>> Hierarchical(dim=10, subspace_dim=2).profiles(3).shape
        (10, 3)
        """
        rng = stream(self.subspace_seed, "profiles")
        return np.ascontiguousarray(self._theta(self._users(rng, count("n", n))).T)
