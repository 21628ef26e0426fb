"""Agents that read and check as the agent inside them does, and those that need the rows themselves."""

from __future__ import annotations

from typing import Any

from armwise.agents.wrappers.wrapper import Wrapper
from armwise.core.agent import Agent, Choice
from armwise.core.capabilities.counting import CountsChoices, choosing_changes
from armwise.core.capabilities.noting import Noting
from armwise.core.capabilities.restarting import Restarting, restarts
from armwise.core.inputs import READERS, dense, is_sparse, read_block
from armwise.core.outcomes import check_choice


class TransparentWrapper(Wrapper, CountsChoices, Noting, Restarting):
    """An agent that sees what the agent inside it (``_inner``) sees, and refuses what that one refuses."""

    _inner: Agent

    def _wrap(self, inner: Agent) -> None:
        self._inner = inner
        self.sees, self.reward_range, self.dim = inner.sees, inner.reward_range, inner.dim
        self.n_arms, self.n_experts = inner.n_arms, inner.n_experts
        self.n_costs, self.negative_costs = inner.n_costs, inner.negative_costs
        self._knows_probability = inner._knows_probability
        self.plain_input, self.choosing_changes = inner.plain_input, choosing_changes(inner)
        self.restarts = restarts(inner)

    def _read(self, context: Any) -> Any:
        read = self._inner._read(context)
        return dense(read) if is_sparse(read) and not self.keeps_sparse else read

    def _read_block(self, contexts: Any, T: int) -> Any:
        return self._inner._read_block(contexts, T)

    def _count_arms(self, context: Any) -> int:
        return self._inner._count_arms(context)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        check_choice(self._inner, choice, n_arms)


class RowsWrapper(TransparentWrapper):
    """A wrapper that works with the rows itself: its contexts are plain arrays, whatever form the agent inside reads.

    What goes inside goes through ``_for_inner``: an agent may read a context its own way (``plain_input`` False), as
    LogisticThompson reads the non-zeros. Without a ``dim`` the first context says it (``_take_dim``).
    """

    def _wrap(self, inner: Agent) -> None:
        super()._wrap(inner)
        self._same = inner.plain_input and (inner.dim is not None or inner.sees not in ("features", "shared"))

    def _for_inner(self, context: Any) -> Any:
        """A context of this agent as the agent inside it reads it."""
        return context if self._same else self._inner._read(context)

    def _read(self, context: Any) -> Any:
        inside = super()._read(context)  # refuses what the agent inside refuses
        return inside if self._same else READERS[self.sees](self, context)

    def _read_block(self, contexts: Any, T: int) -> Any:
        inside = super()._read_block(contexts, T)
        return inside if self._same else read_block(self, contexts, T)

    def _count_arms(self, context: Any) -> int:
        return super()._count_arms(context) if self._same else Agent._count_arms(self, context)
