"""OnlineCover: the practical relative of ILoveToConBandits (beyond the survey; Agarwal et al. 2014, section 6)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from armwise.agents.oracle.oracle_agent import PreparedBatches
from armwise.agents.oracle.oracles.finite_policies import OracleLike, as_oracle
from armwise.agents.oracle.oracles.oracle import Oracle
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, count, positive
from armwise.models.ridge import Ridge


class OnlineCover(Agent):
    """Draw an arm from the votes of ``size`` policies, each paid to choose what those before it neglect.

    p_t = (1 - K epsilon_t) votes / size + epsilon_t with epsilon_t = min(1 / K, 1 / sqrt(K t)); ``uniform=False``
    leaves epsilon_t out of p_t. The first policy learns the estimated rewards; policy i learns them plus
    psi epsilon_t / (epsilon_t + (1 - K epsilon_t) q_i(a)), where q_i(a) is the share of the policies before it that
    choose a, so that together they cover the good arms. ``psi`` larger explores more.

    ``oracle`` is any argmax oracle (explicit policies, LinearOracle, or over scikit-learn); each policy is a copy of
    it that learns row by row. ``estimator`` says from what. A ``LinearOracle`` regresses the arms that were played: as
    they are ("dm", its default), which varies least, or each round weighed 1 / p ("iwr"), the regression that uniform
    play would have given, also where rewards are not linear. For other classes f, a ridge model (``lam``) of each arm,
    guesses: "dr", their default, is f_a + 1{a = a_t} (r - f_a) / p, and "ips" the same with f = 0: unbiased whatever f
    is. "dm" is f itself, which varies least, but teaches the policies the mistakes of f where rewards are not linear.
    A round costs 2 ``size`` votes and ``size`` updates; explicit policies are asked once per round, in ``play`` once
    per block of rounds.

    >>> agent = OnlineCover([lambda x: 0, lambda x: int(x[0] > 0)], n_arms=2, seed=1)
    >>> for t in range(400):
    ...     x = np.array([(-1.0) ** t])
    ...     choice = agent.choose(x)
    ...     agent.learn(x, choice, reward=float(choice.arm == (x[0] > 0)))
    >>> agent.probabilities([1.0]).round(2)
    array([0.04, 0.96])
    """

    theory = Theory(
        section="beyond the survey",
        regret="not proved: the online form of ILoveToConBandits",
        comparator="the best policy of the class",
        assumes="contexts and rewards drawn independently from one distribution, rewards in [0, 1]",
        reference="Agarwal, Hsu, Kale, Langford, Li, Schapire 2014; Bietti, Agarwal, Langford 2021",
        infinite_policies=True,
        call="aw.OnlineCover(aw.LinearOracle(dim={d}, n_arms={K}), n_arms={K})",
    )
    sees = "shared"
    needs_probability = True
    batches = PreparedBatches(lambda agent: agent._policies[0])
    n_arms: int
    _learnt = ("_policies", "_model")

    def __init__(
        self,
        oracle: OracleLike,
        n_arms: int,
        *,
        size: int = 4,
        psi: float = 0.1,
        uniform: bool = True,
        estimator: Literal["iwr", "dm", "dr", "ips"] | None = None,
        lam: float | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.n_arms, self.size = count("n_arms", n_arms), count("size", size)
        self.oracle: Oracle = as_oracle(oracle).fresh(self.n_arms)
        self.dim = self.oracle.dim
        self.psi, self.uniform = positive("psi", psi, zero=True), bool(uniform)
        self.lam = None if lam is None else positive("lam", lam)
        if estimator not in (None, "iwr", "dm", "dr", "ips"):
            raise ValueError(f"estimator must be 'iwr', 'dm', 'dr' or 'ips', got {estimator!r}")
        if estimator == "iwr" and not self.oracle.regresses:
            came = type(self.oracle).__name__
            raise ValueError(
                f"estimator 'iwr' is for an oracle that regresses, as LinearOracle, got {came}: expected 'dr'"
            )
        self.estimator = estimator or ("dm" if self.oracle.regresses else "dr")
        self._policies = [self.oracle.fresh(self.n_arms) for _ in range(self.size)]
        self._model: Ridge | None = None  # made for the first context learnt, whose length it has

    def _epsilon(self) -> float:
        return min(1.0 / self.n_arms, 1.0 / math.sqrt(self.n_arms * self.t))

    def _read_once(self, x: Floats) -> None:
        """The copies are of one class: what its policies recommend is asked by the first, for all."""
        first = self._policies[0]
        first._see(x[None])
        for other in self._policies[1:]:
            other._take_reading(first)

    def _probabilities(self, x: Floats) -> Floats:
        self._read_once(x)
        votes: Floats = np.mean([policy.vote(x, self.n_arms) for policy in self._policies], axis=0)
        if not self.uniform:
            return votes
        epsilon = self._epsilon()
        return (1.0 - self.n_arms * epsilon) * votes + epsilon

    def _learn(self, x: Floats, choice: Choice, reward: float) -> None:
        assert choice.probability is not None
        self._read_once(x)
        regresses = self.oracle.regresses and self.estimator in ("iwr", "dm")
        estimate = np.zeros(self.n_arms) if regresses else self._estimated(x, choice.arm, choice.probability, reward)
        epsilon, votes = self._epsilon(), np.zeros(self.n_arms)
        for i, policy in enumerate(self._policies):
            share = votes / i if i else votes
            bonus = self.psi * epsilon / (epsilon + (1.0 - self.n_arms * epsilon) * share) if i else 0.0
            if regresses:
                policy._observe(x, choice.arm, reward, choice.probability if self.estimator == "iwr" else 1.0)
            if i or not regresses:
                policy.update(x, estimate + bonus)
            votes += policy.vote(x, self.n_arms)

    def _estimated(self, x: Floats, arm: int, probability: float, reward: float) -> Floats:
        """An estimate of every arm's reward in this round."""
        estimate = np.zeros(self.n_arms)
        if self.estimator != "ips":
            row = np.append(x, 1.0)
            if self._model is None:
                self._model = Ridge(row.size, self.lam, self.n_arms)
            if self.estimator == "dm":
                self._model.update(row, reward, arm)
                return self._model.estimate_all(row)[0]
            estimate = self._model.estimate_all(row)[0]  # before it learns this reward: that keeps it unbiased
            self._model.update(row, reward, arm)
        estimate[arm] += (reward - estimate[arm]) / probability
        return estimate
