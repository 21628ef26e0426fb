"""C2UCB: a list of arms that are good one by one and differ from each other (Qin, Chen, Zhu 2014)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from armwise.agents.linear.linucb import Ellipsoid
from armwise.agents.ranking.linear_ranker import LinearRanker
from armwise.agents.ranking.lists import OpenSlots
from armwise.agents.ranking.ranker import GreedyRanker, Scorer
from armwise.core.agent import Theory
from armwise.core.arguments import positive
from armwise.core.choices import Floats
from armwise.core.seeds import Seed
from armwise.theory import ranking_bounds, ranking_hypotheses


class C2UCB(LinearRanker, GreedyRanker):
    """Show arms with a large x.theta + alpha sqrt(x' A^-1 x); every slot's outcome is learnt.

    ``diversity`` > 0 adds diversity / 2 ln det(I + X_S X_S') of the list's rows X_S, greedily: an arm is worth less
    below others like it. Greedy lists reach (1 - 1/e) of the best one's value, where scores are not negative.

    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.9]])
    >>> ranker = C2UCB(dim=2, alpha=0.0, diversity=1.0, seed=1)
    >>> sorted(ranker.rank(X, 2).arms)[1]  # one of the first two, and the third
    2
    """

    theory = Theory(
        section="rankings",
        regret="O(d sqrt(T k) ln T)",
        comparator="the best list of each round",
        assumes="a reward per slot, linear in the features of its arm; the list's is their sum",
        reference="Qin, Chen, Zhu 2014",
        regret_bound=ranking_bounds.list_linucb,
        hypotheses=ranking_hypotheses.list_linucb,
        high_probability=True,
        infinite_policies=True,
        call="aw.C2UCB(dim={d}, alpha=aw.Ellipsoid(noise={R}, norm={S}, delta=0.05))",
    )
    feedback = "semi-bandit"
    reward_range = (-np.inf, np.inf)

    def __init__(
        self,
        dim: int | None = None,
        alpha: float | Ellipsoid | None = None,
        lam: float | None = None,
        *,
        diversity: float = 0.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(dim, alpha, lam, seed=seed)
        self.diversity = positive("diversity", diversity, zero=True)

    def _scorer(self, X: Floats, slots: OpenSlots) -> Scorer:
        scores, shown = self._optimistic(X), _Spread(X) if self.diversity else None

        def score(free: NDArray[np.int64]) -> Floats:
            if shown is None:
                return np.asarray(scores[free])
            shown.follow(slots.shown)
            return np.asarray(scores[free] + 0.5 * self.diversity * np.log1p(shown.left[free]))

        return score


class _Spread:
    """x' (I + X_S' X_S)^-1 x of every row x, as the list S grows: what is new about each arm."""

    def __init__(self, X: Floats) -> None:
        self._solved = X.copy()  # rows times (I + X_S' X_S)^-1
        self._X, self._n = X, 0
        self.left = np.einsum("ad,ad->a", X, X)

    def follow(self, above: list[int]) -> None:
        for arm in above[self._n :]:
            direction = self._solved[arm].copy()
            along = self._X @ direction
            share = along / (1.0 + along[arm])  # before the products, which would overflow where rows are large
            self._solved -= np.outer(share, direction)
            self.left = np.maximum(self.left - along * share, 0.0)
        self._n = len(above)
