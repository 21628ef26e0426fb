"""LUCB: play the best arm and its closest rival until their intervals part (Kalyanakrishnan et al. 2012)."""

from __future__ import annotations

import numpy as np

from armwise.agents.stopping.stopping_agent import StoppingAgent
from armwise.core.agent import Floats, Theory


class LUCB(StoppingAgent):
    """Play the arm of the best mean or the one of the largest upper end among the others, each half of the time.

    It stops when the lower end of the first is above the upper end of the second. Intervals are {x: n d(mean, x) <=
    level}, with d the Kullback-Leibler divergence (KL-LUCB, Kaufmann and Kalyanakrishnan 2013). The paper plays both
    arms in each round; a coin takes that to one arm per round, and its probability is known.

    Args:
        delta: The probability of a wrong answer, at most.
        noise: The sub-Gaussian deviation of rewards that are amounts; None is for rewards in [0, 1].
        threshold: "proved" (Kaufmann, Koolen 2021) or "heuristic", for which nothing is proved.

    >>> agent = LUCB(n_arms=2, delta=0.1, seed=1)
    >>> _ = agent.play(None, np.tile([0.2, 0.8], (300, 1)))
    >>> agent.answer
    1
    """

    theory = Theory(
        section="beyond the survey",
        regret="none: it stops after O(H ln(H / delta)) rounds, H the sum of 1 / gap^2",
        comparator="the best arm, named wrongly with probability at most delta",
        assumes="rewards in [0, 1] or sub-Gaussian, independent, one distribution per arm; one arm is best",
        reference="Kalyanakrishnan et al. 2012; Kaufmann, Kalyanakrishnan 2013; Kaufmann, Koolen 2021",
        call="aw.LUCB(n_arms={K}, delta={delta})",
    )

    def _contenders(self) -> tuple[list[int], list[int], float]:
        """The arms of the best mean, the others of the largest upper end, and that end (all tie: nobody else's)."""
        means = self._means
        best = [a for a in range(self.n_arms) if means[a] == max(means)]
        others = [a for a in range(self.n_arms) if a not in best] if len(best) == 1 else best
        ends = [self._interval(a, means[a])[1] for a in others]
        return best, [a for a, end in zip(others, ends, strict=True) if end >= max(ends)], max(ends)

    def _search(self) -> Floats:
        best, rivals, _ = self._contenders()
        p = np.zeros(self.n_arms)
        p[best] += 0.5 / len(best)
        p[rivals] += 0.5 / len(rivals)
        return p

    def _verdict(self) -> int | None:
        best, _, highest = self._contenders()
        sure = len(best) == 1 and self._interval(best[0], self._means[best[0]])[0] > highest
        return best[0] if sure else None
