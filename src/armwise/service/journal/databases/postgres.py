"""The journal in PostgreSQL, for several service processes on several machines.

Appends wait for each other by an advisory lock that a transaction holds until it is committed, so that events become
visible in the order of their numbers. A process that freezes inside its transaction loses it after ``FROZEN``
milliseconds; one that freezes while it sends a statement, when another finds that nothing came for ``LEASE``. Another
advisory lock, held by a session, says which process leads (``lead``).
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
FROZEN, PATIENCE = 3_000, 10_000  # ms that a transaction may stand still, and that others wait for it
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
        """Take the lead if nobody has it; True while this process has it."""
        return self._lead.lead()

    def leading(self) -> Connection | None:
        """The session that holds the lead; statements in it fail once the lead is lost."""
        return Session(self.url, self._lead.leading().raw)

    def close(self) -> None:
        """Let another process lead.

        >>> Postgres("postgresql://nobody@127.0.0.1:1/none").close()
        """
        self._lead.close()


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
        """End the session from here: the server regards it as active, so that no idle timeout ends it."""
        self.raw.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s "
            "AND a.datname = current_database() AND l.database = a.datid AND a.wait_event = 'ClientRead' "
            f"AND a.state_change < clock_timestamp() - interval '{LEASE} ms'",
            (APPEND,),
        )

    def close(self) -> None:
        self.raw.close()
