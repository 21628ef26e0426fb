"""Named versions of an application's model over HTTP: list and compare, make, share, promote, roll back, remove."""

from __future__ import annotations

from typing import Any

import msgspec

from armwise.features.encoding.tokens import InvalidInput, why
from armwise.service.engine import rollout
from armwise.service.web.http import Call, Response, Route, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.schemas import Name, Share


class UpliftInterval(msgspec.Struct):
    """The difference in reward per decision to the leading version, on ``n`` decisions older than the
    ``horizon`` in seconds (none: the whole window), rewarded or not, by the rewards within it.

    The interval is valid at all times at once with probability ``level``, also while the versions learn.
    """

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    horizon: float | None = None


class VersionShown(msgspec.Struct, omit_defaults=True):
    """A version, the leading one first; ``unanswered``: judged decisions without a distribution of this version;
    ``learns``: when, as the setting ``learn``.
    """

    name: str
    agent: str
    since: int
    lessons: int
    refused: int
    share: float
    leads: bool
    learns: str = ""
    unanswered: int = 0
    uplift: UpliftInterval | None = None
    broken: int = 0


class VersionList(msgspec.Struct):
    """The answer of ``GET /v1/versions``."""

    versions: list[VersionShown]


class VersionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/versions``; defaults are the application's settings."""

    name: Name
    share: Share = 0.0
    agent: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    features: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    seed: int | msgspec.UnsetType = msgspec.UNSET


class ShareRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``PATCH /v1/versions/{name}``."""

    share: Share


async def listed(call: Call) -> Response:
    """``GET /v1/versions``: list versions, each with its uplift over the leading one."""
    return reply(await _all(call))


async def _all(call: Call) -> VersionList:
    found = await in_thread(lambda: call.service.watch(call.application).versions())
    return msgspec.convert({"versions": found}, VersionList)


async def add(call: Call) -> Response:
    """``POST /v1/versions``: train a version on the journal; with a share it makes that part of the decisions."""
    sent = _read(call.body, VersionRequest)
    made = await in_thread(call.engine.creation, call.application)
    said = {name: getattr(sent, name) for name in ("agent", "features", "seed")}
    changed = {name: value for name, value in said.items() if value is not msgspec.UNSET}
    creation = msgspec.structs.replace(made, **changed)
    await in_thread(rollout.add_version, call.engine, call.application, sent.name, creation, sent.share)
    return reply(await _all(call), 201)


async def share(call: Call) -> Response:
    """``PATCH /v1/versions/{name}``: set the share of decisions that it makes; 0 is shadow mode."""
    sent = _read(call.body, ShareRequest)
    await in_thread(rollout.share_version, call.engine, call.application, call.params[0], sent.share)
    return reply(await _all(call))


async def promote(call: Call) -> Response:
    """``POST /v1/versions/{name}/promote``: make it the leading version; the previous leader is kept."""
    await in_thread(rollout.promote, call.engine, call.application, call.params[0])
    return reply(await _all(call))


async def roll_back(call: Call) -> Response:
    """``POST /v1/rollback``: undo the last promotion."""
    await in_thread(rollout.roll_back, call.engine, call.application)
    return reply(await _all(call))


async def remove(call: Call) -> Response:
    """``DELETE /v1/versions/{name}``: delete a version that does not lead."""
    await in_thread(rollout.remove_version, call.engine, call.application, call.params[0])
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
