"""Personalizer's multi-slot rank: several slots, an action of its own for each.

Slots are drawn as those of a ranking are: see ``armwise.service.engine.requests.slots``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from armwise.core.tools.extras import needs
from armwise.features.encoding.arms import ArmColumns, check_id
from armwise.features.encoding.tokens import InvalidInput, part, read_json
from armwise.service.adapters.personalizer.rank import (
    Actions,
    Optional,
    RawContext,
    decoded,
    everywhere,
    read_actions,
    read_reward,
    retry_key,
)
from armwise.service.adapters.personalizer.schemas import MultiSlotAnswer, MultiSlotReward
from armwise.service.engine.requests.draw import answer
from armwise.service.engine.requests.slots import MARK, MAX_SLOTS, SlotsRequest, prepare_slots
from armwise.service.journal.events import Activation, Reward, decided
from armwise.service.journal.writes import Write
from armwise.service.web import admission
from armwise.service.web.http import Call, Response, Route, read_object, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.schemas import Name, schema_only


class Slot(msgspec.Struct, forbid_unknown_fields=True):
    """One slot of a request; ``baselineAction`` is what it would show without the service."""

    id: Name
    baselineAction: str
    features: RawContext | msgspec.UnsetType = msgspec.UNSET
    excludedActions: list[str] | Optional = msgspec.UNSET


class MultiSlotRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The request of ``multislot/rank``."""

    actions: Actions
    slots: Annotated[list[Slot], schema_only(minItems=1, maxItems=50)]
    contextFeatures: RawContext | msgspec.UnsetType = msgspec.UNSET
    eventId: str | Optional = msgspec.UNSET
    deferActivation: bool | Optional = msgspec.UNSET


_decode = msgspec.json.Decoder(MultiSlotRequest)


class SlotCall(NamedTuple):
    """A request to rank for several slots, read: what each slot sees, and which actions it may show."""

    contexts: list[bytes]
    arms: ArmColumns
    allowed: np.ndarray
    digest: str
    sent: MultiSlotRequest


async def rank(call: Call) -> Response:
    """``POST multislot/rank``: 201 with the action of every slot."""
    apart = admission.large(call.body)
    asked = await admission.aside(apart, lambda: read(call.body))
    apart = admission.heavy(call, [part(seen, "c") for seen in asked.contexts], asked.arms.tail) or apart
    writes = await admission.aside(apart, lambda: draw(call, asked))
    written = await call.submit(writes)
    answers = [answer(each) for each in written]
    names = decided(written[0].row).slots
    slots = [{"id": name, "rewardActionId": it.arm} for name, it in zip(names, answers)]
    return reply({"slots": slots, "eventId": answers[0].id.partition(MARK)[0]}, 201)


def read(body: bytes) -> SlotCall:
    """Read the request from a body, or raise InvalidInput."""
    sent: MultiSlotRequest = decoded(_decode, body)
    if isinstance(sent.eventId, str):
        check_id("eventId", sent.eventId)
    keys = sum(getattr(slot, name) is not msgspec.UNSET for slot in sent.slots for name in Slot.__struct_fields__)
    keys += sum(part(_features(slot), "c").n_keys for slot in sent.slots)
    context, arms = read_actions(body, sent, keys)
    contexts = [_with_slot(context, slot) for slot in sent.slots]
    digest = hashlib.blake2b(_canonical(body), digest_size=16).hexdigest()
    return SlotCall(contexts, arms, read_slots(sent.slots, arms.ids), digest, sent)


def draw(call: Call, asked: SlotCall) -> list[Write]:
    """The decisions of all slots, in their order, each between the actions still free; not yet durable."""
    sent, ids = asked.sent, asked.arms.ids
    n = len(ids)

    def free(shown: list[int]) -> np.ndarray:
        left = np.ones(n, np.bool_)
        left[shown] = False
        return choosable(asked.allowed[len(shown) :], left)

    request = SlotsRequest(
        asked.contexts, [slot.id for slot in sent.slots], asked.arms, free, asked.digest,
        first=lambda k: ids.index(sent.slots[k].baselineAction),
        id=sent.eventId if isinstance(sent.eventId, str) else None, deferred=sent.deferActivation is True,
    )  # fmt: skip
    return prepare_slots(
        call.engine, call.application, request, lambda k: retry_key(call, f"multislot {k}"), call.key.name
    )


def read_slots(slots: Sequence[Slot], ids: Sequence[str]) -> np.ndarray:
    """Which actions (columns) each slot (row) may show; InvalidInput if the slots make no sense."""
    if not 1 <= len(slots) <= MAX_SLOTS:
        raise InvalidInput(f"slots must have 1 to {MAX_SLOTS} elements, got {len(slots)}")
    for name, values in (("id", [s.id for s in slots]), ("baselineAction", [s.baselineAction for s in slots])):
        if len(set(values)) != len(values):
            raise InvalidInput(f"two slots have the same {name}")
    for slot in slots:
        check_id("a slot's id", slot.id)
        if slot.baselineAction not in ids:
            raise InvalidInput(f"slot {slot.id!r}: its baselineAction is not one of the actions")
        if slot.baselineAction in (slot.excludedActions or ()):
            raise InvalidInput(f"slot {slot.id!r}: its baselineAction is excluded")
    return np.array([[id not in set(slot.excludedActions or ()) for id in ids] for slot in slots])


def choosable(allowed: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The free actions that the first of these slots may take with something left for every slot after it."""
    able = allowed & free
    with needs("serve"):
        from scipy.sparse import csr_array  # slow to import
        from scipy.sparse.csgraph import maximum_bipartite_matching

    match = maximum_bipartite_matching(csr_array(able), perm_type="column")
    later = np.flatnonzero(match[1:] >= 0) + 1
    holder = np.zeros(len(free), np.int64)  # the later slot that has an action; 0: none, it can be taken
    holder[match[later]] = later
    open_ = holder == 0
    while True:  # an action is open, too, if its holder can move on to one that is
        wider = open_ | (able & open_).any(axis=1)[holder]
        if (wider == open_).all():
            break
        open_ = wider
    taken: np.ndarray = able[0] & open_
    return taken


async def reward(call: Call) -> Response:
    """``POST multislot/events/{id}/reward``: 204 when the rewards of all slots named are durable."""
    sent = read_object(call.body, {"reward"}).get("reward")
    if not isinstance(sent, list) or not all(isinstance(r, dict) and set(r) == {"slotId", "value"} for r in sent):
        raise InvalidInput('the body must be {"reward": [{"slotId": "...", "value": 1.0}, ...]}')
    if not 1 <= len(sent) <= MAX_SLOTS:
        raise InvalidInput(f"reward must have 1 to {MAX_SLOTS} elements, got {len(sent)}")
    event, model = call.params[0], call.engine.model(call.application)
    names = await slots_of(call, event)
    writes = []
    if twice := [each["slotId"] for i, each in enumerate(sent) if each["slotId"] in [r["slotId"] for r in sent[:i]]]:
        raise InvalidInput(f"reward names the slot {str(twice[0])[:40]!r} twice")
    for i, each in enumerate(sent):
        if each["slotId"] not in names:
            raise InvalidInput(f"event {event} has no slot {str(each['slotId'])[:40]!r}")
        value = model.check_reward(read_reward(each["value"]))
        id = f"{event}{MARK}{names.index(each['slotId'])}"
        key = retry_key(call, f"reward {i} for slots of {event}")
        writes.append(Write(call.application, id, Reward(value), key))
    await call.submit(writes)
    return Response(204)


async def activate(call: Call) -> Response:
    """``POST multislot/events/{id}/activate``: 204 when it is durable for all slots."""
    event = call.params[0]
    app, n = call.application, len(await slots_of(call, event))
    keys = [retry_key(call, f"activate slot {k} of {event}") for k in range(n)]
    await call.submit([Write(app, f"{event}{MARK}{k}", Activation(), key) for k, key in enumerate(keys)])
    return Response(204)


async def slots_of(call: Call, event: str) -> list[str]:
    """The names of an event's slots, or Unknown."""
    id = f"{check_id('the event id', event)}{MARK}0"
    return (await in_thread(call.engine.find, call.application, id, deleted=True))[1].slots


def _features(slot: Slot) -> bytes:
    text = b"null" if slot.features is msgspec.UNSET else bytes(slot.features)
    return b"[]" if text == b"null" else text


def _with_slot(context: bytes, slot: Slot) -> bytes:
    """The context that a slot's decision sees: the request's, and the slot as one more object."""
    whole = context if context.startswith(b"[") else b"[" + context + b"]"
    inner = whole[1:-1].strip()
    seen = b'{"slot": {"id": ' + msgspec.json.encode(slot.id) + b', "features": ' + _features(slot) + b"}}"
    return b"[" + inner + (b", " if inner else b"") + seen + b"]"


def _canonical(body: bytes) -> bytes:
    return msgspec.json.encode(read_json(body), order="sorted")


ROUTES = everywhere(
    [
        Route("POST", "multislot/rank", "decide", rank, takes=MultiSlotRequest, gives={201: MultiSlotAnswer}),
        Route("POST", "multislot/events/{}/reward", "reward", reward, takes=MultiSlotReward, gives={204: None}),
        Route("POST", "multislot/events/{}/activate", "reward", activate, gives={204: None}),
    ]
)
