"""The learner: folds the journal into the models, in order, and publishes copies for the deciders.

Where several processes share a journal, one of them leads: it learns, and stores snapshots that the others load.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from noregret import persist
from noregret.serve.events import Decision, Row, lesson_of
from noregret.serve.journal import Journal
from noregret.serve.model import Creation, Model
from noregret.serve.store import Store

log = logging.getLogger("noregret.serve")

Snapshots = list[tuple[str, int, bytes]]


class Learner:
    """One thread that owns the models; ``models`` holds what it published last, which nobody changes.

    >>> from noregret.serve.store import SQLite
    >>> store = SQLite.temporary()
    >>> learner = Learner(store, lambda: Journal(store.connect()), save=print)
    >>> learner.recover(); learner.start(); learner.stop(); store.close()
    """

    def __init__(
        self,
        store: Store,
        journal: Callable[[], Journal],
        save: Callable[[Snapshots], None],
        *,
        publish_every: float = 0.05,
        snapshot_every: float = 30.0,
    ) -> None:
        self._store, self._open, self._save = store, journal, save
        self._publish_every = publish_every
        self._snapshot_every = min(1.0, snapshot_every) if store is not None and store.shared else snapshot_every
        self.models: dict[str, Model] = {}
        self.masters: dict[str, Model] = {}
        self.position = 0  # the last event folded into the masters
        self.published = 0  # the last event the published models know
        self.leader = False
        self.news = threading.Event()
        self._stopping = False
        self._published_at = self._tried_at = 0.0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._journal: Journal | None = None

    # ------------------------------------------------------------------ life

    def recover(self) -> None:
        """Load the newest snapshots and, if this process leads, fold in what the journal has since.

        >>> from noregret.serve.store import SQLite
        >>> store = SQLite.temporary()
        >>> learner = Learner(store, lambda: Journal(store.connect()), save=print)
        >>> learner.recover(); learner.leader; store.close()
        True
        """
        if self._journal is None:
            self._journal = self._open()
        started = time.perf_counter()
        self.leader = self._store.lead()
        self.masters, self.position = restore(self._journal)
        snapshot = self.position
        if self.leader:
            self.catch_up()
        self._publish()
        seconds = round(time.perf_counter() - started, 3)
        data = {"snapshot": snapshot, "position": self.position, "seconds": seconds, "leader": self.leader}
        log.info("recovered", extra={"data": data})

    def catch_up(self) -> None:
        """Fold in all that is there, and publish.

        >>> from noregret.serve.store import SQLite
        >>> store = SQLite.temporary()
        >>> learner = Learner(store, lambda: Journal(store.connect()), save=print)
        >>> learner.recover(); learner.catch_up(); store.close()
        """
        while self._fold():
            pass
        self._publish()

    def start(self) -> None:
        """Begin to learn by itself."""
        self._thread = threading.Thread(target=self._run, name="noregret-learner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Learn what is there, save, end."""
        self._stopping = True
        self.news.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._journal is not None:
            self._journal.connection.close()
            self._journal = None

    @property
    def alive(self) -> bool:
        """Whether the thread runs.

        >>> Learner(None, None, None).alive
        False
        """
        return self._thread is not None and self._thread.is_alive()

    def wait(self, seq: int, timeout: float) -> None:
        """Wait until the published models know of event ``seq``.

        >>> Learner(None, None, None).wait(1, timeout=0.01)
        Traceback (most recent call last):
        ...
        TimeoutError: event 1 is not learnt after 0.01 s; at 0
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self.published >= seq, timeout):
                raise TimeoutError(f"event {seq} is not learnt after {timeout} s; at {self.published}")

    def current(self) -> Snapshots:
        """The published models, ready to be stored.

        >>> Learner(None, None, None).current()
        []
        """
        with self._changed:  # models and position belong together
            models, seq = self.models, self.published
        return [(app, seq, persist.dumps(model)) for app, model in models.items()]

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        saved, saved_at = self.position if not self._store.shared else -1, time.monotonic()
        while True:
            self.news.wait(timeout=0.2 if self._store.shared else 0.5)
            self.news.clear()
            stopping = self._stopping
            try:
                if not self.leader:
                    self._follow()
                if self.leader:
                    while self._fold():
                        self._publish(self._publish_every)
                    self._publish()
                    due = time.monotonic() - saved_at > self._snapshot_every
                    if self.position > saved and (stopping or due or saved < 0):
                        self._save(self.current())
                        saved, saved_at = self.position, time.monotonic()
            except Exception:
                log.exception("learning failed; trying again")
                if self._store.shared:
                    self.leader = False  # another may lead now: begin again from what is stored
                    saved = -1
                if not stopping:
                    time.sleep(0.5)
            if stopping:
                return

    def _follow(self) -> None:
        """Lead if nobody does, or else load what the leader published."""
        assert self._journal is not None
        now = time.monotonic()
        if now - self._tried_at > 0.5:
            self._tried_at = now
            if self._store.lead():
                log.warning("this process leads now", extra={"data": {"position": self.position}})
                self.recover()
                return
        newest = self._journal.connection.execute("SELECT max(seq) FROM snapshots")[0][0]
        if newest is not None and newest > self.position:
            self.masters, self.position = restore(self._journal)
            self._publish()

    def _fold(self) -> bool:
        """Fold the next events into the masters; False when there are none."""
        assert self._journal is not None
        rows = self._journal.after(self.position)
        fold(self.masters, rows, self._journal)
        if rows:
            self.position = rows[-1].seq
        return bool(rows)

    def _publish(self, pause: float = 0.0) -> None:
        if self.published == self.position and len(self.models) == len(self.masters):
            return
        if pause and time.monotonic() - self._published_at < pause:
            return
        old = self.models
        models = {
            app: old[app] if app in old and old[app].version == model.version else model.copy()
            for app, model in self.masters.items()
        }
        with self._changed:
            self.models, self.published, self._published_at = models, self.position, time.monotonic()
            self._changed.notify_all()


def fold(models: dict[str, Model], rows: Sequence[Row], journal: Journal) -> None:
    """Fold events into the models of their applications, in order.

    >>> models = {}
    >>> fold(models, [Row(1, 0, "shop", "create", "", b"{}")], None)
    >>> models["shop"].version
    1
    """
    lessons = {row.seq: lesson for row in rows if (lesson := lesson_of(row)) is not None}
    decisions = journal.rows([decision for decision, _ in lessons.values()]) if lessons else {}
    for row in rows:
        if row.kind == "create":
            models[row.app] = msgspec.json.decode(row.body, type=Creation).build()
        elif row.app not in models:
            raise ValueError(f"event {row.seq} is for {row.app!r}, which was never created")
        elif row.kind == "import":
            settings = models[row.app].settings  # they are the application's, not the model's
            models[row.app] = persist.loads(base64.b64decode(msgspec.json.decode(row.body)["model"]))
            models[row.app].settings = settings
        else:
            lesson = lessons.get(row.seq)
            taught = None if lesson is None else msgspec.json.decode(decisions[lesson[0]].body, type=Decision)
            models[row.app].apply(row, taught)
        models[row.app].version = row.seq


def restore(journal: Journal) -> tuple[dict[str, Model], int]:
    """The models of the newest snapshots, and the event from which to fold on.

    Snapshots of all applications are written together; where they do not agree, everything is folded anew.

    >>> from noregret.serve.store import SQLite
    >>> restore(Journal(SQLite(":memory:").connect()))
    ({}, 0)
    """
    newest = "SELECT app, seq, data FROM snapshots WHERE seq = (SELECT max(seq) FROM snapshots)"
    rows = journal.connection.execute(newest)
    if not rows:
        return {}, 0
    return {app: persist.loads(bytes(data), f"snapshot of {app}") for app, _, data in rows}, rows[0][1]
