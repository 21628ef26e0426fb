"""Revising: agents that can replace a reward they have learnt, and let what they have learnt fade."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeGuard

from armwise.core.agent import Agent
from armwise.core.arguments import Context
from armwise.core.choices import Choice
from armwise.core.outcomes import check_choice, read_reward


class Revising(Agent):
    """An agent that can put another reward in the place of one it has learnt, unless its settings forbid it."""

    revises: bool = True

    @abstractmethod
    def _revise(self, context: Any, choice: Choice, before: float, after: float) -> None:
        """Replace a reward that was learnt; all input is checked."""

    @abstractmethod
    def _predicted(self, context: Any, arm: int) -> float | None:
        """The reward that is expected of one arm; None where that is not known at little cost."""

    def revise(self, context: Context, choice: Choice, before: float, after: float) -> None:
        """Put the reward ``after`` in the place of ``before``, which was learnt of this choice; if ``revises``.

        What is learnt is as if it had been ``after`` from the beginning, up to rounding.

        >>> import armwise as aw, numpy as np
        >>> agent = aw.LinUCB(dim=2, alpha=0.0, lam=1.0)
        >>> agent.learn(np.eye(2), aw.Choice(arm=1, probability=0.5), 0.0)
        >>> agent.revise(np.eye(2), aw.Choice(arm=1, probability=0.5), before=0.0, after=1.0)
        >>> agent.probabilities(np.eye(2))
        array([0., 1.])
        """
        if not self.revises:
            raise ValueError(f"{self!r:.200} cannot revise a reward that it has learnt: see its attribute revises")
        context = self._read(context)
        check_choice(self, choice, self._count_arms(context))
        self._revise(context, choice, read_reward(self, before), read_reward(self, after))


def can_revise(agent: Agent) -> TypeGuard[Revising]:
    """Return whether ``agent.revise`` works."""
    return isinstance(agent, Revising) and agent.revises


def predicted(agent: Agent, context: Any, arm: int) -> float | None:
    """The reward that the agent expects of one arm; None where that is not known at little cost."""
    return agent._predicted(context, arm) if isinstance(agent, Revising) else None


class Fading(Agent):
    """An agent that can let all that it has learnt count less, unless its settings forbid it (``fades``)."""

    fades: bool = True

    @abstractmethod
    def _fade(self, keep: float) -> None:
        """Let all rewards so far count ``keep`` times as much as before."""


def can_fade(agent: Agent) -> TypeGuard[Fading]:
    """Return whether ``agent._fade`` works."""
    return isinstance(agent, Fading) and agent.fades
