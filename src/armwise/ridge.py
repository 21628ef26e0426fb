"""The ridge model that the linear agents and the linear oracles share."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise import persist
from armwise.agent import Floats, count, fraction, positive
from armwise.numerics import ridge
from armwise.numerics.simd import aligned_zeros, padded


class Ridge(persist.Saved):
    """Linear estimates theta = A^-1 b with A = lam I + sum x x', b = sum r x, and their widths sqrt(x' A^-1 x).

    ``n_models`` independent models stand side by side (one for each arm of a disjoint agent). Memory is one d x d
    factor a model, whatever has been learnt. With ``discount`` < 1 each update fades what its model had learnt; the
    ridge stays, A = lam I + sum discount^age x x', and a step costs O(d^3) instead of O(d^2).
    ``models`` is the raw state (see numerics.ridge), for kernels that work on it directly.

    >>> model = Ridge(dim=2, lam=0.5)
    >>> model.update(np.array([1.0, 0.0]), 3.0)
    >>> means, widths = model.estimate(np.eye(2))
    >>> means.round(9), (widths ** 2).round(9)
    (array([2., 0.]), array([0.66666667, 2.        ]))
    """

    _learnt = ("models", "_grams", "_moments")

    def __init__(self, dim: int, lam: float = 1.0, n_models: int = 1, discount: float = 1.0) -> None:
        self.dim, self.lam = count("dim", dim), positive("lam", lam)
        self.n_models, self.discount = count("n_models", n_models), fraction("discount", discount, one=True)
        M, d, D = self.n_models, self.dim, padded(self.dim)
        self.models = aligned_zeros(M, D + 1, D)
        self.models[:, range(d), range(d)] = 1.0 / np.sqrt(self.lam)
        kept = d if self.discount < 1.0 else 0
        self._grams, self._moments = np.tile(self.lam * np.eye(kept), (M, 1, 1)), np.zeros((M, kept))

    def _restore(self, state: dict[str, Any]) -> None:
        self.models[:] = state["models"]  # keeps the alignment
        self._grams, self._moments = state["_grams"], state["_moments"]

    @property
    def theta(self) -> Floats:
        """The estimates, one row a model.

        >>> Ridge(dim=2).theta
        array([[0., 0.]])
        """
        return self.models[:, -1, : self.dim]

    def factor(self, model: int = 0) -> Floats:
        """W, lower triangular, with A^-1 = W'W.

        >>> Ridge(dim=2, lam=4.0).factor()
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        return self.models[model, : self.dim, : self.dim]

    def log_det(self, model: int = 0) -> float:
        """ln det A.

        >>> round(Ridge(dim=2, lam=np.e).log_det(), 9)
        2.0
        """
        return float(ridge.log_det(self.models[model], self.dim))

    def estimate(self, X: Floats, model: int = 0) -> tuple[Floats, Floats]:
        """Means and widths of the rows of X under one model.

        >>> Ridge(dim=2, lam=4.0).estimate(np.eye(2))
        (array([0., 0.]), array([0.5, 0.5]))
        """
        means, widths = np.empty(len(X)), np.empty(len(X))
        ridge.estimate_into(self.models[model], X, means, widths)
        return means, widths

    def estimate_all(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and width of one row under every model.

        >>> Ridge(dim=1, n_models=2).estimate_all(np.ones(1))
        (array([0., 0.]), array([1., 1.]))
        """
        return ridge.estimate_all(self.models, x)

    def update(self, x: Floats, reward: float, model: int = 0, weight: float = 1.0) -> None:
        """Learn one row and its reward, counted ``weight`` times.

        >>> model = Ridge(dim=1)
        >>> model.update(np.ones(1), 1.0, weight=3.0)
        >>> model.theta
        array([[0.75]])
        """
        if weight != 1.0:
            root = float(np.sqrt(weight))
            x, reward = root * x, root * reward
        self.learn(x[None], 0, reward, model)

    def learn(self, X: Floats, row: int, reward: float, model: int = 0) -> None:
        """Learn one row of X: ``update`` without a slice.

        >>> model = Ridge(dim=1)
        >>> model.learn(np.ones((3, 1)), 2, 1.0)
        >>> model.theta
        array([[0.5]])
        """
        ridge.learn(self.models, self._grams, self._moments, model, X, row, reward, self.lam, self.discount)

    def optimistic(self, X: Floats, alpha: float, noise: float, delta: float) -> Floats:
        """Mean + multiplier x width, of each row (one model) or of each model (one row, as (1, d)).

        >>> Ridge(dim=2, lam=4.0).optimistic(np.eye(2), 1.0, 0.0, 1.0)
        array([0.5, 0.5])
        """
        return ridge.optimistic(self.models, X, self.lam, alpha, noise, delta)

    def play_optimistic(
        self, contexts: Floats, rewards: Floats, alpha: float, noise: float, delta: float, rng: np.random.Generator
    ) -> tuple[Any, Any, Any]:
        """A block of optimistic rounds: arms, probabilities, rewards.

        >>> Ridge(dim=1).play_optimistic(np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 0.0, 1.0, np.random.default_rng(1))
        (array([0, 0]), array([1., 1.]), array([1., 1.]))
        """
        return ridge.play_optimistic(
            self.models, self._grams, self._moments, contexts, rewards,
            self.lam, self.discount, alpha, noise, delta, rng,
        )  # fmt: skip

    def sample(self, z: Floats, scale: float, model: int = 0) -> Floats:
        """theta + scale W'z: with z standard normal, a draw from N(theta, scale^2 A^-1).

        >>> Ridge(dim=2, lam=4.0).sample(np.array([1.0, 2.0]), scale=2.0)
        array([1., 2.])
        """
        sampled: Floats = self.theta[model] + scale * (z @ self.factor(model))
        return sampled
