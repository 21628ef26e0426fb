"""Merging: agents whose statistics are additive, so that parts of a log can be learnt side by side."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self, TypeGuard

from armwise.core import saving
from armwise.core.agent import Agent
from armwise.core.arguments import short
from armwise.core.choices import Floats
from armwise.core.inputs import TakesDim

NOT_ADDITIVE = "its statistics are not additive"


class Merging(Agent):
    """An agent that can take over what another one has learnt, unless its settings forbid it (``merges``)."""

    merges: bool = True

    @abstractmethod
    def _merge(self, other: Self) -> None:
        """Add what ``other``, made with the same settings, has learnt."""

    def _why_not_merged(self) -> str:
        """Why this one cannot merge, where ``merges`` is False."""
        return NOT_ADDITIVE

    def _renew(self) -> None:
        """Bring estimates up to date that learning renews only now and then, as merging does."""

    @property
    def _stale(self) -> bool:
        """Whether ``_renew`` would change the estimates."""
        return False

    def estimate(self, context: Any = None) -> tuple[Floats, Floats | None]:
        """Each arm's estimated reward and its width, from all rewards: by whom and in which order they were learnt does
        not matter (see ``Agent.estimate``).

        >>> import armwise as aw
        >>> aw.UCB1(n_arms=2).estimate()[0]
        array([0., 0.])
        """
        if not self._stale:
            return super().estimate(context)
        renewed = copy.deepcopy(self)
        renewed._renew()
        return renewed.estimate(context)

    def merge(self, other: Self) -> Self:
        """Add what ``other`` has learnt to what this agent has, if ``merges``: as if one had learnt all of it.

        Both are made with the same settings; the prior counts once. Parts of a log can so be learnt side by side and
        joined (see ``armwise.fit_log``). ``other`` stays as it is; this agent is returned.

        >>> import armwise as aw
        >>> half, rest = aw.UCB1(n_arms=2), aw.UCB1(n_arms=2)
        >>> half.learn(None, aw.Choice(0, 1.0), 1.0)
        >>> rest.learn(None, aw.Choice(0, 1.0), 0.0)
        >>> half.merge(rest).estimate()[0]
        array([0.5, 0. ])
        """
        if not self.merges:
            raise ValueError(f"{self!r:.200} cannot be merged: {self._why_not_merged()}")
        if type(other) is not type(self):
            raise ValueError(f"other must be a {type(self).__name__}, as this agent is, got {short(other)}")
        if differences := saving.differences(self.params(), other.params()):
            raise ValueError(f"other must be made as this agent is, but differs: {'; '.join(differences)}")
        if other.dim is not None or self.dim is None:  # without a dim it has seen nothing yet
            if self.dim is None and other.dim is not None and isinstance(self, TakesDim):
                self._take_dim(other.dim)
            self._merge(other)
            self._n_learnt += other._n_learnt
        return self


def can_merge(agent: Agent) -> TypeGuard[Merging]:
    """Return whether ``agent.merge`` works."""
    return isinstance(agent, Merging) and agent.merges


def why_not_merged(agent: Agent) -> str:
    """Why ``can_merge`` is False."""
    return agent._why_not_merged() if isinstance(agent, Merging) else NOT_ADDITIVE
