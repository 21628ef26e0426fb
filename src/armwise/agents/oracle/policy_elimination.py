"""PolicyElimination: play low-variance mixtures of the policies that may still be best (survey 4.3.2, Algorithm 8)."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.oracle.oracle_agent import OracleAgent
from armwise.agents.oracle.oracles.finite_policies import FinitePolicies, PoliciesLike
from armwise.agents.oracle.oracles.oracle import Ints
from armwise.agents.oracle.variance import Sample, smoothed, tilted
from armwise.core.agent import Choice, Floats, Seed, Theory, fraction, positive
from armwise.native.weights import importance_weighted
from armwise.theory import bounds, hypotheses

_ROUNDING = 1e-9


class PolicyElimination(OracleAgent):
    """Draw arms so that every surviving policy's estimate has variance at most 2K; drop the policies that fall behind.

    ``contexts`` is an (n, d) sample of the distribution of contexts. P_t over the survivors has
    mean_x 1 / W'(x, h(x)) <= 2K for each survivor h, W' = (1 - K mu_t) W_P + mu_t, and is checked before it plays.
    Among the distributions that have it, P_t gives the leader, the policy with the best estimate, as much as it can.
    A policy goes when R_hat_t(h) < max R_hat_t - 2 scale b_t; ``scale`` = 1 is the theorem's
    (``PolicyElimination.theoretical``). ``survivors`` holds the indices of those that remain.

    Cost: a round is O(N); P is found again, in O(log N) steps of O(J N) each (J distinct contexts in the sample), when
    a policy goes, when mu_t has fallen by a tenth, and when the leader changes (at most O(log T) times).

    >>> agent = PolicyElimination([lambda x: 0, lambda x: 1], n_arms=2, contexts=np.zeros((1, 1)), seed=1)
    >>> played = agent.play(np.zeros((3000, 1)), np.tile([0.0, 1.0], (3000, 1)))
    >>> agent.survivors, agent.probabilities([0.0]).round(2)
    (array([1]), array([0.04, 0.96]))
    """

    theory = Theory(
        section="4.3.2",
        regret="O(sqrt(T K ln(T^2 N / delta)))",
        comparator="the best policy of the class",
        assumes="contexts and rewards drawn independently from one distribution whose contexts are known, rewards in "
        "[0, 1]",
        reference="Dudik, Hsu, Kale, Karampatziakis, Langford, Reyzin, Zhang 2011",
        regret_bound=bounds.policy_elimination,
        hypotheses=hypotheses.policy_elimination,
        high_probability=True,
        erratum="policies are eliminated on R_hat_t(h), printed as delta_t(h)",
        call="aw.PolicyElimination([aw.Constant(i % {K}) for i in range({N})], n_arms={K}, "
        "contexts=np.random.default_rng(0).random((100, {d})), delta={delta})",
    )
    policies: FinitePolicies
    _oracle_name = "policies"
    _learnt = ("survivors", "_P", "_certified", "_leader", "_next")

    def __init__(
        self,
        policies: PoliciesLike,
        n_arms: int,
        contexts: ArrayLike,
        delta: float = 0.05,
        *,
        scale: float = 0.3,
        seed: Seed = None,
    ) -> None:
        self._begin_explicit(policies, n_arms, seed)
        self.scale = positive("scale", scale)
        self.contexts = np.array(self.policies._read_contexts(contexts))
        if not len(self.contexts):
            raise ValueError("contexts is empty: expected a sample of the distribution of contexts")
        self.delta = fraction("delta", delta)
        N = self.policies.n_policies
        rows, counts = np.unique(self.policies._see(self.contexts), axis=0, return_counts=True)
        self._sample = Sample(rows, counts.astype(np.float64), self.n_arms)
        self.survivors: Ints = np.arange(N)
        self._P = np.full(N, 1.0 / N)
        # v_P <= 1 / mu = 2K at the first mu, whatever P.
        self._certified, self._leader, self._next = (self._mu(1), 2.0 * self.n_arms), -1, 1

    @classmethod
    def theoretical(
        cls, policies: PoliciesLike, n_arms: int, contexts: ArrayLike, delta: float = 0.05, *, seed: Seed = None
    ) -> Self:
        """With the theorem's width b_t.

        >>> PolicyElimination.theoretical([lambda x: 0, lambda x: 1], n_arms=2, contexts=[[0.0]]).scale
        1.0
        """
        return cls(policies, n_arms, contexts, delta, scale=1.0, seed=seed)

    def _log_term(self, t: int) -> float:
        """ln(1 / delta_t), delta_t = delta / (4 N t^2)."""
        return math.log(4.0 * self.policies.n_policies * t**2 / self.delta)

    def _mu(self, t: int) -> float:
        return min(1.0 / (2 * self.n_arms), math.sqrt(self._log_term(t) / (2 * self.n_arms * t)))

    def _probabilities(self, context: Floats) -> Floats:
        arms = self.policies.recommendations(context)[self.survivors]
        return smoothed(np.bincount(arms, self._P, self.n_arms), self._mu(self.t))

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        assert choice.probability is not None
        rewards = np.zeros(self.n_arms)
        rewards[choice.arm] = importance_weighted(reward, choice.probability)
        self.policies._update(self.policies.recommendations(context), rewards)
        self._eliminate(self.t)
        self._keep_variance_low(self._mu(self.t + 1))

    def _eliminate(self, t: int) -> None:
        width = self.scale * 2.0 * math.sqrt(2 * self.n_arms * self._log_term(t) / t)  # b_t
        R_hat = self.policies.totals[self.survivors] / t
        stays = R_hat >= R_hat.max() - 2.0 * width
        if not stays.all():
            self.survivors, self._P = self.survivors[stays], self._P[stays]
            total = self._P.sum()
            self._P = self._P / total if total > 0.0 else np.full(self._P.size, 1.0 / self._P.size)
            self._certified = (1.0, math.inf)  # what held for the larger class says nothing for this mixture

    def _keep_variance_low(self, mu: float) -> None:
        """Keep P while v_P <= 2K is certain; otherwise, and for a new leader, tilt it to the leader as far as can be.

        With mu' < mu every W' falls at most by the factor mu' / mu, so that v_P grows at most by its inverse. A new
        leader waits until the rewards have grown by a tenth, so that P is found O(log T) times.
        """
        before, largest = self._certified
        leader = int(self.survivors[self.policies.totals[self.survivors].argmax()])
        due = leader != self._leader and self._n_learnt + 1 >= self._next
        if largest * before / mu <= 2.0 * self.n_arms + _ROUNDING and not due:
            return
        alive = Sample(self._sample.table[:, self.survivors], self._sample.shares, self.n_arms)
        self._P, largest = tilted(alive, mu, int(np.searchsorted(self.survivors, leader)), self._P)
        self._certified, self._leader, self._next = (mu, largest), leader, math.ceil(1.1 * (self._n_learnt + 1))
