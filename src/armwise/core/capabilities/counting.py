"""Counting choices: agents that choosing changes, beyond their random stream."""

from __future__ import annotations

from typing import Any, TypeGuard

from armwise.core.agent import Agent
from armwise.core.choices import Choice


class CountsChoices(Agent):
    """An agent that keeps count of its choices, unless its settings say otherwise (``choosing_changes``)."""

    choosing_changes: bool = True

    def record_choice(self, context: Any, choice: Choice) -> None:
        """Count a choice that a copy of this agent made, as ``choose`` would have; the context is checked."""
        self.choose(context)


def record_choice(agent: Agent, context: Any, choice: Choice) -> None:
    """Count a choice that a copy of an agent made, as ``choose`` would have; an agent inside it may keep count."""
    if isinstance(agent, CountsChoices):
        agent.record_choice(context, choice)
    else:
        agent.choose(context)


def choosing_changes(agent: Agent) -> TypeGuard[CountsChoices]:
    """Return whether ``choose`` changes more than the random stream."""
    return isinstance(agent, CountsChoices) and agent.choosing_changes
