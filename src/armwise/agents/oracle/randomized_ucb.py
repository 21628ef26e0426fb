"""RandomizedUCB: the mixture of policies with the least estimated regret whose estimates vary little (survey 4.3.2)."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from armwise.agents.oracle.cutting_planes import LeastGap
from armwise.agents.oracle.history import History
from armwise.agents.oracle.oracle_agent import OracleAgent
from armwise.agents.oracle.oracles.finite_policies import FinitePolicies, PoliciesLike
from armwise.agents.oracle.schedules import Times, check_times, next_time
from armwise.agents.oracle.variance import Sample, smoothed
from armwise.core.agent import Choice, Floats, Seed, Theory, fraction, positive
from armwise.core.tools.extras import expect
from armwise.native.weights import importance_weighted
from armwise.theory import bounds, hypotheses


class RandomizedUCB(OracleAgent):
    """Draw the arm from W' = (1 - K mu_t) W_P + mu_t, P the solution of Algorithm 9 over the rewards learnt.

    min_P P.Delta such that, for every distribution Q over the policies, v_P.Q <= max(4K, c (Delta.Q)^2), with
    c = (t - 1) / (180 C_(t-1)), C_t = scale^2 2 ln(N t / delta), mu_t = min(1 / (2K), sqrt(C_t / (2 K t))).

    ``scale`` multiplies the deviations that are allowed for, hence mu_t; 1 is the paper's:
    ``RandomizedUCB.theoretical``.

    ``schedule`` says at how many rewards P is found again: a factor (2: at 1, 2, 4, ...; 1: every time), a list of
    times, or a function of m; mu_t is this round's. P always satisfies its constraints, checked by exact separation
    on the convex hull before it plays; its objective is within ``tolerance`` (in units of reward, less than
    the paper allows) of the least.

    Cost: a round is O(N); a solution O(J N) for each step of the cutting planes, J the distinct contexts seen.
    Seconds for N = 500 unrelated policies, under a minute for N = 10,000; far less where policies agree.

    >>> agent = RandomizedUCB([lambda x: 0, lambda x: 1], n_arms=2, seed=1)
    >>> played = agent.play(np.zeros((2000, 1)), np.tile([0.2, 0.8], (2000, 1)))
    >>> agent.probabilities([0.0]).round(2)
    array([0.11, 0.89])
    """

    theory = Theory(
        section="4.3.2",
        regret="O(sqrt(T K ln(T N / delta)))",
        comparator="the best policy of the class",
        assumes="contexts and rewards drawn independently from one distribution, rewards in [0, 1]",
        reference="Dudik, Hsu, Kale, Karampatziakis, Langford, Reyzin, Zhang 2011",
        regret_bound=bounds.randomized_ucb,
        hypotheses=hypotheses.randomized_ucb,
        high_probability=True,
        infinite_policies=True,
        call="aw.RandomizedUCB([aw.Constant(i % {K}) for i in range({N})], n_arms={K}, delta={delta})",
        survey_row="Randomized UCB",
    )
    policies: FinitePolicies
    _oracle_name = "policies"
    _learnt = ("P", "_m", "_next", "_history")

    def __init__(
        self,
        policies: PoliciesLike,
        n_arms: int,
        delta: float = 0.05,
        schedule: Times = 2.0,
        tolerance: float = 1e-3,
        *,
        scale: float = 0.1,
        seed: Seed = None,
    ) -> None:
        expect("scipy")  # whose linear programmes it solves, at some rounds
        self._begin_explicit(policies, n_arms, seed)
        self.scale = positive("scale", scale)
        self.delta, self.schedule = fraction("delta", delta), check_times("schedule", schedule)
        self.tolerance = positive("tolerance", tolerance)
        self.P = np.full(self.policies.n_policies, 1.0 / self.policies.n_policies)
        self._history = History(self.n_arms)
        self._m, self._next = 1, next_time(self.schedule, 1, 0)

    @classmethod
    def theoretical(cls, policies: PoliciesLike, n_arms: int, delta: float = 0.05, *, seed: Seed = None) -> Self:
        """With the paper's constants.

        >>> RandomizedUCB.theoretical([lambda x: 0, lambda x: 1], n_arms=2).scale
        1.0
        """
        return cls(policies, n_arms, delta, scale=1.0, seed=seed)

    def _C(self, t: int) -> float:
        return self.scale**2 * 2.0 * math.log(self.policies.n_policies * t / self.delta)

    def _mu(self, t: int) -> float:
        return min(1.0 / (2 * self.n_arms), math.sqrt(self._C(t) / (2 * self.n_arms * t)))

    def _probabilities(self, context: Floats) -> Floats:
        masses = np.bincount(self.policies.recommendations(context), self.P, self.n_arms)
        return smoothed(masses, self._mu(self.t))

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        assert choice.probability is not None
        row, rewards = self.policies.recommendations(context), np.zeros(self.n_arms)
        rewards[choice.arm] = importance_weighted(reward, choice.probability)
        self.policies._update(row, rewards)
        self._history.add(row, choice.arm, rewards[choice.arm])
        if self._history.n == self._next:
            self._solve()
            self._m += 1
            self._next = next_time(self.schedule, self._m, self._next)

    def _solve(self) -> None:
        n, totals = self._history.n, self.policies.totals
        sample = Sample(self._history.seen, self._history.counts, self.n_arms)
        problem = LeastGap(
            sample,
            (totals.max() - totals) / n,
            mu=self._mu(n + 1),
            c=n / (180.0 * self._C(n)),
            start=self.P,
            tolerance=self.tolerance,
        ).solve()
        broken = problem.violation(problem.P)
        if broken > 1e-6:
            raise RuntimeError(f"RandomizedUCB found no distribution within its constraints: off by {broken}")
        self.P = problem.P
