"""Optimism over a ridge model: agents whose choice others may make in one compiled call."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from armwise.core.agent import Agent


class Optimism:
    """How an agent chooses that scores rows of features by a ridge model alone, the mean plus a width, and perhaps
    plays any arm in a share ``epsilon`` of the rounds (below 0: there is none); as it is at the moment."""

    __slots__ = ("agents", "explorer", "scorer")

    def __init__(self, scorer: Any, explorer: Any = None) -> None:
        self.scorer, self.explorer = scorer, explorer
        self.agents: tuple[Agent, ...] = (scorer,) if explorer is None else (explorer, scorer)  # that count lessons

    @property
    def ridge(self) -> Any:
        """The model."""
        return self.scorer._model

    def take_ridge(self, ridge: Any) -> None:
        """Put another model in its place."""
        self.scorer._model = ridge
        self.scorer._refresh()

    @property
    def width(self) -> tuple[float, float, float, float, float, float]:
        """Its ridge, alpha, noise and delta, and what an arm gets that is known less."""
        width: tuple[float, float, float, float, float, float] = self.scorer._settings
        return width

    @property
    def epsilon(self) -> float:
        """The share of the rounds in which any arm is played."""
        return -1.0 if self.explorer is None else self.explorer.epsilon


class Optimistic(Agent):
    """An agent that may choose by ``Optimism`` alone."""

    @property
    @abstractmethod
    def optimism(self) -> Optimism | None:
        """All of how it chooses, where that is optimism over a ridge model that nothing else changes; None elsewhere.

        >>> import armwise as aw
        >>> aw.Explore(aw.LinUCB(dim=2, lam=1.0), epsilon=0.1).optimism.epsilon
        0.1
        >>> aw.LinUCB(dim=2, n_arms=2).optimism is None
        True
        """


def optimism_of(agent: Agent) -> Optimism | None:
    """The rule of an agent that chooses by optimism alone; None of any other."""
    return agent.optimism if isinstance(agent, Optimistic) else None
