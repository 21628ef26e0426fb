"""SuccessiveElimination: play all arms in turn, and drop those that cannot be the best (Even-Dar et al. 2006)."""

from __future__ import annotations

import numpy as np

from armwise.agents.stopping.stopping_agent import StoppingAgent
from armwise.core.agent import Floats, Theory
from armwise.native.choice import tied_probabilities


class SuccessiveElimination(StoppingAgent):
    """Play the arms that are left in turn; drop an arm whose upper end is below another's lower end.

    It stops when one arm is left. Intervals are {x: n d(mean, x) <= level}, as in ``LUCB``.

    Args:
        delta: The probability of a wrong answer, at most.
        noise: The sub-Gaussian deviation of rewards that are amounts; None is for rewards in [0, 1].
        threshold: "proved" (Kaufmann, Koolen 2021) or "heuristic", for which nothing is proved.

    >>> agent = SuccessiveElimination(n_arms=3, delta=0.1, seed=1)
    >>> _ = agent.play(None, np.tile([0.0, 0.5, 1.0], (300, 1)))
    >>> agent.answer, agent.left
    (2, [2])
    """

    theory = Theory(
        section="beyond the survey",
        regret="none: it stops after O(sum of ln(K ln(1 / gap) / delta) / gap^2) rounds",
        comparator="the best arm, named wrongly with probability at most delta",
        assumes="rewards in [0, 1] or sub-Gaussian, independent, one distribution per arm; one arm is best",
        reference="Even-Dar, Mannor, Mansour 2006; Kaufmann, Koolen 2021",
        call="aw.SuccessiveElimination(n_arms={K}, delta={delta})",
    )
    _learnt = (*StoppingAgent._learnt, "_left")

    def _begin(self) -> None:
        self._left = np.ones(self.n_arms, bool)

    @property
    def left(self) -> list[int]:
        """The arms that may still be the best.

        >>> SuccessiveElimination(n_arms=3).left
        [0, 1, 2]
        """
        return [int(a) for a in np.flatnonzero(self._left)]

    def _search(self) -> Floats:
        return tied_probabilities(np.where(self._left, -self._counts, -np.inf))

    def _verdict(self) -> int | None:
        means, left = self._means, self.left
        ends = {a: self._interval(a, means[a]) for a in left}
        highest = max(low for low, _ in ends.values())
        for a in left:
            self._left[a] = ends[a][1] >= highest
        left = self.left
        return left[0] if len(left) == 1 else None
