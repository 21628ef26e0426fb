"""A journal at work: its writer, its learner, and a session for questions; free of any web framework.

Two threads work beside the callers. The *writer* commits what is submitted and only then answers. The *learner* reads
the journal in order and folds it into the models; at times it publishes a copy of each, and decisions are made from
the copies. So learning never blocks deciding, and the models are a function of the journal alone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from armwise.service.engine.clock import TrustedClock
from armwise.service.engine.counts import Counts
from armwise.service.engine.ids import Ids
from armwise.service.engine.learner import Learner, Snapshots
from armwise.service.engine.members import stand_alone
from armwise.service.engine.reading import Reading
from armwise.service.engine.writer import Writer
from armwise.service.journal.append import Journal, Write
from armwise.service.journal.events import Creation, Expiry, Row
from armwise.service.journal.store import Database
from armwise.service.model.model import Model


class Journaling:
    """What an ``Engine`` rests on: it commits, learns, expires, stores and recovers.

    >>> from armwise.service.journal.sqlite import SQLite
    >>> journaling = Journaling(SQLite.temporary(), {})
    >>> journaling.start(); journaling.writer.healthy; journaling.stop()
    True
    """

    def __init__(
        self,
        store: Database,
        applications: dict[str, Creation],
        *,
        clock: Callable[[], float] | None = None,
        snapshot_every: float = 30.0,
        publish_every: float = 0.1,
    ) -> None:
        self.store, self.creations = store, dict(applications)
        self._clock = clock or TrustedClock()
        self.learner = Learner(
            store,
            self.open_journal,
            self._save,
            applications=self.creations,
            publish_every=publish_every,
            snapshot_every=snapshot_every,
        )
        self.alone = True  # False: one of several databases, whose models are merged (``shards``)
        self.merged: dict[str, Model] | None = None  # what decisions are made from then
        self.merging = contextlib.nullcontext()  # held while several databases are changed, one after the other
        self.writer = Writer(self._telling_journal, self.now, self.expire_some)
        self.reading = Reading(self.writer)
        self.counts = Counts()
        self._ids = Ids()
        self._open: dict[str, int] = {}
        self._counted_at = -1e9

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Recover from the journal, and begin to commit.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> journaling = Journaling(SQLite.temporary(), {})
        >>> journaling.start(); journaling.leader; journaling.stop()
        True
        """
        if not self.store.shared and not self.store.lead():
            holder = getattr(self.store, "holder", "")
            named = f"the process {holder}" if holder else "another process"
            raise RuntimeError(f"{named} is serving from this journal")
        journal = self.open_journal()
        self.reading.open(journal)
        if self.alone and self.store.shared:
            stand_alone(journal.connection)
        self._secret = journal.meta("secret")
        if journal.connection.tail is not None:
            journal.connection.tail.begin(journal)
        if isinstance(self._clock, TrustedClock):
            self._clock.continue_from(journal.last()[1] / 1000.0)
        self.recover()
        self.writer.start()

    def stop(self) -> None:
        """Commit what was submitted, learn it, snapshot, end. What is acknowledged is kept in any case.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Journaling(SQLite.temporary(), {}).stop()
        """
        self.learner.stop()
        self.writer.stop()
        self.reading.close()
        self.store.close()

    def recover(self) -> None:
        """Load the newest snapshots and fold in what the journal has since.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Journaling(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.stop()
        """
        self.learner.recover()

    @property
    def models(self) -> dict[str, Model]:
        """The published models of the configured applications: what decisions are made from.

        >>> Journaling(None, {}).models
        {}
        """
        return self.learner.served if self.merged is None else self.merged

    @property
    def broken(self) -> dict[str, str]:
        """Why applications cannot be served, by name.

        >>> Journaling(None, {}).broken
        {}
        """
        return self.learner.broken

    @property
    def leader(self) -> bool:
        """Whether this process learns; of several on one journal, one does.

        >>> Journaling(None, {}).leader
        False
        """
        return self.learner.leader

    @property
    def learning(self) -> bool:
        """Whether the learner is alive.

        >>> Journaling(None, {}).learning
        False
        """
        return self.learner.alive

    @property
    def clock_jumps(self) -> int:
        """How often the clock jumped since the start.

        >>> Journaling(None, {}).clock_jumps
        0
        """
        return getattr(self._clock, "jumps", 0)

    def open_journal(self) -> Journal:
        """The journal in a session of its own, to be closed by whoever asked for it.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> journal = Journaling(SQLite(":memory:"), {}).open_journal()
        >>> journal.last()[0]; journal.connection.close()
        0
        """
        return Journal(self.store.connect(), self.store.lock, self.store.clock)

    def _telling_journal(self) -> Journal:
        journal = self.open_journal()
        journal.on_commit = self._take_committed
        return journal

    def _take_committed(self, committed: list[tuple[Row, Write]]) -> None:
        self.learner.take_committed(committed)
        self.counts.take(committed)

    def _save(self, snapshots: Snapshots, upto: int, without: list[str]) -> None:
        """Store models in a session of their own, which no commit waits for."""
        leading = self.store.leading()
        if leading is not None:  # the session that holds the lead: once that is lost, so is the right to publish
            Journal(leading).put_snapshots(snapshots, upto, without)
            return
        journal = self.open_journal()
        try:
            journal.put_snapshots(snapshots, upto, without)
        finally:
            journal.connection.close()

    # ------------------------------------------------------------------ work

    def now(self) -> int:
        """Milliseconds, by a clock that never goes back.

        >>> engine = Journaling(None, {}, clock=lambda: 1.5)
        >>> engine.now()
        1500
        """
        return int(self._clock() * 1000.0)

    def new_id(self, now: int | None = None, request: str = "") -> str:
        """An id that no event has: time first, so that the index grows at its end, then 80 bits of chance.

        ``request`` is the idempotency key, which matters where there are several databases.

        >>> len(Journaling(None, {}).new_id())
        32
        """
        return self._ids.fresh(self.now() if now is None else now)

    def expire(self) -> None:
        """Close the windows that are over; the writer does it by itself several times a second.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Journaling(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.expire(); engine.stop()
        """
        answers: list[bool] = []
        while True:
            self.writer.run(lambda journal: answers.append(self.expire_some(journal)))
            if not answers or not answers.pop():  # none: it failed, which the writer's health says
                return

    def expire_some(self, journal: Journal) -> bool:
        """Close some of the windows that are over; True if there may be more: decisions come in between.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Journaling(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.writer.run(lambda journal: print(engine.expire_some(journal))); engine.stop()
        False
        """
        due = journal.due(self.now()) if self.leader else []
        if due:
            journal.append([[Write(s.app, s.id, Expiry())] for s in due], self.now())
        return bool(due)

    def snapshot(self) -> None:
        """Store the models now, those that changed; the learner does it by itself from time to time.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> from armwise.service.engine.engine import Engine
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.snapshot(); engine.reading.journal.snapshot("shop")[0]; engine.stop()
        1
        """
        self.wait_learnt()
        self.learner.save()

    def wait_learnt(self, seq: int | None = None, timeout: float = 120.0) -> None:
        """Wait until the published models have all events up to ``seq`` (default: all there are).

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Journaling(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.wait_learnt(); engine.stop()
        """
        if seq is None:
            with self.reading as journal:
                seq = journal.last()[0]
        self.learner.wait(seq, timeout)

    def lag(self) -> int:
        """Events that are durable and not yet published in a model.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Journaling(SQLite.temporary(), {})
        >>> engine.start(); engine.lag(); engine.stop()
        0
        """
        with self.reading as journal:
            return journal.last()[0] - self.learner.published

    def open_decisions(self) -> dict[str, int]:
        """How many decisions of each application wait for a reward; counted at most every few seconds.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> from armwise.service.engine.engine import Engine
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); _ = engine.decide("shop", b"{}", [b'"a"']); engine.open_decisions(); engine.stop()
        {'shop': 1}
        """
        if time.monotonic() - self._counted_at > 5.0:
            with self.reading as journal:
                rows = journal.connection.execute("SELECT app, count(*) FROM decisions WHERE closed = 0 GROUP BY app")
            self._open, self._counted_at = {app: int(n) for app, n in rows}, time.monotonic()
        return self._open
