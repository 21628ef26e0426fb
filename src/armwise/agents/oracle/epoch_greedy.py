"""Epoch-Greedy: uniform rounds, and greedy rounds between them in growing number (survey 4.3.1, Algorithm 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np

from armwise.agents.oracle.oracle_agent import OracleAgent
from armwise.agents.oracle.oracles.finite_policies import OracleLike
from armwise.agents.oracle.oracles.oracle import Oracle
from armwise.core.agent import Choice, Floats, Seed, Theory, fraction, positive
from armwise.core.capabilities.counting import CountsChoices
from armwise.core.capabilities.noting import Noting
from armwise.native.choice import draw
from armwise.theory import bounds, hypotheses


class EpochGreedy(OracleAgent, CountsChoices, Noting):
    """Explore now and then, and play the best policy so far in between, longer and longer.

    The paper (``teaches="uniform"``, ``EpochGreedy.theoretical``) counts: epoch l is one arm drawn uniformly, which
    teaches, then s(l) rounds of the best policy, which do not. The default, ``teaches="all"``, has epochs of the same
    mean length that end by a coin: each round explores with probability 1 / (1 + s(l)), where l - 1 rounds have
    explored. Every arm then has a known probability p in every round, so that every reward teaches: by the regression
    of a ``LinearOracle``, or by (r - mean reward) / p.

    s(l) = floor(sqrt(l / (K ln(N / delta))) / scale), so that a larger ``scale`` explores more; 1 is the paper's.
    ``schedule`` is a function of l to have instead. Epochs follow the rounds chosen, not the rewards learnt;
    ``choice.note`` says whether the round explored, and a late reward is learnt all the same. Policies that tie for
    best share the greedy rounds equally.

    Cost: a round asks the best policy; what teaches is one ``oracle.update`` (O(N) for an explicit class).

    >>> agent = EpochGreedy([lambda x: 0, lambda x: 1], n_arms=2, schedule=lambda l: 2, teaches="uniform", seed=1)
    >>> [agent.choose([0.0]).note for _ in range(6)]
    [True, False, False, True, False, False]
    >>> EpochGreedy([lambda x: 0, lambda x: 0], n_arms=2, schedule=lambda l: 4).probabilities([0.0])
    array([0.9, 0.1])
    """

    theory = Theory(
        section="4.3.1",
        regret="O((K ln(N / delta))^(1/3) T^(2/3))",
        comparator="the best policy of the class",
        assumes="contexts and rewards drawn independently from one distribution, rewards in [0, 1]",
        reference="Langford, Zhang 2008",
        regret_bound=bounds.epoch_greedy,
        hypotheses=hypotheses.epoch_greedy,
        exponent=2 / 3,
        high_probability=True,
        infinite_policies=True,
        erratum="the inner loop runs from t_l + 1 to t_(l+1) - 1, and exploits",
        call="aw.EpochGreedy(aw.FinitePolicies([aw.Constant(i % {K}) for i in range({N})]), n_arms={K})",
        survey_row="Epoch-Greedy",
    )
    oracle: Oracle
    _learnt = ("_epoch", "_greedy_left", "_total")

    def __init__(
        self,
        oracle: OracleLike,
        n_arms: int,
        schedule: Callable[[int], int] | None = None,
        delta: float = 0.05,
        *,
        teaches: Literal["all", "uniform"] = "all",
        scale: float = 0.1,
        seed: Seed = None,
    ) -> None:
        self._begin(oracle, n_arms, seed)
        if schedule is not None and not callable(schedule):
            raise ValueError(
                f"schedule must be a function of the epoch, or None (then scale sets it), got {schedule!r}"
            )
        if teaches not in ("all", "uniform"):
            raise ValueError(f"teaches must be 'all' or 'uniform', got {teaches!r}")
        self.schedule, self.scale = schedule, positive("scale", scale)
        self.delta, self.teaches = fraction("delta", delta), teaches
        self.needs_probability = teaches == "all"  # a round that teaches alone was uniform
        self._epoch = self._greedy_left = 0

    @classmethod
    def theoretical(cls, oracle: Any, n_arms: int, delta: float = 0.05, *, seed: Seed = None) -> Self:
        """With the paper's schedule.

        >>> EpochGreedy.theoretical([lambda x: 0, lambda x: 1], n_arms=2).scale
        1.0
        """
        return cls(oracle, n_arms, delta=delta, teaches="uniform", scale=1.0, seed=seed)

    def _exploration(self) -> float:
        """The probability that this round explores: 0 or 1 where rounds are counted."""
        if self.teaches == "uniform":
            return float(self._greedy_left == 0)
        return 1.0 / (1 + self._greedy_rounds(self._epoch + 1))

    def _probabilities(self, context: Floats) -> Floats:
        epsilon = self._exploration()
        uniform = np.full(self.n_arms, 1.0 / self.n_arms)
        return (
            uniform if epsilon == 1.0 else (1.0 - epsilon) * self.oracle.vote(context, self.n_arms) + epsilon * uniform
        )

    def _choose(self, context: Floats) -> Choice:
        p, epsilon, u = self._probabilities(context), self._exploration(), self._rng.random()
        if explores := u < epsilon:
            self._epoch += 1
            self._greedy_left = self._greedy_rounds(self._epoch)
            arm = min(int(u / epsilon * self.n_arms), self.n_arms - 1)
        else:
            self._greedy_left = max(0, self._greedy_left - 1)
            arm = draw(p - epsilon / self.n_arms, u - epsilon)
        return Choice(arm, float(p[arm]), explores)

    def _greedy_rounds(self, epoch: int) -> int:
        """s(l)."""
        if self.schedule is not None:
            return max(0, int(self.schedule(epoch)))
        complexity = self.n_arms * math.log(self.oracle.n_policies / self.delta)
        return math.floor(math.sqrt(epoch / complexity) / self.scale)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        if self.teaches == "all":
            assert choice.probability is not None
            self._teach(context, choice.arm, self._above_mean(reward), choice.probability)
        elif choice.note:
            self._teach(context, choice.arm, reward, 1.0 / self.n_arms)

    def _teach(self, context: Floats, arm: int, reward: float, probability: float) -> None:
        self.oracle._observe(self.oracle._see(context[None])[0], arm, reward, probability)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        if not isinstance(choice.note, bool):
            raise ValueError(f"choice.note must say whether the round explored, True or False, got {choice.note!r:.80}")
