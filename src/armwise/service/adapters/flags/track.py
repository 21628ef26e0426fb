"""Tracking: exposures and outcomes. The protocol has no endpoint for them; here is one for OpenFeature's ``track``."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from armwise.features.encoding.tokens import InvalidInput, why
from armwise.service.adapters.flags.evaluate import FAILED, RawContext, find_flag, read_unit, visible
from armwise.service.adapters.flags.failure import FLAG_NOT_FOUND, INVALID_CONTEXT, PARSE_ERROR, Failure
from armwise.service.adapters.flags.flag import Flag, flag_of
from armwise.service.errors import Unknown
from armwise.service.journal.events import Activation, Reward
from armwise.service.journal.writes import Write
from armwise.service.web.http import Call, Response, Route, finite, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.decisions import is_final
from armwise.service.web.v1.schemas import said

EXPOSURE = "exposure"  # the name of the event that says a variant was shown
_NAME = {"type": "string", "minLength": 1, "maxLength": 256}
_NUMBER = {"type": "number", "minimum": -1e150, "maximum": 1e150}
Details = Annotated[
    dict[str, Any],
    said(
        properties={
            "flag": _NAME,
            "decision": _NAME,
            "value": _NUMBER,
            "final": {"type": "boolean"},
            "cost": {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER}]},
        },
        dependentRequired={"decision": ["flag"]},
    ),
]


class Tracking(msgspec.Struct, forbid_unknown_fields=True):
    """An event of a unit: ``exposure``, or an outcome by any other name.

    ``details`` may have ``flag`` (its key), ``decision`` (its id, as the evaluation's metadata has it), ``value`` (1
    unless said), ``final`` and ``cost``; other members are not kept.
    """

    name: str
    context: RawContext
    details: Details = {}


class Counted(msgspec.Struct):
    """A decision that an event counted for."""

    key: str
    decision: str
    late: bool


class Tracked(msgspec.Struct):
    """What became of an event."""

    counted: list[Counted]


_decode = msgspec.json.Decoder(Tracking)


async def track(call: Call) -> Response:
    """``POST track``: a unit was shown a flag's variant, or something came of it.

    An exposure lets the unit's decision count. An outcome with a flag does too, and is its reward. Without a flag it is
    the reward of every flag whose variant the unit was shown in this window or the one before.
    """
    try:
        sent = _decode.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        code = INVALID_CONTEXT if isinstance(error, msgspec.ValidationError) else PARSE_ERROR
        raise Failure(400, code, f"the body: {why(error, call.body)}") from None
    unit = read_unit(bytes(sent.context))
    key, named, exposure = sent.details.get("flag"), sent.details.get("decision"), sent.name == EXPOSURE
    for name, value in (("flag", key), ("decision", named)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"details.{name} must be a text, got {value!r:.60}")
    if key is None and (named is not None or exposure):
        raise InvalidInput("details.flag must say which flag's variant was shown" if exposure else
                           "details.flag must say which flag the decision is of")  # fmt: skip
    flags = [(key, find_flag(call, key, "reward"))] if key is not None else _all(call)
    value, final = finite(sent.details.get("value", 1.0), "details.value"), is_final(sent.details, "details.final")
    found = await in_thread(_decisions, call, flags, unit.key, named, key is None)
    if not found and key is not None:
        raise Failure(404, FLAG_NOT_FOUND, "the unit has no decision of this flag in this window or the last", key=key)
    request = call.request_id
    writes: list[Write] = []
    for name, id in found:
        again = f"ofrep\x1ftrack\x1f{id}\x1f{request}" if request else ""
        writes.append(call.engine.prepare_activation(name, id))
        if not exposure:
            cost = sent.details.get("cost")
            writes.append(call.engine.prepare_reward(name, id, value, again, cost, final))
    written = await call.submit(writes) if writes else []
    late = {(each.row.app, each.row.id): _is_late(each.row.event) for each in written}
    return reply(Tracked([Counted(name, id, late[name, id]) for name, id in found]))


def _is_late(event: Any) -> bool:
    assert isinstance(event, (Activation, Reward))
    return event.late


def _all(call: Call) -> list[tuple[str, Flag]]:
    every = (
        (name, flag_of(call.engine.models[name])) for name in visible(call, "reward") if name in call.engine.models
    )
    return [(name, flag) for name, flag in every if flag is not None]


def _decisions(
    call: Call, flags: list[tuple[str, Flag]], unit: str, named: str | None, shown: bool
) -> list[tuple[str, str]]:
    """Each flag's latest decision of the unit, in this window or the one before; ``shown``: only those that count."""
    found = []
    for key, flag in flags:
        now = call.engine.now()
        for id in [named] if named is not None else [flag.decision(unit, now), flag.decision(unit, now, back=1)]:
            try:
                _, _, status = call.engine.find(key, id)
            except Unknown:
                continue
            if status.active or not shown:
                found.append((key, id))
                break
    return found


ROUTES = [
    Route("POST", "ofrep/v1/track", "reward", track, takes=Tracking, gives={200: Tracked, **FAILED}),
]
