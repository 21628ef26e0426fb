"""Common base of the agents over a class of policies, and their blocks of rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from armwise.agents.oracle.oracles.finite_policies import FinitePolicies, as_oracle
from armwise.agents.oracle.oracles.oracle import Oracle
from armwise.core.agent import Agent, Floats, Played, Seed, count
from armwise.core.rounds import Batches, loop

_BLOCK = 1024  # contexts of a block of rounds that an oracle reads at once


class PreparedBatches(Batches[Any]):
    """Rounds looped in blocks whose contexts an oracle has read at once."""

    def __init__(self, oracle: Callable[[Any], Oracle]) -> None:
        self._oracle = oracle

    def block(self, agent: Any, contexts: Floats, rewards: Floats) -> Played:
        self._oracle(agent)._prepare(contexts[:_BLOCK])
        return loop(agent, contexts[:_BLOCK], rewards[:_BLOCK])


class OracleAgent(Agent):
    """An agent over a class of policies. It works on its own copy of the oracle, so that two agents can share one."""

    sees = "shared"
    needs_probability = True
    plain_input = False  # the class of policies may refuse a context
    batches: ClassVar[PreparedBatches] = PreparedBatches(lambda agent: agent._own())
    n_arms: int
    _oracle_name: ClassVar[str] = "oracle"  # the constructor's name for it
    _total = 0.0  # of the rewards learnt, for agents that subtract their mean

    def _begin(self, oracle: Any, n_arms: int, seed: Seed) -> None:
        """The first lines of every constructor: the agent's own, untaught oracle."""
        super().__init__(seed=seed)
        self.n_arms = count("n_arms", n_arms)
        own = as_oracle(oracle, name=self._oracle_name).fresh(self.n_arms)
        setattr(self, self._oracle_name, own)
        self.dim = own.dim

    def _begin_explicit(self, policies: Any, n_arms: int, seed: Seed) -> None:
        """The same for an agent that must see every policy."""
        if isinstance(policies, Oracle) and not isinstance(policies, FinitePolicies):
            came = type(policies).__name__
            raise ValueError(f"policies must be FinitePolicies, a list of policies or a table of actions, got {came}")
        self._begin(policies, n_arms, seed)

    def _above_mean(self, reward: float) -> float:
        """The reward less the mean of those before it: that compares policies as well, and r / p varies far less.

        A class that regresses has its own constant, and gets the reward itself.
        """
        if self._own().regresses:
            return reward
        mean = (0.5 + self._total) / (1 + self._n_learnt)  # before the first, the middle of [0, 1]
        self._total += reward
        return reward - mean

    def _own(self) -> Oracle:
        own: Oracle = getattr(self, self._oracle_name)
        return own

    def _read(self, context: Any) -> Floats:
        x: Floats = super()._read(context)
        self._own()._check_contexts(x[None])
        return x

    def _read_block(self, contexts: Any, T: int) -> Floats:
        block: Floats = super()._read_block(contexts, T)
        self._own()._check_contexts(block)
        return block

    def params(self) -> dict[str, Any]:
        # What the oracle has learnt belongs to the agent's state, not to what it was made with.
        return super().params() | {self._oracle_name: self._own().fresh()}

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"_oracle_state": self._own()._state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._own()._restore(state["_oracle_state"])
        super()._restore({name: value for name, value in state.items() if name != "_oracle_state"})
