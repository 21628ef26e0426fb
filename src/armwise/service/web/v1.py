"""The service's own API: small and typed. Paths may be preceded by ``/apps/NAME`` for an application by name."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any, NamedTuple

import msgspec

from armwise.features.encoding.arms import ArmColumns, check_id, read_arms
from armwise.features.encoding.tokens import InvalidInput, Part, part, refuse_twice, why
from armwise.service.engine.application import Application
from armwise.service.engine.draw import Answer, answer
from armwise.service.engine.engine import Engine
from armwise.service.errors import Conflict
from armwise.service.journal.events import Activation, Change, Decision, Reward, Row
from armwise.service.journal.journal import Journal, Write, Written
from armwise.service.journal.rules import Status
from armwise.service.log import parquet
from armwise.service.log.export import FORMATS, Entry, outcomes, pieces_of
from armwise.service.log.retain import Erased, merge
from armwise.service.sharding.sharded_engine import AnyEngine
from armwise.service.web import admission, shapes
from armwise.service.web.exports import Exports
from armwise.service.web.http import Call, Problem, Response, Route, finite, read_object, reply
from armwise.service.web.shapes import CatalogueRequest, DecisionRequest, RewardAnswer
from armwise.service.web.shapes import DecisionAnswer as DecisionAnswer
from armwise.service.web.threads import in_thread

_decode = msgspec.json.Decoder(DecisionRequest)
WHOLE = {"type": "integer", "minimum": 0, "maximum": 10**18}
_decode_catalogue = msgspec.json.Decoder(CatalogueRequest)


class Asked(NamedTuple):
    """A request for a decision, read."""

    context: bytes
    tokens: Part
    arms: ArmColumns
    id: str | None = None
    excluded: Sequence[str] = ()
    deferred: bool = False
    catalogue: bytes = b""  # the hash by which the arms were named


async def decide(call: Call) -> Response:
    """``POST /v1/decisions``: decide.

    Read, admit, draw, make durable, answer; in this order, each once.
    """
    apart = admission.large(call.body)
    asked = await admission.aside(apart, lambda: read(call.body, call.engine.catalogue))
    apart = admission.heavy(call, [asked.tokens], asked.arms.tail, bool(asked.catalogue)) or apart
    write = await admission.aside(apart, lambda: draw(call, asked))
    it = answer((await call.submit([write]))[0], write)
    return reply(DecisionAnswer.of(it), 200 if it.again else 201)


def read(body: bytes, catalogue: Callable[[str], ArmColumns]) -> Asked:
    """What a body asks for, or InvalidInput; ``catalogue`` finds arms that it names.

    >>> read(b'{"arms": ["a", "b"]}', None).arms.ids
    ('a', 'b')
    """
    try:
        sent = _decode.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, body)}") from None
    context = b"{}" if sent.context is msgspec.UNSET else bytes(sent.context)
    tokens = part(context, "c")
    asked = (
        None if sent.id is msgspec.UNSET else sent.id,
        () if sent.excluded is msgspec.UNSET else sent.excluded,
        sent.defer is True,
    )
    present = 6 - [sent.arms, sent.catalogue, sent.context, sent.id, sent.excluded, sent.defer].count(msgspec.UNSET)
    if sent.catalogue is not msgspec.UNSET:
        if sent.arms is not msgspec.UNSET:
            raise InvalidInput("the body: arms and catalogue were both sent: only one can say what to choose from")
        refuse_twice("the body", body, present + tokens.n_keys)
        return Asked(context, tokens, catalogue(sent.catalogue), *asked, bytes.fromhex(sent.catalogue))
    if sent.arms is msgspec.UNSET:
        raise InvalidInput("the body: Object missing required field `arms`")
    arms = read_arms([bytes(arm) for arm in sent.arms])
    refuse_twice("the body", body, present + tokens.n_keys + arms.n_keys)
    return Asked(context, tokens, arms, *asked)


def draw(call: Call, asked: Asked, *part: str) -> Write:
    """The decision that a request, or a ``part`` of one, asks for, not yet durable."""
    return call.engine.prepare(
        call.application, asked.context, asked.arms, id=asked.id, excluded=asked.excluded, deferred=asked.deferred,
        request=retry_key(call, "decide", *part), by=call.key.name, tokens=asked.tokens, catalogue=asked.catalogue,
    )  # fmt: skip


async def erase(call: Call) -> Response:
    """``POST /v1/erasures``: one subject's decisions go, by a value at a key of their contexts or arms.

    Open windows of theirs are closed; what they taught stays. ``deleted`` is null where another process leads, which
    deletes them within seconds.
    """
    body = read_object(call.body, {"key", "value"})
    if not isinstance(body.get("key"), str) or not body["key"] or "value" not in body:
        raise InvalidInput('the body must name a key of the context and its value: {"key": "user", "value": "u7"}')
    retentions = call.service.retain()

    def erased() -> Erased:
        assert len(retentions) == len(call.engine.each)  # raises, before anything is done, if a database is lost
        return merge([each.erase(call.application, body["key"], body["value"]) for each in retentions])

    return reply(await in_thread(erased))


async def put_catalogue(call: Call) -> Response:
    """``POST /v1/catalogues``: store arms once, for decisions to name by their hash."""
    sent = await admission.aside(admission.large(call.body), lambda: _read_catalogue(call.body))
    return reply({"catalogue": await in_thread(call.engine.put_catalogue, sent), "arms": len(sent.ids)}, 201)


def _read_catalogue(body: bytes) -> ArmColumns:
    try:
        sent = _decode_catalogue.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, body)}") from None
    arms = read_arms([bytes(arm) for arm in sent.arms])
    refuse_twice("the body", body, 1 + arms.n_keys)
    return arms


def retry_key(call: Call, *what: str) -> str:
    """The idempotency key for one operation: a decision and its reward may share one, and no other API's is meant.

    >>> retry_key(Call(None, "POST", (), b"", [(b"idempotency-key", b"7")], ""), "reward", "e1").split(chr(31))
    ['v1', 'reward', 'e1', '7']
    """
    return "\x1f".join(("v1", *what, call.request_id)) if call.request_id else ""


async def reward(call: Call) -> Response:
    """``POST /v1/decisions/{id}/reward``: say what a decision was worth."""
    body = read_object(call.body, {"value", "cost", "final"})
    value = body.get("value")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput('the body must be an object with a number: {"value": 1.0}')
    key, final = retry_key(call, "reward", call.params[0]), is_final(body)
    write = call.engine.prepare_reward(call.application, call.params[0], finite(value), key, body.get("cost"), final)
    return reply(reward_answer((await call.submit([write]))[0]))


def is_final(body: dict[str, Any], what: str = "final") -> bool:
    """Whether a reward is the last of its decision.

    >>> is_final({"value": 1.0}), is_final({"value": 1.0, "final": True})
    (False, True)
    """
    final = body.get("final", False)
    if not isinstance(final, bool):
        raise InvalidInput(f"{what} must be true or false, got {final!r:.60}")
    return final


def reward_answer(written: Written) -> RewardAnswer:
    """What came of a reward.

    >>> reward_answer(Written(Row(2, 0, "shop", "reward", "e1", b'{"value":0.5,"decision":1,"late":true}'))).late
    True
    """
    event = written.row.event
    assert isinstance(event, Reward)
    return RewardAnswer(written.row.id, event.late, event.lesson is not None, written.repeated and not event.late)


async def activate(call: Call) -> Response:
    """``POST /v1/decisions/{id}/activate``: a deferred decision was shown."""
    key = retry_key(call, "activate", call.params[0])
    written = (await call.submit([call.engine.prepare_activation(call.application, call.params[0], key)]))[0]
    event = written.row.event
    assert isinstance(event, Activation)
    return reply(RewardAnswer(written.row.id, event.late, event.lesson is not None))


async def find(call: Call) -> Response:
    """``GET /v1/decisions/{id}``: a decision as it is journaled, and where it stands."""
    return reply(await in_thread(_found, call.engine, call.application, call.params[0]))


def _found(engine: AnyEngine, app: str, id: str) -> dict[str, Any]:
    it, decision, status = engine.find(app, id)
    came, row = outcomes(engine.rewards(app, id)), Row(status.seq, status.deadline - decision.window, app, "", id, b"")
    entry = Entry(row, decision, status, came, engine.now())
    stands = {"status": entry.standing, "age": entry.record.age, "outcomes": [outcome.to_dict() for outcome in came]}
    return decision_json(it, decision, status) | stands


def decision_json(it: Answer, decision: Decision, status: Status) -> dict[str, Any]:
    """A decision with what was asked and what it earned so far; closed: nothing of it will be learnt any more.

    >>> it, asked = Answer("e1", "a", 1.0, [], 0, 1, False), Decision(msgspec.Raw(b"{}"), [], [], 0, 0, 1, 0.0)
    >>> decision_json(it, asked, Status("shop", "e1", 1, 5, "sum", 0.0, True))["reward"] is None
    True
    """
    whole: dict[str, Any] = msgspec.to_builtins(DecisionAnswer.of(it))
    told = status.active if status.closed else status.n > 0  # an inactive decision earns nothing once it is closed
    return whole | {
        "context": decision.context,
        "deadline": status.deadline,
        "active": status.active,
        "rewards": status.n,
        "reward": status.outcome if told else None,
        "closed": status.closed,
    }


async def agents(call: Call) -> Response:
    """``GET /v1/agents``: the applications that the key may see."""
    engine: AnyEngine = call.engine
    shown = []
    for name, model in sorted(engine.models.items()):
        if call.key.may("read", name):
            shown.append(
                {
                    "name": name,
                    "agent": repr(model.agent),
                    "version": model.version,
                    "lessons": model.lessons,
                    "refused": model.refused,
                    "features": {"dim": model.encoder.dim, "interactions": model.encoder.interactions},
                    "arms": model.arms,
                    "settings": model.settings.public | {"learn": model.learns},
                }
            )
    return reply({"agents": shown})


async def change_settings(call: Call) -> Response:
    """``PATCH /v1/settings``: change settings, from now on."""
    changes = read_object(call.body, {"window", "default", "rule", "learn", "apprentice", "drift", "epsilon"})
    for name in ("window", "default", "epsilon"):
        if name in changes:
            if isinstance(changes[name], bool) or not isinstance(changes[name], (int, float)):
                raise InvalidInput(f"{name} must be a number")
            changes[name] = finite(changes[name])
    try:
        change = msgspec.convert(changes, Change)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error)) from None
    await in_thread(call.engine.configure, call.application, change)
    model = call.engine.model(call.application)
    return reply(model.settings.public | {"learn": model.learns})


async def put_application(call: Call) -> Response:
    """``PUT /v1/apps/{name}``: make an application, or change one that was made so; in force everywhere at once.

    Those of the configuration file are changed there: two masters would take each other's changes back.
    """
    name = _application_name(call)
    if (known := call.engine.creations.get(name)) is not None and not known.settings.by_request:
        raise Conflict(
            f"application {name} is in the configuration file: change it there and send SIGHUP, or change its settings "
            "with PATCH /v1/settings"
        )
    try:
        application = msgspec.json.decode(call.body or b"{}", type=Application)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, call.body)}") from None
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    await in_thread(application.check)
    made = application.creation()
    lasting = msgspec.structs.replace(made, settings=made.settings.changed(Change(by_request=True)))
    await in_thread(call.engine.apply, {name: lasting}, only=False)
    model = call.engine.model(name)
    return reply({"name": name, "agent": repr(model.agent), "lessons": model.lessons, "version": model.version})


async def delete_application(call: Call) -> Response:
    """``DELETE /v1/apps/{name}``: serve one that was made by request no longer; its journal stays."""
    name = _application_name(call)
    made = await in_thread(call.engine.creation, name)
    if not made.settings.by_request:
        raise Conflict(f"application {name} is in the configuration file: take it out there")
    await in_thread(call.engine.retire, name)
    return Response(204)


def _application_name(call: Call) -> str:
    name = check_id("the application's name", call.params[0])
    if not call.key.may("admin", name):
        raise Problem(403, "Forbidden", "this key does not allow that")
    return name


async def log(call: Call) -> Response:
    """``GET /v1/log``: decisions with what they earned, as JSON lines, dsjson or Parquet, while they are read."""
    query = call.query
    kind = query.get("format", "json")
    if kind not in FORMATS:
        raise InvalidInput(f"format must be one of {', '.join(FORMATS)}, got {kind[:40]!r}")
    after, limit = (_whole(query, name, default) for name, default in (("after", 0), ("limit", 10**18)))
    engines = call.engine.each
    if after and len(engines) > 1:
        raise InvalidInput("after: where there are several databases each counts its own events: leave it out")
    if kind == "parquet":
        try:
            await in_thread(parquet.check)
        except parquet.Missing as error:
            raise Problem(501, "NotImplemented", str(error)) from None
    pieces = counted(call.service.exports, stream(engines, call.application, kind, after, limit))
    first = await anext(pieces, b"")  # before the status is sent: what cannot be read at all is no 200
    return Response(200, continued(first, pieces), FORMATS[kind])


async def counted(exports: Exports, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """A stream that counts as an export while it is under way; Unavailable if it would be one too many."""
    exports.begin()
    try:
        async for piece in pieces:
            yield piece
    finally:
        await pieces.aclose()
        exports.end()


async def continued(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """A stream whose first piece is at hand."""
    try:
        yield first
        async for piece in rest:
            yield piece
    finally:
        await rest.aclose()


async def stream(engines: Sequence[Engine], app: str, kind: str, after: int, limit: int) -> AsyncGenerator[bytes, None]:
    """The log in pieces, each read by a thread; no thread reads any more when the sessions are closed."""
    source = exported(engines, app, kind, after, limit)
    try:
        while data := await in_thread(next, source, b""):
            yield data
    finally:
        await in_thread(source.close)


def exported(engines: Sequence[Engine], app: str, kind: str, after: int, limit: int) -> Generator[bytes, None, None]:
    """The log in pieces, one database after the other, with sessions of its own, which it closes."""
    with contextlib.ExitStack() as sessions:
        journals: list[tuple[Journal, int]] = []
        for engine in engines:
            journal = engine.open_journal()
            sessions.callback(journal.connection.close)
            journals.append((journal, max(after, engine.forgotten(app))))
        yield from pieces_of(journals, app, kind, limit)


def _whole(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > 10**18:
        raise InvalidInput(f"{name} must be a whole number up to 10^18, got {text[:40]!r}")
    return int(text)


ROUTES = [
    Route("POST", "v1/decisions", "decide", decide, takes=DecisionRequest,
          gives={201: DecisionAnswer, 200: DecisionAnswer}),
    Route("GET", "v1/decisions/{}", "read", find, gives={200: shapes.JournaledDecision}),
    Route("POST", "v1/decisions/{}/reward", "reward", reward, takes=shapes.RewardRequest, gives={200: RewardAnswer}),
    Route("POST", "v1/decisions/{}/activate", "reward", activate, gives={200: RewardAnswer}),
    Route("GET", "v1/agents", "read", agents, gives={200: shapes.Agents}),
    Route("PATCH", "v1/settings", "admin", change_settings, takes=shapes.SettingsChange,
          gives={200: shapes.SettingsShown}),
    Route("GET", "v1/log", "read", log, gives={200: "application/x-ndjson"},
          query={"format": {"enum": list(FORMATS)}, "after": WHOLE, "limit": WHOLE}),
    Route("POST", "v1/catalogues", "decide", put_catalogue, takes=CatalogueRequest, gives={201: shapes.CatalogueShown}),
    Route("POST", "v1/erasures", "admin", erase, takes=shapes.ErasureRequest, gives={200: shapes.Erasure}),
    Route("PUT", "v1/apps/{}", "admin", put_application, takes=Application, gives={200: shapes.ApplicationShown}),
    Route("DELETE", "v1/apps/{}", "admin", delete_application, gives={204: None}),
]  # fmt: skip
