"""The newest events of an application, from every database that has some, in the order of their time."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator

from armwise.service.engine.engine import Engine
from armwise.service.engine.interface import ServedEngine
from armwise.service.engine.writer import STALL
from armwise.service.errors import Unavailable
from armwise.service.journal.events import Row
from armwise.service.journal.journal import Journal

BACK = 100_000  # events of a database that are read when the first one looks
PIECE = 50  # events that are read at once


def errors_of(engine: ServedEngine) -> tuple[type[Exception], ...]:
    """What is raised where a database cannot be read.

    >>> from armwise.service.journal.sqlite import SQLite
    >>> Unavailable in errors_of(Engine(SQLite(":memory:"), {}))
    True
    """
    return (Unavailable, *engine.store.errors)


class Source:
    """The events of one database.

    >>> from armwise.service.journal.events import Creation
    >>> from armwise.service.journal.sqlite import SQLite
    >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
    >>> source = Source(engine, "shop"); source.read(); [row.kind for row in source.rows]
    ['create']
    >>> source.close(); engine.stop()
    """

    def __init__(self, engine: Engine, app: str) -> None:
        self.engine, self._app = engine, app
        self.errors = errors_of(engine)
        self.journal: Journal = engine.open_journal()
        self.journal.connection.patience = STALL
        self.forgotten = engine.forgotten(app)  # of a log that was deleted, nothing is ever read
        self.seq = max(self.forgotten, self.journal.last()[0] - BACK)
        self.rows: collections.deque[Row] = collections.deque()  # read, and not taken yet
        self.ended = False

    def skip(self) -> None:
        """Where more comes than can be read, what is shown is the newest.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
        >>> source = Source(engine, "shop"); source.skip(); source.seq
        0
        >>> source.close(); engine.stop()
        """
        self.ended = False
        last = self.journal.last()[0]
        if last - self.seq > 2 * BACK:
            self.seq = last - BACK
            self.rows.clear()

    def read(self) -> None:
        """Have some more, if there are any; from the end on nobody asks again before the next look.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
        >>> source = Source(engine, "shop"); source.read(); source.rows.clear(); source.read(); source.ended
        True
        >>> source.close(); engine.stop()
        """
        while not self.rows and not self.ended:
            found = self.journal.after(self.seq, PIECE)
            self.ended = not found
            if found:
                self.seq = found[-1].seq
                self.rows.extend(row for row in found if row.app == self._app)

    @property
    def unread(self) -> int:
        """Events that are durable and not taken yet.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
        >>> source = Source(engine, "shop"); source.unread; source.close(); engine.stop()
        1
        """
        return max(0, self.journal.last()[0] - self.seq) + len(self.rows)

    def close(self) -> None:
        """Let go of the journal."""
        self.journal.connection.close()


class Feed:
    """The databases of a service; one that cannot be read is left out until it can.

    >>> from armwise.service.journal.events import Creation
    >>> from armwise.service.journal.sqlite import SQLite
    >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
    >>> feed = Feed(engine, "shop")
    >>> [row.kind for _, row in feed.rows(time.thread_time() + 1.0)]; feed.close(); engine.stop()
    ['create']
    """

    def __init__(self, engine: ServedEngine, app: str) -> None:
        self._engine, self._app = engine, app
        self._sources: dict[int, Source] = {}  # by the engine
        self.sources: list[Source] = []  # that can be read now
        self.look()

    def look(self) -> None:
        """Find out which databases can be read; whatever is wrong is raised where there is none.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
        >>> feed = Feed(engine, "shop"); feed.look(); len(feed.sources); feed.close(); engine.stop()
        1
        """
        found: list[Source] = []
        wrong: Exception = Unavailable("no database can be read: try again")
        engines = self._engine.started
        for each in engines:
            try:
                if len(engines) > 1 and not each.writer.moving:  # whoever asks it waits
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
        """What is new, the oldest first, for as long as the thread has not worked ``until`` then.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
        >>> feed = Feed(engine, "shop"); list(feed.rows(0.0)); feed.close(); engine.stop()
        []
        """
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
        """Whether a log was deleted of which something may have been read.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()}); engine.start()
        >>> feed = Feed(engine, "shop"); feed.forgotten; feed.close(); engine.stop()
        False
        """
        return any(source.engine.forgotten(self._app) > source.forgotten for source in self.sources)

    def close(self) -> None:
        """Let go of all journals."""
        for source in self._sources.values():
            source.close()
