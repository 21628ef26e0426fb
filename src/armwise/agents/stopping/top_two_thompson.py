"""TopTwoThompson: a draw of the posterior leads, and its closest rival shares the rounds with it (Russo 2016)."""

from __future__ import annotations

import numpy as np

from armwise.agents.stopping.stopping_agent import Kind, StoppingAgent
from armwise.core.agent import Floats, Seed, Theory, fraction
from armwise.native import winning


class TopTwoThompson(StoppingAgent):
    """Draw a leader from the posterior; play it with probability ``share``, else the arm hardest to tell from it.

    The leader is the best of one draw of all arms' means; the challenger has the least advantage of the leader to
    overcome (TS-TC of Jourdan et al. 2022; T3C of Shang et al. 2020). So every arm's probability is known: it is the
    chance to lead, and to challenge whoever leads. It stops by Chernoff's rule, as ``TrackAndStop``.

    Args:
        delta: The probability of a wrong answer, at most.
        share: The leader's share of the rounds; 1/2 is never far from the best one.
        noise: The sub-Gaussian deviation of rewards that are amounts; None is for rewards in [0, 1].
        threshold: "proved" or "heuristic", which stops sooner and for which nothing is proved.

    >>> agent = TopTwoThompson(n_arms=2, delta=0.1, seed=1)
    >>> _ = agent.play(None, np.tile([0.2, 0.8], (200, 1)))
    >>> agent.answer
    1
    """

    theory = Theory(
        section="beyond the survey",
        regret="none: it stops after T* ln(1 / delta) rounds for small delta, at most twice that where share is 1/2",
        comparator="the best arm, named wrongly with probability at most delta",
        assumes="rewards in [0, 1] or sub-Gaussian, independent, one distribution per arm; all means differ",
        reference="Russo 2016; Shang et al. 2020; Jourdan et al. 2022; Kaufmann, Koolen 2021",
        call="aw.TopTwoThompson(n_arms={K}, delta={delta})",
    )

    def __init__(
        self,
        n_arms: int,
        delta: float = 0.05,
        *,
        share: float = 0.5,
        noise: float | None = None,
        threshold: Kind = "proved",
        seed: Seed = None,
    ) -> None:
        super().__init__(n_arms, delta, noise=noise, threshold=threshold, seed=seed)
        self.share = fraction("share", share)

    def _search(self) -> Floats:
        leads, means = self._chances_to_lead(), self._means
        p = self.share * leads
        for leader in np.flatnonzero(leads).tolist():
            others = [b for b in range(self.n_arms) if b != leader]
            least = [self._evidence(leader, b, means) for b in others]
            hardest = [b for b, evidence in zip(others, least, strict=True) if evidence <= min(least)]
            p[hardest] += (1.0 - self.share) * leads[leader] / len(hardest)
        return p

    def _chances_to_lead(self) -> Floats:
        if self.noise is None:
            return winning.beta(1.0 + self._totals, 1.0 + self._counts - self._totals)
        chances = winning.gaussian(self._totals / self._counts, np.diag(self.noise**2 / self._counts))
        assert chances is not None  # a diagonal covariance of positive numbers has a root
        return chances

    def _verdict(self) -> int | None:
        return self._likelihood_ratio_verdict()
