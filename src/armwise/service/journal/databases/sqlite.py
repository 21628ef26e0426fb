"""The journal in one SQLite file, for one process; snapshots of the models in a second file.

Writing a large model takes long, and SQLite allows one writer per file. The snapshots can be computed from the journal
again, so commits to the second file do not wait for the disk.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from armwise.service.journal.databases.database import BatchRows, Connection, Statement, make_tables
from armwise.service.journal.databases.tail import Tail

log = logging.getLogger("armwise.service")

# An event with the rows of other tables that belong to it, as one row: a batch is one statement, and one statement is a
# transaction. Each statement releases the GIL and may wait milliseconds for it; four statements would wait four times.
ENTRIES = (
    """CREATE TEMP VIEW entries AS SELECT events.*, '' AS request, 0 AS decided, 0 AS deadline, '' AS rule,
    0.0 AS fallback, 0 AS active, 0 AS n, 0.0 AS total, 0.0 AS value, 0 AS closed, '' AS learn FROM events""",
    """CREATE TEMP TRIGGER entered INSTEAD OF INSERT ON entries BEGIN
    INSERT INTO events VALUES (NEW.seq, NEW.time, NEW.app, NEW.kind, NEW.id, NEW.body, NEW.chain);
    INSERT INTO decisions SELECT NEW.app, NEW.id, NEW.decided, NEW.deadline, NEW.rule, NEW.fallback, NEW.active,
      NEW.n, NEW.total, NEW.value, NEW.closed, NEW.learn WHERE NEW.deadline IS NOT NULL
      ON CONFLICT (app, id) DO UPDATE SET active = excluded.active, n = excluded.n, total = excluded.total,
      value = excluded.value, closed = excluded.closed;
    INSERT INTO requests SELECT NEW.app, NEW.request, NEW.seq WHERE NEW.request <> '';
    END""",
    # The same for new decisions without an idempotency key: most of all rows.
    """CREATE TEMP VIEW made AS SELECT seq, time, app, id, body, chain, 0 AS deadline, '' AS rule, 0.0 AS fallback,
    0 AS active, '' AS learn FROM events""",
    """CREATE TEMP TRIGGER makes INSTEAD OF INSERT ON made BEGIN
    INSERT INTO events VALUES (NEW.seq, NEW.time, NEW.app, 'decision', NEW.id, NEW.body, NEW.chain);
    INSERT INTO decisions VALUES (NEW.app, NEW.id, NEW.seq, NEW.deadline, NEW.rule, NEW.fallback, NEW.active, 0, 0.0,
      0.0, 0, NEW.learn);
    END""",
)


# A checkpoint copies the write-ahead log into the file. One in another session runs beside commits, and leaves little
# to copy for the commit that finds the log too long and restarts it. They share the disk: many short checkpoints copy
# as much as a few long ones, and fewer commits wait for them (benchmarks/serve_checkpoints.py).
CHECKPOINT_EVENTS = 100  # events between two checkpoints of another session
MAX_LOG_PAGES = 16_000  # in the write-ahead log, before a commit makes a checkpoint
MAX_CHECKPOINT_TRIES = 40  # to empty the log, about 0.1 s each


class _SQLiteConnection:
    statement_timeout = 0.0
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    _tidied = 0

    def __init__(self, raw: Any, tail: Tail | None = None, read_only: bool = False) -> None:
        self._raw, self.tail, self.read_only = raw, tail, read_only
        self.copied: tempfile.TemporaryDirectory[str] | None = (
            None  # the copied files that it reads, if it had to copy them
        )

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._raw.execute(sql, values).fetchall()  # type: ignore[no-any-return]

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        return f"{column} IN ({', '.join('?' * len(values))})", values

    def wait_until_durable(self) -> None:
        """Do nothing: every commit is durable (``synchronous=FULL``)."""

    def tidy(self, seq: int) -> None:
        if seq - self._tidied >= CHECKPOINT_EVENTS:
            self._tidied = seq
            with contextlib.suppress(sqlite3.Error):  # the log keeps it: a later checkpoint copies it
                self._raw.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()

    def check(self) -> tuple[str, list[str]]:
        found = []
        for schema in ("main", "aside"):
            for (line,) in self._raw.execute(f"PRAGMA {schema}.integrity_check(20)").fetchall():
                if line != "ok":
                    found.append(f"SQLite, {schema}: {line}")
        return "SQLite's integrity_check of both files: the structure of every page in use, and the indexes", found

    def purge(self) -> str:
        # A reader or a running commit holds the log: try often and briefly, since commits wait meanwhile. Most of it is
        # copied before, beside commits.
        self._raw.execute("PRAGMA busy_timeout=50")
        try:
            for _ in range(MAX_CHECKPOINT_TRIES):
                self._raw.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()
                [[busy, *_]] = self._raw.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchall()
                if not busy:
                    return ""
                time.sleep(0.05)
        except sqlite3.Error as error:
            log.warning("the write-ahead log could not be emptied: %s", error)
        finally:
            self._raw.execute("PRAGMA busy_timeout=30000")
        return f"readers blocked {MAX_CHECKPOINT_TRIES} checkpoints: a later checkpoint will empty the write-ahead log"

    def begin(self, lock: str = "") -> None:
        self._raw.execute("BEGIN")  # IMMEDIATE would wait for the lock of the snapshots' file too

    def begin_reading(self) -> None:
        self._raw.execute("BEGIN")  # later commits are not seen after the first statement

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def rollback(self) -> None:
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")

    def open_batch(self, lock: str, asked: Sequence[Statement], meanwhile: Callable[[], None]) -> list[list[Any]]:
        meanwhile()
        return [self.execute(*statement) for statement in asked]  # no other process appends to this file

    def close_batch(self, also: Sequence[Statement], batch: BatchRows) -> None:
        statements = [*also, *batch.statements()]
        if len(statements) > 1:  # a single statement is a transaction
            self.begin()
        for statement in statements:
            self.execute(*statement)
        if len(statements) > 1:
            self.commit()

    def close(self) -> None:
        self._raw.close()
        if self.tail is not None:
            self.tail.close()
        if self.copied is not None:
            self.copied.cleanup()


def _open_sqlite(path: str) -> Any:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30.0)


_making = threading.Lock()


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


class SQLite:
    """One file in write-ahead mode; a commit returns only when the disk has it (``synchronous=FULL``)."""

    shared = False
    lock = clock = ""
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str | os.PathLike[str], opener: Callable[[str], Any] = _open_sqlite) -> None:
        self.path = str(path)
        self._opener = opener
        self._lock: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def temporary(cls) -> SQLite:
        """A journal in a temporary folder that is deleted when the store is closed."""
        folder = tempfile.TemporaryDirectory(prefix="armwise-", ignore_cleanup_errors=True)
        store = cls(Path(folder.name) / "journal.db")
        store._folder = folder
        return store

    def connect(self) -> Connection:
        """Open a session; create missing tables."""
        aside, tail = self.path, None
        if self.path != ":memory:":
            aside = self.path + ".snapshots"
            self._make("")
            self._make(".snapshots")
            tail = Tail(self.path)
        connection = _SQLiteConnection(self._opener(self.path), tail)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint={MAX_LOG_PAGES}")
            connection.execute("PRAGMA mmap_size=0")
            connection.execute("PRAGMA secure_delete=ON")  # overwrite deleted data
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute("ATTACH DATABASE ? AS aside", (aside,))
            connection.execute("PRAGMA aside.journal_mode=WAL")
            connection.execute("PRAGMA aside.synchronous=NORMAL")
            make_tables(
                connection, bytes="BLOB", integer="INTEGER", real="REAL", suffix=" WITHOUT ROWID", aside="aside."
            )
            for statement in ENTRIES:
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def connect_reading(self) -> Connection:
        """Open a read-only session, which writes no file.

        Reading a write-ahead log needs an index file beside it; the files are copied if it cannot be made.
        """
        if self.path == ":memory:":
            return self.connect()
        path, copied = Path(self.path), None
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            mode = "mode=ro"
        elif any(_has_content(Path(f"{self.path}{suffix}-wal")) for suffix in ("", ".snapshots")):
            copied = tempfile.TemporaryDirectory(prefix="armwise-")
            for file in path.parent.glob(f"{path.name}*"):
                shutil.copyfile(file, Path(copied.name) / file.name)
            path, mode = Path(copied.name) / path.name, "mode=ro"
        else:
            mode = "immutable=1"
        raw = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=30.0
        )
        connection = _SQLiteConnection(raw, Tail(self.path), read_only=True)
        connection.copied = copied
        try:
            aside = Path(f"{path}.snapshots")
            attached = f"{aside.absolute().as_uri()}?{mode}" if aside.exists() else ":memory:"
            connection.execute("ATTACH DATABASE ? AS aside", (attached,))
            if not aside.exists():
                connection.execute("CREATE TABLE aside.snapshots (app TEXT, seq INTEGER, data BLOB)")
        except BaseException:
            connection.close()
            raise
        return connection

    def __str__(self) -> str:
        return self.path

    def lead(self) -> bool:
        """Return whether this process may write: a file lock, released when the process ends, admits one."""
        if self.path == ":memory:" or self._lock is not None:
            return True
        try:
            import fcntl
        except ModuleNotFoundError:
            log.warning("this system has no fcntl, so no file lock stops a second process from writing to %s: start "
                        "only one", self.path)  # fmt: skip
            self._lock = open(os.devnull)  # noqa: SIM115
            return True

        handle = open(self.path + ".lock", "a", opener=lambda path, flags: self._private(".lock"))  # noqa: SIM115
        with contextlib.ExitStack() as opened:
            opened.callback(handle.close)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            handle.truncate(0)
            handle.write(str(os.getpid()))
            handle.flush()
            opened.pop_all()
        self._lock = handle
        return True

    @property
    def holder(self) -> str:
        """The process that holds the lock."""
        try:
            return Path(self.path + ".lock").read_text()
        except OSError:
            return ""

    def _make(self, suffix: str) -> None:
        """Create a file if it is missing; SQLite gives -wal and -shm its mode.

        An existing file must not be opened: closing it again would drop SQLite's locks of the whole process.
        """
        with _making:
            try:
                os.close(self._private(suffix, os.O_EXCL))
            except FileExistsError:
                return

    def _private(self, suffix: str, flags: int = 0) -> int:
        """Open or create a file for its owner only: its secret predicts the arms that will be drawn."""
        path = Path(self.path + suffix)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)

    def leading(self) -> None:
        """Do nothing: the lead is a file lock, not a session."""

    def close(self) -> None:
        """Let another process lead."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._folder is not None:
            self._folder.cleanup()
