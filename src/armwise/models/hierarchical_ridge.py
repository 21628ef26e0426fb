"""A ridge that is drawn toward a ridge in a subspace: CoFineUCB's model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import saving
from armwise.core.agent import Floats
from armwise.models.ridge import Ridge, read_mean
from armwise.native import cofine


class HierarchicalRidge(saving.Saved):
    """A ridge estimate in R^d drawn toward a ridge estimate in the coarse space of z = U'x.

    M = lam I + sum x x', w = M^-1 (sum x r + lam U w~); M~ = lam_coarse I + sum z z', w~ = M~^-1 sum z r.
    With a ``prior_mean`` r is what rewards bring beyond x.prior_mean, which is added to the means.
    """

    _learnt = ("_fine", "_coarse")

    def __init__(self, subspace: Floats, lam: float, lam_coarse: float, prior_mean: ArrayLike | None = None) -> None:
        self.subspace, self.lam, self.lam_coarse = subspace, lam, lam_coarse
        d, k = subspace.shape
        self.prior_mean = None if prior_mean is None else read_mean(prior_mean, 1, d).ravel()
        self._fine, self._coarse = Ridge(d, lam), Ridge(k, lam_coarse)

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The fine and the coarse model, U and the prior mean (empty: none), for the kernels."""
        prior = np.empty(0) if self.prior_mean is None else self.prior_mean
        return self._fine.models, self._coarse.models, self.subspace, prior

    def update(self, x: Floats, reward: float) -> None:
        """Learn one row and its reward, at both levels."""
        cofine.learn(*self.arrays, x, reward)

    def merge(self, other: HierarchicalRidge) -> None:
        """Add what another has learnt, at both levels."""
        self._fine.merge(other._fine)
        self._coarse.merge(other._coarse)

    def estimate(self, X: Floats) -> tuple[Floats, Floats, Floats]:
        """Means w.x, fine widths ||x||_(M^-1) and coarse widths lam ||U' M^-1 x||_(M~^-1) of the rows of X."""
        return cofine.estimate(*self.arrays, self.lam, X)
