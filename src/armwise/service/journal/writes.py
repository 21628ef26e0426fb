"""Writes: requested events, and the results of appending them; groups, idempotency keys, contents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from armwise.features.encoding.tokens import RequestTokens
from armwise.service.journal.bodies import MIN_CATALOGUE_BYTES
from armwise.service.journal.errors import Conflict
from armwise.service.journal.events import Batch, Change, Creation, Decision, Event, Lessons, Reward, Row, Version
from armwise.service.journal.rules import Status

# Takes decisions of other processes; returns the decision, and ``stack``, ``seen`` and ``held`` of its ``Write``.
Again = Callable[[Sequence[Row]], tuple[Decision, Any, Any, Any]]


class Write(msgspec.Struct, gc=False):  # no cycle goes through it
    """One event to append. ``fresh``: the id was generated here, so no other event can have it."""

    app: str
    id: str
    event: Event
    request: str = ""
    fresh: bool = False
    stack: RequestTokens | None = None  # a decision's tokens, so that the learner need not parse them again
    seen: Any = None  # the encoded decision (``EncodedRequest``), if it is worth its memory
    names: tuple[str, ...] = ()  # a decision's arms, in the order of the request
    held: Any = None  # counts a decision in flight (``Reservation``), if its agent counts decisions
    again: Again | None = None  # draws it again, if its agent counts decisions and other processes decide too
    catalogue: bytes = b""  # the hash of its arms, if the request named a catalogue
    home: str = ""  # the database that a decision was drawn for, if there are several
    epoch: int = 0  # the newest set of databases known when it was routed here (``members``)
    redraw: Callable[[], Write] | None = None  # draws it again for another home, if its id depends on its key
    look: bool = False  # append nothing and only look it up: a missing decision is Unknown
    refusal: Exception | None = None  # the error for a missing decision that could not be drawn

    @property
    def new(self) -> bool:
        """Whether this is a decision with a fresh id and no idempotency key, which cannot be a retry."""
        return self.fresh and not self.request and not self.look and isinstance(self.event, Decision)


class Written(msgspec.Struct, gc=False):
    """The result of an append: the event's row, ``again`` for a retry, the decision's status."""

    row: Row
    again: bool = False
    status: Status | None = None
    repeated: bool = False  # a reward that does not count, since an earlier one does


Appended = list[Written] | Exception
More = Callable[[], Sequence[Sequence[Write]]]


def joins(group: Sequence[Write]) -> bool:
    """Return whether a group may join a batch after its rows were loaded: only new decisions that need no row."""
    for write in group:
        event = write.event
        plain = write.fresh and not write.request and not write.catalogue and write.again is None
        if not (plain and isinstance(event, Decision) and size_of(event) < MIN_CATALOGUE_BYTES):
            return False
    return True


def size_of(decision: Decision) -> int:
    """The size of the arms in bytes."""
    decision.write_arms()
    sent = decision.sent
    if isinstance(sent, msgspec.Raw):  # without the brackets and commas
        return len(sent) - 1 - max(len(decision.p), len(decision.order))
    return sum(map(len, sent))


def repeats(row: Row, asked: Event) -> bool:
    """Return whether an event repeats the request of a journaled row."""
    there = row.event
    if isinstance(there, Decision) and isinstance(asked, Decision):
        return canonical(there) == canonical(asked)
    if isinstance(there, Reward) and isinstance(asked, Reward):
        return (there.value, there.cost, there.final) == (asked.value, asked.cost, asked.final)
    if isinstance(there, Lessons) and isinstance(asked, Lessons):
        return _contents(there) == _contents(asked)
    return there == asked if isinstance(asked, Creation | Change | Version | Batch) else type(there) is type(asked)


def _contents(lessons: Lessons) -> list[Any]:
    return [(canonical(made), made.p, made.arm) for made in lessons.decisions] + lessons.rewards


def check_group(group: Sequence[Write]) -> None:
    """Raise Conflict if one event id or idempotency key occurs in a group with two contents."""
    first: dict[tuple[str, str], Write] = {}
    for write in group:
        if isinstance(write.event, Decision) and not write.fresh:
            before = first.setdefault((write.app, write.id), write)
            if before is not write and _content(before) != _content(write):
                raise Conflict(f"event {write.id} is in this batch with two contents")


def _content(write: Write) -> bytes:
    """The content of a request, for comparison with a retry."""
    id, event = "" if write.fresh else write.id, write.event
    if isinstance(event, Decision):
        return msgspec.json.encode([id, canonical(event)])
    return msgspec.json.encode([id, event])


def keyed(writes: Sequence[Write], key: Callable[[str], str]) -> list[Write]:
    """The writes of a batch under one idempotency key: its record, then each part under a key of its own.

    The parts are numbered in the order of their contents, so that a retry in another order finds each.
    """
    contents = [_content(write) for write in writes]
    order = sorted(range(len(writes)), key=contents.__getitem__)
    for place, i in enumerate(order):
        writes[i].request = key(str(place))
    whole = msgspec.json.encode([contents[i] for i in order])
    digest = hashlib.blake2b(whole, digest_size=16).hexdigest()
    return [Write(writes[0].app, "", Batch(digest), key("batch")), *writes]


def canonical(decision: Decision) -> bytes:
    """A request in canonical form, independent of spacing and of the order of keys."""
    if decision.asked:
        return decision.asked.encode()
    arms = [msgspec.json.decode(arm) for arm in decision.arms]
    if decision.order:
        arms = [[arms[decision.order.index(i)], decision.order.index(i) < len(decision.p)] for i in range(len(arms))]
    return msgspec.json.encode([msgspec.json.decode(decision.context), arms, decision.deferred], order="sorted")
