"""The model of hybrid LinUCB: one ridge whose weights are partly shared by all arms and partly each arm's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import saving
from armwise.core.agent import Floats, count
from armwise.core.policy_document import LinearModel
from armwise.models.ridge import Ridge, read_mean
from armwise.models.ridge_size import MIN_SQUARED_LENGTH, RIDGE_SHARE
from armwise.native import ridge as kernels


class HybridRidge(saving.Saved):
    """E[r] = z.beta + x.theta_a: the ridge over (beta, theta_1 .. theta_K) jointly, without its big matrix.

    Per arm, A_a = lam I + sum x x' and phi_a = A_a^-1 sum r x (a ``Ridge``), and C_a = A_a^-1 B_a with B_a = sum x z'.
    What an arm's own weights cannot explain of z, u = z - C_a' x, is all that the shared ridge A_0 learns: a reward
    adds u u' / (1 + x' A_a^-1 x) to A_0, which is line 17 to 23 of Li et al. 2010, Algorithm 2, as one step of rank
    one. Then mean = u.beta + x.phi_a and width^2 = u' A_0^-1 u + x' A_a^-1 x (lines 12 and 13, multiplied out).
    With ``centred`` rewards are measured from ``centre``; ``lam=None`` follows the rows: see ``Ridge``.
    """

    _learnt = ("ridge", "centre", "_shared", "_arms", "_C", "_logs")
    discount: float = 1.0  # it does not forget
    window: int | None = None

    def __init__(
        self,
        shared: int,
        own: int,
        n_arms: int,
        lam: float | None = None,
        prior_mean: ArrayLike | None = None,
        centred: bool = False,
    ) -> None:
        self.shared, self.own, self.n_arms = count("shared", shared), count("own", own), count("n_arms", n_arms)
        self.lam, self.ridge, self.prior_mean = lam, lam, None
        self.centred, self.centre = bool(centred), 0.0
        self._logs = np.zeros(2)  # the sum of ln ||row||^2, and how many rows
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
        # The shared model's row for rewards of 1 is filled in here: what it learns of them is left over by the arms'.
        self._shared = Ridge(self.shared, in_use, prior_mean=beta, centred=self.centred)
        self._arms = Ridge(self.own, in_use, self.n_arms, prior_mean=theta, centred=self.centred)
        self._shared._blank = self._arms._blank = False  # this model says where the centre is
        self._arms.recentre(self.centre)
        self._C = np.zeros((self.n_arms, self.own, self.shared))

    @property
    def _blank(self) -> bool:
        """Whether the first reward, its own or one that is merged, has still to say where the centre is."""
        return self.centred and not self._shared.models[0, -1, 0]

    def _parts(self, X: Floats) -> tuple[Floats, Floats, Floats]:
        """u, x, and W x of each arm's row, where A_a^-1 = W'W."""
        Z, X = X[:, : self.shared], X[:, self.shared :]
        W = self._arms.models[:, : self.own, : self.own]
        U = Z - np.einsum("ais,ai->as", self._C, X)
        return np.ascontiguousarray(U), X, np.einsum("aij,aj->ai", W, X)

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Means and widths, of one row per arm."""
        U, X, projected = self._parts(X)
        means, widths = self._shared.estimate(U)
        means = means + np.einsum("ai,ai->a", X, self._arms.theta) + self.centre
        return means, np.sqrt(widths**2 + np.einsum("ai,ai->a", projected, projected))

    def exported(self, alpha: float) -> tuple[LinearModel, ...]:
        """Of each arm the weights over its row, and the factor of its width."""
        own, models = np.eye(self.own), []
        for a in range(self.n_arms):
            through = np.hstack([np.eye(self.shared), -self._C[a].T])  # u = z - C_a' x
            mine = np.hstack([np.zeros((self.own, self.shared)), own])
            weights = self._shared.theta[0] @ through + self._arms.theta[a] @ mine
            factor = np.vstack([self._shared.factor() @ through, self._arms.factor(a) @ mine])
            models.append(LinearModel(weights, ((alpha, factor),)))
        return tuple(models)

    def learn(self, X: Floats, arm: int, reward: float) -> None:
        """Learn the reward of an arm, whose row is X[arm]."""
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(X[arm] @ X[arm])
        if not np.isfinite(size):
            raise ValueError("context must be finite (and its square must not overflow)")
        blank = self._blank
        if self.ridge is None and size > MIN_SQUARED_LENGTH:
            self._begin(RIDGE_SHARE * size)
        z, x = X[arm, : self.shared], np.ascontiguousarray(X[arm, self.shared :])
        W = self._arms.factor(arm)
        u, projected = z - x @ self._C[arm], W @ x
        with np.errstate(over="ignore", invalid="ignore"):
            grown = 1.0 + float(projected @ projected)
        if not np.isfinite(grown):  # before anything is learnt
            raise ValueError("context must be finite (and its square must not overflow)")
        root, gain = np.sqrt(grown), (projected @ W) / grown  # A_a^-1 x / (1 + x' A_a^-1 x), before it is learnt
        if blank:
            self.recentre(reward)
        ones = self._shared._ones[0].copy() if self.centred else None
        turned = self._shared.factor() @ (u / root)
        pull = (turned @ self._shared.factor()) / (1.0 + float(turned @ turned))
        self._shared.update(u / root, (reward - self.centre - float(x @ self._arms.theta[arm])) / root)
        if ones is not None:
            rest = (1.0 - float(x @ self._arms._ones[arm])) / root
            self._shared._ones[0] = ones + pull * (rest - float(u @ ones) / root)
        self._arms.update(x, reward, arm)
        self._C[arm] += np.outer(gain, u)  # as phi moves by gain (r - x.phi)
        if size > MIN_SQUARED_LENGTH:
            self._logs += np.log(size), 1.0

    least_share = 1.0  # an open ``lam`` is the smallest of ``Ridge``

    def recentre(self, centre: float) -> None:
        """Measure rewards from another centre, as ``Ridge.recentre``."""
        self._shared.theta[:] -= (centre - self.centre) * self._shared._ones
        self._arms.recentre(centre)
        self.centre = centre

    def rescale(self, least: float = 0.01, rewards: tuple[float, float, float] | None = None) -> None:
        """Let an open ``lam`` follow the size of all rows learnt so far, unless it moves by less than this share."""
        if self.lam is not None or not self._logs[1]:
            return
        lam = RIDGE_SHARE * float(np.exp(self._logs[0] / self._logs[1]))
        if abs(lam - (self.ridge or 1.0)) > least * lam:
            self._assemble(lam, *self._sums())

    def explained(self, arm: int | None = None) -> tuple[float, float, float, float]:
        """What an arm's own weights, or the joint model (None), explain, as ``Ridge.explained``.

        Of the joint model, b' A^-1 b and tr(A^-1) of its matrix, by blocks.
        """
        if arm is not None:
            return self._arms.explained(arm)
        fit, used, cross, ones = (np.array(self._shared.explained()) + self._arms.explained()).tolist()
        through = self._C @ self._shared.factor().T  # what A_0^-1 adds to the inverse's block of each arm
        return fit, used - (self.ridge or 1.0) * float(np.einsum("aij,aij->", through, through)), cross, ones

    def _sums(self) -> tuple[Any, ...]:
        """sum z z', sum r z and sum z of all arms; sum x x', sum r x, sum x and sum x z' of each."""
        lam = self.ridge or 1.0
        zz, rz = self._shared.learnt()
        z, own = self._shared._sums(0)[2], []
        for a in range(self.n_arms):
            xx, rx = self._arms.learnt(a)
            x = self._arms._sums(a)[2]
            xz = (xx + lam * np.eye(self.own)) @ self._C[a]
            zz, rz = zz + xz.T @ self._C[a], rz + xz.T @ self._arms.theta[a]
            if self.centred:
                z = z + xz.T @ self._arms._ones[a]
            own.append((xx, rx, x, xz))
        return zz, rz, z, own

    def _assemble(self, lam: float, zz: Floats, rz: Floats, z: Floats, own: Sequence[tuple[Floats, ...]]) -> None:
        """The model of these sums, rewards measured from the centre."""
        before = self._shared.models, self._arms.models
        self._begin(lam)
        A, b = lam * np.eye(self.shared) + zz, lam * self._shared.prior_means[0] + rz
        for a, (xx, rx, x, xz) in enumerate(own):
            gram = lam * np.eye(self.own) + xx
            kernels.refit(self._arms.models[a], gram, lam * self._arms.prior_means[a] + rx, x)
            self._C[a] = np.linalg.solve(gram, xz)
            A, b = A - xz.T @ self._C[a], b - xz.T @ self._arms.theta[a]
            if self.centred:
                z = z - xz.T @ self._arms._ones[a]
        kernels.refit(self._shared.models[0], np.ascontiguousarray((A + A.T) / 2), b, z)
        for models, counted in zip((self._shared.models, self._arms.models), before) if self.centred else ():
            models[:, -1, :3] = counted[:, -1, :3]  # without rows a model would explain nothing

    def merge(self, other: HybridRidge) -> None:
        """Add what another has learnt; an open ``lam`` follows the rows of both."""
        if self._blank:
            self.recentre(other.centre)
        for mine, more in ((self._shared, other._shared), (self._arms, other._arms)) if self.centred else ():
            mine.models[:, -1, :3] += more.models[:, -1, :3]
        if other.ridge is None:
            return
        (zz, rz, z, own), (more_zz, more_rz, more_z, more_own) = self._sums(), other._sums()
        by = other.centre - self.centre if self.centred else 0.0
        more_rz = more_rz + by * more_z if self.centred else more_rz
        summed = [
            (xx + more_xx, rx + more_rx + (by * more_x if self.centred else 0.0), x + more_x, xz + more_xz)
            for (xx, rx, x, xz), (more_xx, more_rx, more_x, more_xz) in zip(own, more_own)
        ]
        self._logs = self._logs + other._logs
        lam = self.ridge if self.ridge is not None else other.ridge
        if self.lam is None:
            lam = RIDGE_SHARE * float(np.exp(self._logs[0] / self._logs[1]))
        self._assemble(lam, zz + more_zz, rz + more_rz, z + more_z, summed)

    def add_model(self) -> None:
        """One more arm, of which only what is shared is known."""
        self._arms.add_model()
        self._C = np.concatenate([self._C, np.zeros((1, self.own, self.shared))])
        if self.prior_mean is not None and self.prior_mean.ndim == 2:
            new = np.concatenate([self._shared.prior_means[0], np.zeros(self.own)])
            self.prior_mean = np.concatenate([self.prior_mean, new[None]])
        self.n_arms += 1

    def remove_model(self, arm: int) -> None:
        """Forget an arm's own weights; what its rewards told of the shared ones stays."""
        self._arms.remove_model(arm)
        self._C = np.delete(self._C, arm, axis=0)
        if self.prior_mean is not None and self.prior_mean.ndim == 2:
            self.prior_mean = np.delete(self.prior_mean, arm, axis=0)
        self.n_arms -= 1
