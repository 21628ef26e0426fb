"""Azure AI Personalizer's rank, reward and activate, so that its official clients work unmodified.

Three dialects share one table of routes: ``/personalizer/v1.0``, ``/personalizer/v1.1-preview.3`` and
``/personalizer`` with ``api-version`` in the query. They differ only in how evaluations are asked for and told.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from armwise.features.encoding.arms import ArmColumns, read_arms
from armwise.features.encoding.tokens import InvalidInput, part, refuse_twice, why
from armwise.service.engine.requests.draw import Answer, answer
from armwise.service.journal.writes import Write
from armwise.service.web import admission
from armwise.service.web.http import Call, Handler, Problem, Response, Route, finite, read_object, reply
from armwise.service.web.v1.schemas import schema_only

MAX_ACTIONS = 50
EARLY = ("personalizer/v1.0", "personalizer/v1.1-preview.3")
DATED = ("personalizer",)
API_VERSIONS = ("2022-09-01-preview",)  # of the last prefix, whose version is in the query

_ACTION: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f]*$"},
        "features": {"type": "array", "items": {"$ref": "#/components/schemas/Features"}},
    },
}
Actions = Annotated[list[Annotated[msgspec.Raw, schema_only(**_ACTION)]], schema_only(minItems=1, maxItems=MAX_ACTIONS)]
RawContext = Annotated[
    msgspec.Raw,
    schema_only(anyOf=[{"type": "array", "items": {"$ref": "#/components/schemas/Features"}}, {"type": "null"}]),
]
Optional = msgspec.UnsetType | None  # absent or null, which mean the same here


class RankRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The request of ``rank``."""

    actions: Actions
    contextFeatures: RawContext | msgspec.UnsetType = msgspec.UNSET
    excludedActions: list[str] | Optional = msgspec.UNSET
    eventId: str | Optional = msgspec.UNSET
    deferActivation: bool | Optional = msgspec.UNSET


class RankedAction(msgspec.Struct):
    """An action and the probability it had."""

    id: str
    probability: float


class RankAnswer(msgspec.Struct):
    """The answer of ``rank``."""

    ranking: list[RankedAction]
    eventId: str
    rewardActionId: str


class RankReward(msgspec.Struct, forbid_unknown_fields=True):
    """A reward in [-1, 1]."""

    value: Annotated[float, schema_only(minimum=-1, maximum=1)]


_decode = msgspec.json.Decoder(RankRequest)
_CODES = {  # what the own API says, as the clients' lists of codes have it
    "BadArgument": "BadRequest",
    "NotFound": "ResourceNotFound",
    "TooLarge": "PayloadSizeExceeded",
    "InternalError": "InternalServerError",
}


async def rank(call: Call) -> Response:
    """``POST rank``: 201 with the ranking, the event's id and the action to show."""
    apart = admission.large(call.body)
    asked = await admission.aside(apart, lambda: read(call.body))
    apart = admission.heavy(call, [part(asked.context, "c")], asked.arms.tail) or apart
    write = await admission.aside(apart, lambda: draw(call, asked))
    it = answer((await call.submit([write]))[0], write)
    return reply({"ranking": ranking(it, asked.excluded), "eventId": it.id, "rewardActionId": it.arm}, 201)


class RankCall(NamedTuple):
    """A request to rank, read; ``excluded`` are those of the actions (others need no excluding)."""

    context: bytes
    arms: ArmColumns
    excluded: list[str]
    sent: RankRequest


def read(body: bytes) -> RankCall:
    """Read the request from a body, or raise InvalidInput."""
    sent: RankRequest = decoded(_decode, body)
    context, arms = read_actions(body, sent)
    return RankCall(context, arms, [id for id in sent.excludedActions or () if id in arms.ids], sent)


def draw(call: Call, asked: RankCall) -> Write:
    """The decision that ``rank`` asks for, not yet durable."""
    sent = asked.sent
    return call.engine.prepare(
        call.application, asked.context, asked.arms, id=sent.eventId if isinstance(sent.eventId, str) else None,
        excluded=asked.excluded, deferred=sent.deferActivation is True, request=retry_key(call, "rank"),
        by=call.key.name,
    )  # fmt: skip


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """A request as its struct, or InvalidInput."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, body)}") from None


def read_actions(body: bytes, asked: Any, further: int = 0) -> tuple[bytes, ArmColumns]:
    """The context and the actions of a rank request, as the engine takes them.

    ``further`` keys of the body are accounted for elsewhere; if then the count is not right, one appears twice.
    """
    unset = asked.contextFeatures is msgspec.UNSET or bytes(asked.contextFeatures) == b"null"
    context = b"[]" if unset else bytes(asked.contextFeatures)
    arms = [bytes(arm) for arm in asked.actions]
    if not 1 <= len(arms) <= MAX_ACTIONS:
        raise InvalidInput(f"actions must have 1 to {MAX_ACTIONS} elements, got {len(arms)}")
    if not all(arm.startswith(b"{") for arm in arms):
        raise InvalidInput("an action must be an object with id and features")
    read = read_arms(arms)
    present = sum(getattr(asked, name) is not msgspec.UNSET for name in asked.__struct_fields__)
    refuse_twice("the body", body, present + further + part(context, "c").n_keys + read.n_keys)
    return context, read


def ranking(it: Answer, excluded: Collection[str]) -> list[dict[str, Any]]:
    """All actions: the one to show first, the others by falling probability; excluded ones stay where they stood."""
    ranked: list[dict[str, Any]] = [{"id": id, "probability": p} for id, p in it.probabilities]
    places = [i for i, each in enumerate(ranked) if each["id"] not in excluded]
    order = sorted((ranked[i] for i in places), key=lambda each: (each["id"] != it.arm, -each["probability"]))
    for place, each in zip(places, order):
        ranked[place] = each
    return ranked


def retry_key(call: Call, what: str) -> str:
    """The client's request id, for one operation: a whole visit may share an id, a retry must."""
    return f"{what} {call.request_id}" if call.request_id else ""


async def reward(call: Call) -> Response:
    """``POST events/{id}/reward``: 204 when it is durable."""
    value = read_reward(read_object(call.body, {"value"}).get("value"))
    id = call.params[0]
    await call.submit([call.engine.prepare_reward(call.application, id, value, retry_key(call, f"reward {id}"))])
    return Response(204)


def read_reward(value: Any) -> float:
    """A reward in [-1, 1]."""
    number = finite(value, "value")
    if not -1.0 <= number <= 1.0:
        raise Problem(400, "InvalidRewardRequest", f"value must lie in [-1, 1], got {number}")
    return number


async def activate(call: Call) -> Response:
    """``POST events/{id}/activate``: 204 when it is durable."""
    id = call.params[0]
    await call.submit([call.engine.prepare_activation(call.application, id, retry_key(call, f"activate {id}"))])
    return Response(204)


def recoded(problem: Problem) -> Problem:
    """A problem with the code that the clients know."""
    problem.code = _CODES.get(problem.code, problem.code)
    return problem


def versioned(handler: Handler) -> Handler:
    """A handler that refuses an ``api-version`` which is not spoken here."""

    @functools.wraps(handler)
    async def checked(call: Call) -> Response:
        version = call.query.get("api-version", API_VERSIONS[0])
        if version not in API_VERSIONS:
            raise InvalidInput(f"api-version must be {API_VERSIONS[0]}, got {version[:40]!r}")
        return await handler(call)

    return checked


def everywhere(routes: Sequence[Route], prefixes: Sequence[str] = (*EARLY, *DATED)) -> list[Route]:
    """Routes under each of the prefixes."""
    return [
        route._replace(
            path=f"{prefix}/{route.path}",
            handler=versioned(route.handler) if prefix in DATED else route.handler,
        )
        for prefix in prefixes
        for route in routes
    ]


ROUTES = everywhere(
    [
        Route("POST", "rank", "decide", rank, takes=RankRequest, gives={201: RankAnswer}),
        Route("POST", "events/{}/reward", "reward", reward, takes=RankReward, gives={204: None}),
        Route("POST", "events/{}/activate", "reward", activate, gives={204: None}),
    ]
)
