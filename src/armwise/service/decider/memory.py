"""A ``Decider`` that keeps nothing on disk: an engine without threads, over a journal in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from armwise.core.agent import Agent
from armwise.service.decider.backend import APP, Backend
from armwise.service.engine.memory_engine import MemoryEngine
from armwise.service.journal.events import Creation
from armwise.service.journal.writes import Write, Written
from armwise.service.log.export_journal import as_dsjson, entries
from armwise.service.model.model import Model


class _Closed:
    """The turn of what is closed."""

    def __enter__(self) -> None:
        raise ValueError("this Decider is closed")

    def __exit__(self, *_: object) -> None: ...


class Memory(Backend):
    """Decisions in memory, learnt before they are answered; rewards likewise."""

    def __init__(
        self,
        creation: Creation,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        agent: Agent | None = None,
    ) -> None:
        super().__init__(creation)
        self._engine = MemoryEngine(APP, creation, clock, seed, agent)
        self._turn: AbstractContextManager[object] = threading.Lock()

    @property
    def engine(self) -> MemoryEngine:
        """The engine without threads."""
        return self._engine

    def catch_up(self, requests: int) -> None:
        """Close the windows that are over."""
        self._engine.begin(requests)

    def write(self, group: Sequence[Write]) -> Sequence[Written]:
        """Journal and learn writes."""
        return self._engine.write(group)

    def model(self) -> Model:
        """A copy of the model as it is now."""
        with self._turn:
            self._engine.begin()
            return self._engine.model(APP).copy()

    def lines(self) -> Iterator[bytes]:
        """Every decision in order, with its status and its age now."""
        with self._turn:
            self._engine.begin()
            found = list(entries(self._engine.journal, APP, 0, self._engine.now()))
        return map(as_dsjson, found)

    def close(self) -> None:
        """Answer no more, as a folder that was let go."""
        self._turn = _Closed()
