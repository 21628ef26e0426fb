"""Retention without a stop: what is settled and old, or was deleted, goes in small batches beside the traffic.

First the journal is made to begin later: the models of the last snapshots become those that a replay begins with, so
that no event before them is needed for learning any more. Then decisions go, whole, with all that happened to them, at
most ``BATCH`` per transaction of the writer. One with events after the new beginning waits for the next time.

The models stay as they are: what decisions taught, they taught.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from armwise.service.engine.engine import Engine
from armwise.service.errors import Unavailable
from armwise.service.journal import bases
from armwise.service.journal.append import Journal, Write
from armwise.service.journal.bodies import catalogue_of
from armwise.service.journal.events import KINDS, SEQUELS, Decision, Import, Lessons
from armwise.service.journal.records import Base, chunks
from armwise.service.journal.rules import happen
from armwise.service.log.subjects import Subjects, erasure
from armwise.service.log.verify import chained, sum_of, weight

log = logging.getLogger("armwise.service")
EVERY = 600.0  # seconds between two turns
BATCH = 200  # decisions that go in one transaction
MOST = 100_000  # decisions that are looked up before they go
T = TypeVar("T")
Key = tuple[str, str]


class _Later(Exception):
    """A model was made anew since the last snapshot: what it is trained on must stay until it is stored."""


class _Turn(NamedTuple):
    """What is to go in one turn."""

    before: int  # milliseconds
    deleted: dict[str, int]  # the event up to which each application's log was deleted
    subjects: Subjects


class Retention:
    """A thread that drops what is older than ``days`` (0: nothing is), or was deleted; only where its process leads.

    >>> from armwise.service.journal.events import Creation
    >>> from armwise.service.journal.sqlite import SQLite
    >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
    >>> engine.start(); Retention(engine, days=30.0).run(); engine.stop()
    0
    """

    def __init__(self, engine: Engine, days: float = 0.0, every: float = EVERY) -> None:
        self._engine, self.days, self._every = engine, days, every
        self._running, self._ending = threading.Lock(), threading.Event()
        self._done: set[int] = set()  # erasures of which nothing is left
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look by itself."""
        self._thread = threading.Thread(target=self._run, name="armwise-retention", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, between two batches."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._ending.wait(self._every):
            try:
                self.run()
            except Exception:
                log.exception("old decisions could not be dropped; trying again later")

    def erase(self, app: str, key: str, value: Any) -> int:
        """Journal that one subject's decisions are to go; the number of that event. ``run`` drops them."""
        asked = erasure(self._engine._secret, key, value)
        self._engine.model(app)
        return int(self._engine.writer.write([Write(app, "", asked)])[0].row.seq)

    def run(self) -> int:
        """Drop what is to go now; how many events went."""
        with self._running:
            if not self._engine.leader:
                return 0
            journal = self._engine.open_journal()
            try:
                turn = self._turn(journal)
                if turn is None:
                    return 0
                self._engine.snapshot()
                self._advance(journal)
                return self._drop(journal, turn)
            except _Later:
                log.info("a model was made anew: nothing is dropped before it is stored")
                return 0
            finally:
                journal.connection.close()

    def _turn(self, journal: Journal) -> _Turn | None:
        """What is to go; None if nothing can be."""
        before = round(self._engine.now() - self.days * 86_400_000) if self.days else 0
        deleted = {app: model.settings.forgotten for app, model in self._engine.models.items()}
        subjects = Subjects(journal, self._done)
        first = journal.connection.execute(
            "SELECT seq, time, app FROM events WHERE kind = 'decision' ORDER BY seq LIMIT 1"
        )
        forgotten = any(
            journal.connection.execute(
                "SELECT 1 FROM events WHERE app = ? AND kind = 'decision' AND seq <= ? LIMIT 1", pair
            )
            for pair in deleted.items()
            if pair[1]
        )
        if not first or not (first[0][1] < before or forgotten or subjects.erasures):
            return None
        return _Turn(before, deleted, subjects)

    def _advance(self, journal: Journal) -> None:
        """Let the journal begin where the snapshots are complete."""
        journal.connection.begin_reading()  # snapshots as they belong together
        try:
            saved, old = journal.saved(), journal.base()
            if saved is None or saved.seq < old.seq + old.retained.startswith("sum:"):
                return
            if saved.without:
                raise Unavailable(f"nothing is dropped while {', '.join(saved.without)} cannot be served")
            execute = journal.connection.execute
            there = dict(execute("SELECT app, seq FROM bases"))
            newest = execute(
                "SELECT app, max(seq) FROM snapshots WHERE app <> '' AND seq <= ? GROUP BY app", (saved.seq,)
            )
            models = [
                (app, seq, bytes(execute("SELECT data FROM snapshots WHERE app = ? AND seq = ?", (app, seq))[0][0]))
                for app, seq in newest
                if there.get(app, -1) < seq
            ]
            base = self._begun(journal, old, saved.seq)
        finally:
            journal.connection.rollback()

        for app, seq, data in models:  # a large one in pieces, so that no commit waits for all of it
            for n, piece in bases.pieces(data):
                self._write(functools.partial(_put, at=(app, seq, n), piece=piece))

        def move(writing: Journal) -> None:
            self._check(writing, base.seq)
            for app, seq, data in models:
                bases.put_base(writing.connection, app, seq, len(data))
            _put_base(writing, base)

        self._write(move)
        for gone in bases.unused(journal.connection):
            self._write(functools.partial(_put, at=gone, piece=None))

    def _begun(self, journal: Journal, old: Base, seq: int) -> Base:
        """The journal's beginning, at a later event."""
        total = int(old.retained.removeprefix("sum:"), 16) if old.retained.startswith("sum:") else -1
        if total < 0:  # as ``compact`` leaves it, or none yet
            total = sum(weight(row) for row, _ in chained(journal, 0, until=old.seq))
        opened = {(status.app, status.id): status for status in old.open}  # not all of their events are there
        chain = bytes.fromhex(old.chain)
        for row, chain in chained(journal, old.seq, until=seq):  # noqa: B007
            total += weight(row)
            if (status := opened.get((row.app, row.id))) is not None and row.is_a(*SEQUELS):
                happen(row.event, status, row.time)
        return Base(seq, chain.hex(), list(opened.values()), sum_of(total))

    def _check(self, writing: Journal, seq: int) -> None:
        made = "SELECT 1 FROM events WHERE seq > ? AND kind IN ('create', 'version') LIMIT 1"
        if writing.connection.execute(made, (seq,)):
            raise _Later

    def _drop(self, journal: Journal, turn: _Turn) -> int:
        end, went, start = journal.base().seq, 0, 0
        later: set[Key] = set()  # decisions with events after the end
        looked, left = end, False
        while start >= 0 and not self._ending.is_set():
            found, alone, start = self._find(journal, turn, start, end)
            for chunk in _batches(found, alone):
                if self._ending.is_set():
                    return went

                def drop(writing: Journal, chunk: dict[Key, list[int]] = chunk) -> tuple[int, bool]:
                    nonlocal looked
                    self._check(writing, end)
                    for seq, app, kind, id in writing.connection.execute(
                        "SELECT seq, app, kind, id FROM events WHERE seq > ?", (looked,)
                    ):
                        looked = max(looked, seq)
                        if KINDS.get(kind) in SEQUELS:
                            later.add((app, id))
                    return _drop_some(writing, chunk, later)

                n, some_left = self._write(drop)
                went += n
                left = left or some_left
                time.sleep(0.002)  # others first
        if not left:
            self._done |= turn.subjects.numbers
        self._drop_catalogues(journal, turn.before)
        return went

    def _find(self, journal: Journal, turn: _Turn, start: int, end: int) -> tuple[dict[Key, list[int]], list[int], int]:
        """Decisions that are to go, with the numbers of their events; other events; where to go on (-1: all seen)."""
        found: dict[Key, list[int]] = {}
        alone: list[int] = []
        again = -1
        for rows in _pages(journal, start, end):
            suspects = [seq for seq, _, app, kind, _ in rows if turn.subjects.concerns(app, kind, seq)]
            erased = {seq for seq, row in journal.rows(suspects).items() if turn.subjects.erased(row)}
            for seq, at, app, kind, id in rows:
                goes = at < turn.before or seq <= turn.deleted.get(app, 0) or seq in erased
                if KINDS.get(kind) is Decision and goes:
                    if len(found) < MOST:
                        found[app, id] = [seq]
                    elif again < 0:
                        again = seq - 1
                elif KINDS.get(kind) in SEQUELS and (app, id) in found:
                    found[app, id].append(seq)
                elif KINDS.get(kind) in (Lessons, Import) and goes and seq > start:
                    alone.append(seq)
            time.sleep(0.001)
        return found, alone, again

    def _drop_catalogues(self, journal: Journal, before: int) -> None:
        """Arms that no decision refers to any more, and that nobody has stored since ``before``."""
        stored = journal.connection.execute("SELECT hash FROM catalogues WHERE time < ?", (before,))
        unused = {bytes(hash) for (hash,) in stored}
        last = 0
        sql = "SELECT seq, substr(body, 1, 17) FROM events WHERE seq > ? AND kind = 'decision' ORDER BY seq LIMIT 2000"
        while unused and (rows := journal.connection.execute(sql, (last,))):
            unused -= {catalogue_of(bytes(head)) for _, head in rows}
            last = rows[-1][0]
        for chunk in chunks(list(unused)):

            def drop(writing: Journal, chunk: list[bytes] = list(chunk)) -> None:  # noqa: B006
                heads = writing.connection.execute(
                    "SELECT substr(body, 1, 17) FROM events WHERE seq > ? AND kind = 'decision'", (last,)
                )
                gone = set(chunk) - {catalogue_of(bytes(head)) for (head,) in heads}
                for hash in gone:
                    writing.connection.execute("DELETE FROM catalogues WHERE hash = ?", (hash,))

            self._write(drop)

    def _write(self, work: Callable[[Journal], T]) -> T:
        """Work in a transaction of the writer, between two commits; what it raises is raised here."""
        came: list[T | BaseException] = []

        def whole(journal: Journal) -> None:
            try:
                came.append(journal.alone(lambda: work(journal)))
            except Exception as error:
                came.append(error)

        self._engine.writer.run(whole)
        if not came:
            raise Unavailable("the journal cannot be written now")
        if isinstance(came[0], BaseException):
            raise came[0]
        return came[0]


def _put(writing: Journal, at: tuple[str, int, int], piece: bytes | None) -> None:
    """Store a piece of a model, or take it away."""
    if piece is None:
        bases.drop_piece(writing.connection, *at)
    else:
        bases.put_piece(writing.connection, *at, piece)


def _pages(journal: Journal, start: int, end: int) -> Iterator[list[Any]]:
    sql = "SELECT seq, time, app, kind, id FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT 2000"
    while rows := journal.connection.execute(sql, (start, end)):
        yield rows
        start = rows[-1][0]


def _batches(found: dict[Key, list[int]], alone: list[int]) -> Iterator[dict[Key, list[int]]]:
    keys = list(found)
    for at in range(0, len(keys), BATCH):
        yield {key: found[key] for key in keys[at : at + BATCH]}
    for chunk in chunks(alone):
        yield {("", ""): list(chunk)}


def _drop_some(writing: Journal, chunk: dict[Key, list[int]], later: set[Key]) -> tuple[int, bool]:
    """Drop decisions that are settled, with all their events; how many events went, and whether any decision stayed."""
    settled = {(s.app, s.id) for s in writing.statuses(list(chunk)) if s.closed and (s.app, s.id) not in later}
    settled.add(("", ""))
    seqs = [seq for key, mine in chunk.items() if key in settled for seq in mine]
    base, execute = writing.base(), writing.connection.execute
    rows = writing.rows(seqs)
    gone = {key for key in chunk if key in settled and key != ("", "")}
    total = int(base.retained.removeprefix("sum:"), 16) - sum(map(weight, rows.values()))
    for numbers in chunks(seqs):
        for table in ("events", "requests"):
            execute(f"DELETE FROM {table} WHERE seq IN ({', '.join('?' * len(numbers))})", numbers)
    for app in {app for app, _ in gone}:
        ids = [id for mine, id in gone if mine == app]
        execute(f"DELETE FROM decisions WHERE app = ? AND id IN ({', '.join('?' * len(ids))})", (app, *ids))
    base.open = [status for status in base.open if (status.app, status.id) not in gone]
    base.retained = sum_of(total)
    _put_base(writing, base)
    return len(rows), len(gone) < len(chunk) and ("", "") not in chunk


def _put_base(writing: Journal, base: Base) -> None:
    writing.connection.execute("UPDATE meta SET value = ? WHERE key = 'base'", (msgspec.json.encode(base),))
