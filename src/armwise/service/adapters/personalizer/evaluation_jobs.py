"""Personalizer's offline evaluations: what other policies would have earned on the journal (IPS and SNIPS).

Four kinds are judged on the newest decisions, taken by age, rewarded or not: the policy that was online, the baseline
(the action that stood first), one that draws at random, and the learning settings that the request names. The last
learn as they go, from the logged actions in order, and are judged in every round by what they had learnt before it.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import hashlib
import heapq
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from armwise.features.encoding.arms import check_id
from armwise.features.encoding.tokens import InvalidInput
from armwise.offline.logs.cohorts import WHOLE, cohort_of
from armwise.service.adapters.personalizer.admin import agent_of, anew, read_policy, use_policy
from armwise.service.adapters.personalizer.rank import DATED, EARLY, everywhere
from armwise.service.adapters.personalizer.schemas import (
    ChosenPolicy,
    DatedEvaluation,
    DatedEvaluations,
    EvaluationJob,
    EvaluationRequest,
)
from armwise.service.engine.engine import Engine
from armwise.service.engine.interface import ServedEngine
from armwise.service.journal.events import Change
from armwise.service.log.export_journal import Entry, entries, stamp
from armwise.service.log.judge import Distribution, followed, judged, missed
from armwise.service.model.build import build_model
from armwise.service.web.http import Call, Problem, Response, Route, read_object, reply
from armwise.service.web.offload import in_thread

MAX_KEPT = 20  # evaluations of an application: they are part of its settings
MAX_POLICIES = 5
MAX_EVENTS = 100_000  # the newest are taken
_STATUS = {"Succeeded": "completed", "Running": "pending", "Failed": "failed"}  # 2022 and before
_running: set[tuple[int, str, str]] = set()  # engine, application, id


# ---------------------------------------------------------------------- requests


async def create_named(call: Call) -> Response:
    """``PUT evaluations/{id}`` of 2022: 200."""
    record = await in_thread(begin, call.engine, call.application, call.params[0], call.body)
    return reply(shown(record, call))


async def create(call: Call) -> Response:
    """``POST evaluations`` of the versions before: 201, and where to look."""
    retried = call.request_id  # a retry must find what it began
    id = hashlib.blake2b(retried.encode(), digest_size=16).hexdigest() if retried else call.engine.new_id()
    record = await in_thread(begin, call.engine, call.application, id, call.body)
    body = msgspec.json.encode(shown(record, call))
    prefix = f"/apps/{quote(call.application, safe='')}" if call.named else ""
    where = f"{prefix}/{'/'.join(call.path)}/{record['id']}"
    return Response(201, body, headers=((b"location", where.encode()),))


async def find(call: Call) -> Response:
    """``GET evaluations/{id}``."""
    return reply(shown(_record(call), call, whole=True))


async def every(call: Call) -> Response:
    """``GET evaluations``: an array, in 2022 under ``value``."""
    listed = [shown(record, call) for record in evaluations(call.engine, call.application).values()]
    return reply({"value": listed} if _modern(call) else listed)


async def delete(call: Call) -> Response:
    """``DELETE evaluations/{id}``: 204."""
    _record(call)
    await in_thread(_keep, call.engine, call.application, call.params[0], None)
    return Response(204)


async def apply(call: Call) -> Response:
    """``POST configurations/applyFromEvaluation``: put learning settings that were evaluated in force; 204."""
    sent = read_object(call.body, {"evaluationId", "policyName"})
    record = evaluations(call.engine, call.application).get(str(sent.get("evaluationId")))
    if record is None:
        raise Problem(404, "EvaluationNotFound", "there is no such evaluation")
    for chosen in record["policies"]:
        if chosen["name"] == sent.get("policyName"):
            await in_thread(use_policy, call.engine, call.application, chosen)
            return Response(204)
    raise Problem(404, "LearningSettingsNotFound", "the evaluation named no such learning settings")


def _record(call: Call) -> dict[str, Any]:
    record = evaluations(call.engine, call.application).get(call.params[0])
    if record is None:
        raise Problem(404, "EvaluationNotFound", "there is no such evaluation")
    return record


def evaluations(engine: ServedEngine, app: str) -> dict[str, dict[str, Any]]:
    """The evaluations of an application by id."""
    found: dict[str, dict[str, Any]] = engine.model(app).settings.extra.get("evaluations", {})
    if not engine.store.shared:  # one that nobody works on was cut off
        lost = {"status": "Failed", "description": "the service was stopped before it was done"}
        found = {
            id: record | lost if record["status"] == "Running" and (id_of(engine), app, id) not in _running else record
            for id, record in found.items()
        }
    return found


def id_of(engine: ServedEngine) -> int:
    """A key that tells the engines of a process apart."""
    return id(engine)


def _keep(engine: ServedEngine, app: str, id: str, record: dict[str, Any] | None, only_if_there: bool = False) -> None:
    with engine.changing:
        extra = engine.model(app).settings.extra
        found = dict(extra.get("evaluations", {}))
        if record is None:
            found.pop(id, None)
        elif only_if_there and id not in found:
            return  # deleted meanwhile
        elif id not in found and len(found) >= MAX_KEPT:
            raise Problem(400, "OperationNotAllowed", f"{MAX_KEPT} evaluations are kept: delete one first")
        else:
            found[id] = record
        engine.configure(app, Change(extra=extra | {"evaluations": found}))


def _modern(call: Call) -> bool:
    return not call.path[1].startswith("v1")


# ---------------------------------------------------------------------- work


def begin(engine: ServedEngine, app: str, id: str, body: bytes) -> dict[str, Any]:
    """Note an evaluation and begin to work on it; the same id with the same content is one evaluation."""
    sent = read_object(body, {"name", "startTime", "endTime", "policies", "enableOfflineExperimentation"})
    for name in ("name", "startTime", "endTime"):
        if not isinstance(sent.get(name), str):
            raise _invalid(f"{name} must be a string")
    if sent.get("enableOfflineExperimentation"):
        raise _invalid("enableOfflineExperimentation must be false: name the learning settings to compare as policies")
    start, end = moment(sent["startTime"]), moment(sent["endTime"])
    if not start < end:
        raise _invalid("startTime must be before endTime")
    policies = sent.get("policies") or []
    if not isinstance(policies, list) or len(policies) > MAX_POLICIES:
        raise _invalid(f"policies must be a list of at most {MAX_POLICIES}")
    policies = [read_policy(policy) for policy in policies]
    if len({policy["name"] for policy in policies}) != len(policies):
        raise Problem(400, "DuplicateCustomPolicyNames", "two policies have the same name")
    extra = engine.model(app).settings.extra
    for policy in policies:
        try:
            build_model(anew(engine, app, agent_of(policy["arguments"]), extra))
        except (InvalidInput, MemoryError, OverflowError) as error:
            raise Problem(400, "InvalidPolicyConfiguration", f"{policy['name']}: {error}") from None
    check_id("the evaluation's id", id)
    record = {
        "id": id, "name": sent["name"][:256], "startTime": stamp(start), "endTime": stamp(end), "policies": policies,
    }  # fmt: skip
    before = evaluations(engine, app).get(id)
    if before is not None:
        if any(before[name] != value for name, value in record.items()):
            raise Problem(409, "Conflict", f"evaluation {id} was made with other content")
        return before
    record |= {"creationTime": stamp(engine.now()), "status": "Running", "results": []}
    key = id_of(engine), app, id
    _running.add(key)
    try:
        _keep(engine, app, id, record)
    except BaseException:
        _running.discard(key)
        raise
    engine.system.start(_work, "armwise-evaluation", engine, app, record, start, end)
    return record


def _invalid(message: str) -> Problem:
    return Problem(400, "InvalidEvaluationContract", message)


def moment(text: str) -> int:
    """A time in ISO 8601 as milliseconds; UTC unless it says otherwise."""
    try:
        found = datetime.datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=datetime.UTC)
        return min(max(round(found.timestamp() * 1000), 0), 253402300799000)
    except (ValueError, OverflowError):
        raise _invalid(f"{text[:40]!r} is not a time such as 2026-01-31T12:00:00Z") from None


def _work(engine: ServedEngine, app: str, record: dict[str, Any], start: int, end: int) -> None:
    try:
        with engine.evaluating:
            found = measure(engine, app, record["policies"], start, end)
    except Exception as error:
        found = {"status": "Failed", "description": f"{type(error).__name__}: {error}"[:1000]}
    try:
        _keep(engine, app, record["id"], record | found, only_if_there=True)
    except Exception:  # the service is stopping: whoever asks is told that it was cut off
        pass
    finally:
        _running.discard((id_of(engine), app, record["id"]))


def logged(engine: ServedEngine, app: str, start: int, end: int) -> Iterator[Entry]:
    """The decisions of a time that were shown, the oldest first, from every database that has some."""
    with contextlib.ExitStack() as sessions:

        def found(each: Engine) -> Iterator[Entry]:
            journal = each.open_journal()
            sessions.callback(journal.connection.close)
            for entry in entries(journal, app, each.forgotten(app), each.now()):
                if start <= entry.row.time <= end and entry.status.active:
                    yield entry

        yield from heapq.merge(*map(found, engine.each), key=lambda entry: entry.row.time)


def measure(engine: ServedEngine, app: str, policies: list[dict[str, str]], start: int, end: int) -> dict[str, Any]:
    """Judge all policies on the decisions of a time, by age; status, description and results."""
    extra = engine.model(app).settings.extra
    newest: collections.deque[Entry] = collections.deque(maxlen=MAX_EVENTS)
    n = 0
    for each in logged(engine, app, start, end):
        newest.append(each)
        n += 1
    records = [each.record for each in newest]
    chosen = cohort_of(records)
    if not chosen.rows.any():
        return {"status": "Failed", "description": "no decision of this time is old enough to be judged"}
    rounds = [
        (entry.row, entry.decision, record.worth(chosen.horizon))
        for entry, record, judged_now in zip(newest, records, chosen.rows)
        if judged_now
    ]
    said = [f"the newest {MAX_EVENTS} of {n} decisions"] if n > MAX_EVENTS else []
    if chosen.left_out or chosen.horizon < WHOLE:
        said.append(f"judged by age: {chosen}")
    tables: list[tuple[str, str, str, list[Distribution]]] = [
        ("Online", "Online", "", [decision.p for _, decision, _ in rounds]),
        ("Baseline", "Baseline", "", [[1.0] + [0.0] * (len(d.p) - 1) for _, d, _ in rounds]),
        ("Random", "Random", "", [[1.0 / len(d.p)] * len(d.p) for _, d, _ in rounds]),
    ]
    for policy in policies:
        model = build_model(anew(engine, app, agent_of(policy["arguments"]), extra))
        tables.append((policy["name"], "Custom", policy["arguments"], followed(model, rounds)))
        if model.refused:
            said.append(f"{policy['name']}: it could not learn {model.refused} of {len(rounds)} rewards")
    results, doubted = [], set()
    for name, source, arguments, table in tables:
        answered = [i for i, answer in enumerate(table) if not isinstance(answer, str)]
        verdicts = [missed(table)]
        if answered:
            result, verdict = judged([rounds[i] for i in answered], [table[i] for i in answered])
            results.append({"name": name, "policySource": source, "arguments": arguments} | result)
            verdicts.append(verdict)
        if any(verdicts):
            said.append(f"{name}: {'; '.join(filter(None, verdicts))}")
            doubted.add(name)
    sound = [r for r in results if r["name"] not in doubted and r["policySource"] != "Random"]
    best = max(sound or results[:1], key=lambda r: r["total"]["averageReward"])  # what was online did happen
    return {
        "status": "Succeeded", "description": "; ".join(said)[:2000], "results": results, "optimalPolicy": best["name"],
    }  # fmt: skip


# ---------------------------------------------------------------------- as the dialects tell it


def shown(record: dict[str, Any], call: Call, whole: bool = False) -> dict[str, Any]:
    """An evaluation as the dialect of a call has it; with its results if ``whole``."""
    names = ("id", "name", "startTime", "endTime", "creationTime", "status", "description", "optimalPolicy")
    shown: dict[str, Any] = {name: record[name] for name in names if name in record} | {"evaluationType": "Manual"}
    results = record["results"] if whole else []
    if _modern(call):
        if results:
            shown["content"] = {
                "startTime": record["startTime"], "endTime": record["endTime"],
                "intervalInMinutes": results[0]["minutes"], "value": [_modern_result(result) for result in results],
            }  # fmt: skip
        return shown
    shown |= {"status": _STATUS[record["status"]], "jobId": record["id"]}
    if results:
        shown["policyResults"] = [_early_result(result) for result in results]
    return shown


def _modern_result(result: dict[str, Any]) -> dict[str, Any]:
    total = result["total"]
    return {
        "name": result["name"], "arguments": result["arguments"], "policySource": result["policySource"], "slotId": "",
        "summary": {
            "expectedReward": total["averageReward"], "confidenceInterval": [total["low"], total["high"]],
        },
        "timeseries": {
            "data": [{"timeStamp": p["timeStamp"], "expectedReward": p["averageReward"]} for p in result["series"]]
        },
    }  # fmt: skip


def _early_result(result: dict[str, Any]) -> dict[str, Any]:
    window = {"aggregateTimeWindow": f"PT{result['minutes']}M"}
    total = {name: value for name, value in result["total"].items() if name not in ("low", "high")}
    low, high = result["total"]["low"], result["total"]["high"]
    total["confidenceInterval"] = None if low is None or high is None else (high - low) / 2.0
    return {
        "name": result["name"], "arguments": result["arguments"], "policySource": result["policySource"],
        "summary": [point | window for point in result["series"]],
        "totalSummary": total | window,
    }  # fmt: skip


def _routes(one: Any, all: Any) -> list[Route]:
    return [
        Route("GET", "evaluations", "read", every, gives={200: all}),
        Route("GET", "evaluations/{}", "read", find, gives={200: one}),
        Route("DELETE", "evaluations/{}", "admin", delete, gives={204: None}),
        Route("PUT", "evaluations/{}", "admin", create_named, takes=EvaluationRequest, gives={200: one}),
        Route("POST", "evaluations", "admin", create, takes=EvaluationRequest, gives={201: one}),
        Route("POST", "configurations/applyFromEvaluation", "admin", apply, takes=ChosenPolicy, gives={204: None}),
    ]


ROUTES = [
    *everywhere(_routes(EvaluationJob, list[EvaluationJob]), EARLY),
    *everywhere(_routes(DatedEvaluation, DatedEvaluations), DATED),
]
