"""Applications over HTTP: list, create, change, delete, and change settings."""

from __future__ import annotations

import msgspec

from armwise.features.encoding.arms import check_id
from armwise.features.encoding.tokens import InvalidInput, why
from armwise.service.engine.application import Application
from armwise.service.engine.interface import ServedEngine
from armwise.service.journal.errors import Conflict
from armwise.service.journal.events import Change
from armwise.service.web.http import Call, Problem, Response, Route, finite, read_object, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1 import schemas
from armwise.service.web.v1.schemas import DecisionAnswer as DecisionAnswer


async def agents(call: Call) -> Response:
    """``GET /v1/agents``: list the applications that the key may read."""
    engine: ServedEngine = call.engine
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
    """``PATCH /v1/settings``: change settings for later decisions."""
    changes = read_object(
        call.body, {"window", "default", "rule", "learn", "apprentice", "drift", "new_arms", "epsilon"}
    )
    for name in ("window", "default", "new_arms", "epsilon"):
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
    """``PUT /v1/apps/{name}``: create an application, or change one created this way; effective in all processes.

    Applications of the configuration file are changed there only: otherwise each source would undo the other's changes.
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
    """``DELETE /v1/apps/{name}``: stop serving an application created by request; its journal is kept."""
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


ROUTES = [
    Route("GET", "v1/agents", "read", agents, gives={200: schemas.Agents}),
    Route("PATCH", "v1/settings", "admin", change_settings, takes=schemas.SettingsChange,
          gives={200: schemas.SettingsShown}),
    Route("PUT", "v1/apps/{}", "admin", put_application, takes=Application, gives={200: schemas.ApplicationShown}),
    Route("DELETE", "v1/apps/{}", "admin", delete_application, gives={204: None}),
]  # fmt: skip
