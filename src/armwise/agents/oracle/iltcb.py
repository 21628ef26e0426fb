"""ILOVETOCONBANDITS: low-variance exploration with few oracle calls (survey 4.3.3, Algorithms 10 and 11)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from armwise.agents.oracle.history import History
from armwise.agents.oracle.oracle_agent import OracleAgent
from armwise.agents.oracle.oracles.finite_policies import OracleLike
from armwise.agents.oracle.oracles.oracle import Ints, Oracle
from armwise.agents.oracle.schedules import Times, check_times, next_time
from armwise.agents.oracle.variance import smoothed
from armwise.core.agent import Choice, Floats, Seed, Theory, fraction, positive
from armwise.native.weights import importance_weighted
from armwise.theory import bounds, hypotheses


class ILoveToConBandits(OracleAgent):
    """Draw from a sparse distribution Q over policies, the rest from the leader, with a floor ``mu`` under every arm.

    At the end of an epoch Q solves, by the coordinate descent of Agarwal et al. 2014 from the Q before it,
    sum Q(pi) b_pi <= 2K and mean 1 / Q^mu(pi(x) | x) <= 2K + b_pi for every pi, b_pi = Reg_hat(pi) / (psi mu).

    ``epochs`` says after how many rewards an epoch ends: a factor (2: after 1, 2, 4, ...), a list of times, or a
    function of m. ``weights`` is Q, by policy (by index, for an explicit class); ``oracle_calls`` counts the calls.
    With an oracle that is not exact, the constraints hold for the policies that it returns; over a ``LinearOracle``
    the estimated rewards are its own regression of the rounds so far, instead of r / p.

    ``psi`` = 100, ``epochs`` = 2 and ``scale`` = 1, which multiplies mu, are the proof's
    (``ILoveToConBandits.theoretical``). As long as every Reg_hat(pi) / (psi mu) is small beside 2K, which with these
    means T up to millions, all policies are explored alike, and regret grows almost linearly; the defaults give up the
    proof and explore far less. ``baseline`` takes the mean reward so far off each reward before it is divided by its
    probability: differences of policies are estimated without bias all the same, and with less variance.

    Cost: a round asks the policies in Q; an epoch of J distinct contexts costs O(J K) and one oracle call for each
    step of the descent (O(J N) for an explicit class), with O(sqrt(K t / ln(N / delta))) steps up to logarithms.

    >>> agent = ILoveToConBandits([lambda x: 0, lambda x: 1], n_arms=2, seed=1)
    >>> played = agent.play(np.zeros((2000, 1)), np.tile([0.2, 0.8], (2000, 1)))
    >>> agent.leader, agent.probabilities([0.0]).round(1)
    (1, array([0., 1.]))
    """

    theory = Theory(
        section="4.3.3",
        regret="O(sqrt(K T ln(T N / delta)) + K ln(T N / delta))",
        comparator="the best policy of the class",
        assumes="contexts and rewards drawn independently from one distribution, rewards in [0, 1]",
        reference="Agarwal, Hsu, Kale, Langford, Li, Schapire 2014",
        regret_bound=bounds.iltcb,
        hypotheses=hypotheses.iltcb,
        high_probability=True,
        infinite_policies=True,
        erratum="Sample adds up the policies that agree, and gives the mass 1 - sum Q to the leader before smoothing",
        call="aw.ILoveToConBandits(aw.FinitePolicies([aw.Constant(i % {K}) for i in range({N})]), n_arms={K}, "
        "delta={delta})",
        survey_row="ILOVETOCONBANDITS",
    )
    oracle: Oracle
    _learnt = ("weights", "leader", "oracle_calls", "mu", "_m", "_end", "_history", "_total")

    def __init__(
        self,
        oracle: OracleLike,
        n_arms: int,
        delta: float = 0.05,
        epochs: Times = 1.3,
        *,
        psi: float = 0.1,
        scale: float = 0.1,
        baseline: bool = True,
        seed: Seed = None,
    ) -> None:
        self._begin(oracle, n_arms, seed)
        self.scale = positive("scale", scale)
        self.delta, self.epochs = fraction("delta", delta), check_times("epochs", epochs)
        self.psi, self.baseline = positive("psi", psi), bool(baseline)
        self.weights: dict[Any, float] = {}
        self.leader: Any = self.oracle.best()
        self.oracle_calls, self.mu = 0, 1.0 / (2 * self.n_arms)
        self._m, self._end = 1, next_time(self.epochs, 1, 0)
        self._history = History(self.n_arms)

    @classmethod
    def theoretical(cls, oracle: Any, n_arms: int, delta: float = 0.05, *, seed: Seed = None) -> Self:
        """With the proof's constants.

        >>> ILoveToConBandits.theoretical([lambda x: 0, lambda x: 1], n_arms=2).psi
        100.0
        """
        return cls(oracle, n_arms, delta, 2.0, psi=100.0, scale=1.0, baseline=False, seed=seed)

    def _probabilities(self, context: Floats) -> Floats:  # Algorithm 11
        arms = self.oracle._ask_all([*self.weights, self.leader], context)
        shares = [*self.weights.values(), max(0.0, 1.0 - sum(self.weights.values()))]
        masses = np.bincount(arms, shares, self.n_arms)
        return smoothed(masses / masses.sum(), self.mu)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        assert choice.probability is not None
        seen = self.oracle._see(context[None])[0]
        above = self._above_mean(reward) if self.baseline else reward
        self._history.add(seen, choice.arm, importance_weighted(above, choice.probability))
        if self.oracle.regresses:
            self.oracle._observe(seen, choice.arm, reward, choice.probability)
        if self._history.n == self._end:
            self._end_epoch()

    def _end_epoch(self) -> None:
        tau, K = self._end, self.n_arms
        spread = math.log(16.0 * tau**2 * self.oracle.n_policies / self.delta)
        self.mu = min(1.0 / (2 * K), self.scale * math.sqrt(spread / (K * tau)))
        descent = Descent(self.oracle, self._history, self.mu, self.psi, [*self.weights.items()])
        descent.run()
        self.weights, self.leader = descent.weights(), descent.leader
        self.oracle_calls += descent.calls
        self._m += 1
        self._end = next_time(self.epochs, self._m, tau)


class Descent:
    """Coordinate descent for the optimisation problem of Agarwal et al. 2014 over one history."""

    def __init__(self, oracle: Oracle, history: History, mu: float, psi: float, warm: list[tuple[Any, float]]) -> None:
        self.oracle, self.mu, self.calls = oracle, mu, 0
        self._scale_of_regret = psi * mu
        self.seen, self.shares = history.seen, history.counts / history.n
        gains = history.gains
        if oracle.regresses:  # a regression of r / p on these rows is what its argmax would begin with
            gains = history.counts[:, None] * oracle._estimates(self.seen)
        self.estimates, self._solve = np.ascontiguousarray(gains / history.n), oracle._solver(self.seen)
        self._rows = np.arange(len(self.seen))
        self.policies: dict[Any, Any] = {}  # by index or labelling: the policy, its weight, its actions, its b
        self.leader = self._call(self.estimates)
        self._best = self._value(self.oracle._act(self.leader, self.seen))
        acts = [self.oracle._act(policy, self.seen) for policy, _ in warm]
        for (policy, _), arms in zip(warm, acts):  # an oracle that is not exact may have missed one that we know
            if self._value(arms) > self._best + 1e-12:
                self.leader, self._best = policy, self._value(arms)
        self.masses = np.zeros_like(self.estimates)
        for (policy, weight), arms in zip(warm, acts):
            self._add(policy, arms, weight)

    def run(self) -> None:
        """Scale, ask for the most violated constraint, take a step; until none is violated."""
        K = self.estimates.shape[1]
        while True:
            total = sum(weight * (2 * K + b) for _, weight, _, b in self.policies.values())
            if total > 2 * K:  # step (a)
                self._scale(2 * K / total)
            inverse = 1.0 / smoothed(self.masses, self.mu)
            table = self.shares[:, None] * inverse + self.estimates / self._scale_of_regret
            policy = self._call(table)  # step (b): the largest V_pi - b_pi, up to a constant
            arms = self.oracle._act(policy, self.seen)
            chosen = inverse[self._rows, arms]
            V, S = float(self.shares @ chosen), float(self.shares @ chosen**2)
            D = V - (2 * K + self._penalty(arms))
            if D <= 0.0:
                return
            self._add(policy, arms, (V + D) / (2 * (1 - K * self.mu) * S))

    def weights(self) -> dict[Any, float]:
        """Q, without the policies that ended with no weight."""
        return {policy: weight for policy, weight, _, _ in self.policies.values() if weight > 0.0}

    def _call(self, rewards: Floats) -> Any:
        self.calls += 1
        return self._solve(rewards)

    def _value(self, arms: Ints) -> float:
        return float(self.estimates[self._rows, arms].sum())

    def _penalty(self, arms: Ints) -> float:
        return max(0.0, self._best - self._value(arms)) / self._scale_of_regret

    def _add(self, policy: Any, arms: Ints, weight: float) -> None:
        # Policies found anew by a regression are told apart by what they do, not by which object they are.
        key = policy if isinstance(policy, int) else arms.tobytes()
        known, before, _, _ = self.policies.get(key, (policy, 0.0, arms, 0.0))
        self.policies[key] = (known, before + weight, arms, self._penalty(arms))
        self.masses[self._rows, arms] += weight

    def _scale(self, factor: float) -> None:
        self.masses *= factor
        self.policies = {key: (p, w * factor, arms, b) for key, (p, w, arms, b) in self.policies.items()}
