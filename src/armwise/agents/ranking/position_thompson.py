"""Thompson sampling where slots are not examined equally often (Lagree et al. 2016; Gauthier et al. 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.ranking.examination import PositionRanker, draw_rates
from armwise.agents.ranking.lists import OpenSlots, Ranking
from armwise.core.agent import Theory
from armwise.core.arguments import positive
from armwise.core.choices import Floats
from armwise.core.seeds import Seed


class PositionThompson(PositionRanker):
    """Draw every arm's attraction from its posterior, and show the k best, the best one where users look most.

    The prior of an attraction is uniform. With ``kappa=None`` attractions and kappa are drawn in turn, each given the
    other (Gibbs sampling, one sweep per list), so that doubt about kappa is explored too. ``scale`` divides the counts
    by its square: larger explores more. A list does not know its probability.

    >>> ranker = PositionThompson(n_arms=4, n_slots=2, seed=1)
    >>> ranker.learn(None, ranker.rank(None, 2), [1, 0])
    >>> ranker.rank(None, 2).probabilities is None
    True
    """

    theory = Theory(
        section="rankings",
        regret="none proved",
        comparator="the best list",
        assumes="position-based clicks",
        reference="Lagree, Vernade, Cappe 2016; Gauthier, Gaudel, Fromont, Lompo 2021",
        call="aw.PositionThompson(n_arms={K}, n_slots=2)",
    )

    def __init__(
        self, n_arms: int, n_slots: int | None = None, kappa: ArrayLike | None = None, scale: float = 1.0, *,
        seed: Seed = None,
    ) -> None:  # fmt: skip
        super().__init__(n_arms, n_slots, kappa, seed=seed)
        self.scale = positive("scale", scale)

    def _learn(self, X: None, ranking: Ranking, outcomes: Floats) -> None:
        arms, slots = list(ranking.arms), np.arange(len(outcomes))
        self._shown[arms, slots] += 1.0
        self._clicks[arms, slots] += outcomes

    def _estimates(self, X: None) -> tuple[Floats, None]:
        """Clicks over examinations, with one of each kind as the prior has it."""
        return (self._clicks.sum(axis=1) + 1.0) / (self._shown @ self._kappa + 2.0), None

    def _rank(self, X: None, slots: OpenSlots) -> tuple[list[int], list[float] | None, None]:
        weight = 1.0 / self.scale**2
        clicks, missed = weight * self._clicks, weight * (self._shown - self._clicks)
        self._theta = draw_rates(clicks.sum(axis=1), missed, self._kappa, self._rng)
        if self.kappa is None:
            drawn = draw_rates(clicks.sum(axis=0), missed.T, self._theta, self._rng)
            self._kappa = drawn
        arms, _ = self._place(self._theta, slots, self._kappa)
        return arms, None, None
