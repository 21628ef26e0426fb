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
# A batch is committed before the disk has it, which frees the lock; the transaction that follows it writes next to
# nothing, and returns when the log is durable up to there, on replicas too where commits wait for them. A reader needs
# one if it may have seen what is not.
_SOON = ", set_config('synchronous_commit', 'off', true)"
_SETTLE = "SELECT pg_logical_emit_message(true, 'armwise', '')"
_SETTLE_IF_ANY = (
    "SELECT CASE WHEN pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() "
    "OR current_setting('synchronous_standby_names') <> '' THEN pg_logical_emit_message(true, 'armwise', '') END"
)
# Whatever is the default of the server, the database or the role: a commit that is said to be durable is, and whoever
# has the lock sees all that was committed before.
_DURABLE = (
    "SELECT set_config('synchronous_commit', CASE s WHEN 'off' THEN 'on' ELSE s END, false) "
    "FROM current_setting('synchronous_commit') s"
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_numbers = itertools.count()


def connect(url: str) -> psycopg.Connection[Any]:
    """Open a session with keepalive, durable commits and UTF-8.

    psycopg prepares no statements in it: when it sees a rollback, also one to a savepoint, it drops all that are there,
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
    """A session that reconnects after a loss, but never inside a transaction."""

    tail: Tail | None = None  # the server and its replicas keep its log
    read_only = False
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    patience = 0.0  # seconds that a statement may take before the session is given up; 0: as long as it takes

    def __init__(self, url: str, raw: psycopg.Connection[Any] | None = None) -> None:
        """A new session, or around one that is there, which is not opened again."""
        self._url = url
        self._prepared: dict[Any, bytes] = {}  # the names of statements that this session has planned
        self._given = self._inside = raw is not None
        self._raw = raw or self._open()

    def _open(self) -> psycopg.Connection[Any]:
        raw = connect(self._url)
        adapt(raw)
        self._prepared.clear()
        return raw

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self.patience:
            return self._exchange([(sql, values)])[0]
        if self._raw.closed and not self._inside:
            self._raw = self._open()
        cursor = psycopg.RawCursor(self._raw)  # which sends what it is given, and need not read the statement
        cursor.execute(_numbered(sql), values or None, binary=True)  # a body as text is twice as long
        return cursor.fetchall() if cursor.description else []

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        return f"{column} = ANY(?)", (list(values),)  # one statement, however many they are

    def wait_until_durable(self) -> None:
        if not self._inside:  # where it could write nothing
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

        All is handed to the session before anything is waited for: whoever waits gives the interpreter away, and may
        not have it back for milliseconds, in which others wait for the lock.
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
            results = _collected(session, self.patience)
            session.exit_pipeline_mode()
        except BaseException:
            self._raw.close()  # what was sent is not known
            raise
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                self._prepared.clear()  # some of them may not be there
                raise psycopg.errors.error_from_result(result)
        return [self._rows(result) for result, shows in zip(results, shown) if shows]

    def _packed(self, sql: str, values: Sequence[Any]) -> tuple[str, Any, Any, Any]:
        """A statement with its values as they travel: their types, bytes and formats."""
        if not values:
            return sql, (), [], []
        dumps = Transformer(self._raw)
        buffers = dumps.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return sql, dumps.types, buffers, dumps.formats

    def _send(self, sql: str, types: Any, buffers: Any, formats: Any) -> list[bool]:
        """Send a statement; for each of its results, whether it is one to be shown."""
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
        if not self._given:  # another takes its place: what it had planned, or was in the middle of, is gone with it
            self._raw.close()
            return
        with contextlib.suppress(psycopg.Error):  # a session that is gone has rolled back
            if not self._raw.closed:
                self._raw.execute("ROLLBACK", prepare=False)

    def close(self) -> None:
        self._raw.close()


def _collected(session: PGconn, patience: float) -> list[PGresult]:
    """Collect the results up to the next pipeline sync, at which the transaction is committed."""
    waiting = select.poll()
    found: list[PGresult] = []
    unsent, until = session.flush(), time.monotonic() + patience
    while True:
        while session.is_busy() or unsent:
            waiting.register(session.socket, select.POLLIN | select.POLLOUT if unsent else select.POLLIN)
            left = until - time.monotonic()
            if not waiting.poll(max(left, 0.0) * 1000.0 if patience else None) and left <= 0.0:
                raise psycopg.OperationalError(f"PostgreSQL did not answer within {patience:g} s")
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
