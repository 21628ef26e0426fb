"""Personalizer's administration: configuration, learning settings, model, logs and evaluations, by its own clients."""

from __future__ import annotations

import datetime
import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from azure.ai.personalizer import PersonalizerAdministrationClient, PersonalizerClient
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from armwise.core import saving
from armwise.features.encoding.arms import read_arms
from armwise.service.adapters.personalizer.admin import duration, seconds
from armwise.service.engine.application import Application
from armwise.service.journal.events import RULES, Change, Creation, Import
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.model.build import build_model
from armwise.service.model.model import DrawRequest
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

ACTIONS: list[dict[str, Any]] = [{"id": name, "features": []} for name in ("good", "bad")]
EPOCH, FUTURE = "2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


def admin(running: Any) -> Any:
    return PersonalizerAdministrationClient(running.url, AzureKeyCredential("any"))


def teach(running: Any, n: int, start: int = 0) -> list[tuple[str, float, float]]:
    """Rank and reward n times: 'good' earns 0, 0.5 and 1 in turn, 'bad' nothing. What each earned, with its p."""
    client, shown = running.client, []
    for i in range(start, start + n):
        body = {"actions": ACTIONS, "eventId": f"e{i}"}
        answer = client.post("/personalizer/v1.0/rank", json=body).json()
        arm = answer["rewardActionId"]
        shown.append((arm, (i % 3) / 2, {each["id"]: each["probability"] for each in answer["ranking"]}[arm]))
        value = (i % 3) / 2 if arm == "good" else 0
        client.post(f"/personalizer/v1.0/events/e{i}/reward", json={"value": value})
        running.service.engine.wait_learnt()
    return shown


def test_configuration_is_in_force_and_survives_a_restart(tmp_path: Path) -> None:
    config = Config(storage=str(tmp_path / "data"))
    running = Running(Service(config))
    client = admin(running)
    first = client.get_service_configuration()
    assert first["rewardWaitTime"] == "PT10M"
    assert (first["explorationPercentage"], first["learningMode"]) == (0.1, "Online")
    assert client.update_service_configuration(first) | {"lastConfigurationEditDate": ""} == first | {
        "lastConfigurationEditDate": ""
    }
    wanted = {
        "rewardWaitTime": "P1DT1H", "defaultReward": -0.5, "rewardAggregation": "sum", "explorationPercentage": 0.25,
        "modelExportFrequency": "PT5M", "logRetentionDays": 90, "learningMode": "Apprentice", "modelRetrainDays": 7,
    }  # fmt: skip
    answer = client.update_service_configuration(wanted)
    assert {name: answer[name] for name in wanted} == wanted
    settings = running.service.engine.models["default"].settings
    assert (settings.window, settings.default, settings.rule) == (90000.0, -0.5, "sum")
    assert running.service.engine.models["default"].agent.epsilon == 0.25  # type: ignore[attr-defined]
    shown = running.client.post("/personalizer/v1.0/rank", json={"actions": ACTIONS[::-1]}).json()
    assert [(each["id"], each["probability"]) for each in shown["ranking"]] == [("bad", 1.0), ("good", 0.0)]
    for rule in RULES:  # the service's own too: what GET says, PUT takes
        assert client.update_service_configuration({"rewardAggregation": rule})["rewardAggregation"] == rule
    answer = client.update_service_configuration(wanted)
    running.stop()
    running = Running(Service(config))
    assert admin(running).get_service_configuration() == answer
    running.stop()


BAD_CONFIGURATIONS = [
    {"rewardWaitTime": "PT1S"},
    {"rewardWaitTime": "P3D"},
    {"rewardWaitTime": "10 minutes"},
    {"rewardWaitTime": 600},
    {"defaultReward": 2},
    {"defaultReward": "x"},
    {"rewardAggregation": "average"},
    {"explorationPercentage": 1.5},
    {"learningMode": "LoggingOnly"},
    {"logRetentionDays": 0.5},
    {"logMirrorEnabled": True},
    {"isAutoOptimizationEnabled": True},
    {"colour": "red"},
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")))))
    yield running
    running.stop()


@pytest.mark.parametrize("change", BAD_CONFIGURATIONS, ids=str)
def test_bad_configurations_change_nothing(shared: Any, change: Any) -> None:
    before = shared.client.get("/personalizer/v1.0/configurations/service").json()
    answer = shared.client.put("/personalizer/v1.0/configurations/service", json=before | change)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert shared.client.get("/personalizer/v1.0/configurations/service").json() == before


@pytest.mark.parametrize("value", [0.25, 5, 59.5, 600, 3600, 86400, 90061.5, 172800])
def test_durations_go_around(value: float) -> None:
    assert seconds(duration(value), "x") == value


def test_learning_settings_bring_another_agent(tmp_path: Path) -> None:
    config = Config(storage=str(tmp_path / "data"), applications={"default": Application(learn="arrival")})
    running = Running(Service(config))
    client, engine = admin(running), running.service.engine
    default = client.get_policy()
    assert json.loads(default["arguments"])["class"] == "Explore"
    client.update_service_configuration({"rewardWaitTime": "PT7M"})
    teach(running, 3)
    assert engine.models["default"].lessons == 3
    wanted = {"name": "thompson", "arguments": '{"class": "LinThompson", "draws": 20}'}
    assert client.update_policy(wanted) == client.get_policy() == wanted
    assert type(engine.models["default"].agent).__name__ == "LinThompson"
    assert engine.models["default"].lessons == 0
    teach(running, 2, start=3)
    client.update_policy(wanted)  # already so: nothing begins anew
    assert engine.models["default"].lessons == 2
    with pytest.raises(HttpResponseError, match="epsilon"):
        client.update_service_configuration({"explorationPercentage": 0.5})
    for arguments in ("--cb_explore_adf", '{"class": "os.system"}', '{"class": "LinUCB", "alpha": -1}', "[]"):
        with pytest.raises(HttpResponseError, match="InvalidPolicyConfiguration"):
            client.update_policy({"name": "x", "arguments": arguments})
    running.stop()
    running = Running(Service(config))  # what was asked for stays
    client, engine = admin(running), running.service.engine
    assert client.get_policy() == wanted
    assert engine.models["default"].lessons == 2
    assert client.get_service_configuration()["rewardWaitTime"] == "PT7M"
    assert client.reset_policy() == client.get_policy() == default
    assert type(engine.models["default"].agent).__name__ == "Explore"
    running.stop()


def test_every_accepted_policy_ranks_now_and_after_a_restart(tmp_path: Path) -> None:
    config = Config(storage=str(tmp_path / "data"), applications={"default": Application(learn="arrival")})
    linear = {"class": "kernels.Linear"}
    strange = {"class": "CGPUCB", "context_kernel": linear, "arm_kernel": linear, "context_dim": 127}
    running = Running(Service(config))
    before = admin(running).get_policy()
    with pytest.raises(HttpResponseError, match="CGPUCB cannot be served"):
        admin(running).update_policy({"name": "n", "arguments": json.dumps(strange)})
    assert admin(running).get_policy() == before
    admin(running).update_policy({"name": "n", "arguments": '{"class": "LogisticThompson"}'})
    teach(running, 3)
    running.stop()
    running = Running(Service(config))
    assert running.service.engine.models["default"].lessons == 3
    assert running.client.post("/personalizer/v1.0/rank", json={"actions": ACTIONS}).status_code == 201
    running.stop()


def test_models_travel_and_begin_anew(run: Callable[..., Any]) -> None:
    old, new = run(), run()
    teach(old, 20)
    model = b"".join(admin(old).export_model())
    assert saving.loads(model).lessons == 20
    admin(new).update_service_configuration({"rewardWaitTime": "PT9M", "explorationPercentage": 0.3})
    admin(new).import_model(io.BytesIO(model))
    there = new.service.engine.models["default"]
    assert there.lessons == 20
    assert there.settings.window == 540.0  # the application's settings are its own
    arms = read_arms([json.dumps(action).encode() for action in ACTIONS])
    here = old.service.engine.models["default"]
    [theirs], [ours] = (model.decide([DrawRequest(b"[]", arms, 0.5)]) for model in (there, here))
    np.testing.assert_array_equal(theirs.p, ours.p)
    told = admin(new).get_model_properties()
    assert told["creationTime"] <= told["lastModifiedTime"]
    for bad in (b"", b"ARMWISE!", model[:-1], model[:100] + b"\0" + model[101:], b"PK\3\4" * 100):
        with pytest.raises(HttpResponseError, match="InvalidModelImportFormat"):
            admin(new).import_model(io.BytesIO(bad))
    assert new.service.engine.models["default"].lessons == 20
    admin(new).update_service_configuration({"explorationPercentage": 0.2})
    admin(new).reset_model()
    there = new.service.engine.models["default"]
    assert (there.lessons, there.settings.window, there.agent.epsilon) == (0, 540.0, 0.2)


def test_a_model_without_exploration_leaves_the_configured_one(run: Callable[..., Any]) -> None:
    running = run()
    engine = running.service.engine
    plain = build_model(Creation(agent={"class": "LinUCB"}))  # as a journal of before may hold one
    engine.journal_change("default", Import.of(saving.dumps(plain)))
    admin(running).reset_model()
    assert engine.models["default"].agent.epsilon == 0.1


def test_logs_are_forgotten_when_asked(run: Callable[..., Any]) -> None:
    running = run()
    client = admin(running)
    with pytest.raises(ResourceNotFoundError, match="LogsPropertiesNotFound"):
        client.get_log_properties()
    teach(running, 3)
    told = client.get_log_properties()["dateRange"]
    assert told["from"] <= told["to"]
    client.delete_logs()
    with pytest.raises(ResourceNotFoundError):
        client.get_log_properties()
    assert running.client.get("/v1/log").text == ""
    teach(running, 2, start=3)
    assert len(running.client.get("/v1/log").text.splitlines()) == 2
    assert running.service.engine.models["default"].lessons == 5  # what was learnt stays


# ---------------------------------------------------------------------- evaluations


def finished(look: Callable[[], Any]) -> Any:
    for _ in range(400):
        found = look()
        if found["status"] not in ("Running", "pending"):
            return found
        time.sleep(0.02)
    raise AssertionError("the evaluation did not end")


def test_an_evaluation_is_what_the_formulas_say(run: Callable[..., Any]) -> None:
    running = run()
    client = admin(running)
    client.update_service_configuration({"explorationPercentage": 0.6})
    shown = teach(running, 60)
    custom = {"name": "mine", "arguments": '{"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinUCB"}}'}
    body = {"name": "first", "startTime": EPOCH, "endTime": FUTURE, "policies": [custom]}
    client.create_evaluation("one/1", body)
    span = {"start_time": datetime.datetime(2000, 1, 1), "end_time": datetime.datetime(2999, 1, 1)}
    found = finished(lambda: client.get_evaluation("one/1", **span))
    assert found["status"] == "Succeeded", found
    results = {each["policySource"]: each for each in found["content"]["value"]}
    value = {name: each["summary"]["expectedReward"] for name, each in results.items()}
    good = np.array([arm == "good" for arm, _, _ in shown])
    rewards = np.where(good, [value for _, value, _ in shown], 0.0)
    p = np.array([p for _, _, p in shown])
    assert value["Online"] == pytest.approx(rewards.mean())
    assert value["Baseline"] == pytest.approx((good * rewards / p).sum() / (good / p).sum())  # 'good' stands first
    assert value["Random"] == pytest.approx((rewards / p).sum() / (1.0 / p).sum())
    assert value["Custom"] > value["Random"] + 0.1  # it learns which action is good
    low, high = results["Random"]["summary"]["confidenceInterval"]
    assert low < value["Random"] < high
    assert sum(1 for _ in client.list_evaluations()) == 1
    client.create_evaluation("one/1", body)  # the same again is the same
    with pytest.raises(HttpResponseError, match="Conflict"):
        client.create_evaluation("one/1", {**body, "name": "other"})
    client.apply_from_evaluation({"evaluationId": "one/1", "policyName": "mine"})
    assert client.get_policy() == custom
    assert sum(1 for _ in client.list_evaluations()) == 1  # a new agent forgets no evaluations
    client.delete_evaluation("one/1")
    with pytest.raises(ResourceNotFoundError, match="EvaluationNotFound"):
        client.get_evaluation("one/1", **span)
    assert list(client.list_evaluations()) == []


def test_evaluations_in_the_earlier_dialect(run: Callable[..., Any]) -> None:
    running = run()
    prefix = "/personalizer/v1.1-preview.3"
    teach(running, 10)
    body = {"name": "n", "startTime": EPOCH, "endTime": FUTURE, "policies": []}
    header = {"x-ms-client-request-id": "r"}
    created = running.client.post(f"{prefix}/evaluations", json=body, headers=header)
    assert created.status_code == 201
    again = running.client.post(f"{prefix}/evaluations", json=body, headers=header)
    assert again.json()["id"] == created.json()["id"]
    found = finished(lambda: running.client.get(created.headers["location"]).json())
    assert found["status"] == "completed"
    for result in found["policyResults"]:
        total = result["totalSummary"]
        assert total["ipsEstimatorDenominator"] == 10.0
        assert sum(each["ipsEstimatorNumerator"] for each in result["summary"]) == pytest.approx(
            total["ipsEstimatorNumerator"]
        )
    listed = running.client.get(f"{prefix}/evaluations").json()
    assert [each["id"] for each in listed] == [created.json()["id"]]
    none = {**body, "endTime": "2000-01-02T00:00:00Z"}
    path = running.client.post(f"{prefix}/evaluations", json=none).headers["location"]
    failed = finished(lambda: running.client.get(path).json())
    assert failed["status"] == "failed" and "no decision" in failed["description"]
    assert running.client.delete(path).status_code == 204
    assert running.client.delete(path).status_code == 404


def test_an_evaluation_that_was_cut_off_says_so(tmp_path: Path) -> None:
    config = Config(storage=str(tmp_path / "data"))
    running = Running(Service(config))
    extra = {"evaluations": {"x": {"id": "x", "name": "x", "status": "Running", "results": [], "policies": []}}}
    running.service.engine.configure("default", Change(extra=extra))
    [found] = running.client.get("/personalizer/evaluations").json()["value"]
    assert found["status"] == "Failed" and "stopped" in found["description"]
    running.stop()


BAD_EVALUATIONS: list[Any] = [
    {},
    {"name": "n", "startTime": "yesterday", "endTime": FUTURE},
    {"name": "n", "startTime": FUTURE, "endTime": EPOCH},
    {"name": "n", "startTime": EPOCH, "endTime": FUTURE, "policies": 7},
    {"name": "n", "startTime": EPOCH, "endTime": FUTURE, "policies": [{"name": "a"}]},
    {"name": "n", "startTime": EPOCH, "endTime": FUTURE, "policies": [{"name": "a", "arguments": "--vw"}]},
    {"name": "n", "startTime": EPOCH, "endTime": FUTURE, "policies": [{"name": "a", "arguments": '{"class": "X"}'}]},
    {"name": "n", "startTime": EPOCH, "endTime": FUTURE, "enableOfflineExperimentation": True},
]


@pytest.mark.parametrize("body", BAD_EVALUATIONS, ids=str)
def test_bad_evaluations_get_400(shared: Any, body: Any) -> None:
    assert shared.client.post("/personalizer/v1.0/evaluations", json=body).status_code == 400
    assert shared.client.get("/personalizer/v1.0/evaluations").json() == []


def test_multi_slot_by_the_client(run: Callable[..., Any]) -> None:
    running = run()
    client = PersonalizerClient(running.url, AzureKeyCredential("any"))
    slots = [{"id": "top", "baselineAction": "good"}, {"id": "low/er", "baselineAction": "bad"}]
    answer = client.rank_multi_slot({"actions": ACTIONS, "slots": slots, "eventId": "e 1/x", "deferActivation": True})
    assert sorted(slot["rewardActionId"] for slot in answer["slots"]) == ["bad", "good"]
    client.activate_multi_slot("e 1/x")  # type: ignore[attr-defined]
    client.reward_multi_slot("e 1/x", {"reward": [{"slotId": "low/er", "value": 1.0}]})  # type: ignore[attr-defined]
    _, _, status = running.service.engine.find("default", "e 1/x\x1f1")
    assert (status.active, status.value) == (True, 1.0)


def test_the_journal_of_all_this_verifies(tmp_path: Path) -> None:
    """Slots, other agents, imports, resets, settings: what is recovered equals a replay, bit for bit."""
    config = Config(storage=str(tmp_path / "data"))
    running = Running(Service(config))
    client, engine = admin(running), running.service.engine
    slots = [{"id": "top", "baselineAction": "good"}, {"id": "low", "baselineAction": "bad"}]
    steps: list[Callable[[], Any]] = [
        lambda: client.update_service_configuration({"explorationPercentage": 0.3, "rewardAggregation": "sum"}),
        lambda: client.update_policy({"name": "t", "arguments": '{"class": "LinThompson", "draws": 10}'}),
        lambda: client.import_model(io.BytesIO(b"".join(client.export_model()))),
        client.reset_model,
        lambda: client.update_service_configuration({"learningMode": "Apprentice", "rewardAggregation": "earliest"}),
        client.delete_logs,
        client.reset_policy,
    ]
    for i, step in enumerate(steps):
        teach(running, 3, start=3 * i)
        body = {"actions": ACTIONS, "slots": slots, "eventId": f"several {i}"}
        running.client.post("/personalizer/multislot/rank", json=body)
        sent = {"reward": [{"slotId": slot["id"], "value": 0.5} for slot in slots]}
        running.client.post(f"/personalizer/multislot/events/several%20{i}/reward", json=sent)
        engine.snapshot()
        step()
    teach(running, 3, start=100)
    before = engine.export("default")
    running.stop()
    store = config.stores()[0]
    report = verify(Journal(store.connect()))
    store.close()
    assert report.problems == []
    assert (report.decisions, report.snapshots > 0) == (3 * 8 + 2 * 7, True)
    running = Running(Service(config))
    assert running.service.engine.export("default") == before
    running.stop()


def described(running: Running, prefix: str = "", **policies: Any) -> tuple[str, dict[str, Any]]:
    """An evaluation's description and its results by name."""
    listed = [{"name": name, "arguments": json.dumps(spec)} for name, spec in policies.items()]
    body = {"name": "n", "startTime": EPOCH, "endTime": FUTURE, "policies": listed}
    where = running.client.post(f"{prefix}/personalizer/v1.0/evaluations", json=body).headers["location"]
    found = finished(lambda: running.client.get(where).json())
    assert found["status"] == "completed", found
    return found["description"], {each["name"]: each for each in found["policyResults"]}


def test_an_evaluation_says_what_apprentice_mode_cannot_know(run: Callable[..., Any]) -> None:
    running = run(applications={"ap": Application(apprentice=True)})
    for k in range(40):
        decided = running.client.post("/v1/decisions", json={"context": {}, "arms": ["a", "b"], "id": f"e{k}"}).json()
        assert (decided["arm"], decided["probability"]) == ("a", 1.0)
        running.client.post(f"/v1/decisions/e{k}/reward", json={"value": 1.0 - k % 2})
    said, results = described(running)
    assert "Random: in 50.0% of its decisions the target plays an arm that this log never tries" in said
    assert "Baseline" not in said and "Online" not in said  # which showed the first action, as the log did
    assert results["Baseline"]["totalSummary"]["averageReward"] == pytest.approx(0.5)


def test_an_evaluation_of_a_handful_says_so(run: Callable[..., Any]) -> None:
    running = run()
    teach(running, 3)
    said, _ = described(running)
    for name in ("Online", "Baseline", "Random"):  # the baseline may match none of them
        assert re.search(rf"{name}: [^:]*answer the question: effective sample size \d of 3", said)
    assert "effective sample size 3 of 3" in said


def test_a_policy_that_cannot_answer_is_said_not_failed(run: Callable[..., Any]) -> None:
    running = run()
    for k in range(40):
        arms = ["a", "b", "c"] if k == 7 else ["a", "b"]
        running.client.post("/v1/decisions", json={"context": {}, "arms": arms, "id": f"e{k}"})
        running.client.post(f"/v1/decisions/e{k}/reward", json={"value": k % 2})
    said, results = described(running, two={"class": "Exp3", "n_arms": 2}, four={"class": "Exp3", "n_arms": 4})
    assert "two: it could not answer 1 of 40 decisions (this application has 2 arms, got 3)" in said
    assert "four: it could not answer 40 of 40 decisions" in said
    assert results["two"]["totalSummary"]["ipsEstimatorDenominator"] == 39.0
    assert "four" not in results


def test_the_location_of_an_evaluation_names_the_application(run: Callable[..., Any]) -> None:
    running = run(applications={"first": Application(), "two words": Application()})
    body = {"name": "n", "startTime": EPOCH, "endTime": FUTURE}
    for prefix in ("", "/apps/first", "/apps/two%20words"):
        made = running.client.post(f"{prefix}/personalizer/v1.0/evaluations", json=body)
        where = made.headers["location"]
        assert where == f"{prefix}/personalizer/v1.0/evaluations/{made.json()['id']}"
        assert running.client.get(where).json()["id"] == made.json()["id"]


def test_an_evaluation_takes_decisions_by_age_and_not_those_that_were_clicked(run: Callable[..., Any]) -> None:
    """5 % are clicked, at once; nobody says that the others were not: settled ones earned 1.0 each."""
    from armwise.service.adapters.personalizer.evaluation_jobs import measure

    service = run().service
    for k in range(200):
        service.engine.decide("default", b"{}", [b'"a"', b'"b"'], id=f"e{k}")
        if k % 20 == 7:
            service.engine.reward("default", f"e{k}", 1.0)
    found = measure(service.engine, "default", [], 0, 1 << 50)
    online = next(each for each in found["results"] if each["name"] == "Online")
    assert 0.01 < online["total"]["averageReward"] < 0.15
    assert "rewarded or not" in found["description"]
