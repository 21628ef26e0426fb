"""The journal in PostgreSQL, for several service processes on several machines.

Appends wait for each other by an advisory lock that a transaction holds until it is committed, so that events become
visible in the order of their numbers. Another advisory lock, held by a session, says which process leads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import psycopg

from armwise.serve.journal.store import Connection, make_tables

APPEND, LEAD, TABLES = 0x6E7201, 0x6E7202, 0x6E7203


class _PostgresConnection:
    """A session that is opened again when it was lost, but never in the middle of a transaction."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._raw = self._open()
        self._inside = False

    def _open(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._url, autocommit=True, connect_timeout=10)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self._raw.closed and not self._inside:
            self._raw = self._open()
        cursor = self._raw.execute(sql.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    def begin(self) -> None:
        self.execute("BEGIN")
        self._inside = True

    def begin_reading(self) -> None:
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._inside = True

    def commit(self) -> None:
        self.execute("COMMIT")
        self._inside = False

    def rollback(self) -> None:
        self._inside = False
        with contextlib.suppress(psycopg.Error):  # a session that is gone has rolled back
            if not self._raw.closed:
                self._raw.execute("ROLLBACK")

    def close(self) -> None:
        self._raw.close()


class Postgres:
    """A database reached by a URL such as ``postgresql://user@host/name``.

    >>> Postgres("postgresql://nobody@127.0.0.1:1/none").shared
    True
    """

    shared = True
    lock = f"SELECT pg_advisory_xact_lock({APPEND})"
    clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: str) -> None:
        self.url = url
        self._lead: psycopg.Connection[Any] | None = None
        self._made = False

    def __str__(self) -> str:
        return self.url.rpartition("@")[2]  # no password in a message

    def connect(self) -> Connection:
        """A new session, with the tables made if they are not there."""
        connection = _PostgresConnection(self.url)
        if not self._made:
            connection.begin()
            connection.execute(f"SELECT pg_advisory_xact_lock({TABLES})")
            connection.execute("SET LOCAL client_min_messages = warning")
            make_tables(connection, bytes="BYTEA", integer="BIGINT", real="DOUBLE PRECISION", suffix="")
            connection.commit()
            self._made = True
        return connection

    def lead(self) -> bool:
        """Take the lead if nobody has it; True while this process has it."""
        with contextlib.suppress(psycopg.Error):
            if self._lead is not None and not self._lead.closed:
                self._lead.execute("SELECT 1")
                return True
        if self._lead is not None:
            self._lead.close()
            self._lead = None
        with contextlib.suppress(psycopg.Error):
            candidate = psycopg.connect(self.url, autocommit=True, connect_timeout=10)
            found = candidate.execute(f"SELECT pg_try_advisory_lock({LEAD})").fetchone()
            if found is not None and found[0]:
                self._lead = candidate
                return True
            candidate.close()
        return False

    def leading(self) -> Connection | None:
        """The session that holds the lead; statements in it fail once the lead is lost."""
        if self._lead is None or self._lead.closed:
            raise RuntimeError("this process no longer leads")
        connection = _PostgresConnection.__new__(_PostgresConnection)
        connection._url, connection._raw, connection._inside = self.url, self._lead, True
        return connection

    def close(self) -> None:
        """Let another process lead.

        >>> Postgres("postgresql://nobody@127.0.0.1:1/none").close()
        """
        if self._lead is not None:
            self._lead.close()
            self._lead = None
