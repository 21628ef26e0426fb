"""Models per arm: agents that take new arms and drop old ones."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeGuard

import numpy as np

from armwise.core.agent import Agent
from armwise.core.arguments import short


class PerArm(Agent):
    """An agent with a model of its own for each arm, unless its settings say otherwise (``per_arm``)."""

    per_arm: bool = True

    @abstractmethod
    def _add_arm(self) -> None:
        """Make a model for arm ``n_arms``."""

    @abstractmethod
    def _remove_arm(self, arm: int) -> None:
        """Drop the model of an arm."""

    def add_arm(self) -> int:
        """One more arm, of which nothing is known, if ``per_arm``; its number, which is the largest, is returned.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=3, n_arms=2)
        >>> agent.add_arm(), agent.n_arms
        (2, 3)
        """
        n_arms = self._count_models()
        self._add_arm()
        self.n_arms = n_arms + 1
        return n_arms

    def remove_arm(self, arm: int) -> None:
        """Forget an arm, if ``per_arm``; the arms after it move down by one, as in a list.

        A choice made before is learnt with its number of now: learn outcomes that are due, or renumber them, first.

        >>> import armwise as aw
        >>> agent = aw.UCB1(n_arms=3)
        >>> agent.learn(None, aw.Choice(2, 1.0), 1.0)
        >>> agent.remove_arm(0)
        >>> agent.n_arms, agent.estimate()[0]
        (2, array([0., 1.]))
        """
        n_arms = self._count_models()
        if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)) or not 0 <= arm < n_arms:
            raise ValueError(f"arm must be one of 0 to {n_arms - 1}, got {short(arm)}")
        if n_arms == 1:
            raise ValueError("arm 0 is the only one: an agent needs at least one arm")
        self._remove_arm(int(arm))
        self.n_arms = n_arms - 1

    def _count_models(self) -> int:
        if not self.per_arm or self.n_arms is None:
            raise ValueError(
                f"{self!r:.200} has no model per arm to add or remove"
                + ("" if self.n_arms is not None else ": the number of arms may change with every context")
            )
        return self.n_arms


def has_arms(agent: Agent) -> TypeGuard[PerArm]:
    """Return whether ``agent.add_arm`` and ``agent.remove_arm`` work."""
    return isinstance(agent, PerArm) and agent.per_arm
