"""Agents that read and check as the agent inside them does."""

from __future__ import annotations

from typing import Any

from armwise.agent import Agent, Floats
from armwise.around import Around
from armwise.reading import dense, is_sparse


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
