"""Find a subject's decisions by a value at a key of their contexts and arms, for erasure.

Values are compared as an operator means them: 7, 7.0 and "7" are one. A key is names joined by dots, each of which may
be part of a literal key with dots; a list stands for each of its members.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from armwise.service.journal.bodies import catalogue_of, unpack_arms
from armwise.service.journal.errors import Damaged
from armwise.service.journal.events import KINDS, Decision, Erasure, Expiry, Lessons, Row
from armwise.service.journal.journal import Journal, chunks
from armwise.service.journal.pace import MAX_PAGE_ROWS
from armwise.service.journal.writes import Write

DECISION = "$decision"  # the key of a decision's own id
ERASED = "erased"  # in the table meta: the erasure up to which all are done
_number = msgspec.json.Decoder(int | float)


class Subject(NamedTuple):
    """A decision or warm-start record that names a subject."""

    app: str
    id: str
    seq: int


class Search(msgspec.Struct):
    """The result of a search: what was searched, and what names each subject."""

    decisions: int = 0
    lessons: int = 0
    catalogues: int = 0
    found: dict[int, list[Subject]] = {}
    found_lessons: dict[int, list[int]] = {}
    found_catalogues: dict[int, list[bytes]] = {}


def erasure(secret: bytes, key: str, value: Any) -> Erasure:
    """The event that requests an erasure."""
    return Erasure(key, digest(secret, value))


def digest(secret: bytes, value: Any) -> str:
    """A keyed hash of a value, the same for all ways to write it."""
    return hashlib.blake2b(_text(value), digest_size=16, key=secret).hexdigest()


def _text(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            value = _number.decode(value)
        except (msgspec.DecodeError, ValueError):
            return b"text %b" % value.encode("utf-8", "surrogatepass")
    if isinstance(value, float) and value.is_integer() and math.isfinite(value):
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"number {value!r}".encode()
    encoded: bytes = msgspec.json.encode(value, order="sorted")
    return b"json " + encoded


def values_at(document: Any, path: Sequence[str]) -> Iterator[Any]:
    """The values at a key, also inside lists and their members."""
    if isinstance(document, list):
        if not path:
            yield document
        for item in document:
            yield from values_at(item, path)
    elif not path:
        yield document
    elif isinstance(document, dict):
        for n in range(1, len(path) + 1):
            if (key := ".".join(path[:n])) in document:
                yield from values_at(document[key], path[n:])


class Subjects:
    """The pending erasures of a journal, and those from ``first`` on, done or not."""

    def __init__(self, journal: Journal, first: int | None = None) -> None:
        self._secret = journal.meta("secret")
        done = journal.connection.execute("SELECT value FROM meta WHERE key = ?", (ERASED,))
        self.done = int(bytes(done[0][0])) if done else 0
        self.erasures: dict[str, dict[int, Erasure]] = {}  # by application and number
        self._arms: dict[tuple[bytes, str], set[int]] = {}  # which erasures a catalogue is of, for an application
        sql = "SELECT seq, time, app, kind, id, body FROM events WHERE kind = 'erase' AND seq > ? ORDER BY seq"
        after = self.done if first is None else min(self.done, first - 1)
        for seq, time, app, kind, id, body in journal.connection.execute(sql, (after,)):
            event = Row(seq, time, app, kind, id, bytes(body)).event
            if isinstance(event, Erasure):
                self.erasures.setdefault(app, {})[seq] = event

    @property
    def numbers(self) -> list[int]:
        """The erasures by number."""
        return sorted(seq for mine in self.erasures.values() for seq in mine)

    def concerns(self, app: str, kind: str, seq: int) -> bool:
        """Return whether an event must be searched."""
        return KINDS.get(kind) in (Decision, Lessons) and app in self.erasures and seq < max(self.erasures[app])

    def erased(self, row: Row) -> set[int]:
        """The erasures that a decision, or lessons of others, are subject to."""
        if not self.concerns(row.app, row.kind, row.seq):
            return set()
        try:
            event = row.event
        except Damaged:
            return set()
        made = [event] if isinstance(event, Decision) else event.decisions if isinstance(event, Lessons) else []
        found: set[int] = set()
        for decision in made:
            found |= self._named(row.app, [msgspec.json.decode(decision.context), {DECISION: row.id}])
            if not (hash := catalogue_of(row.body)):
                found |= self._named(row.app, _documents(decision.arms))
                continue
            if (hash, row.app) not in self._arms:
                self._arms[hash, row.app] = self._named(row.app, _documents(decision.arms))
            found |= self._arms[hash, row.app]
        return {seq for seq in found if row.seq < seq}

    def _named(self, app: str, documents: Sequence[Any]) -> set[int]:
        """The erasures whose subject is named."""
        return {
            seq
            for seq, erasure in self.erasures.get(app, {}).items()
            for document in documents
            for value in values_at(document, erasure.key.split("."))
            if digest(self._secret, value) == erasure.digest
        }

    def search(self, journal: Journal) -> Search:
        """Search every decision, warm-start record and catalogue for the subjects."""
        found = Search()
        if not self.erasures:
            return found
        end = max(self.numbers)
        kinds = "SELECT seq, app, kind FROM events WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ?"
        start = 0
        while page := journal.connection.execute(kinds, (start, end, MAX_PAGE_ROWS)):
            start = page[-1][0]
            journal.pace.rest()
            suspects = [seq for seq, app, kind in page if self.concerns(app, kind, seq)]
            for row in journal.rows(suspects).values():
                journal.pace.rest()
                found.decisions += row.is_a(Decision)
                found.lessons += row.is_a(Lessons)
                for number in self.erased(row):
                    if row.is_a(Decision):
                        found.found.setdefault(number, []).append(Subject(row.app, row.id, row.seq))
                    else:
                        found.found_lessons.setdefault(number, []).append(row.seq)
        for [hash] in journal.connection.execute("SELECT hash FROM catalogues"):
            stored = journal.connection.execute("SELECT data FROM catalogues WHERE hash = ?", (bytes(hash),))
            found.catalogues += 1
            try:
                documents = _documents(unpack_arms(bytes(stored[0][0])))
            except (ValueError, IndexError):
                continue
            for number in {seq for app in self.erasures for seq in self._named(app, documents)}:
                found.found_catalogues.setdefault(number, []).append(bytes(hash))
        return found


def _documents(arms: Sequence[msgspec.Raw]) -> list[Any]:
    """The searched parts of arms: each arm as a whole, and its features."""
    found: list[Any] = []
    for arm in arms:
        sent = msgspec.json.decode(arm)
        whole = sent if isinstance(sent, dict) else {"id": sent}
        found += [whole, whole["features"]] if "features" in whole else [whole]
    return found


def closings(journal: Journal, found: Search) -> list[list[Write]]:
    """The events that close the windows of decisions to be erased."""
    keys = [(each.app, each.id) for mine in found.found.values() for each in mine]
    groups = []
    for chunk in chunks(list(dict.fromkeys(keys))):
        still = [status for status in journal.statuses(list(chunk)) if not status.closed]
        groups += [[Write(status.app, status.id, Expiry(early=True))] for status in still]
    return groups
