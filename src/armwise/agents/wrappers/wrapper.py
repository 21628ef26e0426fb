"""Agents that read and check as the agent inside them does, and those that need the rows themselves."""

from __future__ import annotations

from typing import Any

from armwise.agents.wrappers.around import Around
from armwise.core.agent import Agent, Floats
from armwise.core.inputs import dense, is_sparse, read, read_block


class Wrapper(Around):
    """An agent that sees what the agent inside it (``_inner``) sees, and refuses what that one refuses."""

    _inner: Agent

    def _around(self, inner: Agent) -> None:
        self._inner = inner
        self.sees, self.reward_range, self.dim = inner.sees, inner.reward_range, inner.dim
        self.n_arms, self.n_experts = inner.n_arms, inner.n_experts
        self.n_costs = inner.n_costs
        self._knows_probability = inner._knows_probability
        self.plain_input, self.choosing_changes = inner.plain_input, inner.choosing_changes

    def _read(self, context: Any) -> Any:
        read = self._inner._read(context)
        return dense(read) if is_sparse(read) and not self.keeps_sparse else read

    def _read_block(self, contexts: Any, T: int) -> Any:
        return self._inner._read_block(contexts, T)

    def _count_arms(self, context: Any) -> int:
        return self._inner._count_arms(context)

    def _read_cost(self, cost: Any) -> tuple[float, ...]:
        return self._inner._read_cost(cost)

    def _read_costs(self, costs: Any, shape: tuple[int, ...]) -> Floats:
        return self._inner._read_costs(costs, shape)

    def _check_choice(self, choice: Any, n_arms: int) -> None:
        self._inner._check_choice(choice, n_arms)


class RowsWrapper(Wrapper):
    """A wrapper that works with the rows itself: its contexts are plain arrays, whatever form the agent inside reads.

    What goes inside goes through ``_for_inner``: an agent may read a context its own way (``plain_input`` False), as
    LogisticThompson reads the non-zeros. Without a ``dim`` the first context says it (``_take_dim``).
    """

    def _around(self, inner: Agent) -> None:
        super()._around(inner)
        self._same = inner.plain_input and (inner.dim is not None or inner.sees not in ("features", "shared"))

    def _for_inner(self, context: Any) -> Any:
        """A context of this agent as the agent inside it reads it."""
        return context if self._same else self._inner._read(context)

    def _read(self, context: Any) -> Any:
        inside = super()._read(context)  # refuses what the agent inside refuses
        return inside if self._same else read(self, context)

    def _read_block(self, contexts: Any, T: int) -> Any:
        inside = super()._read_block(contexts, T)
        return inside if self._same else read_block(self, contexts, T)

    def _count_arms(self, context: Any) -> int:
        return super()._count_arms(context) if self._same else Agent._count_arms(self, context)
