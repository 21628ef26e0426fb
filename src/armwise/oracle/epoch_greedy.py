"""Epoch-Greedy: one uniform round, then greedy rounds in growing number (survey 4.3.1, Algorithm 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from armwise import bounds, hypotheses
from armwise.agent import Choice, Floats, Seed, Theory, fraction, positive
from armwise.numerics.choice import draw
from armwise.numerics.weights import importance_weighted
from armwise.oracle.base import Oracle
from armwise.oracle.finite import OracleLike
from armwise.oracle.history import OracleAgent


class EpochGreedy(OracleAgent):
    """Epoch l: one arm drawn uniformly, which teaches; then s(l) rounds of the best policy so far, which do not.

    s(l) = floor(sqrt(l / (K ln(N / delta))) / scale), so that a larger ``scale`` explores more; 1 is the paper's
    (``EpochGreedy.theoretical``). ``schedule`` is a function of l to have instead. Epochs follow the rounds chosen, not
    the rewards learnt; ``choice.note`` says whether the round explored, and a late reward of an exploration is learnt
    all the same. Policies that tie for best share the greedy rounds equally.

    Cost: a greedy round asks the best policy; an exploration is one ``oracle.update`` (O(N) for an explicit class).

    >>> agent = EpochGreedy([lambda x: 0, lambda x: 1], n_arms=2, schedule=lambda l: 2, seed=1)
    >>> [agent.choose([0.0]).note for _ in range(6)]
    [True, False, False, True, False, False]
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
    )
    needs_probability = False  # a round that teaches was uniform
    choosing_changes = True  # epochs follow the rounds chosen
    oracle: Oracle
    _learnt = ("_epoch", "_greedy_left")

    def __init__(
        self,
        oracle: OracleLike,
        n_arms: int,
        schedule: Callable[[int], int] | None = None,
        delta: float = 0.05,
        *,
        scale: float = 0.25,
        seed: Seed = None,
    ) -> None:
        self._begin(oracle, n_arms, seed)
        if schedule is not None and not callable(schedule):
            raise ValueError(
                f"schedule must be a function of the epoch, or None (then scale sets it), got {schedule!r}"
            )
        self.schedule, self.scale = schedule, positive("scale", scale)
        self.delta = fraction("delta", delta)
        self._epoch = self._greedy_left = 0

    @classmethod
    def theoretical(cls, oracle: Any, n_arms: int, delta: float = 0.05, *, seed: Seed = None) -> Self:
        """With the paper's schedule.

        >>> EpochGreedy.theoretical([lambda x: 0, lambda x: 1], n_arms=2).scale
        1.0
        """
        return cls(oracle, n_arms, delta=delta, scale=1.0, seed=seed)

    def _probabilities(self, context: Floats) -> Floats:
        if self._greedy_left:
            return self.oracle.vote(context, self.n_arms)
        return np.full(self.n_arms, 1.0 / self.n_arms)

    def _choose(self, context: Floats) -> Choice:
        p, explores = self._probabilities(context), self._greedy_left == 0
        if explores:
            self._greedy_left = self._greedy_rounds(self._epoch + 1)
            self._epoch += 1
        else:
            self._greedy_left -= 1
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]), explores)

    def _greedy_rounds(self, epoch: int) -> int:
        """s(l)."""
        if self.schedule is not None:
            return max(0, int(self.schedule(epoch)))
        complexity = self.n_arms * math.log(self.oracle.n_policies / self.delta)
        return math.floor(math.sqrt(epoch / complexity) / self.scale)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        if choice.note:
            rewards = np.zeros(self.n_arms)
            rewards[choice.arm] = importance_weighted(reward, 1.0 / self.n_arms)
            self.oracle._update(self.oracle._see(context[None])[0], rewards)

    def _check_choice(self, choice: Any, n_arms: int) -> None:
        super()._check_choice(choice, n_arms)
        if not isinstance(choice.note, bool):
            raise ValueError(f"choice.note must say whether the round explored, True or False, got {choice.note!r:.80}")
