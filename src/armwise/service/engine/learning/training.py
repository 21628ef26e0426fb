"""Train a new model on the journal of its application, beside requests and in little memory."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from armwise.service.journal.events import (
    SEQUELS,
    Change,
    Creation,
    Decision,
    Expiry,
    Import,
    Lessons,
    Reward,
    Row,
    Sequel,
    Version,
    decided,
)
from armwise.service.journal.pace import MAX_PAGE_ROWS
from armwise.service.journal.rules import Status, happen
from armwise.service.journal.source import EventSource
from armwise.service.model.model import Model


def train(model: Model, journal: EventSource, app: str, upto: int, now: int) -> None:
    """Train a model on the application's outcomes in the journal before an event.

    Its own scales take the place of those that the decisions were made with; what is damaged or deleted is left out.
    Of decisions whose window runs at ``now`` what is known so far is learnt where it can be corrected; else those
    before the first one of which nothing is known: a click is not learnt without the lack of others.
    """
    if not journal.created_before(app, upto):  # it is made for the first time
        return
    training, seq = _Training(model, journal, now), model.settings.forgotten
    while seq < upto and (rows := journal.after(seq, MAX_PAGE_ROWS)):
        seq = rows[-1].seq
        training.read([row for row in rows if row.app == app and row.seq < upto])
    training.end(upto)


class _Training:
    """A model in training. There may be a decision with an open window for every one of the last minutes: of each its
    number and its scales are kept, and it is read again when its outcome is."""

    def __init__(self, model: Model, journal: EventSource, now: int) -> None:
        self._model, self._journal, self._now = model, journal, now
        self._open: dict[int, bytes] = {}  # decisions that teach nothing yet: the scales that each was encoded with
        self._statuses: dict[int, Status] = {}  # of open decisions that something happened to
        self._early: dict[int, tuple[bytes, float, Any]] = {}  # outcomes known before the lack of others is

    def read(self, rows: Sequence[Row]) -> None:
        """Take in the next events of the application."""
        here = self._decisions({seq: self._open[seq] for row in rows if (seq := _about(row)) in self._open})
        for row in rows:
            self._journal.pace.rest()
            if row.is_a(Creation, Change, Import, Version):
                continue
            with contextlib.suppress(ValueError, ArithmeticError):  # the same on every replay
                if isinstance(event := row.event, Decision):
                    decision = self._model.reencode(event)
                    self._open[row.seq] = decision.scaling
                    here[row.seq] = decision, Status.of(row, event)
                elif isinstance(event, Lessons):
                    self._model.warm_start(event)
                elif isinstance(event, Sequel) and event.decision in self._open:
                    self._happen(event, row.time, here)

    def _happen(self, event: Sequel, time: int, here: dict[int, tuple[Decision, Status]]) -> None:
        seq = event.decision
        if seq not in here:  # deleted meanwhile
            del self._open[seq]
            return
        decision, status = here[seq]
        happen(event, status, time)
        if event.lesson is not None:
            self._learn(seq, decision, status, event.lesson, event.cost if isinstance(event, Reward) else None)
        elif isinstance(event, Expiry):  # it was never shown
            self._close(seq)
        else:
            self._statuses[seq] = status

    def _close(self, seq: int) -> bytes:
        """Forget an open decision; return its scales."""
        self._statuses.pop(seq, None)
        return self._open.pop(seq)

    def _learn(self, seq: int, decision: Decision, status: Status, lesson: float | None, cost: Any = None) -> None:
        scaling, is_open = self._close(seq), status.deadline >= self._now
        if is_open and lesson is not None and not self._at_once(decision):
            self._early[seq] = scaling, lesson, cost
        else:
            self._model.learn_past(decision, seq, status.active, lesson, is_open, cost)

    def _at_once(self, decision: Decision) -> bool:
        """Whether the outcome of a decision can be learnt before those of others are known."""
        return self._model.waits(decision) or self._model.corrects(decision)

    def _decisions(self, scales: Mapping[int, bytes]) -> dict[int, tuple[Decision, Status]]:
        """Decisions as this model saw them, and what happened to them, in order, without those that are gone."""
        found, rows = {}, self._journal.rows(list(scales)) if scales else {}
        for seq in filter(rows.__contains__, scales):
            with contextlib.suppress(ValueError):
                event = decided(rows[seq])
                decision = msgspec.structs.replace(event, note=None, scaling=scales[seq])
                found[seq] = decision, self._statuses.get(seq) or Status.of(rows[seq], event)
        return found

    def end(self, upto: int) -> None:
        """Learn what is known of the decisions that are still open."""
        unknown = upto
        for page in _pages(self._open):
            for seq, (decision, status) in self._decisions(page).items():
                self._journal.pace.rest()
                rest = not self._at_once(decision) and status.active
                over = status.deadline < self._now  # and nobody has journaled it yet
                if rest and not over:
                    unknown = min(unknown, seq)
                with contextlib.suppress(ValueError, ArithmeticError):
                    self._learn(seq, decision, status, status.expire().lesson if rest and over else None)
        for page in _pages({seq: scaling for seq, (scaling, *_) in self._early.items() if seq < unknown}):
            for seq, (decision, _) in self._decisions(page).items():
                self._journal.pace.rest()
                _, lesson, cost = self._early[seq]
                self._model.learn(decision, lesson, cost=cost)


def _about(row: Row) -> int:
    """The number of the decision that an event is about; 0 for none."""
    if row.is_a(*SEQUELS):
        with contextlib.suppress(ValueError):
            return row.event.decision  # type: ignore[union-attr]
    return 0


def _pages(scales: Mapping[int, bytes]) -> Iterator[dict[int, bytes]]:
    """Decisions to read again, in pages of one statement each."""
    left = iter(list(scales.items()))
    while page := dict(itertools.islice(left, MAX_PAGE_ROWS)):
        yield page
