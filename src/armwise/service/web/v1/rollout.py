"""Named versions of an application's model over HTTP: list and compare, make, share, promote, roll back, remove."""

from __future__ import annotations

from typing import Any

import msgspec

from armwise.features.encoding.tokens import InvalidInput, why
from armwise.service.engine import roster
from armwise.service.web.http import Call, Response, Route, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.schemas import Name, Share


class UpliftInterval(msgspec.Struct):
    """How much more a version earns per decision than the one that leads: on ``n`` decisions that are older than the
    ``horizon``, clicked or not, by what came within it (seconds; none: the whole window).

    The ends hold at all times at once with the probability ``level``, also while the versions learn.

    >>> UpliftInterval(0.02, -0.01, 0.05, 4000).level
    0.95
    """

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    horizon: float | None = None


class VersionShown(msgspec.Struct, omit_defaults=True):
    """A version: the one that leads first; ``unanswered`` are judged decisions that it had no distribution for.

    >>> VersionShown("v1", "LinUCB()", 1, 30, 0, 1.0, True).uplift is None
    True
    """

    name: str
    agent: str
    since: int
    lessons: int
    refused: int
    share: float
    leads: bool
    unanswered: int = 0
    uplift: UpliftInterval | None = None
    broken: int = 0


class VersionList(msgspec.Struct):
    """What ``GET /v1/versions`` answers.

    >>> VersionList([]).versions
    []
    """

    versions: list[VersionShown]


class VersionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What ``POST /v1/versions`` takes; what is not said is as the application was made.

    >>> VersionRequest("bold").share
    0.0
    """

    name: Name
    share: Share = 0.0
    agent: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    features: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    seed: int | msgspec.UnsetType = msgspec.UNSET


class ShareRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What ``PATCH /v1/versions/{name}`` takes.

    >>> ShareRequest(0.1).share
    0.1
    """

    share: Share


async def listed(call: Call) -> Response:
    """``GET /v1/versions``: all of them, each with its uplift over the one that leads."""
    return reply(await _all(call))


async def _all(call: Call) -> VersionList:
    found = await in_thread(lambda: call.service.watch(call.application).versions())
    return msgspec.convert({"versions": found}, VersionList)


async def add(call: Call) -> Response:
    """``POST /v1/versions``: train one on the journal; with a share it makes that part of the decisions."""
    sent = _read(call.body, VersionRequest)
    made = await in_thread(call.engine.creation, call.application)
    said = {name: getattr(sent, name) for name in ("agent", "features", "seed")}
    changed = {name: value for name, value in said.items() if value is not msgspec.UNSET}
    creation = msgspec.structs.replace(made, **changed)
    await in_thread(roster.add_version, call.engine, call.application, sent.name, creation, sent.share)
    return reply(await _all(call), 201)


async def share(call: Call) -> Response:
    """``PATCH /v1/versions/{name}``: the share of the decisions that it makes; 0: it is only asked (shadow mode)."""
    sent = _read(call.body, ShareRequest)
    await in_thread(roster.share_version, call.engine, call.application, call.params[0], sent.share)
    return reply(await _all(call))


async def promote(call: Call) -> Response:
    """``POST /v1/versions/{name}/promote``: it leads from now on; the one that led stays beside it."""
    await in_thread(roster.promote, call.engine, call.application, call.params[0])
    return reply(await _all(call))


async def roll_back(call: Call) -> Response:
    """``POST /v1/rollback``: the version leads again that led before the last promotion."""
    await in_thread(roster.roll_back, call.engine, call.application)
    return reply(await _all(call))


async def remove(call: Call) -> Response:
    """``DELETE /v1/versions/{name}``: one that does not lead."""
    await in_thread(roster.remove_version, call.engine, call.application, call.params[0])
    return Response(204)


def _read(body: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, body)}") from None


ROUTES = [
    Route("GET", "v1/versions", "read", listed, gives={200: VersionList}),
    Route("POST", "v1/versions", "admin", add, takes=VersionRequest, gives={201: VersionList}),
    Route("PATCH", "v1/versions/{}", "admin", share, takes=ShareRequest, gives={200: VersionList}),
    Route("DELETE", "v1/versions/{}", "admin", remove, gives={204: None}),
    Route("POST", "v1/versions/{}/promote", "admin", promote, gives={200: VersionList}),
    Route("POST", "v1/rollback", "admin", roll_back, gives={200: VersionList}),
]
