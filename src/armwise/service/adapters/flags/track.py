"""Tracking: exposures and outcomes. The protocol has no endpoint for them; here is one for OpenFeature's ``track``."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, NamedTuple

import msgspec

from armwise.features.encoding.arms import check_id
from armwise.features.encoding.tokens import InvalidInput, why
from armwise.service.adapters.flags.evaluate_flags import FAILED, RawContext, find_flag, read_unit, visible
from armwise.service.adapters.flags.failure import FLAG_NOT_FOUND, INVALID_CONTEXT, PARSE_ERROR, Failure
from armwise.service.adapters.flags.flag import Flag, flag_of, own_decisions
from armwise.service.experiments.hosted import HostedExperiment, is_held_out
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Activation, Reward
from armwise.service.journal.writes import Write
from armwise.service.web.http import Call, Response, Route, finite, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.decisions import is_final
from armwise.service.web.v1.schemas import Name, schema_only

EXPOSURE = "exposure"  # the name of the event that says a variant was shown
_NAME = {"type": "string", "minLength": 1, "maxLength": 256}
_NUMBER = {"type": "number", "minimum": -1e150, "maximum": 1e150}
Details = Annotated[
    dict[str, Any],
    schema_only(
        properties={
            "flag": _NAME,
            "decision": _NAME,
            "metric": _NAME,
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
    unless said), ``metric`` (of an experiment; the event's name unless said), and for applications ``final`` and
    ``cost``; other members are not kept.
    """

    name: Name
    context: RawContext
    details: Details = {}


class Counted(msgspec.Struct):
    """A decision that an event counted for."""

    key: str
    decision: str
    late: bool


class Tracked(msgspec.Struct):
    """The result of an event: the decisions that it counted for, none where the unit takes no part."""

    counted: list[Counted]


class Event(NamedTuple):
    """An event as it was read; ``value`` is None for an exposure."""

    unit: str
    metric: str
    decision: str | None
    value: float | None
    request: str


_decode = msgspec.json.Decoder(Tracking)


async def track(call: Call) -> Response:
    """``POST track``: a unit was shown a flag's variant, or something came of it.

    An exposure lets the unit's decision count. An outcome with a flag does too, and is its reward. Without a flag it is
    the reward of every flag whose variant the unit was shown in this window or the one before. An experiment takes it
    for the metric of the event's name.
    """
    try:
        sent = _decode.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        code = INVALID_CONTEXT if isinstance(error, msgspec.ValidationError) else PARSE_ERROR
        raise Failure(400, code, f"the body: {why(error, call.body)}") from None
    check_id("the event's name", sent.name)
    unit = read_unit(bytes(sent.context))
    key, named, exposure = sent.details.get("flag"), sent.details.get("decision"), sent.name == EXPOSURE
    metric = sent.details.get("metric")
    for name, value in (("flag", key), ("decision", named), ("metric", metric)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"details.{name} must be a text, got {value!r:.60}")
    if key is None and (named is not None or exposure):
        raise InvalidInput("details.flag must say which flag's variant was shown" if exposure else
                           "details.flag must say which flag the decision is of")  # fmt: skip
    flags = [(key, find_flag(call, key, "reward"))] if key is not None else _all(call)
    value, final = finite(sent.details.get("value", 1.0), "details.value"), is_final(sent.details, "details.final")
    event = Event(unit.key, metric or sent.name, named, None if exposure else value, call.request_id)
    counted, found = await in_thread(_find, call, flags, event, key is None)
    if not found and key is not None and not flags[0][1].is_experiment:
        if flags[0][1].control and is_held_out(call.engine, unit.key):
            return reply(Tracked([]))
        which = "in this window or the last" if named is None else "with this id"
        raise Failure(404, FLAG_NOT_FOUND, f"the unit has no decision of this flag {which}", key=key)
    writes: list[Write] = []
    for name, id in found:
        again = f"ofrep\x1ftrack\x1f{id}\x1f{event.request}" if event.request else ""
        writes.append(call.engine.prepare_activation(name, id))
        if not exposure:
            cost = sent.details.get("cost")
            writes.append(call.engine.prepare_reward(name, id, value, again, cost, final))
    written = await call.submit(writes) if writes else []
    late = {(each.row.app, each.row.id): _is_late(each.row.event) for each in written}
    return reply(Tracked(counted + [Counted(name, id, late[name, id]) for name, id in found]))


def _find(
    call: Call, flags: list[tuple[str, Flag]], event: Event, shown: bool
) -> tuple[list[Counted], list[tuple[str, str]]]:
    """The experiments that an event counted for, and the decisions of applications that it must count for."""
    experiments = [call.service.experiment(key) for key, flag in flags if flag.is_experiment]
    applications = [(key, flag) for key, flag in flags if not flag.is_experiment]
    counted = _in_experiments(experiments, event, shown) if experiments else []
    return counted, _decisions(call, applications, event.unit, event.decision, shown)


def _in_experiments(experiments: list[HostedExperiment], event: Event, shown: bool) -> list[Counted]:
    """Let a unit count in experiments, and take in its outcome; ``shown``: only in those where it counts already."""
    found = []
    if shown:
        experiments = [each for each in experiments if event.metric in each.definition.metric_names]
    for experiment in experiments:
        if event.decision not in (None, experiment.unit_id(event.unit)):
            problem = "the unit has another decision of this experiment"
            raise Failure(404, FLAG_NOT_FOUND, problem, key=experiment.name)
        if event.value is not None:
            try:
                experiment.check_outcome(event.metric, event.value)
            except ValueError as error:
                where = f"experiment {experiment.name!r}, whose metric is the event's name, or details.metric"
                raise InvalidInput(f"{where}: {error}") from None
    again = hashlib.blake2b(event.request.encode(), digest_size=16).hexdigest() if event.request else None
    for experiment in experiments:
        counts, late = shown or experiment.count([event.unit])[0], False
        if counts and event.value is not None:
            [receipt] = experiment.outcome([(event.unit, event.value, event.metric, again)])
            counts, late = receipt.status != "not in the experiment", receipt.status == "late"
        if counts:
            found.append(Counted(experiment.name, experiment.unit_id(event.unit), late))
    return found


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
    found: list[tuple[str, str]] = []
    if named is not None and not named.startswith(own_decisions(unit)):
        return found
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
