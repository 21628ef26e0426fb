"""CascadeLinUCB and CascadeLinThompson: the cascade with features per arm (Zong et al. 2016)."""

from __future__ import annotations

from armwise.agents.ranking.linear_ranker import LinearRanker
from armwise.agents.ranking.lists import OpenSlots
from armwise.agents.ranking.ranker import IndexRanker, fill
from armwise.core.agent import Theory
from armwise.core.arguments import positive
from armwise.core.choices import Floats
from armwise.core.seeds import Seed
from armwise.theory import ranking_bounds, ranking_hypotheses

PRACTICAL_DEVIATION = 0.25  # v of ``v=None``, in deviations of the noise


class CascadeLinUCB(LinearRanker, IndexRanker):
    """Show the k arms with the largest x.theta + alpha sqrt(x' A^-1 x); learn down to the first click.

    >>> import numpy as np
    >>> ranker = CascadeLinUCB(dim=3, seed=1)
    >>> for _ in range(50):
    ...     ranking = ranker.rank(np.eye(3), 1)
    ...     ranker.learn(np.eye(3), ranking, [arm == 2 for arm in ranking.arms])
    >>> ranker.rank(np.eye(3), 2).arms[0]
    2
    """

    theory = Theory(
        section="rankings",
        regret="O(d sqrt(T k) ln T)",
        comparator="the best list of each round",
        assumes="a cascade whose attractions are linear in the features",
        reference="Zong, Ni, Sung, Ke, Wen, Kveton 2016",
        regret_bound=ranking_bounds.list_linucb,
        hypotheses=ranking_hypotheses.list_linucb,
        high_probability=True,
        infinite_policies=True,
        call="aw.CascadeLinUCB(dim={d}, alpha=aw.Ellipsoid(noise={R}, norm={S}, delta=0.05))",
    )
    feedback = "cascade"

    def _scores(self, X: Floats) -> Floats:
        return self._optimistic(X)


class CascadeLinThompson(LinearRanker):
    """Show the k best arms under one draw of the ridge's posterior, N(theta, v^2 A^-1); learn down to the first click.

    ``v=None`` is a quarter of the deviation of the noise, as it is learnt. A list does not know its probability.

    >>> import numpy as np
    >>> CascadeLinThompson(dim=3, seed=1).rank(np.eye(3), 2).probabilities is None
    True
    """

    theory = Theory(
        section="rankings",
        regret="none proved",
        comparator="the best list of each round",
        assumes="a cascade whose attractions are linear in the features",
        reference="Zong, Ni, Sung, Ke, Wen, Kveton 2016",
        infinite_policies=True,
        call="aw.CascadeLinThompson(dim={d})",
    )
    feedback = "cascade"

    def __init__(
        self, dim: int | None = None, v: float | None = None, lam: float | None = None, *, seed: Seed = None
    ) -> None:
        self.v = None if v is None else positive("v", v, zero=True)
        super().__init__(dim, None if v is None else 0.0, lam, seed=seed)

    def _rank(self, X: Floats, slots: OpenSlots) -> tuple[list[int], list[float] | None, None]:
        v = PRACTICAL_DEVIATION * self._noise.deviation if self.v is None else self.v
        scores = X @ self.model.sample(self._rng.standard_normal(self.model.dim), v)
        arms, _ = fill(slots, lambda free: scores[free], self._rng)
        return arms, None, None
