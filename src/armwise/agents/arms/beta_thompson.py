"""BetaThompson: play an arm with the probability that it is the best (Thompson 1933; Agrawal and Goyal 2013)."""

from __future__ import annotations

from typing import Self

import numpy as np

from armwise.agents.arms.arm_batches import BetaBatches
from armwise.core.agent import Choice, Floats, Seed, Theory, count, positive
from armwise.core.capabilities.merging import Merging
from armwise.core.capabilities.per_arm import PerArm
from armwise.native import kary, winning
from armwise.native.choice import draw
from armwise.theory import bounds, hypotheses


class BetaThompson(Merging, PerArm):
    """Draw each arm's success rate from its Beta posterior and play the largest.

    A reward r in [0, 1] adds r to the successes and 1 - r to the failures: for 0 and 1 the exact Bernoulli
    posterior; for the rest the mean of what tossing a coin of bias r would add (Agrawal and Goyal 2012), without
    the coin's noise and with the same posterior mean. ``prior`` is the (successes, failures) each arm starts with.

    With ``draws=1`` a choice does not know its probability (None). ``draws=M > 1`` asks for it: the arm is then drawn
    from the arms' exact chances to win, one integral each (so that M does not matter). ``probabilities`` is exact.

    >>> agent = BetaThompson(n_arms=2, draws=10, seed=1)
    >>> for reward in (0.0, 1.0, 1.0):
    ...     agent.learn(None, Choice(arm=1, probability=0.5), reward)
    >>> agent.probabilities()  # 1 - E[rate] of Beta(3, 2), for the arm that is still uniform
    array([0.4, 0.6])
    """

    theory = Theory(
        section="3",
        regret="O(sqrt(T K ln K)), averaged over the prior",
        comparator="the best arm in expectation",
        assumes="rewards 0 or 1, independent; arms' rates drawn from the prior",
        reference="Thompson 1933; Agrawal, Goyal 2013; Russo, Van Roy 2016",
        regret_bound=bounds.beta_thompson,
        hypotheses=hypotheses.beta_thompson,
        call="aw.BetaThompson(n_arms={K})",
    )
    sees = "nothing"
    batches = BetaBatches()
    n_arms: int
    _learnt = ("_successes", "_failures")

    def __init__(
        self, n_arms: int, prior: tuple[float, float] = (1.0, 1.0), *, draws: int = 1, seed: Seed = None
    ) -> None:
        super().__init__(seed=seed)
        self.n_arms, self.draws = count("n_arms", n_arms), count("draws", draws)
        self._knows_probability = self.draws > 1
        if not isinstance(prior, (tuple, list)) or len(prior) != 2:
            raise ValueError(f"prior must be a pair (successes, failures) of numbers > 0, got {prior!r}")
        self.prior = (positive("prior[0]", prior[0]), positive("prior[1]", prior[1]))
        self._successes = np.full(self.n_arms, self.prior[0])
        self._failures = np.full(self.n_arms, self.prior[1])

    def _probabilities(self, context: None) -> Floats:
        return winning.beta(self._successes, self._failures)

    def _choose(self, context: None) -> Choice:
        if self.draws == 1:
            return Choice(kary.beta_winner(self._successes, self._failures, self._rng), None)
        p = self._probabilities(context)
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]))

    def _learn(self, context: None, choice: Choice, reward: float) -> None:
        self._successes[choice.arm] += reward
        self._failures[choice.arm] += 1.0 - reward

    def _estimates(self, context: None) -> tuple[Floats, Floats]:
        total = self._successes + self._failures  # mean and deviation of the Beta posterior
        means = self._successes / total
        return means, np.sqrt(means * (1.0 - means) / (total + 1.0))

    def _merge(self, other: Self) -> None:
        self._successes += other._successes - self.prior[0]
        self._failures += other._failures - self.prior[1]

    def _add_arm(self) -> None:
        self._successes = np.append(self._successes, self.prior[0])
        self._failures = np.append(self._failures, self.prior[1])

    def _remove_arm(self, arm: int) -> None:
        self._successes, self._failures = np.delete(self._successes, arm), np.delete(self._failures, arm)
