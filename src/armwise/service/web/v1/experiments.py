"""Experiments over HTTP: make, list, assign, expose, report outcomes, read the verdict and the report, change, erase.

Each experiment is an application of its name: a key for that application may use it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from armwise.features.encoding.tokens import InvalidInput, why
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import MAX_BATCH, HostedExperiment, create, definitions
from armwise.service.experiments.report import report_data, report_html
from armwise.service.web.http import Call, Problem, Response, Route, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.schemas import ErasureAnswer, Name


class ExperimentRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The definition of an experiment; see ``aw.Experiment``."""

    arms: list[str] | dict[str, Any]
    metrics: Any = "outcome"
    split: dict[str, float] | list[float] | None = None
    risk: float = 0.05
    planned: float = 10_000
    start: int = 500
    ramp: float = 1.0
    holdout: float = 0.0
    exposure: bool = False
    eligible: dict[str, Any] | None = None
    forced: dict[str, str] | None = None
    mode: str = "split"
    least: float | None = None


class ExperimentChange(msgspec.Struct, forbid_unknown_fields=True):
    """A change: an arm to stop with ("": the verdict's), a mode, a ramp, a split or a tester's arm; who and why."""

    stop: str | None = None
    mode: str | None = None
    ramp: float | None = None
    split: dict[str, float] | list[float] | None = None
    force: dict[str, str | None] | None = None
    by: str = ""
    why: str = ""


class ExperimentShown(msgspec.Struct):
    """Settings, state, and the log of changes."""

    experiment: dict[str, Any]


class ExperimentList(msgspec.Struct):
    """The experiments that the key may see."""

    experiments: list[dict[str, Any]]


class UnitRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A unit and its context."""

    unit: Name
    context: dict[str, Any] | None = None


class AssignmentsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Units to assign, at most 1,000."""

    units: list[UnitRequest]


class AssignmentShown(msgspec.Struct):
    """A unit's arm, the reason, its probability, and whether the unit is counted."""

    unit: str
    arm: str
    reason: str
    probability: float
    counted: bool


class AssignmentsAnswer(msgspec.Struct):
    """The units' arms, in their order."""

    assignments: list[AssignmentShown]


class ExposuresRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Units that saw their arms, at most 1,000."""

    units: list[Name]


class ExposuresAnswer(msgspec.Struct):
    """Whether each is in the experiment."""

    exposed: list[bool]


class UnitErasure(msgspec.Struct, forbid_unknown_fields=True):
    """The unit to erase."""

    unit: Name


class OutcomeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """An outcome; with an ``id`` it counts once, however often it is sent."""

    unit: Name
    value: float = 1.0
    metric: str | None = None
    id: Name | None = None


class OutcomesRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Outcomes, at most 1,000."""

    outcomes: list[OutcomeRequest]


class ExperimentOutcomeShown(msgspec.Struct):
    """The status of an outcome: taken, repeated, late, or not in the experiment."""

    unit: str
    metric: str
    status: str


class OutcomesAnswer(msgspec.Struct):
    """The status of each outcome, in order."""

    outcomes: list[ExperimentOutcomeShown]


class ExperimentVerdictShown(msgspec.Struct):
    """The verdict as ``to_dict`` of ``aw.offline.ExperimentVerdict`` has it."""

    verdict: dict[str, Any]


def _experiment(call: Call, role: str) -> HostedExperiment:
    """Return the experiment of the path if the key may use it."""
    name = call.application = call.params[0]
    if not call.key.may(role, name):
        raise Problem(403, "Forbidden", f"this key may not {role} for {name}")
    found: HostedExperiment = call.service.experiment(name)
    return found


async def _done(work: Any, *args: Any) -> Any:
    """Run in a thread; answer invalid input with 400."""
    try:
        return await in_thread(work, *args)
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def _read(body: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, body)}") from None


def _few(items: list[Any]) -> list[Any]:
    if not 0 < len(items) <= MAX_BATCH:
        raise InvalidInput(f"send 1 to {MAX_BATCH} at a time, got {len(items)}")
    return items


async def put_experiment(call: Call) -> Response:
    """``PUT /v1/experiments/{name}``: create an experiment; an existing one must have the same arms and metrics."""
    name = call.application = call.params[0]
    if not call.key.may("admin", name):
        raise Problem(403, "Forbidden", f"this key may not make {name}")
    sent = _read(call.body, ExperimentRequest)

    def made() -> dict[str, Any]:
        told = {field: getattr(sent, field) for field in sent.__struct_fields__}
        definition = Definition.read(told.pop("arms"), told.pop("metrics"), **told)
        return create(call.engine, name, definition).to_dict()

    return reply(ExperimentShown(await _done(made)))


async def list_experiments(call: Call) -> Response:
    """``GET /v1/experiments``: list the experiments that the key may read."""

    def shown() -> list[dict[str, Any]]:
        names = [name for name in sorted(definitions(call.engine)) if call.key.may("read", name)]
        return [call.service.experiment(name).to_dict() for name in names]

    return reply(ExperimentList(await in_thread(shown)))


async def show_experiment(call: Call) -> Response:
    """``GET /v1/experiments/{name}``: its settings, its state, and its log."""
    return reply(ExperimentShown(_experiment(call, "read").to_dict()))


async def change_experiment(call: Call) -> Response:
    """``PATCH /v1/experiments/{name}``: stop it, or change its mode, ramp, split or a tester's arm."""
    experiment, sent = _experiment(call, "admin"), _read(call.body, ExperimentChange)

    def change() -> dict[str, Any]:
        by, force = sent.by or call.key.name, sent.force or {}
        experiment.check_change(sent.stop or None, sent.mode, sent.ramp, sent.split, force)
        if sent.stop is not None:
            experiment.stop(sent.stop or None, by, sent.why)
        if sent.mode is not None:
            experiment.mode(sent.mode, by, sent.why)
        if sent.ramp is not None:
            experiment.ramp(sent.ramp, by, sent.why)
        if sent.split is not None:
            experiment.split(sent.split, by, sent.why)
        for unit, arm in force.items():
            experiment.force(unit, arm, by, sent.why)
        return experiment.to_dict()

    return reply(ExperimentShown(await _done(change)))


async def assign(call: Call) -> Response:
    """``POST /v1/experiments/{name}/assignments``: the arms of units; a retry gets the same."""
    experiment, sent = _experiment(call, "decide"), _read(call.body, AssignmentsRequest)
    units = [(each.unit, each.context) for each in _few(sent.units)]
    found = await _done(experiment.assign, units)
    return reply({"assignments": [each.to_dict() for each in found]})


async def expose(call: Call) -> Response:
    """``POST /v1/experiments/{name}/exposures``: count units that saw their arms, from now on."""
    experiment, sent = _experiment(call, "decide"), _read(call.body, ExposuresRequest)
    return reply(ExposuresAnswer(await _done(experiment.expose, _few(sent.units))))


async def outcomes(call: Call) -> Response:
    """``POST /v1/experiments/{name}/outcomes``: outcomes of units."""
    experiment, sent = _experiment(call, "reward"), _read(call.body, OutcomesRequest)
    told = [(each.unit, each.value, each.metric, each.id) for each in _few(sent.outcomes)]
    return reply({"outcomes": await _done(experiment.outcome, told)})


async def verdict(call: Call) -> Response:
    """``GET /v1/experiments/{name}/verdict``: the current verdict."""
    found = await in_thread(_experiment(call, "read").verdict)
    return reply(ExperimentVerdictShown(found.to_dict()))


async def report(call: Call) -> Response:
    """``GET /v1/experiments/{name}/report``: a self-contained page; ``format=json`` returns its data."""
    experiment = _experiment(call, "read")
    kind = call.query.get("format", "html")
    if kind not in ("html", "json"):
        raise InvalidInput(f"format must be html or json, got {kind[:40]!r}")
    if kind == "json":
        return reply(await in_thread(report_data, experiment))
    text = await in_thread(report_html, experiment)
    return Response(200, text.encode(), b"text/html; charset=utf-8")


async def erase_unit(call: Call) -> Response:
    """``POST /v1/experiments/{name}/erasures``: erase a unit's assignment and outcomes."""
    experiment, sent = _experiment(call, "admin"), _read(call.body, UnitErasure)
    return reply(await _done(experiment.erase, sent.unit, call.service.retentions_of_all()))


_AT = "v1/experiments/{}"
ROUTES = [
    Route("GET", "v1/experiments", "read", list_experiments, gives={200: ExperimentList}),
    Route("PUT", _AT, "admin", put_experiment, takes=ExperimentRequest, gives={200: ExperimentShown}),
    Route("GET", _AT, "read", show_experiment, gives={200: ExperimentShown}),
    Route("PATCH", _AT, "admin", change_experiment, takes=ExperimentChange, gives={200: ExperimentShown}),
    Route("POST", f"{_AT}/assignments", "decide", assign, takes=AssignmentsRequest, gives={200: AssignmentsAnswer}),
    Route("POST", f"{_AT}/exposures", "decide", expose, takes=ExposuresRequest, gives={200: ExposuresAnswer}),
    Route("POST", f"{_AT}/outcomes", "reward", outcomes, takes=OutcomesRequest, gives={200: OutcomesAnswer}),
    Route("GET", f"{_AT}/verdict", "read", verdict, gives={200: ExperimentVerdictShown}),
    Route(
        "GET", f"{_AT}/report", "read", report, gives={200: "text/html"}, query={"format": {"enum": ["html", "json"]}}
    ),
    Route("POST", f"{_AT}/erasures", "admin", erase_unit, takes=UnitErasure, gives={200: ErasureAnswer}),
]
