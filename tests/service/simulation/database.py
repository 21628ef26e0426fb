"""A database that several processes share, as the journal sees it: sessions, locks, commits, and a network before it.

What a session asks travels, is worked on by the server, and the answer travels back; each of these takes a time that
the seed says, and each may be lost. What a statement means is said by SQLite; what sessions may see of each other, what
they wait for, and what is left when the power goes, is said here as PostgreSQL says it: a statement sees what is
committed when it begins; a commit may be visible before it is durable; a session that is lost has rolled back.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from armwise.service.journal.databases.database import BatchRows, Statement, make_tables
from armwise.service.journal.databases.lead import LEASE, Lead
from armwise.service.journal.databases.postgres import IDLE_TIMEOUT_MS, LOCK_TIMEOUT_MS
from armwise.service.journal.databases.sqlite import ENTRIES
from tests.service.simulation.kernel import START, Kernel, Owner, Simulated, Task

APPEND = "append"  # the statement that takes the lock of appends
CLOCK = "SELECT simulated_now()"
UNANSWERED = 10.0  # seconds after which a session is given up that nothing comes from
DEAD_PEER = 15.0  # seconds after which the server gives up a session whose process cannot be reached
_WRITES = ("INSERT", "UPDATE", "DELETE", "SAVEPOINT")
_numbers = itertools.count(1)


class Lost(Exception):
    """The session is lost, or the database does not answer."""


class Refused(Exception):
    """The statement failed; the session goes on."""


class Server(Owner):
    """The database: one SQLite file in write-ahead mode for what is committed, and what SQLite has no word for."""

    def __init__(self, kernel: Kernel, path: Path) -> None:
        super().__init__("database")
        self.kernel, self._path, self._generation = kernel, path, 0
        self.backends: dict[int, Backend] = {}
        self.appending: Backend | None = None  # who has the lock of appends
        self.writing: Backend | None = None  # who has a transaction that wrote
        self.leading: Backend | None = None  # who has the lock of the lead
        self.lease = (0, 0.0)  # which session said last that it leads, and when
        self.waiters: list[Task] = []  # for a lock
        self.redo: list[list[Statement]] = []  # what was committed, one list for each transaction
        self.durable = self.crashes = 0  # how many of them the disk has; how often the power went
        self.cut: set[Owner] = set()  # processes that cannot reach it
        self.pending: dict[int, Callable[[], None]] = {}  # how those who wait hear that the database is gone
        self.published: list[tuple[str, bool]] = []  # who stored snapshots, and whether it led then
        self._begin()

    def _begin(self) -> None:
        self._generation += 1
        self._file = self._path / f"{self._generation}.db"
        one = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=0.0)
        one.execute("PRAGMA journal_mode=WAL")
        one.execute("PRAGMA synchronous=OFF")
        one.execute("BEGIN")
        words = {"bytes": "BLOB", "integer": "INTEGER", "real": "REAL", "suffix": " WITHOUT ROWID", "aside": ""}
        make_tables(_Raw(one), **words)  # type: ignore[arg-type]
        self._dress(one)
        for transaction in self.redo:
            for sql, values in transaction:
                one.execute(sql, values)
        one.execute("COMMIT")
        self._kept = one

    def _dress(self, one: Any) -> Any:
        one.create_function("simulated_now", 0, self.milliseconds)
        one.create_function("pg_advisory_unlock_all", 0, lambda: None)
        one.create_function("pg_advisory_lock_shared", 2, lambda kind, number: None)
        for statement in ENTRIES:
            one.execute(statement)
        return one

    def connection(self) -> Any:
        one = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=0.0)
        one.execute("PRAGMA synchronous=OFF")
        return self._dress(one)

    def milliseconds(self) -> int:
        return round((START + self.kernel.now) * 1000.0)

    def crash(self, down: float) -> None:
        """The power goes, and comes back: every session is lost, and what the disk did not have."""
        if not self.alive:
            return
        self.crashes += 1
        self.alive = False
        for backend in list(self.backends.values()):
            backend.end()
        del self.redo[self.durable :]
        self._kept.close()
        pending, self.pending = self.pending, {}
        for hear in pending.values():
            hear()

        def back() -> None:
            self.alive = True
            self._begin()

        self.kernel.after(down, back)

    def left(self, process: Owner) -> None:
        """A process ended: its sessions end when the server learns of it."""
        delay = DEAD_PEER if process in self.cut else 0.01
        for backend in [each for each in self.backends.values() if each.process is process]:
            self.kernel.after(delay, backend.end)

    def close(self) -> None:
        for backend in list(self.backends.values()):
            backend.end()
        self._kept.close()


class _Raw:
    """What ``make_tables`` needs of a connection."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._raw.execute(sql, values).fetchall()  # type: ignore[no-any-return]


class Wire:
    """The way of a process to the database and back."""

    def __init__(self, server: Server, process: Owner) -> None:
        self.server, self.process, self.kernel = server, process, server.kernel
        self.lost = 0.0  # the chance that a message is lost, and the session with it
        self.slow = 0.0  # the chance that a message takes long

    def ask(self, work: Callable[[], Any], patience: float) -> Any:
        """The answer of the server, which works on it in its own time, whatever becomes of who asked."""
        kernel, server, number = self.kernel, self.server, next(_numbers)
        answer: list[tuple[Any, Exception | None]] = []
        waiters: list[Task] = []

        def hear(value: Any, error: Exception | None) -> None:
            server.pending.pop(number, None)
            answer.append((value, error))
            kernel.wake_all(waiters)

        def serve() -> None:
            if not self._travel():
                return
            try:
                value, error = work(), None
            except (Lost, Refused, sqlite3.Error) as raised:
                value, error = None, raised
            if self._travel():
                hear(value, error)

        if not server.alive:
            kernel.sleep(0.01)
            raise Lost("nobody listens there")
        server.pending[number] = lambda: hear(None, Lost("the database went down"))
        kernel.spawn(server, "statement", serve)
        try:
            if not kernel.wait_until(waiters, lambda: bool(answer), patience or UNANSWERED):
                raise Lost("the database did not answer")
        finally:
            server.pending.pop(number, None)
        value, error = answer[0]
        if error is not None:
            raise error
        return value

    def _travel(self) -> bool:
        chance = self.kernel.random
        self.kernel.sleep(chance.expovariate(400.0) if chance.random() >= self.slow else chance.uniform(0.1, 4.0))
        return self.process not in self.server.cut and chance.random() >= self.lost


class Backend:
    """A session as the server has it."""

    def __init__(self, server: Server, process: Owner) -> None:
        self.server, self.process, self.number = server, process, next(_numbers)
        self.over = self.inside = self.reading = False
        self.redo: list[Statement] = []
        self.moved = 0.0
        self.raw = server.connection()
        server.backends[self.number] = self

    def end(self) -> None:
        """What it had not committed is gone, and so are its locks."""
        if not self.over:
            self.over = True
            self.server.backends.pop(self.number, None)
            if self.server.leading is self:
                self.server.leading = None
            self._free()
            self.raw.close()

    def _free(self) -> None:
        self.inside = self.reading = False
        self.redo = []
        if self.server.appending is self:
            self.server.appending = None
        if self.server.writing is self:
            self.server.writing = None
        self.server.kernel.wake_all(self.server.waiters)

    def lives(self) -> None:
        if self.over or not self.server.alive:
            raise Lost("the session is over")

    def statement(self, sql: str, values: Sequence[Any]) -> list[Any]:
        self.lives()
        self.moved = self.server.kernel.now
        writes = sql.lstrip().startswith(_WRITES)
        if writes and self.server.writing is not self:
            if self.reading:
                raise Refused("the transaction may only read")
            self._wait(lambda: self.server.writing is None)
            self.server.writing = self
            self.raw.execute("BEGIN IMMEDIATE")
            if self.inside:
                self.guard()
        try:
            found: list[Any] = self.raw.execute(sql, values).fetchall()
        except sqlite3.Error:
            if not self.inside:
                self.rolled_back()
            raise
        if sql.startswith("ROLLBACK TO"):
            self.redo.clear()
        elif writes and not sql.startswith("SAVEPOINT"):
            self.redo.append((sql, tuple(values)))
        if not self.inside and self.server.writing is self:
            self.committed()
            self.flush()
        return found

    def _wait(self, free: Callable[[], bool]) -> None:
        wait = self.server.kernel.wait_until
        if not wait(self.server.waiters, lambda: free() or self.over, LOCK_TIMEOUT_MS / 1000.0):
            raise Refused("the lock was not free for too long")
        self.lives()

    def take_lock(self) -> None:
        self.lives()
        self._wait(lambda: self.server.appending is None)
        self.server.appending = self
        self.inside = True
        self.guard()

    def guard(self) -> None:
        """End a transaction that holds a lock and stands still."""

        def look() -> None:
            if self in (self.server.appending, self.server.writing):
                if self.server.kernel.now - self.moved >= IDLE_TIMEOUT_MS / 1000.0:
                    self.end()
                else:
                    self.guard()

        self.moved = self.server.kernel.now
        self.server.kernel.after(IDLE_TIMEOUT_MS / 1000.0 + 0.001, look)

    def committed(self) -> None:
        """Commit: others see what was written from now on."""
        self.lives()
        if self.server.writing is self:
            self.raw.execute("COMMIT")
            if any("INTO snapshots" in sql for sql, _ in self.redo):
                leads = self.server.leading
                self.server.published.append((self.process.name, leads is not None and leads.process is self.process))
            self.server.redo.append(self.redo)
        elif self.raw.in_transaction:
            self.raw.execute("COMMIT")
        self._free()

    def rolled_back(self) -> None:
        self.lives()
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")
        self._free()

    def flush(self) -> None:
        """Let the disk have all that is committed by now."""
        upto, crashes = len(self.server.redo), self.server.crashes
        self.server.kernel.sleep(self.server.kernel.random.expovariate(300.0))
        if self.server.crashes != crashes:
            raise Lost("the database went down")
        self.server.durable = max(self.server.durable, upto)


class Session:
    """A session as a process has it: ``store.Connection``. It is opened again when it was lost, as ``Session`` of
    PostgreSQL is, but never in the middle of a transaction."""

    tail = None
    read_only = False
    errors: tuple[type[Exception], ...] = (Lost, Refused, sqlite3.Error)
    statement_timeout = 0.0

    def __init__(self, wire: Wire, given: Backend | None = None) -> None:
        self._wire, self._server, self._given = wire, wire.server, given
        self._inside = given is not None
        self._backend = given or self._open()
        self._closed = False

    def _open(self) -> Backend:
        self._closed = False
        return self._wire.ask(lambda: Backend(self._server, self._wire.process), 5.0)  # type: ignore[no-any-return]

    def _ask(self, work: Callable[[Backend], Any]) -> Any:
        if self._closed and not self._inside:
            self._backend = self._open()
        if self._closed:
            raise Lost("the session is closed")
        backend = self._backend
        try:
            return self._wire.ask(lambda: work(backend), self.statement_timeout)
        except Lost:
            self.close()
            raise

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            delay = DEAD_PEER if self._wire.process in self._server.cut else 0.01
            self._server.kernel.after(delay, self._backend.end)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._ask(lambda backend: backend.statement(sql, values))  # type: ignore[no-any-return]

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        return f"{column} IN ({', '.join('?' * len(values))})", values

    def wait_until_durable(self) -> None:
        if not self._inside and self._server.durable < len(self._server.redo):
            self._ask(lambda backend: backend.flush())

    def tidy(self, seq: int) -> None:
        """Nothing is to be done."""

    def check(self) -> tuple[str, list[str]]:
        return "nothing of a simulated database", []

    def purge(self) -> str:
        return ""

    def begin(self, lock: str = "") -> None:
        def work(backend: Backend) -> None:
            if lock:
                backend.take_lock()
            backend.inside = True

        self._ask(work)  # in a new session where the last one was rolled back
        self._inside = True

    def begin_reading(self) -> None:
        def work(backend: Backend) -> None:
            backend.lives()
            backend.inside = backend.reading = True
            backend.raw.execute("BEGIN")

        self._ask(work)
        self._inside = True

    def commit(self) -> None:
        def work(backend: Backend) -> None:
            backend.committed()
            backend.flush()

        self._ask(work)
        self._inside = self._given is not None

    def rollback(self) -> None:
        self._inside = self._given is not None
        if self._given is None:
            self.close()
        else:
            with contextlib.suppress(Lost, Refused, sqlite3.Error):
                self._ask(lambda backend: backend.rolled_back())

    def open_batch(self, lock: str, asked: Sequence[Statement], meanwhile: Callable[[], None]) -> list[list[Any]]:
        def work(backend: Backend) -> list[list[Any]]:
            backend.take_lock()
            return [backend.statement(sql, values) for sql, values in asked]

        if self._closed and not self._inside:
            self._backend = self._open()
        self._inside = True
        meanwhile()
        return self._ask(work)  # type: ignore[no-any-return]

    def close_batch(self, also: Sequence[Statement], batch: BatchRows) -> None:
        statements = [*also, *batch.statements()]

        def work(backend: Backend) -> None:
            for sql, values in statements:
                backend.statement(sql, values)
            backend.committed()  # which frees the lock: others may append before the disk has it
            backend.flush()

        self._ask(work)
        self._inside = False


class LeadSession:
    """A session that may hold the lead, as ``lead.LeadSession`` says."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._server = wire, wire.server
        self.backend: Backend = wire.ask(lambda: Backend(wire.server, wire.process), 5.0)
        self.session = Session(wire, self.backend)

    @property
    def closed(self) -> bool:
        return self.session._closed

    def _ask(self, work: Callable[[Backend], Any]) -> Any:
        def alive(backend: Backend) -> Any:
            backend.lives()
            return work(backend)

        return self.session._ask(alive)

    def ping(self) -> None:
        self._ask(lambda backend: None)

    def take(self) -> int:
        def work(backend: Backend) -> int:
            if self._server.leading is not None:
                return 0
            self._server.leading = backend
            return backend.number

        return self._ask(work)  # type: ignore[no-any-return]

    def renew(self, number: int, taking: bool = False) -> None:
        def work(backend: Backend) -> None:
            if taking or self._server.lease[0] == number:
                self._server.lease = number, self._server.kernel.now

        self._ask(work)

    def depose(self) -> None:
        def work(backend: Backend) -> None:
            number, said = self._server.lease
            leads = self._server.leading
            if leads is not None and leads.number == number and said < self._server.kernel.now - LEASE / 1000.0:
                leads.end()

        self._ask(work)

    def unfreeze(self) -> None:
        self._ask(lambda backend: None)  # a statement comes whole here

    def close(self) -> None:
        self.session.close()


class Shared:
    """The store of one process on the database, as ``store.Database`` says."""

    shared = True
    lock, clock = APPEND, CLOCK
    errors = Session.errors

    def __init__(self, wire: Wire, system: Simulated) -> None:
        self._wire = wire
        self._lead = Lead(lambda: LeadSession(wire), self.errors, system)

    def __str__(self) -> str:
        return "simulated"

    def connect(self) -> Any:
        return Session(self._wire)

    connect_reading = connect

    def lead(self) -> bool:
        return self._lead.lead()

    def leading(self) -> Any:
        return self._lead.leading().session

    def close(self) -> None:
        self._lead.close()
