"""A session with PostgreSQL that sends a batch of statements in one round trip."""

from __future__ import annotations

import contextlib
import functools
import itertools
import select
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

from armwise.service.journal.databases.database import BatchRows, Statement
from armwise.service.journal.databases.postgres_rows import INTO, adapt, packed
from armwise.service.journal.databases.tail import Tail

_KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# A batch is committed asynchronously, which frees the lock early. The next transaction writes almost nothing, and
# returns when the write-ahead log is durable up to there (on replicas too, if commits wait for them). A reader runs it
# if it may have seen events that are not durable.
_SOON = ", set_config('synchronous_commit', 'off', true)"
_SETTLE = "SELECT pg_logical_emit_message(true, 'armwise', '')"
_SETTLE_IF_ANY = (
    "SELECT CASE WHEN pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() "
    "OR current_setting('synchronous_standby_names') <> '' THEN pg_logical_emit_message(true, 'armwise', '') END"
)
# Set explicitly, whatever the defaults of the server, the database or the role: an acknowledged commit is durable, and
# the holder of the lock sees all earlier commits.
_DURABLE = (
    "SELECT set_config('synchronous_commit', CASE s WHEN 'off' THEN 'on' ELSE s END, false) "
    "FROM current_setting('synchronous_commit') s"
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_numbers = itertools.count()


def connect(url: str) -> psycopg.Connection[Any]:
    """Open a session with keepalive, durable commits and UTF-8.

    psycopg must not prepare statements here: at a rollback, even to a savepoint, it would drop all prepared statements,
    those of ``Session`` too.
    """
    raw = psycopg.connect(
        url, autocommit=True, connect_timeout=5, client_encoding="UTF8", prepare_threshold=None,
        **_KEEPALIVE,  # type: ignore[arg-type]
    )  # fmt: skip
    try:
        raw.execute(_DURABLE)
    except BaseException:
        raw.close()
        raise
    return raw


@functools.lru_cache(maxsize=512)
def _numbered(sql: str) -> Any:
    """A statement with ``$1``, ``$2`` and so on for its values."""
    first, *rest = sql.split("?")
    return first + "".join([f"${i}{text}" for i, text in enumerate(rest, 1)])


class Session:
    """A session that reconnects when it was lost, but never inside a transaction."""

    tail: Tail | None = None  # the server and its replicas keep its log
    read_only = False
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    statement_timeout = 0.0  # seconds, after which the session is closed; 0: none

    def __init__(self, url: str, raw: psycopg.Connection[Any] | None = None) -> None:
        """Open a session, or wrap an open one, which is then not reopened."""
        self._url = url
        self._prepared: dict[Any, bytes] = {}  # names of the statements prepared in this session
        self._given = self._inside = raw is not None
        self._raw = raw or self._open()

    def _open(self) -> psycopg.Connection[Any]:
        raw = connect(self._url)
        adapt(raw)
        self._prepared.clear()
        return raw

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self.statement_timeout:
            return self._exchange([(sql, values)])[0]
        if self._raw.closed and not self._inside:
            self._raw = self._open()
        cursor = psycopg.RawCursor(self._raw)  # it sends the statement as it is, without parsing it
        cursor.execute(_numbered(sql), values or None, binary=True)  # text would double the size of a body
        return cursor.fetchall() if cursor.description else []

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        return f"{column} = ANY(?)", (list(values),)  # the same statement for any number of values

    def wait_until_durable(self) -> None:
        if not self._inside:  # inside a transaction it could write nothing
            self.execute(_SETTLE_IF_ANY)

    def tidy(self, seq: int) -> None:
        """Do nothing: the server does this."""

    def check(self) -> tuple[str, list[str]]:
        if not self.execute("SELECT 1 FROM pg_extension WHERE extname = 'amcheck'"):
            return "no indexes: CREATE EXTENSION amcheck lets verify check PostgreSQL's", []
        found = []
        for name, index in self.execute(
            "SELECT c.relname, c.oid::bigint FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_class t ON t.oid = i.indrelid WHERE t.relname IN ('events', 'decisions', 'requests', 'catalogues')"
        ):
            try:
                with self._raw.transaction():
                    self._raw.execute("SELECT bt_index_check(%s::oid::regclass, true)", (index,))
            except psycopg.Error as error:
                found.append(f"PostgreSQL, index {name}: {error}")
        return "PostgreSQL's bt_index_check of every index, against its table", found

    def purge(self) -> str:
        for table in ("events", "decisions", "requests", "catalogues"):
            self.execute(f"VACUUM {table}")
        return ""

    def begin(self, lock: str = "") -> None:
        if lock:
            self._at_once([(_BEGIN, ()), (lock, ())])
        else:
            self.execute(_BEGIN)
            self._inside = True

    def open_batch(self, lock: str, asked: Sequence[Statement], meanwhile: Callable[[], None]) -> list[list[Any]]:
        return self._at_once([(_BEGIN, ()), (lock + _SOON, ()), *asked], meanwhile)[2:]

    def close_batch(self, also: Sequence[Statement], batch: BatchRows) -> None:
        writing = [(INTO[table], packed(table, rows)) for table, rows in batch.tables().items() if rows]
        self._at_once([*also, *writing, ("COMMIT", ()), (_SETTLE, ())])
        self._inside = False

    def _at_once(self, statements: Sequence[Statement], meanwhile: Callable[[], None] | None = None) -> list[list[Any]]:
        """Execute statements of a transaction in one round trip."""
        if self._raw.closed and not self._inside:
            self._raw = self._open()
        self._inside = True
        return self._exchange(statements, meanwhile)

    def _exchange(
        self, statements: Sequence[Statement], meanwhile: Callable[[], None] | None = None
    ) -> list[list[Any]]:
        """Execute statements in one round trip.

        Everything is sent before the first wait: waiting releases the GIL, which may not come back for milliseconds,
        and other processes wait for the append lock meanwhile.
        """
        if self._raw.closed and not self._inside:
            self._raw = self._open()
        session = self._raw.pgconn
        packed = [self._packed(sql, values) for sql, values in statements]
        try:
            session.enter_pipeline_mode()
            shown = [shows for each in packed for shows in self._send(*each)]
            session.pipeline_sync()
            session.flush()
            if meanwhile is not None:
                meanwhile()
            results = _collected(session, self.statement_timeout)
            session.exit_pipeline_mode()
        except BaseException:
            self._raw.close()  # the server may have executed any part of it
            raise
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                self._prepared.clear()  # some may not have been prepared
                raise psycopg.errors.error_from_result(result)
        return [self._rows(result) for result, shows in zip(results, shown) if shows]

    def _packed(self, sql: str, values: Sequence[Any]) -> tuple[str, Any, Any, Any]:
        """A statement with the types, bytes and formats of its values."""
        if not values:
            return sql, (), [], []
        dumps = Transformer(self._raw)
        buffers = dumps.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return sql, dumps.types, buffers, dumps.formats

    def _send(self, sql: str, types: Any, buffers: Any, formats: Any) -> list[bool]:
        """Send a statement; return for each of its results whether it has rows to return."""
        session, known = self._raw.pgconn, (sql, types) in self._prepared
        if not known:
            self._prepared[sql, types] = b"armwise%d" % next(_numbers)
            session.send_prepare(self._prepared[sql, types], _numbered(sql).encode(), types)
        session.send_query_prepared(self._prepared[sql, types], buffers, formats, Format.BINARY)
        return [True] if known else [False, True]

    def _rows(self, result: PGresult) -> list[Any]:
        if not result.ntuples:
            return []
        loads = Transformer(self._raw)
        loads.set_pgresult(result)
        return loads.load_rows(0, result.ntuples, tuple)

    def begin_reading(self) -> None:
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._inside = True

    def commit(self) -> None:
        self.execute("COMMIT")
        self._inside = False

    def rollback(self) -> None:
        self._inside = False
        if not self._given:  # a new session replaces it, without its transaction and prepared statements
            self._raw.close()
            return
        with contextlib.suppress(psycopg.Error):  # the server rolls a lost session back
            if not self._raw.closed:
                self._raw.execute("ROLLBACK", prepare=False)

    def close(self) -> None:
        self._raw.close()


def _collected(session: PGconn, timeout: float) -> list[PGresult]:
    """Collect the results up to the next pipeline sync, at which the transaction is committed."""
    waiting = select.poll()
    found: list[PGresult] = []
    unsent, until = session.flush(), time.monotonic() + timeout
    while True:
        while session.is_busy() or unsent:
            waiting.register(session.socket, select.POLLIN | select.POLLOUT if unsent else select.POLLIN)
            left = until - time.monotonic()
            if not waiting.poll(max(left, 0.0) * 1000.0 if timeout else None) and left <= 0.0:
                raise psycopg.OperationalError(f"PostgreSQL did not answer within {timeout:g} s")
            session.consume_input()
            unsent = unsent and session.flush()
        result = session.get_result()
        if result is None:  # between two statements
            if session.status == ConnStatus.BAD:
                raise psycopg.OperationalError("the session with PostgreSQL was lost")
            continue
        if result.status == ExecStatus.PIPELINE_SYNC:
            return found
        found.append(result)
