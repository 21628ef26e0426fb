"""Retention beside the traffic: drop settled old events and deleted ones in small batches.

First the journal is made to begin later: the models of the last snapshots become those that a replay begins with, so
that no event before them is needed for learning any more. Then decisions go, whole, with all that happened to them, at
most ``MAX_BATCH`` per transaction of the writer. One with events after the new beginning waits for the next time. By
its age a decision goes only when its window is over, rewarded or not: what is left is never selected by outcome.

The models stay as they are: what decisions taught, they taught.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Any, NamedTuple, TypeVar

import msgspec

from armwise.service.engine.engine import Engine
from armwise.service.journal import compaction_snapshots
from armwise.service.journal.bodies import catalogue_of
from armwise.service.journal.errors import Conflict, Unavailable, Unknown
from armwise.service.journal.events import KINDS, SEQUELS, Batch, Decision, Import, Lessons
from armwise.service.journal.journal import Base, Journal, chunks
from armwise.service.journal.pace import MAX_PAGE_ROWS
from armwise.service.journal.rules import happen
from armwise.service.journal.writes import Write
from armwise.service.log.subjects import ERASED, Search, Subjects, closings, erasure
from armwise.service.log.verify import chained, sum_of, weight

log = logging.getLogger("armwise.service")
EVERY = 600.0  # seconds between two turns
SOON = 5.0  # seconds until a leading process finds an erasure that another one took
MAX_BATCH = 50  # decisions that go in one transaction: requests wait for it
MAX_LOOKED_UP = 100_000  # decisions that are looked up before they go
MAX_REST = 2.0  # seconds between erasures: three times as long as the last ones took, and no longer
MAX_ANSWERS = 10_000  # of erasures that were done together
MAX_TRIES = 3  # to drop what was found, where a model is made anew meanwhile
T = TypeVar("T")
Key = tuple[str, str]


class _Later(Exception):
    """A model was restarted since the last snapshot: its training data must stay until it is stored."""


class _Turn(NamedTuple):
    """The events to drop in one turn."""

    before: int  # milliseconds
    deleted: dict[str, int]  # the event up to which each application's log was deleted
    subjects: Subjects
    search: Search
    erased: set[int]  # the numbers of decisions and lessons that name subjects


class Erased(msgspec.Struct):
    """The result of an erasure: the rows searched and found, those erased, and those left."""

    erasure: int
    searched: dict[str, int]
    found: dict[str, int]
    deleted: int | None  # events; None: the leading process deletes them
    remaining: int  # decisions, lessons and catalogues that were found and are still there
    until: str  # when these go
    elsewhere: list[str]  # what the service cannot reach


def merge(parts: Sequence[Erased]) -> Erased:
    """Combine the answers of several databases."""
    counts = [part.deleted for part in parts if part.deleted is not None]
    return Erased(
        max(part.erasure for part in parts),
        {name: sum(part.searched[name] for part in parts) for name in parts[0].searched},
        {name: sum(part.found[name] for part in parts) for name in parts[0].found},
        sum(counts) if len(counts) == len(parts) else None,
        sum(part.remaining for part in parts),
        "; ".join(dict.fromkeys(part.until for part in parts if part.until)),
        list(dict.fromkeys(text for part in parts for text in part.elsewhere)),
    )


class Retention:
    """A thread that drops what is older than ``days`` (0: nothing is), or was deleted; only where its process leads."""

    def __init__(self, engine: Engine, days: float = 0.0, every: float = EVERY) -> None:
        self._engine, self.days, self._every, self._system = engine, days, every, engine.system
        self._running, self._ending = engine.system.lock(), engine.system.event()
        self._answers: dict[int, Erased] = {}  # of erasures that were done together, by number
        self._rest_until = 0.0
        self._left = -1  # the newest erasure that a turn could not finish
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to look by itself."""
        self._thread = self._system.start(self._run, "armwise-retention")

    def stop(self) -> None:
        """Stop between two batches."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        looked = self._system.monotonic()
        while not self._ending.wait(min(self._every, SOON)):
            try:
                if self._system.monotonic() - looked >= self._every or self._pending():
                    looked = self._system.monotonic()
                    self.run()
            except Exception:
                log.exception("old decisions could not be dropped; trying again later")

    def _pending(self) -> bool:
        """Return whether a journaled erasure is not done; another process may have taken it."""
        if not self._engine.leader:
            return False
        with self._engine.reading as journal:
            [[newest]] = journal.connection.execute("SELECT max(seq) FROM events WHERE kind = 'erase'")
            done = journal.connection.execute("SELECT value FROM meta WHERE key = ?", (ERASED,))
        return (newest or 0) > (int(bytes(done[0][0])) if done else 0) and newest != self._left

    def erase(self, app: str, key: str, value: Any) -> Erased:
        """Delete one subject's decisions, as far as they were made before: what was found, and what is left of it.

        Erasures that are asked for meanwhile are done together, and the next ones only after a pause.
        """
        asked = erasure(self._engine._secret, key, value)
        self._engine.model(app)
        seq = int(self._engine.writer.write([Write(app, "", asked)])[0].row.seq)
        with self._running:
            if seq not in self._answers:
                self._ending.wait(max(0.0, self._rest_until - self._system.monotonic()))
                began = self._system.monotonic()
                self._erase_pending(seq)
                now = self._system.monotonic()
                self._rest_until = now + min(MAX_REST, 3.0 * (now - began))
            return self._answers.pop(seq)

    def _erase_pending(self, seq: int) -> None:
        """Run all pending erasures and record their answers."""
        journal = self._engine.open_journal()
        try:
            turn = self._turn(journal, seq)
            assert turn is not None  # it has this erasure, even if the leading process has done it meanwhile
            if self._engine.leader:
                self._carry_out(journal, turn, MAX_TRIES)
            else:
                self._close(journal, turn.search)
                self._note(journal, turn, None, "")
        except Exception as error:
            log.exception("erasure %s could not be finished", seq)
            raise Unavailable(
                f"erasure {seq} is journaled, but could not be finished now: it is tried again within "
                f"{min(self._every, SOON):g} s, or at once if you ask again"
            ) from error
        finally:
            journal.connection.close()

    def _carry_out(self, journal: Journal, turn: _Turn, tries: int = 1) -> int:
        """Drop what a turn found, and note what became of its erasures, whoever asks for that; how many events went."""
        went = self._go(journal, turn, tries)
        if turn.subjects.erasures:
            self._note(journal, turn, went, journal.connection.purge())
        return went

    def _note(self, journal: Journal, turn: _Turn, deleted: int | None, unclean: str) -> None:
        for number in turn.subjects.numbers:
            done = number <= turn.subjects.done
            self._answers[number] = self._answer(journal, turn.search, number, deleted, unclean, done)
        while len(self._answers) > MAX_ANSWERS:  # of those who asked and hung up
            del self._answers[min(self._answers)]

    def _answer(
        self, journal: Journal, search: Search, seq: int, deleted: int | None, unclean: str, done: bool
    ) -> Erased:
        decisions = [each.seq for each in search.found.get(seq, ())]
        lessons, catalogues = search.found_lessons.get(seq, []), search.found_catalogues.get(seq, [])
        remaining = 0
        for chunk in chunks(decisions + lessons):
            where, values = journal.connection.among("seq", chunk)
            remaining += journal.connection.execute(f"SELECT count(*) FROM events WHERE {where}", values)[0][0]
        for chunk in chunks(catalogues):
            where, values = journal.connection.among("hash", chunk)
            remaining += journal.connection.execute(f"SELECT count(*) FROM catalogues WHERE {where}", values)[0][0]
        until, elsewhere = unclean, ["copies and backups of the storage, and exports that were made before",
                                     "what the models learnt from the decisions",
                                     "counts per arm in memory (the page, /metrics), until a restart"]  # fmt: skip
        if self._engine.store.shared:
            elsewhere.append("PostgreSQL's write-ahead log and its archive, replicas, and the free space of its pages")
        if done and not remaining:
            until = "the leading process had done it already: what is counted here is what it left"
        elif deleted is None:
            until = f"the leading process deletes them within about {SOON:g} s"
        elif remaining:
            until = f"tried again every {self._every:g} s: a reward came meanwhile, or a model was made anew"
        return Erased(
            seq,
            {"decisions": search.decisions, "lessons": search.lessons, "catalogues": search.catalogues},
            {"decisions": len(decisions), "lessons": len(lessons), "catalogues": len(catalogues)},
            deleted, remaining, until, elsewhere,
        )  # fmt: skip

    def run(self) -> int:
        """Drop what is due; return the number of events dropped."""
        with self._running:
            if not self._engine.leader:
                return 0
            journal = self._engine.open_journal()
            try:
                turn = self._turn(journal)
                return 0 if turn is None else self._carry_out(journal, turn)
            finally:
                journal.connection.close()

    def _go(self, journal: Journal, turn: _Turn, tries: int = 1) -> int:
        """Drop what a turn found; return the number of events dropped."""
        self._close(journal, turn.search)
        for _ in range(tries):
            try:
                self._engine.wait_learnt()  # the erasure, too, before which all that waited is learnt
                waiting = self._waiting()
                self._engine.snapshot()
                self._advance(journal)
                return self._drop(journal, turn, waiting | self._waiting())
            except _Later:
                log.info("a model is new and not stored yet: nothing is dropped")
        return 0

    def _waiting(self) -> set[int]:
        """Decisions whose outcomes are still to be learnt, though they are settled."""
        return {seq for model in self._engine.models.values() for seq in model.waits_for()}

    def _close(self, journal: Journal, found: Search) -> None:
        """Close the windows of decisions to be erased, so that no reward can reach them."""
        for group in closings(journal, found):
            with contextlib.suppress(Conflict, Unknown):  # closed meanwhile, or gone
                self._engine.writer.write(group)

    def _turn(self, journal: Journal, erasure: int | None = None) -> _Turn | None:
        """Find the events to drop, those of ``erasure`` with them; None if there are none."""
        before = round(self._engine.now() - self.days * 86_400_000) if self.days else 0
        deleted = {app: model.settings.forgotten for app, model in self._engine.models.items()}
        subjects = Subjects(journal, erasure)
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
        if not subjects.erasures and not (first and (first[0][1] < before or forgotten)):
            return None
        search = subjects.search(journal)
        erased = {each.seq for mine in search.found.values() for each in mine}
        erased |= {seq for mine in search.found_lessons.values() for seq in mine}
        return _Turn(before, deleted, subjects, search, erased)

    def _advance(self, journal: Journal) -> None:
        """Move the start of the journal to where the snapshots are complete."""
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

        for app, seq, data in models:  # a large one in chunks, so that no commit waits for all of it
            for n, chunk in compaction_snapshots.chunks(data):
                self._write(functools.partial(_put, at=(app, seq, n), chunk=chunk))

        def move(writing: Journal) -> None:
            self._check(writing, base.seq)
            for app, seq, data in models:
                compaction_snapshots.put_snapshot(writing.connection, app, seq, len(data))
            _put_base(writing, base)

        self._write(move)
        for gone in compaction_snapshots.unused(journal.connection):
            self._write(functools.partial(_put, at=gone, chunk=None))

    def _begun(self, journal: Journal, old: Base, seq: int) -> Base:
        """The new start of the journal at a later event."""
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

    def _drop(self, journal: Journal, turn: _Turn, waiting: set[int]) -> int:
        end, went, start = journal.base().seq, 0, 0
        running: set[int] = set()
        if turn.before:
            windows = "SELECT seq FROM decisions WHERE deadline >= ? AND seq <= ?"
            running = {seq for (seq,) in journal.connection.execute(windows, (round(self._engine.now()), end))}
        later: set[Key] = set()  # decisions with events after the end
        looked, left = end, False
        while start >= 0 and not self._ending.is_set():
            found, alone, start = self._find(journal, turn, start, end, waiting, running)
            for chunk in _decisions_in_batches(found, alone):
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
                self._system.sleep(0.002)  # others first
        named = {hash for mine in turn.search.found_catalogues.values() for hash in mine}
        left = bool(self._drop_catalogues(journal, turn.before, named)) or left
        if numbers := turn.subjects.numbers:
            self._left = numbers[-1]  # whatever is left of these waits for the next turn
            if not left:
                self._write(functools.partial(_note_done, seq=numbers[-1]))
        return went

    def _find(
        self, journal: Journal, turn: _Turn, start: int, end: int, waiting: set[int], running: set[int]
    ) -> tuple[dict[Key, list[int]], list[int], int]:
        """Decisions that are to go, with the numbers of their events; other events; where to go on (-1: all seen)."""
        found: dict[Key, list[int]] = {}
        alone: list[int] = []
        again = -1
        for rows in _pages(journal, start, end):
            for seq, at, app, kind, id in rows:
                goes = (
                    (at < turn.before and seq not in running) or seq <= turn.deleted.get(app, 0) or seq in turn.erased
                )
                if KINDS.get(kind) is Decision and goes and seq not in waiting:
                    if len(found) < MAX_LOOKED_UP:
                        found[app, id] = [seq]
                    elif again < 0:
                        again = seq - 1
                elif KINDS.get(kind) in SEQUELS and (app, id) in found:
                    found[app, id].append(seq)
                elif KINDS.get(kind) in (Lessons, Import, Batch) and goes and seq > start:
                    alone.append(seq)
            journal.pace.rest()
        return found, alone, again

    def _drop_catalogues(self, journal: Journal, before: int, named: set[bytes]) -> set[bytes]:
        """Drop arms that no decision refers to, and that are old or name an erased subject; what stays of the last."""
        stored = journal.connection.execute("SELECT hash FROM catalogues WHERE time < ?", (before,))
        unused = {bytes(hash) for (hash,) in stored} | named
        last = 0
        sql = "SELECT seq, substr(body, 1, 17) FROM events WHERE seq > ? AND kind = 'decision' ORDER BY seq LIMIT ?"
        while unused and (rows := journal.connection.execute(sql, (last, MAX_PAGE_ROWS))):
            journal.pace.rest()
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
        if not named:
            return set()
        return named & {bytes(hash) for (hash,) in journal.connection.execute("SELECT hash FROM catalogues")}

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


def _put(writing: Journal, at: tuple[str, int, int], chunk: bytes | None) -> None:
    """Store or delete a chunk of a model."""
    if chunk is None:
        compaction_snapshots.drop_chunk(writing.connection, *at)
    else:
        compaction_snapshots.put_chunk(writing.connection, *at, chunk)


def _pages(journal: Journal, start: int, end: int) -> Iterator[list[Any]]:
    sql = "SELECT seq, time, app, kind, id FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    while rows := journal.connection.execute(sql, (start, end, MAX_PAGE_ROWS)):
        yield rows
        start = rows[-1][0]


def _decisions_in_batches(found: dict[Key, list[int]], alone: list[int]) -> Iterator[dict[Key, list[int]]]:
    keys = list(found)
    for at in range(0, len(keys), MAX_BATCH):
        yield {key: found[key] for key in keys[at : at + MAX_BATCH]}
    for chunk in chunks(alone):
        yield {("", ""): list(chunk)}


def _drop_some(writing: Journal, chunk: dict[Key, list[int]], later: set[Key]) -> tuple[int, bool]:
    """Drop decisions that are settled, with all their events; how many events went, and whether any decision stayed."""
    settled = {(s.app, s.id) for s in writing.statuses(list(chunk)) if s.closed and (s.app, s.id) not in later}
    settled.add(("", ""))
    seqs = [seq for key, mine in chunk.items() if key in settled for seq in mine]
    base, execute = writing.base(), writing.connection.execute
    rows = writing.rows(seqs)
    writing.with_requests(rows.values())
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


def _note_done(writing: Journal, seq: int) -> None:
    """Record that erasures up to this one are done."""
    sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    writing.connection.execute(sql, (ERASED, str(seq).encode()))


def _put_base(writing: Journal, base: Base) -> None:
    writing.connection.execute("UPDATE meta SET value = ? WHERE key = 'base'", (msgspec.json.encode(base),))
