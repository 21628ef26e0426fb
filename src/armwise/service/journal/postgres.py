"""The journal in PostgreSQL, for several service processes on several machines.

Appends wait for each other by an advisory lock that a transaction holds until it is committed, so that events become
visible in the order of their numbers. A process that freezes inside its transaction loses it after ``FROZEN``
milliseconds; one that freezes while it sends a statement, when another finds that nothing came for ``LEASE``. Another
advisory lock, held by a session, says which process leads, and a lease beside it that its process renews: whoever finds
the lease run out ends that session, which frees the lock and fences the old leader.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from armwise.service.journal.postgres_session import Session, connect
from armwise.service.journal.store import Connection, make_tables

APPEND, LEAD, TABLES = 0x6E7201, 0x6E7202, 0x6E7203
FROZEN, PATIENCE = 3_000, 10_000  # ms that a transaction may stand still, and that others wait for it
LEASE = 4_000  # ms after which a leader that does not renew its lease is taken for gone
# A body is compressed while others wait for their turn: with lz4 in half the time, where the server has it.
_QUICKER = "ALTER TABLE events ALTER COLUMN body SET COMPRESSION lz4"
_CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


class Postgres:
    """A database reached by a URL such as ``postgresql://user@host/name``.

    >>> Postgres("postgresql://nobody@127.0.0.1:1/none").shared
    True
    """

    shared = True
    lock = (
        f"SELECT set_config('idle_in_transaction_session_timeout', '{FROZEN}', true), "
        f"set_config('lock_timeout', '{PATIENCE}', true), pg_advisory_xact_lock({APPEND})"
    )
    clock = f"SELECT {_CLOCK}"
    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: str) -> None:
        try:
            parts: dict[str, Any] = conninfo_to_dict(url)
        except (psycopg.ProgrammingError, UnicodeDecodeError):  # whose words repeat what may be a password
            expected = "expected postgresql://USER:PASSWORD@HOST:PORT/NAME"
            raise ValueError(f"storage: a URL that PostgreSQL cannot read: {expected}") from None
        place = ":".join(str(parts[name]) for name in ("host", "port") if name in parts)
        self._shown = f"{place}/{parts.get('dbname', '')}"
        self.url = url
        self._lead: psycopg.Connection[Any] | None = None
        self._made = False

    def __str__(self) -> str:
        return self._shown  # no password in a message

    def connect(self) -> Connection:
        """A new session, with the tables made if they are not there."""
        connection = Session(self.url)
        if not self._made:
            connection.begin()
            connection.execute(f"SELECT pg_advisory_xact_lock({TABLES})")
            connection.execute("SET LOCAL client_min_messages = warning")
            new = connection.execute("SELECT to_regclass('events') IS NULL")[0][0]
            make_tables(connection, bytes="BYTEA", integer="BIGINT", real="DOUBLE PRECISION", suffix="", aside="")
            if new:
                with contextlib.suppress(psycopg.Error), connection._raw.transaction():
                    connection.execute(_QUICKER)
            connection.commit()
            self._made = True
        return connection

    def connect_reading(self) -> Connection:
        """A session that writes nothing, also on a replica or for a role that may only read."""
        connection = Session(self.url)
        connection.read_only = True
        connection.execute("SET default_transaction_read_only = on")
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
            candidate = connect(self.url)
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
                    own = connect(self.url)
                self._renew(own, pid)
                self._unfreeze(own)
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
        self._unfreeze(connection)

    def _unfreeze(self, connection: psycopg.Connection[Any]) -> None:
        """End a session that has the append lock and of which the rest of a statement does not come.

        To the server it is at work, not idle, so that no timeout of its own ends it.
        """
        connection.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s "
            "AND a.datname = current_database() AND l.database = a.datid AND a.wait_event = 'ClientRead' "
            f"AND a.state_change < clock_timestamp() - interval '{LEASE} ms'",
            (APPEND,),
        )

    def leading(self) -> Connection | None:
        """The session that holds the lead; statements in it fail once the lead is lost."""
        if self._lead is None or self._lead.closed:
            raise RuntimeError("this process no longer leads")
        return Session(self.url, self._lead)

    def close(self) -> None:
        """Let another process lead.

        >>> Postgres("postgresql://nobody@127.0.0.1:1/none").close()
        """
        if self._lead is not None:
            self._lead.close()
            self._lead = None
