"""Bugs that are planted one at a time: a simulation that finds none of them would find nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

from armwise.service.engine.learning.learner import MAX_EVENTS_READ, Learner
from armwise.service.journal.databases.database import BatchRows, Statement
from armwise.service.journal.events import Event, Reward, Row
from armwise.service.journal.intake import Intake
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write
from tests.service.simulation.database import Session, Shared


@contextlib.contextmanager
def acknowledged_before_the_commit() -> Iterator[None]:
    """A batch is answered when its commit is sent, not when the answer to it has come."""
    real = Session.close_batch

    def close_batch(self: Session, also: Sequence[Statement], batch: BatchRows) -> None:
        def commit() -> None:
            with contextlib.suppress(*Shared.errors):
                real(self, also, batch)

        self._wire.kernel.spawn(self._wire.process, "commit", commit)

    with mock.patch.object(Session, "close_batch", close_batch):
        yield


@contextlib.contextmanager
def lost_fence() -> Iterator[None]:
    """Models are stored in any session, not in the one that holds the lead."""
    with mock.patch.object(Shared, "leading", return_value=None):
        yield


@contextlib.contextmanager
def reward_applied_twice() -> Iterator[None]:
    """What was committed here is folded again, if it was read from the journal before."""

    def following(self: Learner) -> list[Row]:
        if self._committed:
            return [self._committed.popleft() for _ in range(min(len(self._committed), MAX_EVENTS_READ))]
        assert self._journal is not None
        return self._journal.after(self.position, MAX_EVENTS_READ)

    with mock.patch.object(Learner, "_next", following):
        yield


@contextlib.contextmanager
def stale_snapshot() -> Iterator[None]:
    """Snapshots are said to be complete up to the last event, not to the last one that the models know."""
    real = Journal.put_snapshots

    def put(self: Journal, snapshots: Any, upto: int, without: Sequence[str] = (), keep: int = 2) -> None:
        real(self, snapshots, self.last()[0], without, keep)

    with mock.patch.object(Journal, "put_snapshots", put):
        yield


@contextlib.contextmanager
def forgotten_idempotency_key() -> Iterator[None]:
    """The keys of rewards are not stored."""
    real = Intake.enter

    def enter(self: Any, write: Write, event: Event) -> Row:
        if isinstance(event, Reward):
            write.request = ""
        return real(self, write, event)

    with mock.patch.object(Intake, "enter", enter):
        yield


BUGS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "acknowledged before the commit": acknowledged_before_the_commit,
    "lost fence": lost_fence,
    "reward applied twice": reward_applied_twice,
    "stale snapshot": stale_snapshot,
    "forgotten idempotency key": forgotten_idempotency_key,
}
