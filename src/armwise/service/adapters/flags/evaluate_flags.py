"""Evaluation: of one flag, and of all in one commit.

An evaluation is a deferred decision. SDKs evaluate often, cache, and load every flag that a page might use: a decision
counts once it was shown, which an exposure or its first outcome says (``track``). A unit's decision of a window has an
id that follows from both, so that evaluating again, here or in another process, finds the same one. An experiment's
unit is assigned once, and is in its numbers once it was shown.
"""

from __future__ import annotations

import hashlib
import weakref
from typing import Annotated, Any, NamedTuple

import msgspec

from armwise.features.encoding.tokens import InvalidInput, part, refuse_twice, why
from armwise.service.adapters.flags.failure import (
    FLAG_NOT_FOUND,
    GENERAL,
    INVALID_CONTEXT,
    PARSE_ERROR,
    TARGETING_KEY_MISSING,
    Failure,
)
from armwise.service.adapters.flags.flag import Flag, flag_of
from armwise.service.engine.interface import ServedEngine
from armwise.service.engine.requests.draw import Answer, answer
from armwise.service.experiments.assignment import Assignment
from armwise.service.experiments.hosted import HostedExperiment, is_held_out
from armwise.service.journal.errors import Conflict
from armwise.service.journal.writes import Write
from armwise.service.web import admission
from armwise.service.web.http import Call, Problem, Response, Route, problem_of, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.schemas import schema_only

MAX_UNIT = 4096  # characters of a targeting key
MAX_FLAGS = 1000  # in one bulk evaluation
MAX_KEPT = 100_000  # answers that are kept, so that evaluating again costs no look into the journal


_UNIT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": MAX_UNIT}
RawContext = Annotated[
    msgspec.Raw,
    schema_only(
        allOf=[
            {"$ref": "#/components/schemas/Features"},
            {"type": "object", "required": ["targetingKey"], "properties": {"targetingKey": _UNIT}},
        ]
    ),
]


class FlagEvaluation(msgspec.Struct, forbid_unknown_fields=False):
    """The request of an evaluation: a context with the targeting key, other members are attributes."""

    context: RawContext


class Evaluated(msgspec.Struct, omit_defaults=True):
    """The answer of an evaluation."""

    key: str
    value: Any
    variant: str
    reason: str
    metadata: dict[str, Any]


class EvaluatedFlags(msgspec.Struct):
    """The answer of a bulk evaluation: flags, or the reason why one could not be evaluated."""

    flags: list[Any]


class Failed(msgspec.Struct):
    """The answer to an evaluation that failed."""

    errorCode: str
    errorDetails: str
    key: str = ""  # the flag's, where one was meant


class Assigned(NamedTuple):
    """A unit's arm of an experiment, or of a flag that it is held out of, and the id of its decision."""

    assignment: Assignment
    id: str


class Unit(NamedTuple):
    """The unit of a request: the targeting key, and the attributes as JSON."""

    key: str
    attributes: bytes


_REASONS = {"assigned": "SPLIT", "forced": "TARGETING_MATCH", "stopped": "STATIC"}  # of all others, DEFAULT
_decode = msgspec.json.Decoder(FlagEvaluation)
_decode_context = msgspec.json.Decoder(dict[str, msgspec.Raw])
_kept: weakref.WeakKeyDictionary[ServedEngine, dict[tuple[str, str], Answer]] = weakref.WeakKeyDictionary()


def read(body: bytes, key: str = "") -> Unit:
    """The unit of a body; Failure with the protocol's code."""
    try:
        raw = bytes(_decode.decode(body).context)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        code = INVALID_CONTEXT if isinstance(error, msgspec.ValidationError) else PARSE_ERROR
        raise Failure(400, code, f"the body: {why(error, body)}", key=key) from None
    return read_unit(raw, key)


def read_unit(raw: bytes, key: str = "") -> Unit:
    """The unit of a context."""
    try:
        context = _decode_context.decode(raw)
        named = "targetingKey" in context
        unit = msgspec.json.decode(context.pop("targetingKey", msgspec.Raw(b"null")))
        attributes = msgspec.json.encode(context)
        refuse_twice("the context", raw, part(attributes, "c").n_keys + named)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidInput) as error:
        raise Failure(400, INVALID_CONTEXT, f"the context: {why(error, raw)}", key=key) from None
    if unit is None or unit == "":
        missing = "the context must have a targetingKey: the unit that is decided for"
        raise Failure(400, TARGETING_KEY_MISSING, missing, key=key)
    if not isinstance(unit, str) or len(unit) > MAX_UNIT:
        wrong = f"targetingKey must be a text of at most {MAX_UNIT} characters, got {unit!r:.60}"
        raise Failure(400, INVALID_CONTEXT, wrong, key=key)
    return Unit(unit, attributes)


def find_flag(call: Call, key: str, role: str) -> Flag:
    """A flag that the key of a call may use; Failure where there is none, or it may not."""
    if call.named and key != call.application:
        raise Failure(404, FLAG_NOT_FOUND, f"no flag is called {key!r:.100}", key=key)
    if not call.key.may(role, key):
        raise Failure(403, GENERAL, "this key does not allow that", key=key)
    if key not in call.engine.models and key not in call.engine.creations:
        raise Failure(404, FLAG_NOT_FOUND, f"no flag is called {key!r:.100}", key=key)
    flag = flag_of(call.engine.model(key))
    if flag is None:
        problem = f"{key!r:.100} is no flag: give the application variants or fixed arms, or make it an experiment"
        raise Failure(404, FLAG_NOT_FOUND, problem, key=key)
    return flag


def visible(call: Call, role: str = "decide") -> list[str]:
    """The flags that the key of a call may use, in the order of their names."""
    names = [call.application] if call.named else sorted({*call.engine.models, *call.engine.creations})
    return [name for name in names if call.key.may(role, name)]


async def evaluate(call: Call) -> Response:
    """``POST evaluate/flags/{key}``: a unit's variant of one flag."""
    key = call.params[0]
    flag = find_flag(call, key, "decide")
    call.application = key
    apart = admission.large(call.body)
    unit = await admission.aside(apart, lambda: read(call.body, key))
    [(_, found)] = await decided(call, [(key, flag)], unit, apart)
    if isinstance(found, Failure):
        raise found
    return reply(evaluated(key, flag, found))


async def evaluate_all(call: Call) -> Response:
    """``POST evaluate/flags``: a unit's variants of all flags, in one commit; 304 where they are those of the ETag."""
    apart = admission.large(call.body)
    unit = await admission.aside(apart, lambda: read(call.body))
    flags: list[tuple[str, Flag]] = []
    answers: dict[str, Any] = {}
    for name in visible(call):
        try:
            if (flag := flag_of(call.engine.model(name))) is not None:
                flags.append((name, flag))
        except Exception as error:  # one that cannot be served is no reason to refuse the others
            problem = problem_of(error)
            answers[name] = Failure(503, GENERAL, str(problem or "it cannot be served"), key=name).fields
    if len(flags) > MAX_FLAGS:
        raise Failure(400, GENERAL, f"there are {len(flags)} flags, at most {MAX_FLAGS} are evaluated at once")
    of = dict(flags)
    for name, found in await decided(call, flags, unit, apart or len(flags) > 100):
        answers[name] = found.fields if isinstance(found, Failure) else evaluated(name, of[name], found)
    body = msgspec.json.encode({"flags": [answers[name] for name in sorted(answers)]})
    tag = b'"%b"' % hashlib.blake2b(body, digest_size=16).hexdigest().encode()
    headers = ((b"etag", tag),)
    sent = [each.strip().removeprefix("W/") for each in call.header(b"if-none-match").split(",")]
    if tag.decode() in sent or "*" in sent:
        return Response(304, b"", headers=headers)
    return Response(200, body, headers=headers)


def evaluated(key: str, flag: Flag, it: Answer | Assigned) -> Evaluated:
    """The protocol's answer; the decision, its probability and the model's version are metadata.

    An experiment has the reason of the assignment instead of a version, and a decision where the unit takes part.
    """
    if isinstance(it, Answer):
        metadata = {"decision": it.id, "probability": it.probability, "version": it.version}
        return Evaluated(key, flag.values[it.arm], it.arm, "SPLIT", metadata)
    arm, decision = it.assignment, {"decision": it.id} if it.assignment.counted else {}
    metadata = decision | {"probability": arm.probability, "assignment": arm.reason}
    return Evaluated(key, flag.values[arm], str(arm), _REASONS.get(arm.reason, "DEFAULT"), metadata)


async def decided(call: Call, flags: list[tuple[str, Flag]], unit: Unit, apart: bool) -> list[Any]:
    """A unit's decision of each flag, or why there is none; new ones are made durable in one commit."""
    engine, now = call.engine, call.engine.now()
    kept = _kept.setdefault(engine, {})
    found: dict[str, Answer | Assigned | Failure] = {}
    tokens = part(unit.attributes, "c")
    experiments: dict[str, HostedExperiment] = {
        key: call.service.experiment(key) for key, flag in flags if flag.is_experiment
    }

    is_held = any(flag.control for _, flag in flags) and is_held_out(engine, unit.key)

    def settled(key: str, flag: Flag) -> Answer | Assigned | Write:
        """The unit's decision, or the write that makes one."""
        if key in experiments:
            made = experiments[key].prepare(unit.key, unit.attributes, tokens)
            return made if isinstance(made, Write) else Assigned(made, experiments[key].unit_id(unit.key))
        if flag.control and is_held:
            return Assigned(Assignment(flag.control, unit.key, "holdout"), "")
        id = flag.decision(unit.key, now)
        known = kept.get((key, id))
        if known is not None and known.arm in flag.values:
            return known
        return engine.prepare(
            key, unit.attributes, flag.arms, id=id, deferred=True, by=call.key.name, tokens=tokens, now=now
        )

    def drawn() -> list[tuple[str, Flag, Write]]:
        writes = []
        for key, flag in flags:
            try:
                it = settled(key, flag)
            except Exception as error:
                found[key] = _failure(error, key)
                continue
            if isinstance(it, Write):
                writes.append((key, flag, it))
            else:
                found[key] = it
        return writes

    if experiments:  # they ask the journal
        writes = await in_thread(drawn)
    else:
        apart = apart or (len(flags) == 1 and admission.heavy(call, [tokens], flags[0][1].arms.tail))
        writes = await admission.aside(apart, drawn)
    try:
        committed = await call.submit([write for _, _, write in writes]) if writes else []
        for (key, _, write), written in zip(writes, committed):
            if key in experiments:
                found[key] = Assigned(experiments[key].prepared(unit.key, written), write.id)
            else:
                found[key] = answer(written, write)
    except Conflict:  # some were decided before, in another context: a unit keeps what it got
        for key, flag, write in writes:
            found[key] = await _again(call, key, flag, write, experiments.get(key), unit)
    for key, flag in flags:
        one = found[key]
        if isinstance(one, Answer):
            if len(kept) >= MAX_KEPT:
                kept.clear()
            kept[key, flag.decision(unit.key, now)] = one
    return list(found.items())


async def _again(
    call: Call, key: str, flag: Flag, write: Write, experiment: HostedExperiment | None, unit: Unit
) -> Answer | Assigned | Failure:
    """The decision that has this id, made now if there is none."""
    try:
        if experiment is not None:
            units = [(unit.key, msgspec.json.decode(unit.attributes))]
            return Assigned((await in_thread(experiment.assign, units, False))[0], write.id)
        return answer((await call.submit([write]))[0], write)
    except Conflict:
        it, _, _ = await in_thread(call.engine.find, key, write.id, True)
    except Exception as error:
        return _failure(error, key)
    if it.arm not in flag.values:
        gone = f"the variant {it.arm!r} that the unit has in this window is none of the flag's any more"
        return Failure(500, GENERAL, gone, key=key)
    return it


def _failure(error: Exception, key: str) -> Failure:
    problem: Problem | None = problem_of(error)
    if problem is None:
        raise error
    code = INVALID_CONTEXT if problem.status == 400 else GENERAL
    return Failure(problem.status, code, str(problem), problem.headers, key)


FAILED = dict.fromkeys((400, 401, 402, 403, 404, 409, 413, 503), Failed)
ROUTES = [
    Route("POST", "ofrep/v1/evaluate/flags/{}", "decide", evaluate, takes=FlagEvaluation,
          gives={200: Evaluated, **FAILED}),
    Route("POST", "ofrep/v1/evaluate/flags", "decide", evaluate_all, takes=FlagEvaluation,
          gives={200: EvaluatedFlags, 304: None, **FAILED}),
]  # fmt: skip
