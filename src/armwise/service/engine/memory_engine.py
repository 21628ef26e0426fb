"""An engine without threads, over a journal in memory: whoever asks journals and learns, in its own thread."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from armwise.core.agent import Agent
from armwise.service.engine.ids import Ids
from armwise.service.engine.learning.fold import drop_oldest, fold
from armwise.service.engine.requests.draw import Answer, answer
from armwise.service.engine.requests.preparer import RequestPreparer
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Creation, Decision, Expiry, Lessons, Row, decided
from armwise.service.journal.memory_journal import MemoryJournal
from armwise.service.journal.rules import Status
from armwise.service.journal.writes import Write, Written
from armwise.service.model.build import build_model
from armwise.service.model.drawing.in_flight import InFlight
from armwise.service.model.model import Model


class MemoryEngine(RequestPreparer):
    """One application: requests are prepared, journaled and folded as everywhere, and what is learnt decides at once.

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
        self.app, self._creation, self._clock = app, creation, clock
        self.journal = MemoryJournal()
        self._ids = Ids()
        self._random = random.Random(None if seed is None else f"decider {seed}").random
        self._recent: dict[int, Row] = {}
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

    def model(self, app: str) -> Model:
        """The model that decides, which is the one that learns."""
        return self._models[app]

    def new_id(self, now: int | None = None, request: str = "") -> str:
        """A new id: the time first, then 80 random bits."""
        return self._ids.fresh(self.now() if now is None else now)

    def uniform(self, app: str, id: str) -> float:
        """The next number of the seed's, whatever the id."""
        return self._random()

    def write(self, group: Sequence[Write]) -> list[Written]:
        """Journal a group, whole or not at all, and learn it."""
        [outcome] = self.journal.append((group,))
        if isinstance(outcome, Exception):
            raise outcome
        fold(self._models, [row for row, _ in self.journal.appended], self.journal, self._recent)
        self._recent = drop_oldest(self._recent)
        return outcome

    def find(self, app: str, id: str) -> tuple[Answer, Decision, Status]:
        """A decision as it was answered, and its status."""
        found = self.journal.statuses([(app, id)])
        if not found:
            raise Unknown(f"no decision has the id {id}", id)
        row = self.journal.row(found[0].seq)
        return answer(Written(row)), decided(row), found[0]

    def creation(self, app: str) -> Creation:
        """The event that created the application."""
        return self._creation

    def apply(self, creations: dict[str, Creation], only: bool = True) -> None:
        """Make the application of something else, trained on what the journal has of it."""
        for app, self._creation in creations.items():
            self.write([Write(app, "", self._creation)])

    def teach(self, app: str, lessons: Lessons) -> None:
        """Journal logged decisions of other systems, and learn them."""
        self.write([Write(app, "", lessons)])
