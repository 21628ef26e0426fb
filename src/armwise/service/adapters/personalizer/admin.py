"""Personalizer's configuration, learning settings, model and logs, for its administration clients.

What has no counterpart here is refused with the reason, or kept and told again where it does no harm (see
docs/personalizer.md). Dialect-only values live in the application's setting ``extra``, so in the journal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import msgspec

from armwise.features.encoding.tokens import InvalidInput, read_json
from armwise.service.adapters.personalizer.rank import everywhere
from armwise.service.adapters.personalizer.schemas import (
    LogsProperties,
    ModelProperties,
    PolicyContract,
    ServiceConfiguration,
)
from armwise.service.engine.engine import Engine
from armwise.service.engine.interface import ServedEngine
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import RULES, Change, Creation
from armwise.service.journal.journal import Journal
from armwise.service.log.export_journal import stamp
from armwise.service.web.http import Call, Problem, Response, Route, finite, read_object, reply
from armwise.service.web.offload import in_thread

MAX_MODEL = 64 << 20
_KEPT: dict[str, Any] = {  # told again as they were set: nothing here depends on them
    "modelExportFrequency": "PT1S",
    "logRetentionDays": -1,
    "modelRetrainDays": 0,
    "autoOptimizationFrequency": None,
    "autoOptimizationStartDate": None,
}
_REFUSED = {
    "logMirrorEnabled": "are no mirrors of the log",
    "isAutoOptimizationEnabled": "is no automatic optimization",
}
_IGNORED = {"lastConfigurationEditDate", "latestApprenticeModeMetrics", "logMirrorSasUri"}  # told by the service
_SET = {"rewardWaitTime", "defaultReward", "rewardAggregation", "explorationPercentage", "learningMode"}
_DURATION = re.compile(r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,7})?)S)?)?")


def seconds(text: Any, what: str) -> float:
    """An ISO 8601 duration of days, hours, minutes and seconds."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None or not any(found.groups()):
        raise InvalidInput(f"{what} must be a duration such as PT10M, got {str(text)[:40]!r}")
    return sum(float(n or 0) * unit for n, unit in zip(found.groups(), (86400.0, 3600.0, 60.0, 1.0)))


def duration(value: float) -> str:
    """Seconds as an ISO 8601 duration."""
    whole, rest = divmod(round(value, 3), 60)
    days, minutes = divmod(int(whole), 1440)
    hours, minutes = divmod(minutes, 60)
    clock = "".join(f"{n:g}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (round(rest, 3), "S")) if n)
    return "P" + (f"{days}D" if days else "") + (f"T{clock}" if clock or not days else "")


# ---------------------------------------------------------------------- configuration


def configuration(engine: ServedEngine, app: str) -> dict[str, Any]:
    """The service configuration as the clients know it."""
    model = engine.model(app)
    settings = model.settings
    kept = _KEPT | settings.extra.get("configuration", {})
    whole = {
        "rewardWaitTime": duration(settings.window),
        "defaultReward": settings.default,
        "rewardAggregation": settings.rule,
        "explorationPercentage": _exploration(model.agent),
        "learningMode": "Apprentice" if settings.apprentice else "Online",
        "logMirrorEnabled": False,
        "isAutoOptimizationEnabled": False,
        **kept,
    }
    return {name: value for name, value in whole.items() if value is not None}


def _exploration(agent: Any) -> float:
    epsilon = getattr(agent, "epsilon", 0.0)
    return float(epsilon) if isinstance(epsilon, (int, float)) else 0.0


async def get_configuration(call: Call) -> Response:
    """``GET configurations/service``."""
    return reply(configuration(call.engine, call.application))


async def put_configuration(call: Call) -> Response:
    """``PUT configurations/service``: in force when it is answered; what is left out stays as it is."""
    sent = read_object(call.body, _SET | _IGNORED | set(_KEPT) | set(_REFUSED))
    return reply(await in_thread(_configure, call.engine, call.application, sent))


def _configure(engine: ServedEngine, app: str, sent: dict[str, Any]) -> dict[str, Any]:
    with engine.changing:
        now, changes = configuration(engine, app), read_configuration(sent)
        new = {name: value for name, value in sent.items() if value is not None and value != now.get(name)}
        if "rewardWaitTime" in new and not 5.0 <= changes["window"] <= 172800.0:
            raise _invalid("rewardWaitTime must lie between 5 seconds and 2 days")
        if "explorationPercentage" not in new:
            changes.pop("epsilon", None)  # an agent that does not explore so would refuse it
        elif not hasattr(agent := engine.model(app).agent, "epsilon"):
            raise _invalid(f"explorationPercentage cannot be set: {type(agent).__name__} has no epsilon")
        if "default" in changes:
            try:
                engine.model(app).check_reward(changes["default"])
            except InvalidInput as error:
                raise _invalid(f"defaultReward: {error}") from None
        extra = engine.model(app).settings.extra
        kept = extra.get("configuration", {}) | {name: new[name] for name in _KEPT if name in new}
        kept["lastConfigurationEditDate"] = stamp(engine.now())
        try:
            engine.configure(app, Change(**changes, extra=extra | {"configuration": kept}))
        except InvalidInput as error:
            raise _invalid(str(error)) from None
        return configuration(engine, app)


def read_configuration(sent: dict[str, Any]) -> dict[str, Any]:
    """The settings that a configuration asks for; Problem if one cannot be had."""
    changes: dict[str, Any] = {}
    given = {name: value for name, value in sent.items() if value is not None}
    for name, what in _REFUSED.items():
        if given.get(name, False) is not False:
            raise _invalid(f"{name} must be false: there {what} here")
    if "rewardWaitTime" in given:
        changes["window"] = seconds(given["rewardWaitTime"], "rewardWaitTime")
    if "defaultReward" in given:
        changes["default"] = finite(given["defaultReward"], "defaultReward")
        if not -1.0 <= changes["default"] <= 1.0:
            raise _invalid("defaultReward must lie in [-1, 1]")
    if "rewardAggregation" in given:
        changes["rule"] = str(given["rewardAggregation"]).lower()
        if changes["rule"] not in RULES:  # Personalizer's two, and the others, which its GET may say
            raise _invalid(f"rewardAggregation must be {', '.join(RULES[:-1])} or {RULES[-1]}")
    if "explorationPercentage" in given:
        changes["epsilon"] = finite(given["explorationPercentage"], "explorationPercentage")
        if not 0.0 <= changes["epsilon"] <= 1.0:
            raise _invalid(f"explorationPercentage must lie in [0, 1], where 0.2 is 20 %, got {changes['epsilon']}")
    if "learningMode" in given:
        if given["learningMode"] not in ("Online", "Apprentice"):
            raise _invalid("learningMode must be Online or Apprentice")
        changes["apprentice"] = given["learningMode"] == "Apprentice"
    for name in ("modelExportFrequency", "autoOptimizationFrequency"):
        if name in given:
            seconds(given[name], name)
    for name, lowest in (("logRetentionDays", -1), ("modelRetrainDays", 0)):
        if name in given and not (type(given[name]) is int and lowest <= given[name] <= 36500):
            raise _invalid(f"{name} must be a whole number of days from {lowest} to 36500")
    if not isinstance(given.get("autoOptimizationStartDate", ""), str):
        raise _invalid("autoOptimizationStartDate must be a date")
    return changes


def _invalid(message: str) -> Problem:
    return Problem(400, "InvalidServiceConfiguration", message)


# ---------------------------------------------------------------------- learning settings


def policy(engine: ServedEngine, app: str) -> dict[str, str]:
    """The learning settings: a name, and the agent's description as JSON, as a configuration file has it."""
    own: dict[str, str] = engine.model(app).settings.extra.get("policy", {})
    return own or {"name": app, "arguments": msgspec.json.encode(engine.creation(app).agent).decode()}


async def get_policy(call: Call) -> Response:
    """``GET configurations/policy``."""
    return reply(policy(call.engine, call.application))


async def put_policy(call: Call) -> Response:
    """``PUT configurations/policy``: another agent; its model begins anew."""
    sent = read_policy(read_object(call.body, {"name", "arguments"}))
    await in_thread(use_policy, call.engine, call.application, sent)
    return reply(policy(call.engine, call.application))


async def delete_policy(call: Call) -> Response:
    """``DELETE configurations/policy``: back to the configured agent."""
    await in_thread(use_policy, call.engine, call.application, None)
    return reply(policy(call.engine, call.application))


def read_policy(sent: Any) -> dict[str, str]:
    """Learning settings, checked as far as they can be without an application."""
    if not isinstance(sent, dict) or not all(isinstance(sent.get(name), str) for name in ("name", "arguments")):
        raise Problem(400, "InvalidPolicyContract", "learning settings have a name and arguments, both strings")
    if not 1 <= len(sent["name"]) <= 256:
        raise Problem(400, "InvalidPolicyContract", "name must have 1 to 256 characters")
    agent_of(sent["arguments"])
    return {"name": sent["name"], "arguments": sent["arguments"]}


def agent_of(arguments: str) -> dict[str, Any]:
    """The agent that learning settings describe."""
    try:
        agent = read_json(arguments.encode())
    except InvalidInput:
        agent = None
    if not isinstance(agent, dict) or "class" not in agent:
        example = '{"class": "LinUCB", "alpha": 0.5}'
        raise Problem(400, "InvalidPolicyConfiguration", f"arguments must describe an agent in JSON, such as {example}")
    return agent


def use_policy(engine: ServedEngine, app: str, new: dict[str, str] | None) -> None:
    """Put learning settings in force (None: the configured ones); nothing happens if they already are."""
    with engine.changing:
        extra = engine.model(app).settings.extra
        if extra.get("policy") == new:
            return
        changed = {name: value for name, value in extra.items() if name != "policy"} | ({"policy": new} if new else {})
        creation = anew(engine, app, None if new is None else agent_of(new["arguments"]), changed)
        try:
            engine.reset(app, creation)
        except (InvalidInput, MemoryError, OverflowError) as error:
            raise Problem(400, "InvalidPolicyConfiguration", str(error)) from None


def anew(engine: ServedEngine, app: str, agent: dict[str, Any] | None, extra: dict[str, Any]) -> Creation:
    """The event from which an application begins anew, with its current settings."""
    made = engine.creation(app)
    settings = engine.model(app).settings.changed(Change(extra=extra))
    return msgspec.structs.replace(made, agent=agent or made.agent, settings=settings)


# ---------------------------------------------------------------------- model


async def get_model(call: Call) -> Response:
    """``GET model``: the model, for ``PUT`` here or elsewhere."""
    return Response(200, await in_thread(call.engine.export, call.application), b"application/octet-stream")


async def put_model(call: Call) -> Response:
    """``PUT model``: a model that ``GET`` gave takes the place of this one."""
    try:
        await in_thread(call.engine.replace, call.application, call.body)
    except InvalidInput as error:
        raise Problem(400, "InvalidModelImportFormat", str(error)) from None
    return Response(204)


async def delete_model(call: Call) -> Response:
    """``DELETE model``: it begins anew, with its learning settings and configuration as they are."""
    await in_thread(_forget_model, call.engine, call.application)
    return Response(204)


def _forget_model(engine: ServedEngine, app: str) -> None:
    with engine.changing:
        model = engine.model(app)
        agent = dict(agent_of(policy(engine, app)["arguments"]))
        now = getattr(model.agent, "epsilon", None)  # an imported model may have none
        if isinstance(agent.get("epsilon"), (int, float)) and isinstance(now, (int, float)):
            agent["epsilon"] = float(now)  # it may have been configured since
        engine.reset(app, anew(engine, app, agent, model.settings.extra))


async def model_properties(call: Call) -> Response:
    """``GET model/properties``: when it began, and when it last learnt."""

    def look(journal: Journal, version: int) -> tuple[int, int]:
        sql = "SELECT time FROM events WHERE app = ? AND kind IN ('create', 'import') ORDER BY seq DESC LIMIT 1"
        [(created,)] = journal.connection.execute(sql, (call.application,))
        try:
            changed = journal.row(version).time
        except Unknown:  # compacted away
            changed = created
        return created, max(created, changed)

    def whole() -> dict[str, str]:
        found = []
        for each in call.engine.each:
            version = each.model(call.application).version
            found.append(reading(each, functools.partial(look, version=version)))
        created, changed = zip(*found)
        return {"creationTime": stamp(max(created)), "lastModifiedTime": stamp(max(changed))}

    return reply(await in_thread(whole))


# ---------------------------------------------------------------------- logs


async def log_properties(call: Call) -> Response:
    """``GET logs/properties``: from when to when there are decisions."""

    def look(journal: Journal, after: int) -> list[Any]:
        sql = "SELECT time FROM events WHERE seq > ? AND app = ? AND kind = 'decision' ORDER BY seq {} LIMIT 1"
        ends = [journal.connection.execute(sql.format(way), (after, call.application)) for way in ("ASC", "DESC")]
        return [rows[0][0] for rows in ends if rows]

    def whole() -> list[Any]:
        ends = []
        for each in call.engine.each:
            after = each.forgotten(call.application)
            ends += reading(each, functools.partial(look, after=after))
        return ends

    ends = await in_thread(whole)
    if not ends:
        raise Problem(404, "LogsPropertiesNotFound", "there are no logs")
    return reply({"dateRange": {"from": stamp(min(ends)), "to": stamp(max(ends))}})


async def delete_logs(call: Call) -> Response:
    """``DELETE logs``: nothing tells of them any more; ``armwise journal compact`` takes the bytes."""
    await in_thread(_forget_logs, call.engine, call.application)
    return Response(204)


def _forget_logs(engine: ServedEngine, app: str) -> None:
    with engine.changing:
        for each in engine.each:  # which counts events by itself
            each.configure(app, Change(forgotten=reading(each, lambda journal: journal.last()[0])))
        engine.merge()


def reading(engine: Engine, look: Callable[[Journal], Any]) -> Any:
    """Look into the journal with a session of its own: what scans it keeps nobody waiting."""
    journal = engine.open_journal()
    try:
        return look(journal)
    finally:
        journal.connection.close()


ROUTES = everywhere(
    [
        Route("GET", "configurations/service", "read", get_configuration, gives={200: ServiceConfiguration}),
        Route("PUT", "configurations/service", "admin", put_configuration, takes=ServiceConfiguration,
              gives={200: ServiceConfiguration}),
        Route("GET", "configurations/policy", "read", get_policy, gives={200: PolicyContract}),
        Route("PUT", "configurations/policy", "admin", put_policy, takes=PolicyContract, gives={200: PolicyContract}),
        Route("DELETE", "configurations/policy", "admin", delete_policy, gives={200: PolicyContract}),
        Route("GET", "model", "read", get_model, gives={200: "application/octet-stream"}),
        Route("PUT", "model", "admin", put_model, MAX_MODEL, takes="application/octet-stream", gives={204: None}),
        Route("DELETE", "model", "admin", delete_model, gives={204: None}),
        Route("GET", "model/properties", "read", model_properties, gives={200: ModelProperties}),
        Route("GET", "logs/properties", "read", log_properties, gives={200: LogsProperties}),
        Route("DELETE", "logs", "admin", delete_logs, gives={204: None}),
    ]
)  # fmt: skip
