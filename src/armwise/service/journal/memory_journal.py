"""A journal in memory: the events of one process, and the status of each decision, until the process ends."""

from __future__ import annotations

import bisect
import contextlib
import operator
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Change, Creation, Row
from armwise.service.journal.intake import Intake
from armwise.service.journal.pace import NO_PACE
from armwise.service.journal.rules import Status
from armwise.service.journal.writes import Appended, Write


class MemoryJournal(Intake):
    """Appends to lists by the rules of every journal; for one thread at a time.

    Events stay structs: no body is encoded.
    """

    pace = NO_PACE
    errors: tuple[type[Exception], ...] = ()  # reading never fails

    def __init__(self) -> None:
        super().__init__()
        self._events: list[Row] = []
        self._rewards: dict[tuple[str, str], list[Row]] = {}
        self._waiting: deque[Status] = deque()  # decisions by deadline, closed ones too

    # ------------------------------------------------------------------ append

    def tick(self, now: int) -> None:
        """Set the time, which never goes back."""
        if now > self.time:
            self.time = now

    def append(self, groups: Sequence[Sequence[Write]]) -> list[Appended]:
        """Append groups of writes; each is accepted whole or refused with the reason."""
        self.appended, self.dirty = [], {}
        outcomes = [self.take(group) for group in groups]
        waiting = self._waiting
        for row, _ in self.appended:
            self._events.append(row)
            if row.kind == "reward":
                self._rewards.setdefault((row.app, row.id), []).append(row)
            elif row.kind == "decision":
                status = self.known[row.app, row.id]
                if not waiting or waiting[-1].deadline <= status.deadline:
                    waiting.append(status)
                else:  # the window was shortened
                    bisect.insort(waiting, status, key=operator.attrgetter("deadline"))
        return outcomes

    def rewards_before(self, app: str, id: str) -> int:
        return len(self._rewards.get((app, id), ()))

    # ------------------------------------------------------------------ read

    def wait_until_durable(self) -> None:
        """Do nothing: memory is never durable."""

    def consistent_reads(self) -> AbstractContextManager[None]:
        """Do nothing: nothing is appended between two reads of the one thread."""
        return contextlib.nullcontext()

    def last(self) -> tuple[int, int, bytes]:
        """The number and time of the last event; there is no chain."""
        return self.seq, self.time, b""

    def row(self, seq: int) -> Row:
        """One event by its number."""
        if not 1 <= seq <= len(self._events):
            raise Unknown(f"the journal has no event {seq}")
        return self._events[seq - 1]

    def rows(self, seqs: Sequence[int]) -> dict[int, Row]:
        """Some events by their numbers."""
        return {seq: self._events[seq - 1] for seq in seqs}

    def after(self, seq: int, limit: int = 500) -> list[Row]:
        """The events that follow ``seq``, in order."""
        return self._events[seq : seq + limit]

    def events(self, seq: int = 0) -> Iterator[Row]:
        """All events after ``seq``."""
        yield from self._events[seq:]

    def statuses(self, ids: Sequence[tuple[str, str]]) -> list[Status]:
        """The status of decisions, by application and id."""
        return [self.known[pair] for pair in ids if pair in self.known]

    def rewards(self, ids: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[Row]]:
        """All rewards of decisions in order, including late ones, by application and id."""
        return {pair: self._rewards[pair] for pair in ids if pair in self._rewards}

    def due(self, now: int, limit: int = 500) -> list[Status]:
        """Open decisions whose deadline was before ``now``, each returned once."""
        found: list[Status] = []
        waiting = self._waiting
        while waiting and len(found) < limit and (waiting[0].closed or waiting[0].deadline < now):
            status = waiting.popleft()
            if not status.closed:
                found.append(status)
        return found

    def created_before(self, app: str, seq: int) -> bool:
        """Whether an event before this one created the application."""
        return any(row.app == app and row.is_a(Creation, Change) for row in self._events[: seq - 1])
