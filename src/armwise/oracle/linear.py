"""Linear policies by ridge regression: a fast built-in argmax oracle (survey 4.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.agent import Floats, count, positive
from armwise.oracle.base import Ints, Oracle
from armwise.policies.fixed import Linear


class LinearOracle(Oracle):
    """The policy x -> argmax_a theta_a . x, each theta_a the ridge fit of column a of the rewards on the contexts.

    The regression stands in for the argmax: it finds the best policy where mean rewards are linear, a good one
    where they nearly are. Every column has a target in every row (0 where an arm was not played), so that all arms
    share one Gram matrix: ``update`` is O(d^2 + d K), ``best`` one Cholesky solve.

    ``n_policies`` is the N that schedules of agents read (linear policies are infinitely many): larger explores more.
    ``intercept`` gives each arm a constant, not shrunk by more than ``lam``.

    >>> oracle = LinearOracle(dim=1, lam=0.1, intercept=False)
    >>> oracle.update([1.0], [0.0, 2.0])
    >>> oracle.update([-1.0], [2.0, 0.0])
    >>> oracle.best().many([[3.0], [-0.5]])
    array([1, 0])
    """

    _learnt = ("_gram", "_moments")

    def __init__(
        self, dim: int, n_arms: int | None = None, *, lam: float = 1.0, intercept: bool = True, n_policies: int = 1000
    ) -> None:
        self.dim: int = count("dim", dim)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.lam, self.intercept = positive("lam", lam), bool(intercept)
        self.n_policies = count("n_policies", n_policies)
        d = self.dim + self.intercept
        self._gram, self._moments = self.lam * np.eye(d), np.zeros((d, self.n_arms or 1))
        self._best: Linear | None = None  # until the next update

    def best(self) -> Linear:
        if self._best is None:
            self._best = self._policy(self._gram, self._moments)
        return self._best

    def _argmax(self, seen: np.ndarray, rewards: Floats) -> Linear:
        X = self._with_constant(seen)
        return self._policy(self.lam * np.eye(X.shape[1]) + X.T @ X, X.T @ rewards)

    def _act(self, policy: Linear, seen: np.ndarray) -> Ints:
        return policy.many(seen)

    def _update(self, seen: np.ndarray, rewards: Floats) -> None:
        if self._moments.shape[1] != rewards.size:
            if self._moments.any():
                raise ValueError(f"rewards must have shape ({self._moments.shape[1]},), got {rewards.shape}")
            self._moments = np.zeros((len(self._gram), rewards.size))
        x = self._with_constant(seen[None])[0]
        self._gram += np.outer(x, x)
        self._moments += np.outer(x, rewards)
        self._best = None

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._best = None

    def _with_constant(self, X: np.ndarray) -> Floats:
        return np.column_stack([X, np.ones(len(X))]) if self.intercept else X

    def _policy(self, gram: Floats, moments: Floats) -> Linear:
        from scipy.linalg import cho_factor, cho_solve  # slow to import, and only needed here

        theta: Any = cho_solve(cho_factor(gram), moments).T
        return Linear(theta[:, : self.dim], theta[:, self.dim] if self.intercept else None)
