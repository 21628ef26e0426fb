"""The ridge model that the linear agents and the linear oracles share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrmm

from noregret import persist
from noregret.agent import Floats, count, fraction, positive
from noregret.numerics import ridge

# Above this many multiplications BLAS repays the cost of calling it (measured on x86-64, one thread).
_BLAS_PAYS = 40_000


class Ridge(persist.Saved):
    """Linear estimates theta = A^-1 b with A = lam I + sum x x', b = sum r x, and their widths sqrt(x' A^-1 x).

    ``n_models`` independent models stand side by side (one for each arm of a disjoint agent). Memory is one d x d
    array a model, whatever has been learnt. With ``discount`` < 1 each update fades what its model had learnt.

    >>> model = Ridge(dim=2, lam=0.5)
    >>> model.update(np.array([1.0, 0.0]), 3.0)
    >>> means, widths = model.estimate(np.eye(2))
    >>> means, widths ** 2
    (array([2., 0.]), array([0.66666667, 2.        ]))
    """

    _learnt = ("_F", "_diagonal", "_b", "theta", "_age")

    def __init__(self, dim: int, lam: float = 1.0, n_models: int = 1, discount: float = 1.0) -> None:
        self.dim, self.lam = count("dim", dim), positive("lam", lam)
        self.n_models, self.discount = count("n_models", n_models), fraction("discount", discount, one=True)
        M, d = self.n_models, self.dim
        self._F = np.tile(np.eye(d) / np.sqrt(self.lam), (M, 1, 1))
        self._diagonal = np.full((M, d), self.lam)
        self._b, self.theta = np.zeros((M, d)), np.zeros((M, d))
        self._age = np.zeros(M, np.int64)
        self._prepare()

    def _prepare(self) -> None:
        self._work = np.empty((4, self.dim))
        # Often enough that rounding cannot add up, rarely enough that d^3 / period stays below the update's d^2.
        self._period = max(1024, 16 * self.dim)

    def estimate(self, X: Floats, model: int = 0) -> tuple[Floats, Floats]:
        """Means and widths of the rows of X under one model.

        >>> Ridge(dim=2, lam=4.0).estimate(np.eye(2))
        (array([0., 0.]), array([0.5, 0.5]))
        """
        if X.size * self.dim < _BLAS_PAYS:
            return ridge.estimate(self._F[model], self.theta[model], X)
        # BLAS reads only S: for it, a row-major upper triangle is a column-major lower one.
        projected = dtrmm(1.0, self._F[model].T, X.T, lower=1)
        return X @ self.theta[model], np.sqrt(np.einsum("ia,ia->a", projected, projected))

    def estimate_all(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and width of one row under every model.

        >>> Ridge(dim=1, n_models=2).estimate_all(np.ones(1))
        (array([0., 0.]), array([1., 1.]))
        """
        return ridge.estimate_all(self._F, self.theta, x)

    def update(self, x: Floats, reward: float, model: int = 0, weight: float = 1.0) -> None:
        """Learn one row and its reward, counted ``weight`` times.

        >>> model = Ridge(dim=1)
        >>> model.update(np.ones(1), 1.0, weight=3.0)
        >>> model.theta
        array([[0.75]])
        """
        if weight != 1.0:
            root = np.sqrt(weight)
            x, reward = root * x, root * reward
        ridge.learn(
            self._F, self._diagonal, self._b, self.theta, self._age, model, x, reward,
            self.lam, self.discount, self._period, self._work,
        )  # fmt: skip

    def optimistic(self, X: Floats, alpha: float, noise: float, delta: float) -> Floats:
        """Mean + multiplier x width, of each row (one model) or of each model (one row, as (1, d)).

        >>> Ridge(dim=2, lam=4.0).optimistic(np.eye(2), 1.0, 0.0, 0.1)
        array([0.5, 0.5])
        """
        if self.n_models > 1 or X.size * self.dim < _BLAS_PAYS:
            return ridge.optimistic(self._F, self.theta, X, self.lam, alpha, noise, delta)
        means, widths = self.estimate(X)
        return means + ridge.multiplier(self._F[0], self.lam, alpha, noise, delta) * widths

    def play_optimistic(
        self, contexts: Floats, rewards: Floats, alpha: float, noise: float, delta: float, rng: np.random.Generator
    ) -> tuple[Any, Any, Any]:
        """A block of optimistic rounds: arms, probabilities, rewards.

        >>> Ridge(dim=1).play_optimistic(np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 0.0, 0.1, np.random.default_rng(1))
        (array([0, 0]), array([1., 1.]), array([1., 1.]))
        """
        return ridge.play_optimistic(
            self._F, self._diagonal, self._b, self.theta, self._age, contexts, rewards,
            self.lam, self.discount, self._period, alpha, noise, delta, rng,
        )  # fmt: skip

    def log_det(self, model: int = 0) -> float:
        """ln det A.

        >>> round(Ridge(dim=2, lam=np.e).log_det(), 9)
        2.0
        """
        return float(ridge.log_det(self._F[model]))

    def sample(self, z: Floats, scale: float, model: int = 0) -> Floats:
        """theta + scale S z: with z standard normal, a draw from N(theta, scale^2 A^-1).

        >>> Ridge(dim=2, lam=4.0).sample(np.array([1.0, 2.0]), scale=2.0)
        array([1., 2.])
        """
        return self.theta[model] + scale * (np.triu(self._F[model]) @ z)
