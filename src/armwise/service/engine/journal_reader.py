"""A session with the journal for reading."""

from __future__ import annotations

from armwise.service.engine.writer import STALL, Writer
from armwise.service.errors import Unavailable
from armwise.service.journal.journal import Journal
from armwise.service.system import SYSTEM, System


class JournalReader:
    """The journal for one reader at a time; raises Unavailable instead of waiting without end.

    >>> from armwise.service.engine.engine import Engine
    >>> from armwise.service.journal.databases.sqlite import SQLite
    >>> engine = Engine(SQLite.temporary(), {}); engine.start()
    >>> with engine.reading as journal:
    ...     journal.last()[0]
    0
    >>> engine.stop()
    """

    def __init__(self, writer: Writer, system: System = SYSTEM) -> None:
        self._writer, self._lock = writer, system.lock()
        self._journal: Journal | None = None

    def open(self, journal: Journal) -> None:
        """Use this journal from now on, exclusively.

        >>> from armwise.service.journal.databases.sqlite import SQLite
        >>> reading = JournalReader(None); reading.open(Journal(SQLite(":memory:").connect())); reading.close()
        """
        journal.connection.patience = STALL
        self._journal = journal

    def close(self) -> None:
        """End the session, if there is one, after the last reader.

        >>> JournalReader(None).close()
        """
        with self._lock:
            if self._journal is not None:
                self._journal.connection.close()
                self._journal = None

    @property
    def journal(self) -> Journal:
        """The journal without the lock, for single-threaded use.

        >>> JournalReader(None).journal
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unavailable: the journal is not open
        """
        if self._journal is None:
            raise Unavailable("the journal is not open")
        return self._journal

    def __enter__(self) -> Journal:
        if not (self._writer.moving and self._lock.acquire(timeout=STALL)):
            raise Unavailable("the journal does not answer now: try again")
        try:
            return self.journal
        except Unavailable:
            self._lock.release()
            raise

    def __exit__(self, *error: object) -> None:
        self._lock.release()
