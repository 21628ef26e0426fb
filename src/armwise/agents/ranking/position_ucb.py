"""PBM-UCB: optimism where slots are not examined equally often (Lagree, Vernade, Cappe 2016)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.ranking.examination import PositionRanker
from armwise.agents.ranking.lists import OpenSlots
from armwise.agents.ranking.ranker import IndexRanker
from armwise.core.agent import Theory
from armwise.core.arguments import positive
from armwise.core.choices import Floats
from armwise.core.seeds import Seed


class PositionUCB(PositionRanker, IndexRanker):
    """Show the k arms with the largest S_a / n_a + scale sqrt(N_a / n_a) sqrt(ln t / (2 n_a)).

    S_a are the clicks of arm a, N_a the times that it was shown and n_a those that it was examined: each slot counts
    kappa_slot. ``scale`` above 1 is what the theorem wants. The best arm goes where users look most. With
    ``kappa=None``, kappa is fitted with the attractions by maximum likelihood, from the clicks by arm and slot; the
    index then takes it for true.

    >>> ranker = PositionUCB(n_arms=4, kappa=[1.0, 0.5], seed=1)
    >>> ranker.learn(None, ranker.rank(None, 2), [1, 0])
    >>> ranker.t
    2
    """

    theory = Theory(
        section="rankings",
        regret="O(sum_a 1 / (kappa_k Delta_a) ln T), no constant for the lower terms",
        comparator="the best list",
        assumes="position-based clicks whose kappa is known",
        reference="Lagree, Vernade, Cappe 2016",
        exponent=0.0,
        call="aw.PositionUCB(n_arms={K}, n_slots=2)",
    )

    def __init__(
        self, n_arms: int, n_slots: int | None = None, kappa: ArrayLike | None = None, scale: float = 1.0, *,
        seed: Seed = None,
    ) -> None:  # fmt: skip
        super().__init__(n_arms, n_slots, kappa, seed=seed)
        self.scale = positive("scale", scale, zero=True)

    def _estimates(self, X: None) -> tuple[Floats, Floats]:
        examined, shown = self._shown @ self._kappa, self._shown.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            widths = np.where(shown > 0, np.sqrt(shown) / examined, np.inf)
        return self._clicks.sum(axis=1) / np.maximum(examined, 1e-12), widths

    def _scores(self, X: None) -> Floats:
        means, widths = self._estimates(X)
        level = math.log(self.t)
        with np.errstate(invalid="ignore"):
            scores = means + self.scale * math.sqrt(0.5 * level) * widths
        scores[np.isinf(widths)] = np.inf
        return scores

    def _rank(self, X: None, slots: OpenSlots) -> tuple[list[int], list[float] | None, None]:
        return (*self._place(self._scores(X), slots, self._kappa), None)

    def _next(self, X: None, slots: OpenSlots) -> Floats | None:
        return super()._next(X, slots) if (np.diff(self._kappa) <= 0).all() else None
