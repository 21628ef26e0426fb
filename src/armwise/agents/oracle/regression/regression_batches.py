"""Many rounds of the regression agents: over the built-in ridge in compiled code, over other regressors looped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from armwise.agents.linear.ridge_batches import RidgeBatches, as_block
from armwise.agents.oracle.regression.predictions import Predictions
from armwise.agents.oracle.regression.regression_agent import RegressionAgent
from armwise.core.agent import Choices, Floats, Played
from armwise.core.rounds import loop
from armwise.models.ridge import Ridge
from armwise.native import regression

if TYPE_CHECKING:
    from armwise.agents.oracle.regression.fastcb import FastCB
    from armwise.agents.oracle.regression.regcb import RegCB
    from armwise.agents.oracle.regression.squarecb import SquareCB

A = TypeVar("A", bound=RegressionAgent)


def play_predicted(agent: RegressionAgent, contexts: Any, rewards: Floats) -> Played | None:
    """Play a block over a regressor, which predicts for many rounds at once; None over the built-in ridge."""
    if isinstance(agent._model, Ridge):
        return None
    agent._ahead = Predictions(as_block(agent, contexts), agent._n_learnt)
    try:
        return loop(agent, contexts, rewards)
    finally:
        agent._ahead = None


class RegressionBatches(RidgeBatches[A]):
    """Rounds of an agent with a kernel for the built-in ridge."""

    def block(self, agent: A, contexts: Any, rewards: Floats) -> Played | None:
        return play_predicted(agent, contexts, rewards) or super().block(agent, contexts, rewards)


class FastCBBatches(RegressionBatches["FastCB"]):
    """FastCB's rounds: only learning is compiled."""

    def compiled(self, agent: FastCB) -> bool:
        return False

    def block(self, agent: FastCB, contexts: Any, rewards: Floats) -> Played | None:
        return play_predicted(agent, contexts, rewards)


class SquareCBBatches(RegressionBatches["SquareCB"]):
    """SquareCB's rounds."""

    def choose(self, agent: SquareCB, contexts: Any, n: int) -> Choices | None:
        if isinstance(contexts, list) or not isinstance(agent._model, Ridge):
            return None
        settings = *agent._widening(), regression.gap_scale(agent.t, *agent._schedule())
        models, block = agent._model.models, as_block(agent, contexts)
        return Choices(*regression.squarecb_choose_many(models, *settings, block, agent._rng))

    def play(self, agent: SquareCB, model: Ridge, block: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
        schedule = (*agent._widening(), *agent._schedule(), agent.t)
        return regression.squarecb_play(model.models, *schedule, block, rewards, agent._rng)


class RegCBBatches(RegressionBatches["RegCB"]):
    """RegCB's rounds."""

    def choose(self, agent: RegCB, contexts: Any, n: int) -> Choices | None:
        model = agent._model
        if isinstance(contexts, list) or not isinstance(model, Ridge):
            return None
        settings = *agent._settings(model), agent.elimination, agent.t
        return Choices(*regression.regcb_choose_many(model.models, *settings, as_block(agent, contexts), agent._rng))

    def play(self, agent: RegCB, model: Ridge, block: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
        settings = *agent._settings(model), agent.elimination, agent.t
        return regression.regcb_play(model.models, *settings, block, rewards, agent._rng)
