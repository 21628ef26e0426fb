"""The newest events of an application from all databases, in order of time."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator

from armwise.service.engine.engine import Engine
from armwise.service.engine.interface import ServedEngine
from armwise.service.journal.errors import Unavailable
from armwise.service.journal.events import Row

MAX_EVENTS_BACK = 100_000  # events per database read at first
MAX_PIECE = 50  # events per read


def errors_of(engine: ServedEngine) -> tuple[type[Exception], ...]:
    """Return the exceptions that mean that a database cannot be read."""
    return (Unavailable, *engine.store.errors)


class Source:
    """The events of one database, read in its engine's own session: there may be a reader for every application."""

    def __init__(self, engine: Engine, app: str) -> None:
        self.engine, self._app = engine, app
        self.errors = errors_of(engine)
        self.forgotten = engine.forgotten(app)  # True: the log was deleted, read nothing more
        self.seq = max(self.forgotten, self._last() - MAX_EVENTS_BACK)
        self.rows: collections.deque[Row] = collections.deque()  # read, not yet consumed
        self.ended = False

    def skip(self) -> None:
        """Skip to the newest events if more arrive than can be read."""
        self.ended = False
        last = self._last()
        if last - self.seq > 2 * MAX_EVENTS_BACK:
            self.seq = last - MAX_EVENTS_BACK
            self.rows.clear()

    def read(self) -> None:
        """Read more events; after the end is reached, not again before the next look."""
        while not self.rows and not self.ended:
            with self.engine.reading as journal:
                found = journal.after(self.seq, MAX_PIECE)
            self.ended = not found
            if found:
                self.seq = found[-1].seq
                self.rows.extend(row for row in found if row.app == self._app)

    @property
    def unread(self) -> int:
        """Return the number of durable events not yet consumed."""
        return max(0, self._last() - self.seq) + len(self.rows)

    def row(self, seq: int) -> Row:
        """Return one event by its number."""
        with self.engine.reading as journal:
            return journal.row(seq)

    def _last(self) -> int:
        with self.engine.reading as journal:
            return journal.last()[0]


class Feed:
    """The events of all databases of a service; a database that cannot be read is skipped until it can."""

    def __init__(self, engine: ServedEngine, app: str) -> None:
        self._engine, self._app = engine, app
        self._sources: dict[int, Source] = {}  # by the engine
        self.sources: list[Source] = []  # readable now
        self.look()

    def look(self) -> None:
        """Find the readable databases; raise the error if there is none."""
        found: list[Source] = []
        wrong: Exception = Unavailable("no database can be read: try again")
        engines = self._engine.started
        for each in engines:
            try:
                if len(engines) > 1 and not each.writer.moving:  # its callers wait
                    continue
                if id(each) not in self._sources:
                    self._sources[id(each)] = Source(each, self._app)
                self._sources[id(each)].skip()
                found.append(self._sources[id(each)])
            except errors_of(each) as error:
                wrong = error
        if not found:
            raise wrong
        self.sources = found

    def rows(self, until: float) -> Iterator[tuple[Source, Row]]:
        """Yield new events, the oldest first, until the thread has used its CPU time ``until``."""
        while time.thread_time() < until:
            for source in list(self.sources):
                try:
                    source.read()
                except source.errors:
                    if len(self.sources) == 1:
                        raise
                    self.sources.remove(source)
            ready = [source for source in self.sources if source.rows]
            if not ready:
                return
            first = min(ready, key=lambda source: source.rows[0].time)
            yield first, first.rows.popleft()

    @property
    def forgotten(self) -> bool:
        """Return whether a log was deleted after some of it may have been read."""
        return any(source.engine.forgotten(self._app) > source.forgotten for source in self.sources)
