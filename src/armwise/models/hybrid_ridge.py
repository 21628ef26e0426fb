"""The model of hybrid LinUCB: one ridge whose weights are partly shared by all arms and partly each arm's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import saving
from armwise.core.agent import Floats, count
from armwise.models.ridge import LIGHT, NOTHING, Ridge, read_mean
from armwise.native import ridge as kernels

_PRIOR = 1.0  # rounds that the noise is taken for the rewards' own size, as in Ridge


class HybridRidge(saving.Saved):
    """E[r] = z.beta + x.theta_a: the ridge over (beta, theta_1 .. theta_K) jointly, without its big matrix.

    Per arm, A_a = lam I + sum x x' and phi_a = A_a^-1 sum r x (a ``Ridge``), and C_a = A_a^-1 B_a with B_a = sum x z'.
    What an arm's own weights cannot explain of z, u = z - C_a' x, is all that the shared ridge A_0 learns: a reward
    adds u u' / (1 + x' A_a^-1 x) to A_0, which is line 17 to 23 of Li et al. 2010, Algorithm 2, as one step of rank
    one. Then mean = u.beta + x.phi_a and width^2 = u' A_0^-1 u + x' A_a^-1 x (lines 12 and 13, multiplied out).

    >>> model = HybridRidge(shared=1, own=1, n_arms=2, lam=1.0)
    >>> X = np.ones((2, 2))
    >>> model.learn(X, 0, 1.0)
    >>> model.estimate(X)[0]  # the other arm profits from the shared weight
    array([0.66666667, 0.33333333])
    """

    _learnt = ("ridge", "_shared", "_arms", "_C")
    discount: float = 1.0  # it does not forget
    window: int | None = None

    def __init__(
        self, shared: int, own: int, n_arms: int, lam: float | None = None, prior_mean: ArrayLike | None = None
    ) -> None:
        self.shared, self.own, self.n_arms = count("shared", shared), count("own", own), count("n_arms", n_arms)
        self.lam, self.ridge, self.prior_mean = lam, lam, None
        if prior_mean is not None:
            self.prior_mean = mean = read_mean(prior_mean, self.n_arms, self.shared + self.own)
            if mean.ndim == 2 and np.ptp(mean[:, : self.shared], axis=0).any():
                raise ValueError(f"prior_mean must have the same first {shared} columns, the shared ones, in all rows")
        self._begin(lam)

    def _begin(self, lam: float | None) -> None:
        self.ridge, in_use = lam, lam or 1.0
        beta = theta = None
        if self.prior_mean is not None:
            beta, theta = np.atleast_2d(self.prior_mean)[0, : self.shared], self.prior_mean[..., self.shared :]
        self._shared = Ridge(self.shared, in_use, prior_mean=beta)
        self._arms = Ridge(self.own, in_use, self.n_arms, prior_mean=theta)
        self._C = np.zeros((self.n_arms, self.own, self.shared))

    def _parts(self, X: Floats) -> tuple[Floats, Floats, Floats]:
        """u, x, and W x of each arm's row, where A_a^-1 = W'W."""
        Z, X = X[:, : self.shared], X[:, self.shared :]
        W = self._arms.models[:, : self.own, : self.own]
        U = Z - np.einsum("ais,ai->as", self._C, X)
        return np.ascontiguousarray(U), X, np.einsum("aij,aj->ai", W, X)

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Means and widths, of one row per arm.

        >>> HybridRidge(shared=1, own=1, n_arms=1, lam=1.0).estimate(np.array([[3.0, 4.0]]))
        (array([0.]), array([5.]))
        """
        U, X, projected = self._parts(X)
        means, widths = self._shared.estimate(U)
        means = means + np.einsum("ai,ai->a", X, self._arms.theta)
        return means, np.sqrt(widths**2 + np.einsum("ai,ai->a", projected, projected))

    def learn(self, X: Floats, arm: int, reward: float) -> None:
        """Learn the reward of an arm, whose row is X[arm].

        >>> model = HybridRidge(shared=1, own=1, n_arms=1, lam=1.0)
        >>> model.learn(np.ones((1, 2)), 0, 3.0)
        >>> model.estimate(np.ones((1, 2)))[0]
        array([2.])
        """
        if self.ridge is None:
            size = float(np.einsum("ai,ai->", X, X)) / len(X)
            if not np.isfinite(size):
                raise ValueError("context must be finite (and its square must not overflow)")
            if size > NOTHING:
                self._begin(LIGHT * size)
        z, x = X[arm, : self.shared], np.ascontiguousarray(X[arm, self.shared :])
        W = self._arms.factor(arm)
        u, projected = z - x @ self._C[arm], W @ x
        with np.errstate(over="ignore", invalid="ignore"):
            grown = 1.0 + float(projected @ projected)
        if not np.isfinite(grown):  # before anything is learnt
            raise ValueError("context must be finite (and its square must not overflow)")
        root, gain = np.sqrt(grown), (projected @ W) / grown  # A_a^-1 x / (1 + x' A_a^-1 x), before it is learnt
        self._shared.update(u / root, (reward - float(x @ self._arms.theta[arm])) / root)
        self._arms.update(x, reward, arm)
        self._C[arm] += np.outer(gain, u)  # as phi moves by gain (r - x.phi)

    def noise(self, squares: float, n: float, changed: Iterable[int] | None = None) -> float:
        """The residual standard deviation, as ``Ridge.noise``: b' A^-1 b and tr(A^-1) of the joint matrix, by blocks.

        Every arm's block changes with the shared one, whichever arm learnt.

        >>> HybridRidge(shared=1, own=1, n_arms=1, lam=1.0).noise(squares=4.0, n=1.0)
        2.0
        """
        explained, used = self._shared.explained()
        W = self._shared.factor()
        for a in range(self.n_arms):
            mine = self._arms.explained(a)
            through = self._C[a] @ W.T  # what A_0^-1 adds to the inverse's block of this arm
            lam = self.ridge or 1.0
            explained, used = explained + mine[0], used + mine[1] - lam * float(np.einsum("ij,ij->", through, through))
        spread = max(0.0, squares - explained) + _PRIOR * squares / max(n, 1.0)
        return float(np.sqrt(spread / (max(0.0, n - used) + _PRIOR)))

    def explained(self, arm: int) -> tuple[float, float]:
        """What an arm's own weights explain of the squares, and the degrees of freedom that they use up.

        >>> HybridRidge(shared=1, own=1, n_arms=1, lam=1.0).explained(0)
        (0.0, 0.0)
        """
        return self._arms.explained(arm)

    def _sums(self) -> tuple[Any, ...]:
        """sum z z', sum r z of all arms; sum x x', sum r x, sum x z' of each."""
        lam = self.ridge or 1.0
        zz, rz = self._shared.learnt()
        own = []
        for a in range(self.n_arms):
            xx, rx = self._arms.learnt(a)
            xz = (xx + lam * np.eye(self.own)) @ self._C[a]
            zz, rz = zz + xz.T @ self._C[a], rz + xz.T @ self._arms.theta[a]
            own.append((xx, rx, xz))
        return zz, rz, own

    def merge(self, other: HybridRidge) -> None:
        """Add what another has learnt; ``ridge`` stays what it was settled on first.

        >>> a, b = (HybridRidge(shared=1, own=1, n_arms=1, lam=1.0) for _ in range(2))
        >>> a.learn(np.ones((1, 2)), 0, 1.0)
        >>> b.learn(np.ones((1, 2)), 0, 1.0)
        >>> a.merge(b)
        >>> a.estimate(np.ones((1, 2)))[0].round(9)
        array([0.8])
        """
        if other.ridge is None:
            return
        (zz, rz, own), (more_zz, more_rz, more_own) = self._sums(), other._sums()
        lam = self.ridge if self.ridge is not None else other.ridge
        self._begin(lam)
        A = lam * np.eye(self.shared) + zz + more_zz
        b = lam * self._shared.prior_means[0] + rz + more_rz
        for a, ((xx, rx, xz), (more_xx, more_rx, more_xz)) in enumerate(zip(own, more_own)):
            gram, crossed = lam * np.eye(self.own) + xx + more_xx, xz + more_xz
            moments = lam * self._arms.prior_means[a] + rx + more_rx
            kernels.refit(self._arms.models[a], gram, moments)
            self._C[a] = np.linalg.solve(gram, crossed)
            A, b = A - crossed.T @ self._C[a], b - crossed.T @ self._arms.theta[a]
        kernels.refit(self._shared.models[0], np.ascontiguousarray((A + A.T) / 2), b)

    def add_model(self) -> None:
        """One more arm, of which only what is shared is known.

        >>> model = HybridRidge(shared=1, own=1, n_arms=1)
        >>> model.add_model()
        >>> model.n_arms
        2
        """
        self._arms.add_model()
        self._C = np.concatenate([self._C, np.zeros((1, self.own, self.shared))])
        if self.prior_mean is not None and self.prior_mean.ndim == 2:
            new = np.concatenate([self._shared.prior_means[0], np.zeros(self.own)])
            self.prior_mean = np.concatenate([self.prior_mean, new[None]])
        self.n_arms += 1

    def remove_model(self, arm: int) -> None:
        """Forget an arm's own weights; what its rewards told of the shared ones stays.

        >>> model = HybridRidge(shared=1, own=1, n_arms=2)
        >>> model.remove_model(0)
        >>> model.n_arms
        1
        """
        self._arms.remove_model(arm)
        self._C = np.delete(self._C, arm, axis=0)
        if self.prior_mean is not None and self.prior_mean.ndim == 2:
            self.prior_mean = np.delete(self.prior_mean, arm, axis=0)
        self.n_arms -= 1
