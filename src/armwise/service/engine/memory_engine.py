"""The engine over a journal in memory, without threads: whoever asks journals and learns, in its own thread."""

from __future__ import annotations

import contextlib
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from armwise.core.agent import Agent
from armwise.service.engine.base_engine import BaseEngine
from armwise.service.engine.ids import Ids
from armwise.service.engine.learning.fold import drop_oldest, fold
from armwise.service.journal.events import Creation, Event, Expiry, Row
from armwise.service.journal.memory_journal import MemoryJournal
from armwise.service.journal.writes import Write, Written
from armwise.service.model.build import build_model
from armwise.service.model.drawing.in_flight import InFlight
from armwise.service.model.model import Model


class MemoryEngine(BaseEngine):
    """One application, whose decisions are made from the model that learns; the verbs are those of every engine.

    ``agent`` takes the place of the one described. For one thread at a time.
    """

    draws_again = False

    def __init__(
        self,
        app: str,
        creation: Creation,
        clock: Callable[[], float],
        seed: int | None = None,
        agent: Agent | None = None,
    ) -> None:
        super().__init__(Ids())
        self.app, self._creation, self._clock = app, creation, clock
        self.journal = MemoryJournal()
        self._random = random.Random(None if seed is None else f"decider {seed}").random
        self._recent: OrderedDict[int, Row] = OrderedDict()
        self._models: dict[str, Model] = {}
        self.journal.tick(int(clock() * 1000.0))
        if agent is None:
            self.apply({app: creation})
        else:  # which no event describes
            self._models[app] = build_model(creation, agent)

    def begin(self, requests: int = 0) -> None:
        """Begin a call: read the clock, once, and close the windows that are over.

        ``requests`` that are drawn together count each other, where an agent counts its choices."""
        self.journal.tick(int(self._clock() * 1000.0))
        while due := self.journal.due(self.journal.time):
            self.write([Write(status.app, status.id, Expiry()) for status in due])
        self._models[self.app].in_flight = InFlight() if requests > 1 else None

    def now(self) -> int:
        """Milliseconds, as the present call began."""
        return self.journal.time

    @property
    def reading(self) -> AbstractContextManager[MemoryJournal]:
        """The journal."""
        return contextlib.nullcontext(self.journal)

    def model(self, app: str) -> Model:
        """The model that decides, which is the one that learns."""
        return self._models[app]

    def uniform(self, app: str, id: str) -> float:
        """The next number of the seed's, whatever the id."""
        return self._random()

    def write(self, group: Sequence[Write]) -> list[Written]:
        """Journal a group, whole or not at all, and learn it."""
        [outcome] = self.journal.append((group,))
        if isinstance(outcome, Exception):
            raise outcome
        fold(self._models, [row for row, _ in self.journal.appended], self.journal, self._recent)
        drop_oldest(self._recent)
        return outcome

    def creation(self, app: str) -> Creation:
        """The event that created the application."""
        return self._creation

    def apply(self, creations: dict[str, Creation], only: bool = True) -> None:
        """Make the application of something else, trained on what the journal has of it."""
        for app, self._creation in creations.items():
            self.journal_change(app, self._creation)

    def journal_change(self, app: str, event: Event, id: str = "", request: str = "") -> None:
        """Journal an event that changes the application, and learn it."""
        self.write([Write(app, id, event, request)])
