"""Several slots in one answer: each is a decision of its own between the arms that the slots before it leave.

So each slot's probability is exact given what the slots before it show, and the journal, its replay, exports, versions,
retention and erasure know of nothing but decisions. All are journaled together or not at all. The decision of slot k of
event e has the id e, ``0x1F``, k: no event of a client can have it; the first one has the names of all slots.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import PackedTokens
from armwise.service.journal.events import Decision, Row
from armwise.service.journal.writes import Write

MARK = "\x1f"
MAX_SLOTS = 50


class SlotsRequest(NamedTuple):
    """A request for several slots: a context and a name per slot, the arms of all, and the limits of each slot.

    ``free(shown)`` says which arms the next slot may show, below those shown so far; ``first(k)`` is the arm that
    stands first for slot k, which an apprentice shows (None: the first that is free). ``digest`` is that of the
    request: a retry has the same. ``catalogue`` is the hash by which the arms were named.
    """

    contexts: Sequence[bytes]
    names: Sequence[str]
    arms: ArmColumns
    free: Callable[[list[int]], NDArray[np.bool_]]
    digest: str
    tokens: Sequence[PackedTokens | None] = ()
    first: Callable[[int], int | None] = lambda k: None
    id: str | None = None
    deferred: bool = False
    catalogue: bytes = b""


def offered_by_slot(asked: SlotsRequest, shown: Sequence[str]) -> list[ArmColumns]:
    """The arms that each slot of a list could show, below those above it."""
    place = {id: i for i, id in enumerate(asked.arms.ids)}
    above = [place[arm] for arm in shown]
    free = [asked.free(above[:slot]) for slot in range(len(above))]
    return [asked.arms if each.all() else asked.arms.picked(np.flatnonzero(each).tolist()) for each in free]


def slot_id(event: str, k: int) -> str:
    """The id of the decision of slot k."""
    return f"{event}{MARK}{k}"


def slot_of(id: str) -> int:
    """The position in its list of the decision with this id, from 1; 0: it is of no list."""
    _, mark, slot = id.partition(MARK)
    return int(slot) + 1 if mark else 0


def prepare_slots(
    engine: Any, app: str, asked: SlotsRequest, retry: Callable[[int], str] = lambda k: "", by: str = "", **options: Any
) -> list[Write]:
    """The decisions of all slots, in their order; not yet durable. ``retry`` gives the idempotency key of each,
    ``options`` are those of ``Engine.prepare``."""
    ids, named = asked.arms.ids, asked.id is not None
    event = asked.id if asked.id is not None else engine.new_id(request=retry(0))
    place = {id: i for i, id in enumerate(ids)}
    writes: list[Write] = []

    def made(k: int) -> Write:
        shown = [place[shown_arm(before)] for before in writes[:k]]
        free, baseline = asked.free(shown), asked.first(k)
        arms, catalogue = asked.arms, asked.catalogue
        if baseline is not None:  # it stands first
            catalogue = b""
            arms = arms.picked([baseline, *(i for i in range(len(ids)) if i != baseline)])
        write: Write = engine.prepare(
            app, asked.contexts[k], arms, id=event, slot=f"{MARK}{k}",
            excluded=[ids[i] for i in np.flatnonzero(~free).tolist()], deferred=asked.deferred,
            request=retry(k), by=by, tokens=asked.tokens[k] if asked.tokens else None,
            catalogue=catalogue, **options,
        )  # fmt: skip
        decision = decision_of(write)
        decision.asked, write.fresh = asked.digest, not named
        if k == 0:
            decision.slots = list(asked.names)
        if write.again is not None:
            write.again = functools.partial(again, k)
        return write

    def again(k: int, strange: Sequence[Row]) -> tuple[Decision, Any, Any, Any]:
        """Slot k, once those before it were drawn again: what they show now is no longer free."""
        engine.model(app).count_foreign_decisions(strange)
        write = made(k)
        if write.refusal is not None:
            raise write.refusal
        return decision_of(write), write.stack, write.seen, write.held

    for k in range(len(asked.contexts)):
        writes.append(made(k))
    return writes


def shown_by(find: Callable[[str], tuple[Any, Decision]], event: str) -> list[str]:
    """The arms of a list from the top; ``find`` gives the answer and the decision of an id, or raises Unknown."""
    it, first = find(slot_id(event, 0))
    return [it.arm, *(find(slot_id(event, k))[0].arm for k in range(1, len(first.slots)))]


def decision_of(write: Write) -> Decision:
    """The decision that a write asks to append."""
    assert isinstance(write.event, Decision)
    return write.event


def shown_arm(write: Write) -> str:
    """The arm that a drawn decision shows; its arms' JSON stays unwritten."""
    decision = decision_of(write)
    return write.names[decision.order[decision.arm] if decision.order else decision.arm]
