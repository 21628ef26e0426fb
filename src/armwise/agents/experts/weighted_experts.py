"""Common base of Exp4 and Exp4P: a weight for each expert."""

from __future__ import annotations

from typing import Self

import numpy as np

from armwise.core.agent import Floats, Seed, count
from armwise.core.capabilities.merging import Merging
from armwise.native.weights import normalised


class WeightedExperts(Merging):
    """An agent over the advice of ``n_experts`` experts on ``n_arms`` arms, with exponential weights."""

    sees = "advice"
    needs_probability = True
    n_arms: int
    n_experts: int
    _learnt = ("_log_weights",)

    def __init__(self, n_experts: int, n_arms: int, *, seed: Seed = None) -> None:
        super().__init__(seed=seed)
        self.n_experts, self.n_arms = count("n_experts", n_experts), count("n_arms", n_arms)
        self._log_weights = np.zeros(self.n_experts)

    @property
    def weights(self) -> Floats:
        """The experts' weights, scaled so that they sum to 1.

        >>> import armwise as aw
        >>> aw.Exp4(n_experts=4, n_arms=2).weights
        array([0.25, 0.25, 0.25, 0.25])
        """
        return normalised(self._log_weights)

    def _merge(self, other: Self) -> None:
        self._log_weights += other._log_weights
