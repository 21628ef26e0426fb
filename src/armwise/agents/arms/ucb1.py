"""UCB1: the largest mean plus confidence width, without contexts (Auer, Cesa-Bianchi, Fischer 2002)."""

from __future__ import annotations

from typing import Self

import numpy as np

from armwise.agents.arms.arm_batches import UCB1Batches
from armwise.agents.arms.counts import kary_estimates
from armwise.core.agent import Choice, Floats, IndexAgent, Seed, Theory, count, positive
from armwise.core.capabilities.merging import Merging
from armwise.core.capabilities.per_arm import PerArm
from armwise.native import kary
from armwise.theory import bounds, hypotheses


class UCB1(Merging, PerArm, IndexAgent):
    """Play the arm with the largest mean_a + scale sqrt(2 ln t / n_a); an arm never learnt comes first.

    t is one more than the rewards learnt, n_a how many of them were arm a's. ``scale`` = 1/2 suits rewards in [0, 1],
    whose deviation is at most 1/2; 1 is the published index, which the bound is for: ``UCB1.theoretical``.

    >>> agent = UCB1(n_arms=2, seed=1)
    >>> played = agent.play(None, np.tile([0.2, 0.8], (200, 1)))
    >>> int(played.arms.sum()) > 150
    True
    """

    theory = Theory(
        section="3",
        regret="O(sqrt(T K ln T))",
        comparator="the best arm in expectation",
        assumes="rewards in [0, 1], independent, one distribution per arm",
        reference="Auer, Cesa-Bianchi, Fischer 2002",
        regret_bound=bounds.ucb1,
        hypotheses=hypotheses.ucb1,
        call="aw.UCB1(n_arms={K})",
    )
    sees = "nothing"
    batches = UCB1Batches()
    n_arms: int
    _learnt = ("_totals", "_counts")

    def __init__(self, n_arms: int, scale: float = 0.5, *, seed: Seed = None) -> None:
        super().__init__(seed=seed)
        self.n_arms, self.scale = count("n_arms", n_arms), positive("scale", scale, zero=True)
        self._totals, self._counts = np.zeros(self.n_arms), np.zeros(self.n_arms)

    @classmethod
    def theoretical(cls, n_arms: int, *, seed: Seed = None) -> Self:
        """The published index, which the theorem is about.

        >>> UCB1.theoretical(n_arms=2)
        UCB1(n_arms=2, scale=1.0)
        """
        return cls(n_arms, 1.0, seed=seed)

    def _scores(self, context: None) -> Floats:
        return kary.ucb1_scores(self._totals, self._counts, self.scale)

    def _learn(self, context: None, choice: Choice, reward: float) -> None:
        self._totals[choice.arm] += reward
        self._counts[choice.arm] += 1.0

    def _estimates(self, context: None) -> tuple[Floats, Floats]:
        return kary_estimates(self._totals, self._counts)

    def _merge(self, other: Self) -> None:
        self._totals += other._totals
        self._counts += other._counts

    def _add_arm(self) -> None:
        self._totals, self._counts = np.append(self._totals, 0.0), np.append(self._counts, 0.0)

    def _remove_arm(self, arm: int) -> None:
        self._totals, self._counts = np.delete(self._totals, arm), np.delete(self._counts, arm)
