"""Stopping: agents that search for the best arm and know when they have found it."""

from __future__ import annotations

from abc import abstractmethod

from armwise.core.agent import Agent


class Stopping(Agent):
    """An agent whose search ends: it then has an answer, and plays it."""

    @property
    @abstractmethod
    def answer(self) -> int | None:
        """The best arm, once the search has stopped; None before."""

    @property
    @abstractmethod
    def stopped_at(self) -> int | None:
        """The number of rewards after which the search stopped; None while it goes on."""
