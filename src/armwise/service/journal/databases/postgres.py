"""The journal in PostgreSQL, for several service processes on several machines.

A transaction that appends holds an advisory lock until its commit, so that events become visible in the order of their
numbers. The server ends the transaction of a process that freezes for ``IDLE_TIMEOUT_MS``; another process ends it if
the frozen one had sent half a statement and nothing came for ``LEASE``. The leader's session holds another advisory
lock (``lead``).
"""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from armwise.service.journal.databases.database import Connection, make_tables
from armwise.service.journal.databases.lead import LEASE, Lead
from armwise.service.journal.databases.postgres_session import Session, connect

APPEND, LEAD, TABLES = 0x6E7201, 0x6E7202, 0x6E7203
IDLE_TIMEOUT_MS, LOCK_TIMEOUT_MS = 3_000, 10_000  # of an idle transaction; of waiting for the append lock
# The server compresses bodies while others wait for the append lock: lz4, if available, takes half the time.
_QUICKER = "ALTER TABLE events ALTER COLUMN body SET COMPRESSION lz4"
_CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


class Postgres:
    """A database reached by a URL such as ``postgresql://user@host/name``."""

    shared = True
    lock = (
        f"SELECT set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT_MS}', true), "
        f"set_config('lock_timeout', '{LOCK_TIMEOUT_MS}', true), pg_advisory_xact_lock({APPEND})"
    )
    clock = f"SELECT {_CLOCK}"
    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: str) -> None:
        try:
            parts: dict[str, Any] = conninfo_to_dict(url)
            if _shows_a_password(url, str(parts.get("port", ""))):
                raise psycopg.ProgrammingError
        except (psycopg.ProgrammingError, UnicodeDecodeError):  # its message may contain the password
            expected = "expected postgresql://USER:PASSWORD@HOST:PORT/NAME, in the password %2F for / and %40 for @"
            raise ValueError(f"storage: a URL that PostgreSQL cannot read: {expected}") from None
        place = ":".join(str(parts[name]) for name in ("host", "port") if name in parts)
        self._shown = f"{place}/{parts.get('dbname', '')}"
        self.url = url
        self._lead = Lead(lambda: _LeadSession(url), self.errors)
        self._made = False

    def __str__(self) -> str:
        return self._shown  # no password in a message

    def connect(self) -> Connection:
        """Open a session; create missing tables."""
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
        """Open a read-only session, also on a replica or for a read-only role."""
        connection = Session(self.url)
        connection.read_only = True
        connection.execute("SET default_transaction_read_only = on")
        return connection

    def lead(self) -> bool:
        """Take the lead if no process has it; True while this process has it."""
        return self._lead.lead()

    def leading(self) -> Connection | None:
        """The session that holds the lead; statements in it fail once the lead is lost."""
        return Session(self.url, self._lead.leading().raw)

    def close(self) -> None:
        """Let another process lead."""
        self._lead.close()


def _shows_a_password(url: str, port: str) -> bool:
    """Return whether a password with / or @ in it ended early: a part of it is the host, the port or the name."""
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    named = set(port) <= set("0123456789,")
    return not named or authority.count("@") > 1 or ("@" in path and "@" not in authority)


class _LeadSession:
    """A session of ``Lead`` with PostgreSQL."""

    def __init__(self, url: str) -> None:
        self.raw = connect(url)

    @property
    def closed(self) -> bool:
        return self.raw.closed

    def ping(self) -> None:
        self.raw.execute("SELECT 1")

    def take(self) -> int:
        found = self.raw.execute(f"SELECT pg_try_advisory_lock({LEAD}), pg_backend_pid()").fetchone()
        return int(found[1]) if found is not None and found[0] else 0

    def renew(self, number: int, taking: bool = False) -> None:
        mine = "" if taking else " WHERE convert_from(meta.value, 'UTF8') LIKE %(pid)s || ' %%'"
        self.raw.execute(
            f"INSERT INTO meta VALUES ('lease', convert_to(%(pid)s || ' ' || {_CLOCK}, 'UTF8')) "
            f"ON CONFLICT (key) DO UPDATE SET value = excluded.value{mine}",
            {"pid": str(number)},
        )

    def depose(self) -> None:
        self.raw.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l, meta m WHERE m.key = 'lease' "
            "AND l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s AND l.database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND l.pid = split_part(convert_from(m.value, 'UTF8'), ' ', 1)::int "
            f"AND split_part(convert_from(m.value, 'UTF8'), ' ', 2)::bigint < {_CLOCK} - {LEASE}",
            (LEAD,),
        )

    def unfreeze(self) -> None:
        """End the session: the server regards it as active, so no idle timeout ends it."""
        self.raw.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s "
            "AND a.datname = current_database() AND l.database = a.datid AND a.wait_event = 'ClientRead' "
            f"AND a.state_change < clock_timestamp() - interval '{LEASE} ms'",
            (APPEND,),
        )

    def close(self) -> None:
        self.raw.close()
