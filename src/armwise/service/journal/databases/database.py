"""The interface of a database that holds a journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from armwise.service.journal.databases.tail import Tail

TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS events (
  seq {integer} PRIMARY KEY, time {integer} NOT NULL, app TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
  body {bytes} NOT NULL, chain {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS decisions (
  app TEXT NOT NULL, id TEXT NOT NULL, seq {integer} NOT NULL, deadline {integer} NOT NULL, rule TEXT NOT NULL,
  fallback {real} NOT NULL, active {integer} NOT NULL, n {integer} NOT NULL, total {real} NOT NULL,
  value {real} NOT NULL, closed {integer} NOT NULL, learn TEXT NOT NULL, PRIMARY KEY (app, id)){suffix};
CREATE INDEX IF NOT EXISTS given ON events (app, id) WHERE kind = 'reward';
CREATE INDEX IF NOT EXISTS made ON events (app, seq) WHERE kind IN ('create', 'configure');
CREATE INDEX IF NOT EXISTS erasures ON events (seq) WHERE kind = 'erase';
CREATE INDEX IF NOT EXISTS due ON decisions (deadline) WHERE closed = 0;
CREATE TABLE IF NOT EXISTS requests (
  app TEXT NOT NULL, request TEXT NOT NULL, seq {integer} NOT NULL, PRIMARY KEY (app, request)){suffix};
CREATE TABLE IF NOT EXISTS catalogues (
  hash {bytes} PRIMARY KEY, time {integer} NOT NULL, data {bytes} NOT NULL){suffix};
CREATE INDEX IF NOT EXISTS asked ON requests (seq);
CREATE TABLE IF NOT EXISTS bases (app TEXT PRIMARY KEY, seq {integer} NOT NULL, data {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS pieces (
  app TEXT NOT NULL, seq {integer} NOT NULL, n {integer} NOT NULL, data {bytes} NOT NULL, PRIMARY KEY (app, seq, n));
CREATE TABLE IF NOT EXISTS {aside}snapshots (
  app TEXT NOT NULL, seq {integer} NOT NULL, data {bytes} NOT NULL, PRIMARY KEY (app, seq));
"""

Statement = tuple[str, Sequence[Any]]  # with ``?`` for values
Rows = Sequence[tuple[Any, ...]]  # of a table, all of its columns in order


class Connection(Protocol):
    """One session with the database; statements use ``?`` for values.

    >>> from armwise.service.journal.databases.sqlite import SQLite
    >>> connection = SQLite(":memory:").connect()
    >>> connection.execute("SELECT ?", (7,))
    [(7,)]
    """

    tail: Tail | None  # says beside the database what was acknowledged last
    read_only: bool  # nothing is written in this session, not even tables
    errors: tuple[type[Exception], ...]  # what it raises where the database cannot be reached or read
    patience: float  # seconds that a statement may take, where the database is elsewhere; 0: as long as it takes

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]: ...

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """A condition that a column has one of these values, and its parameters."""
        ...

    def wait_until_durable(self) -> None:
        """Wait until everything visible to this session is durable."""
        ...

    def tidy(self, seq: int) -> None:
        """Run periodic maintenance that no commit should wait for; ``seq`` is the last event."""
        ...

    def check(self) -> tuple[str, list[str]]:
        """Run the database's own checks of files and indexes; return the problems found."""
        ...

    def purge(self) -> str:
        """Remove the bytes of rows that were deleted from the database's files; why some may be left, if they may."""
        ...

    def begin(self, lock: str = "") -> None: ...

    def begin_reading(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def open_batch(self, lock: str, asked: Sequence[Statement], meanwhile: Callable[[], None]) -> list[list[Any]]:
        """Start an exclusive append and run queries; ``meanwhile`` is called while they are in flight.

        Where others append too, the lock is taken, and lasts until ``close_batch``: two round trips.
        """
        ...

    def close_batch(self, also: Sequence[Statement], batch: BatchRows) -> None:
        """Write the rows of a batch and further statements, and commit; return when all is durable.

        A database that others share commits, and with it releases the lock, before the disk has it; then it waits for
        the disk. What is later in the database's log is never durable before what is earlier, so whoever appends
        meanwhile has to wait for the same bytes: if the database dies, all of that is gone together, and nobody was
        told of any.
        """
        ...


class BatchRows(Protocol):
    """The rows of a batch in the form that a database needs."""

    def statements(self) -> list[Statement]:
        """The rows of ``sqlite.ENTRIES`` in as few statements as possible."""
        ...

    def tables(self) -> Mapping[str, Rows]:
        """Rows of ``events``, ``decisions`` and ``requests``, or of new decisions as ``sqlite.ENTRIES`` has them."""
        ...


class Database(Protocol):
    """A database that opens sessions.

    >>> from armwise.service.journal.databases.sqlite import SQLite
    >>> SQLite(":memory:").shared
    False
    """

    shared: bool  # whether other processes may write to it
    lock: str  # what a transaction executes so that no other appends meanwhile; empty if none can
    clock: str  # a query for the time that all processes share; empty: each its own
    errors: tuple[type[Exception], ...]  # what it raises where it cannot be reached or read

    def connect(self) -> Connection: ...

    def connect_reading(self) -> Connection:
        """A session that writes nothing, for a journal that may be read-only."""
        ...

    def lead(self) -> bool: ...

    def leading(self) -> Connection | None: ...

    def close(self) -> None: ...


def make_tables(connection: Connection, **words: str) -> None:
    """Create what is missing, in the dialect given by ``words``.

    >>> from armwise.service.journal.databases.sqlite import SQLite
    >>> make_tables(SQLite(":memory:").connect(), bytes="BLOB", integer="INTEGER", real="REAL", suffix="", aside="")
    """
    for statement in TABLES.format(**words).split(";"):
        if statement.strip():
            connection.execute(statement)
