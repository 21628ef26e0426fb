"""The journal in PostgreSQL, for several service processes on several machines.

Appends wait for each other by an advisory lock that a transaction holds until it is committed, so that events become
visible in the order of their numbers. A process that freezes inside its transaction loses it after ``FROZEN``
milliseconds. Another advisory lock, held by a session, says which process leads, and a lease beside it that its process
renews: whoever finds the lease run out ends that session, which frees the lock and fences the old leader.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Sequence
from typing import Any

import psycopg

from armwise.serve.journal.store import Connection, make_tables
from armwise.serve.journal.tail import Tail

APPEND, LEAD, TABLES = 0x6E7201, 0x6E7202, 0x6E7203
FROZEN, PATIENCE = 3_000, 10_000  # ms that a transaction may stand still, and that others wait for it
LEASE = 4_000  # ms after which a leader that does not renew its lease is taken for gone
_KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


def _connect(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, connect_timeout=5, **_KEEPALIVE)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=512)
def _numbered(sql: str) -> Any:
    """A statement with ``$1``, ``$2`` and so on for its values."""
    first, *rest = sql.split("?")
    return first + "".join([f"${i}{text}" for i, text in enumerate(rest, 1)])


class _PostgresConnection:
    """A session that is opened again when it was lost, but never in the middle of a transaction."""

    tail: Tail | None = None  # the server and its replicas keep its log

    def __init__(self, url: str) -> None:
        self._url = url
        self._raw = self._open()
        self._inside = False

    def _open(self) -> psycopg.Connection[Any]:
        return _connect(self._url)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self._raw.closed and not self._inside:
            self._raw = self._open()
        cursor = psycopg.RawCursor(self._raw)  # which sends what it is given, and need not read the statement
        cursor.execute(_numbered(sql), values or None)
        return cursor.fetchall() if cursor.description else []

    def begin(self, lock: str = "") -> None:
        self.execute(f"BEGIN; {lock}" if lock else "BEGIN")  # one round trip
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
    lock = (
        f"SET LOCAL idle_in_transaction_session_timeout = {FROZEN}; SET LOCAL lock_timeout = {PATIENCE}; "
        f"SELECT pg_advisory_xact_lock({APPEND})"
    )
    clock = f"SELECT {_CLOCK}"
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
            make_tables(connection, bytes="BYTEA", integer="BIGINT", real="DOUBLE PRECISION", suffix="", aside="")
            connection.execute(  # of a journal of format 2
                "INSERT INTO bases SELECT app, seq, data FROM snapshots WHERE seq = (SELECT "
                "(convert_from(value, 'UTF8')::json->>'seq')::bigint FROM meta WHERE key = 'base') "
                "AND EXISTS (SELECT 1 FROM meta WHERE key = 'format' AND value = '2'::bytea) ON CONFLICT DO NOTHING"
            )
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
            candidate = _connect(self.url)
            found = candidate.execute(f"SELECT pg_try_advisory_lock({LEAD}), pg_backend_pid()").fetchone()
            if found is not None and found[0]:
                self._lead = candidate
                self._renew(candidate, found[1], taking=True)
                threading.Thread(
                    target=self._keep, args=(candidate, found[1]), name="armwise-lease", daemon=True
                ).start()
                return True
            self._depose(candidate)
            candidate.close()
        return False

    def _renew(self, connection: psycopg.Connection[Any], pid: int, taking: bool = False) -> None:
        """Say that the leader lives. Only a new leader says so over another one's word."""
        mine = "" if taking else " WHERE convert_from(meta.value, 'UTF8') LIKE %(pid)s || ' %%'"
        connection.execute(
            f"INSERT INTO meta VALUES ('lease', convert_to(%(pid)s || ' ' || {_CLOCK}, 'UTF8')) "
            f"ON CONFLICT (key) DO UPDATE SET value = excluded.value{mine}",
            {"pid": str(pid)},
        )

    def _keep(self, lead: psycopg.Connection[Any], pid: int) -> None:
        """Renew the lease from a session of its own, for as long as this process lives and leads."""
        own: psycopg.Connection[Any] | None = None
        while self._lead is lead and not lead.closed:
            try:
                if own is None or own.closed:
                    own = _connect(self.url)
                self._renew(own, pid)
            except psycopg.Error:
                if own is not None:
                    own.close()
            time.sleep(LEASE / 4000)
        if own is not None:
            own.close()

    def _depose(self, connection: psycopg.Connection[Any]) -> None:
        """End the session of a leader whose lease has run out: it is frozen, and nobody learns."""
        connection.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l, meta m WHERE m.key = 'lease' "
            "AND l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s AND l.database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND l.pid = split_part(convert_from(m.value, 'UTF8'), ' ', 1)::int "
            f"AND split_part(convert_from(m.value, 'UTF8'), ' ', 2)::bigint < {_CLOCK} - {LEASE}",
            (LEAD,),
        )

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
