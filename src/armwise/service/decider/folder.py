"""A ``Decider`` in a folder: the service's engine and journal, without HTTP."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator, Sequence

from armwise.service.decider.backend import APP, Backend
from armwise.service.engine.engine import Engine
from armwise.service.journal.events import Creation, Reward
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write, Written
from armwise.service.log.export_journal import as_dsjson, entries
from armwise.service.model.model import Model
from armwise.service.server.config import open_store


class Folder(Backend):
    """Decisions in a journal: each is answered when the disk has it, and learnt soon after.

    ``creation`` says what to make of what the folder has (None: it is new).
    """

    _turn = contextlib.nullcontext()  # calls meet in the writer's queue

    def __init__(
        self,
        folder: str,
        creation: Callable[[Creation | None], Creation],
        clock: Callable[[], float] | None = None,
    ) -> None:
        store = open_store(folder)
        journal = Journal(store.connect(), store.lock, store.clock)
        try:
            made = creation(journal.configured(APP)[1])
        finally:
            journal.connection.close()
        super().__init__(made)
        self._rewarded = 0  # the last reward event of this object
        self._clock = clock  # given: time may jump by a week between two calls
        self._engine: Engine | None = Engine(store, {APP: made}, clock=clock, publish_every=0.02)
        try:
            self._engine.start()
        except RuntimeError as error:
            raise RuntimeError(f"{folder}: {error}") from None
        except ValueError:  # refused settings: release the folder, so that it can be opened again
            self._engine.stop()
            raise
        # If it is never closed, the end of the program stores the model and releases the folder.
        self._stop = weakref.finalize(self, _stop, self._engine, os.getpid())

    @property
    def engine(self) -> Engine:
        """The service's engine; ValueError once it is closed."""
        if self._engine is None:
            raise ValueError("this Decider is closed")
        return self._engine

    def catch_up(self, requests: int) -> None:
        """Learn all that was rewarded before this call."""
        if not requests:
            return
        if self._clock is not None:
            self._close_windows()
        if self._rewarded > self.engine.learner.published:
            self.engine.wait_learnt(self._rewarded)

    def write(self, group: Sequence[Write]) -> Sequence[Written]:
        """Journal writes in one commit."""
        if self._clock is not None:
            self._clock()  # an error of it is the caller's, not one of the disk
        written: Sequence[Written] = self.engine.writer.write(group)
        rewards = [each.row.seq for each in written if each.row.is_a(Reward)]
        self._rewarded = max([self._rewarded, *rewards])
        return written

    def _close_windows(self) -> None:
        """Close windows that are over by the given clock, and learn them."""
        engine = self.engine
        with engine.reading as journal:
            due = journal.due(engine.now(), limit=1)
        if due:
            engine.expire()
            engine.wait_learnt()

    def model(self) -> Model:
        """Return the model with all events of the journal."""
        if self._clock is not None:
            self._close_windows()
        self.engine.wait_learnt()
        return self.engine.model(APP)

    def lines(self) -> Iterator[bytes]:
        """Yield every decision in order, with its status and its age now."""
        journal, now = self.engine.open_journal(), self.engine.now()
        try:
            yield from map(as_dsjson, entries(journal, APP, self.engine.forgotten(APP), now))
        finally:
            journal.connection.close()

    def close(self) -> None:
        """Commit, learn, and release the folder."""
        if self._engine is not None:
            self._engine = None
            self._stop()


def _stop(engine: Engine, process: int) -> None:
    """Stop an engine in the process that started it: a forked child has its locks, and none of its threads."""
    if os.getpid() == process:
        engine.stop()
