"""Track-and-Stop: play the arms in the shares that identify the best one soonest (Garivier, Kaufmann 2016)."""

from __future__ import annotations

import math

from armwise.agents.stopping.stopping_agent import StoppingAgent
from armwise.core.agent import Floats, Theory
from armwise.native.choice import tied_probabilities
from armwise.theory import stopping


class TrackAndStop(StoppingAgent):
    """Play the arm that is furthest behind its optimal share of the rounds, and stop by Chernoff's rule.

    The shares w* are those of the estimated means; an arm with fewer than sqrt(t) - K/2 rewards comes first
    (D-tracking). It stops when the best arm's advantage over each other one exceeds a threshold: ``"proved"`` is the
    one of Kaufmann and Koolen (2021), ``"heuristic"`` is ln((1 + ln t) / delta).

    Args:
        delta: The probability of a wrong answer, at most.
        noise: The sub-Gaussian deviation of rewards that are amounts; None is for rewards in [0, 1].
        threshold: "proved" or "heuristic", which stops sooner and for which nothing is proved.

    >>> import numpy as np
    >>> agent = TrackAndStop(n_arms=2, delta=0.1, seed=1)
    >>> played = agent.play(None, np.tile([0.2, 0.8], (200, 1)))
    >>> agent.answer, agent.stopped_at
    (1, 150)
    """

    theory = Theory(
        section="beyond the survey",
        regret="none: it stops after T* ln(1 / delta) rounds in the limit of small delta, the least possible",
        comparator="the best arm, named wrongly with probability at most delta",
        assumes="rewards in [0, 1] or sub-Gaussian, independent, one distribution per arm; one arm is best",
        reference="Garivier, Kaufmann 2016; Kaufmann, Koolen 2021",
        call="aw.TrackAndStop(n_arms={K}, delta={delta})",
    )

    def _search(self) -> Floats:
        t = float(self._counts.sum())
        if self._counts.min() < math.sqrt(t) - 0.5 * self.n_arms:
            return tied_probabilities(-self._counts)
        _, shares = stopping.optimal_shares(self._means, self.noise)
        return tied_probabilities(t * shares - self._counts)

    def _verdict(self) -> int | None:
        return self._likelihood_ratio_verdict()
