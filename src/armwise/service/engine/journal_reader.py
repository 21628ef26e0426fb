"""A session with the journal for reading."""

from __future__ import annotations

from armwise.service.engine.writer import MAX_COMMIT_SECONDS, Writer
from armwise.service.journal.errors import Unavailable
from armwise.service.journal.journal import Journal
from armwise.service.journal.system import SYSTEM, System


class JournalReader:
    """The journal for one reader at a time; raises Unavailable instead of waiting without end."""

    def __init__(self, writer: Writer, system: System = SYSTEM) -> None:
        self._writer, self._lock = writer, system.lock()
        self._journal: Journal | None = None

    def open(self, journal: Journal) -> None:
        """Read from this session of the journal, which nobody else uses."""
        journal.connection.statement_timeout = MAX_COMMIT_SECONDS
        self._journal = journal

    def close(self) -> None:
        """End the session, if there is one, after the last reader."""
        with self._lock:
            if self._journal is not None:
                self._journal.connection.close()
                self._journal = None

    @property
    def journal(self) -> Journal:
        """The journal without the lock, for single-threaded use."""
        if self._journal is None:
            raise Unavailable("the journal is not open")
        return self._journal

    def __enter__(self) -> Journal:
        if not (self._writer.moving and self._lock.acquire(timeout=MAX_COMMIT_SECONDS)):
            raise Unavailable("the journal does not answer now: try again")
        try:
            return self.journal
        except Unavailable:
            self._lock.release()
            raise

    def __exit__(self, *error: object) -> None:
        self._lock.release()
