"""Rankings over HTTP: a list of arms under one id, and rewards of its slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from armwise.features.encoding.arms import ArmColumns, check_id
from armwise.features.encoding.tokens import InvalidInput, part, refuse_twice, why
from armwise.service.engine.interface import ServedEngine
from armwise.service.engine.requests.draw import answer
from armwise.service.engine.requests.ranking import DEFAULT_SLOTS, read_list_rewards, read_ranking, slot_number
from armwise.service.engine.requests.slots import MARK, SlotsRequest, prepare_slots, shown_by, slot_id
from armwise.service.journal.errors import Unknown
from armwise.service.web import admission
from armwise.service.web.http import Call, Response, Route, finite, read_object, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1 import schemas
from armwise.service.web.v1.decisions import is_final, offered, retry_key, reward_answer

_decode = msgspec.json.Decoder(schemas.RankingRequest)


async def rank(call: Call) -> Response:
    """``POST /v1/rankings``: fill the slots of a list, each with an arm that no slot above it shows."""
    apart = admission.large(call.body)
    asked = await admission.aside(apart, lambda: read(call.body, call.engine.catalogue))
    tokens = [each for each in asked.tokens if each is not None]
    apart = admission.heavy(call, tokens, asked.arms.tail, bool(asked.catalogue)) or apart
    app = call.application
    writes = await admission.aside(
        apart,
        lambda: prepare_slots(call.engine, app, asked, lambda k: retry_key(call, "rank", str(k)), call.key.name),
    )
    made = [answer(*each) for each in zip(await call.submit(writes), writes)]
    slots = [schemas.ArmProbability(each.arm, each.probability) for each in made]
    whole = schemas.RankingAnswer(made[0].id.partition(MARK)[0], slots, made[0].version)
    return reply(whole, 200 if made[0].again else 201)


def read(body: bytes, catalogue: Callable[[str], ArmColumns]) -> SlotsRequest:
    """Parse a body, or raise InvalidInput; ``catalogue`` finds stored arms."""
    try:
        sent = _decode.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, body)}") from None
    context = b"{}" if sent.context is msgspec.UNSET else bytes(sent.context)
    arms, n_keys, hash = offered(sent, catalogue)
    given = {name: None if value is msgspec.UNSET else value
             for name, value in (("pinned", sent.pinned), ("at_most", sent.at_most))}  # fmt: skip
    keys = sum(getattr(sent, name) is not msgspec.UNSET for name in sent.__struct_fields__)
    keys += sum(len(value) for value in given.values() if value is not None)
    refuse_twice("the body", body, keys + part(context, "c").n_keys + n_keys)
    id = None if sent.id is msgspec.UNSET else check_id("the event id", sent.id)
    k = DEFAULT_SLOTS if sent.k is msgspec.UNSET else sent.k
    return read_ranking(context, arms, k, id, **given)._replace(catalogue=hash)


async def reward(call: Call) -> Response:
    """``POST /v1/rankings/{id}/rewards``: reward slots of a list by arm, by slot, or all from the top."""
    body = read_object(call.body, {"rewards", "slots", "final"})
    given: Any = body.get("rewards", {})
    if not body.keys() & {"rewards", "slots"} or ("slots" in body and not isinstance(given, dict)):
        raise InvalidInput(
            'the body must have "rewards" ({arm: value}, or a value per slot) or "slots" ({slot: value})'
        )
    event = check_id("the event id", call.params[0])
    shown = await in_thread(_shown, call.engine, call.application, event)
    if "slots" in body:
        slots = body["slots"]
        strange = [key for key in slots if slot_number(key) is None] if isinstance(slots, dict) else [slots]
        if strange:
            raise InvalidInput(
                f'slots must be an object whose keys are slots from 0: {{"0": 1.0}}, got {strange[0]!r:.40}'
            )
        given = given | {slot_number(key): value for key, value in slots.items()}
    final, writes = is_final(body), []
    for slot, value in read_list_rewards(shown, given, final):
        key = retry_key(call, f"reward {slot} of list {event}")
        writes.append(
            call.engine.prepare_reward(call.application, event, finite(value), key, None, final, f"{MARK}{slot}")
        )
    written = await call.submit(writes) if writes else []
    return reply({"rewards": [reward_answer(each) for each in written]})


async def find(call: Call) -> Response:
    """``GET /v1/rankings/{id}``: return the arms of a list and the rewards of each slot so far."""
    return reply(await in_thread(_found, call.engine, call.application, check_id("the event id", call.params[0])))


def _shown(engine: ServedEngine, app: str, event: str) -> list[str]:
    try:
        return shown_by(lambda id: engine.find(app, id)[:2], event)
    except Unknown:
        raise Unknown(f"no list has the id {event}", event) from None


def _found(engine: ServedEngine, app: str, event: str) -> dict[str, Any]:
    slots = []
    for k in range(len(_shown(engine, app, event))):
        it, _, status = engine.find(app, slot_id(event, k))
        told = status.active if status.closed else status.n > 0
        slots.append({"arm": it.arm, "probability": it.probability, "reward": status.outcome if told else None,
                      "closed": status.closed})  # fmt: skip
    return {"id": event, "slots": slots}


ROUTES = [
    Route("POST", "v1/rankings", "decide", rank, takes=schemas.RankingRequest,
          gives={201: schemas.RankingAnswer, 200: schemas.RankingAnswer}),
    Route("GET", "v1/rankings/{}", "read", find, gives={200: schemas.RankingShown}),
    Route("POST", "v1/rankings/{}/rewards", "reward", reward, takes=schemas.RankingRewards,
          gives={200: schemas.Rewards}),
]  # fmt: skip
