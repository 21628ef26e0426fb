"""The learner: folds the journal into the models, in order, and publishes copies for the deciders.

Where several processes share a journal, one of them leads: it learns, and stores snapshots that the others load.

Every application's model is a function of its own events alone. One whose events cannot be folded is left out, with the
reason in ``broken``, until it is created anew or a restart can fold it; the others never notice.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from threading import Thread

from armwise.core import saving
from armwise.service.engine.learning.fold import drop_oldest, fold, give_up, refold, restore
from armwise.service.journal.databases.database import Database
from armwise.service.journal.events import Row
from armwise.service.journal.journal import Journal
from armwise.service.journal.system import SYSTEM, System
from armwise.service.journal.writes import Write
from armwise.service.model.drawing.in_flight import InFlight
from armwise.service.model.model import Model

log = logging.getLogger("armwise.service")

Snapshots = list[tuple[str, int, bytes]]
MAX_PENDING = 4_000  # events kept in memory for the learner: each with what was seen, some 4 kB
YIELDED = 5.0  # seconds for which a lead that was given away is not taken again
MAX_EVENTS_READ = 500  # events that are read together
TAIL_SYNC = 0.45  # seconds between syncs of the last acknowledged event's file: commits wait for the same disk
MAX_PIECE_EVENTS = 32  # events that are folded in together: a quarter of a millisecond, and as much per version


class Learner:
    """One thread that owns the models; ``models`` holds what it published last, which nobody changes.

    ``served`` are those of them that are configured (``applications``; None: all) and work.
    """

    def __init__(
        self,
        store: Database,
        journal: Callable[[], Journal],
        save: Callable[[Snapshots, int, list[str]], None],
        *,
        applications: Collection[str] | None = None,
        publish_every: float = 0.05,
        snapshot_every: float = 30.0,
        system: System = SYSTEM,
    ) -> None:
        self._store, self._open, self._save, self._system = store, journal, save, system
        self._publish_every = publish_every
        self._snapshot_every = min(1.0, snapshot_every) if store is not None and store.shared else snapshot_every
        self._applications = applications
        self.models: dict[str, Model] = {}
        self.served: dict[str, Model] = {}
        self.broken: dict[str, str] = {}  # why an application cannot be served
        self.masters: dict[str, Model] = {}
        self.position = 0  # the last event folded into the masters
        self.published = 0  # the last event the published models know
        self.leader = False
        self.news = system.event()
        self._hurry = system.event()  # somebody began to wait for it
        self._waiters = 0
        self._stopping = self._yielding = False
        self._published_at = self._tried_at = self._tail_synced_at = 0.0
        self._changed = system.condition()
        self._thread: Thread | None = None
        self._journal: Journal | None = None
        self._committed: deque[Row] = deque()
        # By application and version; outlives the models: what is drawn counts, whoever recovers.
        self._in_flight: dict[str, dict[str, InFlight]] = {}
        self._recent: OrderedDict[int, Row] = OrderedDict()  # decisions whose rewards may come soon
        self._saving = system.lock()
        self._stored: dict[str, int] = {}  # the version of each model whose snapshot is stored
        self._saved = -1  # the last event that the snapshots have; below 0: there may be none of this process

    # ------------------------------------------------------------------ life

    def recover(self) -> None:
        """Load the newest snapshots and, if this process leads, fold in later events."""
        if self._journal is None:
            self._journal = self._open()
        started = self._system.monotonic()
        self.leader = self._store.lead()
        self.broken = {
            app: reason for app, reason in self.broken.items() if app in self.masters
        }  # the others may fold now
        self._recent.clear()  # of a journal that a replica without its last events may have replaced since
        self.masters, self.position = restore(self._journal)
        snapshot = self.position
        self._stored = {app: model.version for app, model in self.masters.items()}
        self._saved = -1 if self._store.shared else snapshot
        if self.leader:
            saved = self._journal.saved()
            for app in {**dict.fromkeys(self._applications or ()), **dict.fromkeys(saved.without if saved else ())}:
                if app not in self.masters:
                    refold(self.masters, self._journal, app, self.position, self.broken)
            self.catch_up()
        self._publish()
        self.served = self._to_serve()
        seconds = round(self._system.monotonic() - started, 3)
        data = {"snapshot": snapshot, "position": self.position, "seconds": seconds, "leader": self.leader}
        log.info("recovered", extra={"data": data})

    def catch_up(self) -> None:
        """Fold in all events and publish."""
        while self._fold():
            pass
        self._publish()

    def start(self) -> None:
        """Start the thread."""
        self._thread = self._system.start(self._run, "armwise-learner")

    def stop(self) -> None:
        """Learn the remaining events, save, and stop."""
        self._stopping = True
        self._hurry.set()
        self.news.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._journal is not None:
            self._journal.connection.close()
            self._journal = None

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def yield_lead(self) -> None:
        """Let another process lead, if one will; models are stored first."""
        self._yielding = True
        self.news.set()

    def wait(self, seq: int, timeout: float) -> None:
        """Wait until the published models include event ``seq``."""
        self._hurry.set()
        with self._changed:
            self._waiters += 1
            try:
                if not self._changed.wait_for(lambda: self.published >= seq, timeout):
                    raise TimeoutError(f"event {seq} is not learnt after {timeout} s; at {self.published}")
            finally:
                self._waiters -= 1

    def save(self) -> None:
        """Store the published models that changed since they were last stored."""
        with self._saving:
            with self._changed:  # models and position belong together
                models, seq = self.models, self.published
            found: Snapshots = []
            without = [app for app in self.broken if app not in models]
            for app, model in models.items():
                if self._stored.get(app) == model.version:
                    continue
                try:
                    found.append((app, model.version, saving.dumps(model)))
                except Exception:  # it is folded from its events when the service starts again
                    log.exception("the model of %s cannot be stored", app)
                    without.append(app)
            try:
                self._save(found, seq, without)
            except self._store.errors:
                if self._store.shared:  # the lead may be lost
                    raise
                log.exception("the models cannot be stored now")  # deciding and learning go on without
                return
            self._stored.update((app, version) for app, version, _ in found)
            self._saved = seq

    def refresh(self) -> None:
        """Serve the applications that are configured now."""
        with self._changed:
            self.served = self._to_serve()

    def withhold(self, app: str, reason: str) -> None:
        """Stop serving an application until it is created again."""
        with self._changed:
            self.broken[app] = reason
            self.served = self._to_serve()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        saved_at, more = self._system.monotonic(), False  # more: there are events to fold, so nothing is waited for
        while True:
            if not more:
                self.news.wait(timeout=0.2 if self._store.shared else 0.5)
            stopping = self._stopping
            if not more:
                if not stopping and self._publish_every:  # what comes meanwhile is learnt together
                    self._hurry.wait(max(0.02, self._publish_every - (self._system.monotonic() - self._published_at)))
                self._hurry.clear()
                self.news.clear()
            more = False
            try:
                if not self.leader:
                    self._yielding = False
                    self._follow()
                if stopping or self._system.monotonic() - self._tail_synced_at >= TAIL_SYNC:
                    self._sync_tail()
                if (
                    self.leader
                ):  # also where events come faster than they are learnt, the log is copied and models stored
                    more = self._fold()
                    self._publish(self._publish_every if more else 0.0)
                    if self._journal is not None:
                        self._journal.connection.tidy(self.position)
                    due = self._system.monotonic() - saved_at > self._snapshot_every or self._saved < 0
                    if self.position > self._saved and (due or (not more and (stopping or self._yielding))):
                        self.save()
                        saved_at = self._system.monotonic()
                    if self._yielding and not more:
                        self._yielding = self.leader = False
                        self._tried_at = self._system.monotonic() + YIELDED
                        self._store.close()
            except Exception:
                log.exception("learning failed; trying again")
                self.leader = False  # a fold may be half done, or another lead now: begin again from what is stored
                self.masters, more = {}, False
                if not stopping:
                    self._system.sleep(0.5)
            if stopping and not more:
                return

    def _sync_tail(self) -> None:
        self._tail_synced_at = self._system.monotonic()
        if self._journal is not None and self._journal.connection.tail is not None:
            self._journal.connection.tail.sync()

    def _follow(self) -> None:
        """Lead if no process does; otherwise load what the leader published."""
        assert self._journal is not None
        self._committed.clear()  # it is not this process that learns it
        now = self._system.monotonic()
        if now - self._tried_at > 0.5:
            self._tried_at = now
            if self._store.lead():
                log.warning("this process leads now", extra={"data": {"position": self.position}})
                self.recover()
                return
        published = self._journal.published()  # often, so one short question
        if published is not None and published <= self.position:
            return
        newest = self._journal.saved()
        if newest is not None and newest.seq > self.position:
            self.masters, self.position = restore(self._journal, self.masters)
            self._publish()

    def take_committed(self, committed: list[tuple[Row, Write]]) -> None:
        """Take in the events just committed here, in order, without reading them back from the journal."""
        for row, write in committed:
            if write.held is not None:
                write.held.journaled(row.seq)
        if len(self._committed) < MAX_PENDING:  # beyond, the journal is read; nothing is lost
            self._committed.extend(row for row, _ in committed)
        self.news.set()

    def _fold(self) -> bool:
        """Fold the next events into the masters; False when there are none.

        In short pieces, with rests between them while requests come: a piece holds the GIL. Whoever waits for the last
        one waits for no rest after it.
        """
        assert self._journal is not None
        rows = self._next()
        for start in range(0, len(rows), MAX_PIECE_EVENTS):
            piece = rows[start : start + MAX_PIECE_EVENTS]
            fold(self.masters, piece, self._journal, self._recent, self.broken)
            self.position = piece[-1].seq
            drop_oldest(self._recent)
            if not self._waiters or start + MAX_PIECE_EVENTS < len(rows):
                self._journal.pace.rest()
        return bool(rows)

    def _next(self) -> list[Row]:
        """The next events; only those that this process did not write are read from the journal."""
        assert self._journal is not None
        own: dict[int, Row] = {}
        while self._committed and self._committed[0].seq <= self.position + MAX_EVENTS_READ:
            row = self._committed.popleft()
            if row.seq > self.position:
                own[row.seq] = row
        if not own:
            return self._journal.after(self.position, MAX_EVENTS_READ)
        between = [seq for seq in range(self.position + 1, max(own) + 1) if seq not in own]
        others = self._journal.rows(between) if between else {}  # they are durable: what came after them is
        if len(others) < len(between):
            return self._journal.after(self.position, MAX_EVENTS_READ)
        found = own | others
        return [found[seq] for seq in sorted(found)]

    def _publish(self, pause: float = 0.0) -> None:
        if self.published == self.position and len(self.models) == len(self.masters):
            return
        if pause and self._system.monotonic() - self._published_at < pause:
            return
        old, models = self.models, {}
        for app, model in list(self.masters.items()):
            try:
                models[app] = old[app] if app in old and old[app].version == model.version else model.copy()
            except Exception as error:
                give_up(self.masters, self.broken, app, f"its model cannot be copied: {error}")
            else:
                self._share_in_flight(app, models[app])
        with self._changed:
            self.models, self.published, self._published_at = models, self.position, self._system.monotonic()
            self.served = self._to_serve()
            self._changed.notify_all()

    def _share_in_flight(self, app: str, model: Model) -> None:
        """Let a model, and the versions beside it, count what is under way, whichever copy drew it."""
        known = self._in_flight.setdefault(app, {})
        leading = model.in_flight = known.setdefault("", InFlight())
        for name, challenger in model.versions.items():
            challenger.model.in_flight = known.setdefault(name, InFlight(leading))
        if len(known) > 1 + len(model.versions):  # each has copies of an agent
            self._in_flight[app] = {name: one for name, one in known.items() if not name or name in model.versions}

    def _to_serve(self) -> dict[str, Model]:
        names = None if self._applications is None else set(self._applications)
        return {
            app: model
            for app, model in self.models.items()
            if app not in self.broken and (names is None or app in names or model.settings.by_request)
        }
