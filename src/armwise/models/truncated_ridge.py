"""Least squares on the directions that the rows explore well: LinREL's model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import saving
from armwise.core.agent import Floats, count
from armwise.models.ridge import read_mean
from armwise.native import truncated


class TruncatedRidge(saving.Saved):
    """Least squares on the eigenvectors of D'D whose eigenvalue is at least 1; the others are cut.

    Only D'D and D'c are kept. With D'D = U' diag(l) U and x~ = Ux cut into u~ (l >= 1) and v~ (l < 1),
    the mean is w'c = u~' diag(1/l) U D'c and the noise it carries has norm ||w||, ||w||^2 = u~' diag(1/l) u~.
    With a ``prior_mean`` c is what the rewards bring beyond x.prior_mean, which is added to the means: cut directions
    have the prior's reward instead of 0.
    """

    _learnt = ("_gram", "_b")

    def __init__(self, dim: int, prior_mean: ArrayLike | None = None) -> None:
        self.dim = count("dim", dim)
        self.prior_mean = None if prior_mean is None else read_mean(prior_mean, 1, self.dim).ravel()
        self._gram, self._b = np.zeros((dim, dim)), np.zeros(dim)
        self._prior = np.empty(0) if self.prior_mean is None else self.prior_mean  # as the kernels want it
        self._factors: tuple[Floats, int, Floats] | None = None

    def update(self, x: Floats, reward: float) -> None:
        """Append a row to D and its reward to c."""
        truncated.learn(self._gram, self._b, self._prior, x, reward)
        self._factors = None  # decomposed when next asked, at most once between two rewards

    def merge(self, other: TruncatedRidge) -> None:
        """Append another's rows."""
        self._gram += other._gram
        self._b += other._b
        self._factors = None

    def estimate(self, X: Floats, scale: float) -> tuple[Floats, Floats]:
        """Means w'c and widths ||w|| scale + ||v~|| of the rows of X."""
        if self._factors is None:
            self._factors = truncated.decompose(self._gram, self._b)
        return truncated.estimate(*self._factors, self._prior, X, scale)

    @property
    def sums(self) -> tuple[Floats, Floats, Floats]:
        """D'D and D'c themselves, for a kernel that changes them, and the prior mean (empty: none).

        What was worked out from them is forgotten.
        """
        self._factors = None
        return self._gram, self._b, self._prior

    def _restore(self, state: dict[str, Floats]) -> None:
        super()._restore(state)
        self._factors = None
