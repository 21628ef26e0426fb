"""Many rounds of the agents without contexts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from armwise.agents.arms.counts import draw_many
from armwise.core.agent import Agent, Choices, Floats, Played
from armwise.core.rounds import Batches, loop
from armwise.models.ridge import Ridge
from armwise.native import kary, regression

if TYPE_CHECKING:
    from armwise.agents.arms.beta_thompson import BetaThompson
    from armwise.agents.arms.epsilon_greedy import EpsilonGreedy
    from armwise.agents.arms.exp3 import Exp3
    from armwise.agents.arms.ucb1 import UCB1

A = TypeVar("A", bound=Agent, contravariant=True)


class ArmBatches(Batches[A], ABC):
    """Blocks in compiled code, also with a policy in the place of each arm (see ``PolicyArms``)."""

    def compiled(self, agent: A) -> bool:
        return True

    @abstractmethod
    def policies(self, agent: A, tables: Floats, rewards: Floats, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """A block of rounds: ``tables[t, i]`` is policy i's distribution over the arms, from which ``rng`` draws."""


class UCB1Batches(ArmBatches["UCB1"]):
    """UCB1's rounds."""

    def choose(self, agent: UCB1, contexts: None, n: int) -> Choices:
        return draw_many(agent._probabilities(None), agent._rng, n, ties=True)

    def learn(self, agent: UCB1, contexts: None, choices: Choices, rewards: Floats) -> int:
        np.add.at(agent._totals, choices.arms, rewards)  # one after the other, as the loop adds them
        np.add.at(agent._counts, choices.arms, 1.0)
        return len(rewards)

    def block(self, agent: UCB1, contexts: None, rewards: Floats) -> Played:
        return Played(*kary.ucb1_play(agent._totals, agent._counts, agent.scale, rewards, agent._rng))

    def policies(self, agent: UCB1, tables: Floats, rewards: Floats, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        return kary.ucb1_policies(agent._totals, agent._counts, agent.scale, agent._rng, tables, rewards, rng)


class Exp3Batches(ArmBatches["Exp3"]):
    """Exp3's rounds."""

    def choose(self, agent: Exp3, contexts: None, n: int) -> Choices:
        return draw_many(agent._probabilities(None), agent._rng, n)

    def learn(self, agent: Exp3, contexts: None, choices: Choices, rewards: Floats) -> int:
        steps = agent.gamma * (rewards / choices.probabilities) / float(agent.n_arms)
        np.add.at(agent._log_weights, choices.arms, steps)  # one after the other, as the loop adds them
        return len(rewards)

    def block(self, agent: Exp3, contexts: None, rewards: Floats) -> Played:
        return Played(*kary.exp3_play(agent._log_weights, agent.gamma, rewards, agent._rng))

    def policies(self, agent: Exp3, tables: Floats, rewards: Floats, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        return kary.exp3_policies(agent._log_weights, agent.gamma, agent._rng, tables, rewards, rng)


class BetaBatches(ArmBatches["BetaThompson"]):
    """BetaThompson's rounds."""

    def choose(self, agent: BetaThompson, contexts: None, n: int) -> Choices | None:
        return None if agent.draws == 1 else draw_many(agent._probabilities(None), agent._rng, n)

    def learn(self, agent: BetaThompson, contexts: None, choices: Choices, rewards: Floats) -> int:
        np.add.at(agent._successes, choices.arms, rewards)  # one after the other, as the loop adds them
        np.add.at(agent._failures, choices.arms, 1.0 - rewards)
        return len(rewards)

    def block(self, agent: BetaThompson, contexts: None, rewards: Floats) -> Played:
        posterior = (agent._successes, agent._failures, agent.draws > 1)
        return Played(*kary.beta_play(*posterior, rewards, agent._rng))

    def policies(
        self, agent: BetaThompson, tables: Floats, rewards: Floats, rng: np.random.Generator
    ) -> tuple[Any, Any, Any]:
        posterior = (agent._successes, agent._failures, agent.draws > 1)
        return kary.beta_policies(*posterior, agent._rng, tables, rewards, rng)


class GreedyBatches(ArmBatches["EpsilonGreedy"]):
    """EpsilonGreedy's rounds, over counts or over a ridge model."""

    def compiled(self, agent: EpsilonGreedy) -> bool:
        return agent.model is None or (isinstance(agent.model, Ridge) and agent.model.window is None)

    def choose(self, agent: EpsilonGreedy, contexts: Any, n: int) -> Choices | None:
        return None if agent.model is not None else draw_many(agent._probabilities(None), agent._rng, n)

    def learn(self, agent: EpsilonGreedy, contexts: Any, choices: Choices, rewards: Floats) -> int | None:
        if agent.model is not None:
            return None
        np.add.at(agent._totals, choices.arms, rewards)  # one after the other, as the loop adds them
        np.add.at(agent._counts, choices.arms, 1.0)
        return len(rewards)

    def block(self, agent: EpsilonGreedy, contexts: Any, rewards: Floats) -> Played | None:
        schedule = (agent.epsilon, agent.decay, agent._n_learnt)
        if agent.model is None:
            return Played(*kary.greedy_play(agent._totals, agent._counts, *schedule, rewards, agent._rng))
        if not self.compiled(agent):
            return None
        if not agent.model.settled:  # the first rows settle it
            return loop(agent, contexts[:1], rewards[:1])
        block = contexts if agent.sees == "features" else contexts[:, None]
        models, grams, moments, lam, discount = agent.model.raw
        with agent.model.refusals_named():
            return Played(
                *regression.greedy_play(models, grams, moments, lam, discount, *schedule, block, rewards, agent._rng)
            )

    def policies(
        self, agent: EpsilonGreedy, tables: Floats, rewards: Floats, rng: np.random.Generator
    ) -> tuple[Any, Any, Any]:
        schedule = (agent.epsilon, agent.decay, agent._n_learnt)
        return kary.greedy_policies(agent._totals, agent._counts, *schedule, agent._rng, tables, rewards, rng)
