"""Linear policies by ridge regression: a fast built-in argmax oracle (survey 4.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armwise.agents.oracle.oracles.oracle import Ints, Oracle
from armwise.core.agent import Floats, count, positive
from armwise.models.ridge import Ridge
from armwise.models.ridge_size import RIDGE_SHARE
from armwise.native import ridge
from armwise.native.simd import aligned_zeros, padded
from armwise.policies.fixed import Linear


class LinearOracle(Oracle):
    """The policy x -> argmax_a theta_a . x, each theta_a the ridge fit of column a of the rewards on the contexts.

    The regression stands in for the argmax: it finds the best policy where mean rewards are linear, a good one
    where they nearly are. In ``argmax`` and ``update`` every column has a target in every row, so that all arms share
    one Gram matrix: ``update`` is O(d^2 + d K). Agents that play tell it only the arm that was played, with its
    probability p: theta_a is then the fit of the rows in which a was played, each weighed 1 / p (by ``OnlineCover`` as
    they are, unless its ``estimator`` is "iwr"). With weights it estimates the same regression as targets r / p and 0
    for the arms that were not played, with far less variance, as what was not seen is left out instead of filled in
    (importance-weighted regression: Bietti, Agarwal, Langford 2021).

    ``lam`` is the ridge (None: 0.05 squared lengths of the first row). ``n_policies`` is the N that schedules of agents
    read (linear policies are infinitely many): larger explores more. ``intercept`` gives each arm a constant.

    >>> oracle = LinearOracle(dim=1, lam=0.1, intercept=False)
    >>> oracle.update([1.0], [0.0, 2.0])
    >>> oracle.update([-1.0], [2.0, 0.0])
    >>> oracle.best().many([[3.0], [-0.5]])
    array([1, 0])
    """

    regresses = True
    _learnt = ("_rows", "_theta", "_played")

    def __init__(
        self,
        dim: int,
        n_arms: int | None = None,
        *,
        lam: float | None = None,
        intercept: bool = True,
        n_policies: int = 1000,
    ) -> None:
        self.dim: int = count("dim", dim)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.lam, self.intercept = None if lam is None else positive("lam", lam), bool(intercept)
        self.n_policies = count("n_policies", n_policies)
        d = self.dim + self.intercept
        self._rows, self._theta = Ridge(d, self.lam), np.zeros((self.n_arms or 1, d))  # of ``update``
        self._played: Ridge | None = None  # of ``_observe``, one model per arm

    def best(self) -> Linear:
        return self._linear(self._theta if self._played is None else self._theta + self._played.theta)

    def vote(self, context: Floats, n_arms: int) -> Floats:
        theta = self._theta if self._played is None else self._theta + self._played.theta
        p = np.zeros(n_arms)
        p[int((theta @ self._with_constant(context[None])[0]).argmax())] = 1.0
        return p

    def _argmax(self, seen: np.ndarray, rewards: Floats) -> Linear:
        return self._solver(seen)(rewards)

    def _solver(self, seen: np.ndarray) -> Callable[[Floats], Linear]:
        X = self._with_constant(seen)
        lam = self.lam if self.lam is not None else RIDGE_SHARE * float(X[0] @ X[0] if len(X) else 0.0) or 1.0
        model, d = aligned_zeros(padded(X.shape[1]) + 1, padded(X.shape[1])), X.shape[1]
        ridge.refit(model, lam * np.eye(d) + X.T @ X, np.zeros(d), np.zeros(0))
        W = model[:d, :d]  # A^-1 = W'W
        return lambda rewards: self._linear((W.T @ (W @ (X.T @ rewards))).T)

    def _act(self, policy: Linear, seen: np.ndarray) -> Ints:
        return policy.many(seen)

    def _update(self, seen: np.ndarray, rewards: Floats) -> None:
        if len(self._theta) != rewards.size:
            if self._theta.any():
                raise ValueError(f"rewards must have shape ({len(self._theta)},), got {rewards.shape}")
            self._theta = np.zeros((rewards.size, self._theta.shape[1]))
        x = self._with_constant(seen[None])[0]
        self._rows.update(x, 0.0)
        W = self._rows.factor()
        self._theta = self._theta + np.outer(rewards - self._theta @ x, W.T @ (W @ x))  # recursive least squares

    def _observe(self, seen: np.ndarray, arm: int, reward: float, probability: float) -> None:
        if self._played is None:
            self._played = Ridge(self._theta.shape[1], self.lam, len(self._theta))
        self._played.update(self._with_constant(seen[None])[0], reward, arm, 1.0 / probability)

    def _estimates(self, seen: np.ndarray) -> Floats:
        theta = np.zeros_like(self._theta) if self._played is None else self._played.theta
        predicted: Floats = self._with_constant(seen) @ theta.T
        return predicted

    def _with_constant(self, X: np.ndarray) -> Floats:
        return np.column_stack([X, np.ones(len(X))]) if self.intercept else X

    def _linear(self, theta: Floats) -> Linear:
        return Linear(theta[:, : self.dim], theta[:, self.dim] if self.intercept else None)
