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
    """One session with the database; statements use ``?`` for values."""

    tail: Tail | None  # the last acknowledged event, in a file beside the database
    read_only: bool  # the session writes nothing, not even tables
    errors: tuple[type[Exception], ...]  # raised if the database cannot be reached or read
    statement_timeout: float  # seconds, for a database on another machine; 0: none

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
        """Remove deleted rows from the database's files; return why some bytes may be left, empty if none are."""
        ...

    def begin(self, lock: str = "") -> None: ...

    def begin_reading(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def open_batch(self, lock: str, asked: Sequence[Statement], meanwhile: Callable[[], None]) -> list[list[Any]]:
        """Start an exclusive append and run queries; call ``meanwhile`` while they are in flight.

        A shared database takes the append lock here and holds it until ``close_batch``: two round trips.
        """
        ...

    def close_batch(self, also: Sequence[Statement], batch: BatchRows) -> None:
        """Write the rows of a batch and further statements, and commit; return when all is durable.

        A shared database commits, which releases the lock, before the data is on disk, and waits for the disk
        afterwards. The write-ahead log becomes durable in order, so a later append waits for these bytes too: if the
        database crashes, both are lost, and neither was acknowledged.
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
    """A database that opens sessions."""

    shared: bool  # whether other processes may write to it
    lock: str  # a statement that keeps others from appending during a transaction; empty if none can
    clock: str  # a query for the time of all processes; empty: each uses its own clock
    errors: tuple[type[Exception], ...]  # raised if it cannot be reached or read

    def connect(self) -> Connection: ...

    def connect_reading(self) -> Connection:
        """Open a session that writes nothing, for a journal that may be read-only."""
        ...

    def lead(self) -> bool: ...

    def leading(self) -> Connection | None: ...

    def close(self) -> None: ...


def make_tables(connection: Connection, **words: str) -> None:
    """Create missing tables and indexes, in the dialect given by ``words``."""
    for statement in TABLES.format(**words).split(";"):
        if statement.strip():
            connection.execute(statement)
