"""Many rounds of the agents over a ridge model, in compiled code between two estimates of the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from armwise.agents.linear.ridge_agent import RidgeAgent
from armwise.core.agent import Choices, Floats, Played
from armwise.core.rounds import Batches, loop
from armwise.models.ridge import Ridge
from armwise.native import thompson
from armwise.native.ridge import Optimist

if TYPE_CHECKING:
    from armwise.agents.linear.lin_thompson import LinThompson
    from armwise.agents.linear.linucb import LinUCB

A = TypeVar("A", bound=RidgeAgent)


def as_block(agent: RidgeAgent, contexts: Floats) -> Floats:
    """Contexts as kernels take them: (T, K, d), or (T, 1, d) where each arm has a model."""
    return contexts if agent.n_arms is None else contexts[:, None]


class RidgeBatches(Batches[A], Generic[A]):
    """Rounds over which ridge and noise stand still; the first rows, which settle an open ridge, are looped."""

    def compiled(self, agent: A) -> bool:
        return isinstance(agent._model, Ridge) and agent._model.window is None

    def step(self, agent: A) -> Any:
        """Single decisions of the agent as it is now (see ``Stepped``), if they are worth it."""
        return None

    def learn(self, agent: A, contexts: Any, choices: Choices, rewards: Floats) -> int | None:
        if isinstance(contexts, list) or not self.compiled(agent):
            return None
        n = self._steady_rounds(agent, len(rewards))
        if n:
            agent._model.learn_many(as_block(agent, contexts[:n]), choices.arms[:n], rewards[:n])
            self._follow(agent, rewards[:n])
        return n

    def block(self, agent: A, contexts: Any, rewards: Floats) -> Played | None:
        if not self.compiled(agent):
            return None
        n = self._steady_rounds(agent, len(rewards))
        if n == 0:
            return loop(agent, contexts[:1], rewards[:1])
        model = agent._model
        arms, p, _ = self.play(agent, model, as_block(agent, contexts[:n]), rewards[:n] - model.centre)
        played = Played(arms, p, rewards[np.arange(n), arms])
        self._follow(agent, played.rewards)
        return played

    def play(self, agent: A, model: Ridge, block: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
        """Arms, probabilities and rewards of rounds over which the agent's exploration stands still.

        Rewards are measured from the model's centre.
        """
        raise NotImplementedError

    def _steady_rounds(self, agent: A, n: int) -> int:
        """The number of rewards, at most ``n``, until ridge or noise change."""
        if not agent._model.settled:
            return 0
        return n if agent._noise is None else min(n, agent._noise.rounds_left)

    def _follow(self, agent: A, rewards: Floats) -> None:
        if agent._noise is not None:
            agent._noise.add_block(rewards, agent._model)
        agent._refresh()


class OptimisticBatches(RidgeBatches["LinUCB"]):
    """LinUCB's rounds."""

    def step(self, agent: LinUCB) -> Optimist:
        model = agent._model
        learns, per_arm = model.settled and not model.forgets, agent.n_arms is not None
        return Optimist(model.models, agent.dim or 0, per_arm, learns, model.centre, *agent._settings)

    def choose(self, agent: LinUCB, contexts: Any, n: int) -> Choices | None:
        if isinstance(contexts, list):
            return None
        return Choices(*agent._model.choose_optimistic(as_block(agent, contexts), agent._width, agent._rng))

    def play(self, agent: LinUCB, model: Ridge, block: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
        return model.play_optimistic(block, rewards, agent._width, agent._rng)


class SampledBatches(RidgeBatches["LinThompson"]):
    """LinThompson's rounds."""

    def choose(self, agent: LinThompson, contexts: Any, n: int) -> Choices | None:
        if isinstance(contexts, list) or agent.draws > 1:
            return None
        models, block = agent._model.models, as_block(agent, contexts)
        return Choices(*thompson.choose_many(models, block, *agent._spread(), agent._rng))

    def play(self, agent: LinThompson, model: Ridge, block: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
        return model.play_sampled(block, rewards, agent.t, agent._width, agent.draws, agent._rng)
