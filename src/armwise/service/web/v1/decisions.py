"""Decisions and rewards over HTTP. The prefix ``/apps/NAME`` selects an application by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from armwise.features.encoding.arms import ArmColumns, read_arms
from armwise.features.encoding.tokens import InvalidInput, part, refuse_twice, why
from armwise.service.engine.interface import ServedEngine
from armwise.service.engine.requests.draw import Answer, answer
from armwise.service.engine.requests.ranking import read_list_rewards
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import shown_by
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Activation, Decision, Reward, Row
from armwise.service.journal.rules import Status
from armwise.service.journal.writes import Write, Written
from armwise.service.log.export_journal import Entry, outcomes
from armwise.service.web import admission
from armwise.service.web.http import Call, Response, Route, finite, read_object, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1 import schemas
from armwise.service.web.v1.schemas import CatalogueRequest, DecisionRequest, RewardAnswer
from armwise.service.web.v1.schemas import DecisionAnswer as DecisionAnswer

_decode = msgspec.json.Decoder(DecisionRequest)
WHOLE = {"type": "integer", "minimum": 0, "maximum": 10**18}
_decode_catalogue = msgspec.json.Decoder(CatalogueRequest)


async def decide(call: Call) -> Response:
    """``POST /v1/decisions``: decide.

    Parse, admit, draw, commit, answer: in this order, each once.
    """
    if apart := admission.large(call.body):
        asked = await admission.aside(apart, lambda: read(call.body, call.engine.catalogue))
    else:
        asked = read(call.body, call.engine.catalogue)
    if admission.heavy(call, [asked.tokens], asked.arms.tail, bool(asked.catalogue)) or apart:
        write = await admission.aside(True, lambda: draw(call, asked))
    else:
        write = draw(call, asked)
    it = answer((await call.submit([write]))[0], write)
    return reply(DecisionAnswer.of(it), 200 if it.again else 201)


def read(body: bytes, catalogue: Callable[[str], ArmColumns]) -> ParsedRequest:
    """Parse a body, or raise InvalidInput; ``catalogue`` finds stored arms."""
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
    arms, n_keys, hash = offered(sent, catalogue)
    refuse_twice("the body", body, present + tokens.n_keys + n_keys)
    return ParsedRequest(context, tokens, arms, *asked, hash)


def offered(sent: Any, catalogue: Callable[[str], ArmColumns]) -> tuple[ArmColumns, int, bytes]:
    """The arms of a body, by themselves or by their catalogue; their keys in the body; the catalogue's hash."""
    if sent.catalogue is not msgspec.UNSET:
        if sent.arms is not msgspec.UNSET:
            raise InvalidInput("the body: arms and catalogue were both sent: only one can say what to choose from")
        return catalogue(sent.catalogue), 0, bytes.fromhex(sent.catalogue)
    if sent.arms is msgspec.UNSET:
        raise InvalidInput("the body: Object missing required field `arms`")
    arms = read_arms([bytes(arm) for arm in sent.arms])
    return arms, arms.n_keys, b""


def draw(call: Call, asked: ParsedRequest, *part: str) -> Write:
    """Draw the decision for a request, or for a ``part`` of one; it is not durable yet."""
    return call.engine.prepare(
        call.application, asked.context, asked.arms, id=asked.id, excluded=asked.excluded, deferred=asked.deferred,
        request=retry_key(call, "decide", *part), by=call.key.name, tokens=asked.tokens, catalogue=asked.catalogue,
    )  # fmt: skip


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
    """Return the idempotency key qualified by operation and API, so that a decision and its reward may share one."""
    sent = call.request_id
    return "\x1f".join(("v1", *what, sent)) if sent else ""


async def reward(call: Call) -> Response:
    """``POST /v1/decisions/{id}/reward``: reward a decision."""
    body = read_object(call.body, {"value", "cost", "final"})
    value = body.get("value")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput('the body must be an object with a number: {"value": 1.0}')
    key, final = retry_key(call, "reward", call.params[0]), is_final(body)
    write = call.engine.prepare_reward(call.application, call.params[0], finite(value), key, body.get("cost"), final)
    try:
        return reply(reward_answer((await call.submit([write]))[0]))
    except Unknown:
        await in_thread(_refuse_list, call.engine, call.application, call.params[0], value)
        raise


def _refuse_list(engine: ServedEngine, app: str, event: str, value: float) -> None:
    """Say how a list is rewarded, if this is the id of one."""
    with contextlib.suppress(Unknown):
        read_list_rewards(shown_by(lambda id: engine.find(app, id)[:2], event), value)


def is_final(body: dict[str, Any], what: str = "final") -> bool:
    """Return whether this reward is final."""
    final = body.get("final", False)
    if not isinstance(final, bool):
        raise InvalidInput(f"{what} must be true or false, got {final!r:.60}")
    return final


def reward_answer(written: Written) -> RewardAnswer:
    """Return the answer to a reward."""
    event = written.row.event
    assert isinstance(event, Reward)
    return RewardAnswer(written.row.id, event.late, event.lesson is not None, written.repeated and not event.late)


async def activate(call: Call) -> Response:
    """``POST /v1/decisions/{id}/activate``: mark a deferred decision as shown."""
    key = retry_key(call, "activate", call.params[0])
    written = (await call.submit([call.engine.prepare_activation(call.application, call.params[0], key)]))[0]
    event = written.row.event
    assert isinstance(event, Activation)
    return reply(RewardAnswer(written.row.id, event.late, event.lesson is not None))


async def find(call: Call) -> Response:
    """``GET /v1/decisions/{id}``: return a journaled decision and its status."""
    return reply(await in_thread(_found, call.engine, call.application, call.params[0]))


def _found(engine: ServedEngine, app: str, id: str) -> dict[str, Any]:
    it, decision, status, given = engine.find_with_rewards(app, id)
    came, row = outcomes(given), Row(status.seq, status.deadline - decision.window, app, "", id, b"")
    entry = Entry(row, decision, status, came, engine.now())
    stands = {"status": entry.standing, "age": entry.record.age, "outcomes": [outcome.to_dict() for outcome in came]}
    return decision_json(it, decision, status) | stands


def decision_json(it: Answer, decision: Decision, status: Status) -> dict[str, Any]:
    """Return a decision with its request and its rewards so far; closed: nothing more of it will be learnt."""
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


ROUTES = [
    Route("POST", "v1/decisions", "decide", decide, takes=DecisionRequest,
          gives={201: DecisionAnswer, 200: DecisionAnswer}),
    Route("GET", "v1/decisions/{}", "read", find, gives={200: schemas.DecisionShown}),
    Route("POST", "v1/decisions/{}/reward", "reward", reward, takes=schemas.RewardRequest, gives={200: RewardAnswer}),
    Route("POST", "v1/decisions/{}/activate", "reward", activate, gives={200: RewardAnswer}),
    Route("POST", "v1/catalogues", "decide", put_catalogue, takes=CatalogueRequest,
          gives={201: schemas.CatalogueShown}),
]  # fmt: skip
