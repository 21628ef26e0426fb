"""Whose decisions they are: found by a key in their contexts, so that one subject's can be deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from armwise.service.errors import Damaged
from armwise.service.journal.events import KINDS, Decision, Erasure, Lessons, Row
from armwise.service.journal.records import Records


def erasure(secret: bytes, key: str, value: Any) -> Erasure:
    """What is journaled when a subject's decisions are to go.

    >>> erasure(b"secret", "user", 7) == erasure(b"secret", "user", 7.0)
    False
    """
    return Erasure(key, _digest(secret, value))


def _digest(secret: bytes, value: Any) -> str:
    return hashlib.blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16, key=secret).hexdigest()


class Subjects:
    """The erasures of a journal; ``pending`` leaves out those that are known to be done.

    >>> from armwise.service.journal.sqlite import SQLite
    >>> Subjects(Records(SQLite(":memory:").connect())).erasures
    {}
    """

    def __init__(self, journal: Records, done: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        self._secret = journal.meta("secret")
        self.erasures: dict[str, dict[int, Erasure]] = {}  # by application and number
        sql = "SELECT seq, time, app, kind, id, body FROM events WHERE kind = 'erase' ORDER BY seq"
        for seq, time, app, kind, id, body in journal.connection.execute(sql):
            event = Row(seq, time, app, kind, id, bytes(body)).event
            if isinstance(event, Erasure) and seq not in done:
                self.erasures.setdefault(app, {})[seq] = event

    @property
    def numbers(self) -> set[int]:
        """The erasures by number.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Subjects(Records(SQLite(":memory:").connect())).numbers
        set()
        """
        return {seq for mine in self.erasures.values() for seq in mine}

    def concerns(self, app: str, kind: str, seq: int) -> bool:
        """Whether an event has to be looked into.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Subjects(Records(SQLite(":memory:").connect())).concerns("shop", "decision", 1)
        False
        """
        return KINDS.get(kind) in (Decision, Lessons) and app in self.erasures and seq < max(self.erasures[app])

    def erased(self, row: Row) -> bool:
        """Whether a decision, or lessons of others, are of a subject whose decisions are to go.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Subjects(Records(SQLite(":memory:").connect())).erased(Row(1, 0, "shop", "decision", "e1", b"{"))
        False
        """
        if not self.concerns(row.app, row.kind, row.seq):
            return False
        try:
            event = row.event
        except Damaged:
            return False
        made = [event] if isinstance(event, Decision) else event.decisions if isinstance(event, Lessons) else []
        contexts = [msgspec.json.decode(decision.context) for decision in made]
        return any(
            _digest(self._secret, value) == erasure.digest
            for seq, erasure in self.erasures[row.app].items()
            if row.seq < seq
            for context in contexts
            for value in values_at(context, erasure.key.split("."))
        )


def values_at(context: Any, path: list[str]) -> Iterator[Any]:
    """The values at a key; a context may be a list of objects, of which each is looked into.

    >>> list(values_at([{"user": {"id": 7}}, {"hour": 9}], ["user", "id"]))
    [7]
    """
    if not path:
        yield context
    elif isinstance(context, list):
        for item in context:
            yield from values_at(item, path)
    elif isinstance(context, dict) and path[0] in context:
        yield from values_at(context[path[0]], path[1:])
