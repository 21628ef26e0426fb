"""The Personalizer dialects on the wire, as recorded from the clients; the clients themselves are in the next files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from armwise.service.engine.application import Application
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest
from tests.service.serving import Running

RANK: dict[str, Any] = {
    "contextFeatures": [{"timeOfDay": "morning"}],
    "actions": [
        {"id": "pasta", "features": [{"taste": "salty", "spiceLevel": "medium"}, {"n": 3}]},
        {"id": "salad", "features": [{"taste": "sour"}]},
    ],
    "excludedActions": ["juice"],
    "eventId": "evt-1",
    "deferActivation": False,
}
DIALECTS = {
    "/personalizer/v1.0": "",
    "/personalizer/v1.1-preview.3": "",
    "/personalizer": "?api-version=2022-09-01-preview",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")))))
    yield running
    running.stop()


@pytest.mark.parametrize("prefix", DIALECTS)
def test_rank_reward_and_activate_as_recorded(shared: Any, prefix: str) -> None:
    version = DIALECTS[prefix]
    body = {**RANK, "eventId": f"evt-1 {prefix}"}
    ranked = shared.client.post(f"{prefix}/rank{version}", json=body, headers={"Ocp-Apim-Subscription-Key": "any"})
    assert ranked.status_code == 201
    answer = ranked.json()
    assert set(answer) == {"ranking", "eventId", "rewardActionId"}
    assert answer["eventId"] == f"evt-1 {prefix}"
    assert answer["ranking"][0]["id"] == answer["rewardActionId"]
    assert sum(each["probability"] for each in answer["ranking"]) == pytest.approx(1.0)
    again = shared.client.post(f"{prefix}/rank{version}", json=body)
    assert (again.status_code, again.json()) == (201, answer)
    path = f"{prefix}/events/evt-1%20{prefix.replace('/', '%2F')}"
    rewarded = shared.client.post(f"{path}/reward{version}", json={"value": 0.75})
    assert (rewarded.status_code, rewarded.content) == (204, b"")
    assert "content-type" not in rewarded.headers
    assert shared.client.post(f"{path}/activate{version}", content=b"").status_code == 204
    found = shared.client.get(f"/v1/decisions/{path.rpartition('/')[2]}").json()
    assert (found["reward"], found["closed"]) == (0.75, True)
    shown = {each["id"]: each["probability"] for each in answer["ranking"]}
    assert found["probability"] == shown[found["arm"]]


def test_excluded_actions_stay_with_probability_zero(shared: Any) -> None:
    actions = [{"id": name, "features": []} for name in "abcd"]
    body = {"actions": actions, "excludedActions": ["b", "d", "b", "nobody"]}
    for _ in range(20):
        ranked = shared.client.post("/personalizer/v1.0/rank", json=body).json()
        shown = {each["id"]: each["probability"] for each in ranked["ranking"]}
        assert sorted(shown) == list("abcd")
        assert shown["b"] == shown["d"] == 0.0
        assert [each["id"] for each in ranked["ranking"]][1::2] == ["b", "d"]  # where they stood
        assert ranked["rewardActionId"] == ranked["ranking"][0]["id"]
        assert shown["a"] + shown["c"] == pytest.approx(1.0)


def test_absent_and_null_mean_the_same(shared: Any) -> None:
    nulls = {"contextFeatures": None, "excludedActions": None, "eventId": None, "deferActivation": None}
    for body in ({"actions": RANK["actions"]}, {"actions": RANK["actions"], **nulls}):
        ranked = shared.client.post("/personalizer/v1.0/rank", json=body)
        assert ranked.status_code == 201
        assert len(ranked.json()["eventId"]) == 32


BAD = {
    "no actions": {"actions": []},
    "51 actions": {"actions": [{"id": str(i), "features": []} for i in range(51)]},
    "action is a string": {"actions": ["a"]},
    "long action id": {"actions": [{"id": "x" * 257, "features": []}]},
    "long event id": {**RANK, "eventId": "x" * 257},
    "empty event id": {**RANK, "eventId": ""},
    "number as event id": {**RANK, "eventId": 7},
    "same action twice": {"actions": [{"id": "a", "features": []}] * 2},
    "all excluded": {"actions": [{"id": "a", "features": []}], "excludedActions": ["a"]},
    "unknown field": {**RANK, "colour": 1},
    "features are numbers": {"actions": [{"id": "a", "features": [1]}]},
    "context is a string": {**RANK, "contextFeatures": "x"},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_ranks_get_400_with_code_and_message(shared: Any, name: str) -> None:
    answer = shared.client.post("/personalizer/v1.0/rank", json=BAD[name])
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "BadRequest"
    assert answer.json()["error"]["message"]


def test_limits_are_inclusive(shared: Any) -> None:
    actions = [{"id": f"{i:0256}", "features": []} for i in range(50)]
    body = {"actions": actions, "eventId": "y" * 256}
    assert shared.client.post("/personalizer/v1.0/rank", json=body).status_code == 201
    for value in (-1, 1):
        path = f"/personalizer/v1.0/events/{'y' * 256}/reward"
        assert shared.client.post(path, json={"value": value}).status_code == 204


@pytest.mark.parametrize("value", [1.0001, -1.5, "1", None, True, [1], 10**400])
def test_bad_rewards_get_400(shared: Any, value: Any) -> None:
    shared.client.post("/personalizer/v1.0/rank", json=RANK)
    body = json.dumps({"value": value})
    answer = shared.client.post("/personalizer/v1.0/events/evt-1/reward", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in ("BadRequest", "InvalidRewardRequest")


def test_unknown_things_get_the_clients_codes(shared: Any) -> None:
    for path in ("events/nobody/reward", "nowhere"):
        answer = shared.client.post(f"/personalizer/v1.0/{path}", json={"value": 1})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "ResourceNotFound")
    assert shared.client.post("/personalizer/rank?api-version=1999-01-01", json=RANK).status_code == 400
    conflict = shared.client.post("/personalizer/v1.0/rank", json={**RANK, "deferActivation": True})
    assert conflict.status_code == 409


def test_the_request_id_makes_retries_harmless(shared: Any) -> None:
    body = {"actions": [{"id": str(i), "features": []} for i in range(9)]}
    client, header = shared.client, {"x-ms-client-request-id": "visit-1"}
    first = client.post("/personalizer/v1.0/rank", json=body, headers=header)
    assert [client.post("/personalizer/v1.0/rank", json=body, headers=header).json() for _ in range(5)] == [
        first.json()
    ] * 5
    assert client.post("/personalizer/v1.0/rank", json=body).json()["eventId"] != first.json()["eventId"]
    other = {**body, "deferActivation": True}
    assert client.post("/personalizer/v1.0/rank", json=other, headers=header).status_code == 409
    path = f"/personalizer/v1.0/events/{first.json()['eventId']}"  # the same id in other operations is another request
    for _ in range(3):
        assert client.post(f"{path}/reward", json={"value": 0.5}, headers=header).status_code == 204
    assert client.get(f"/v1/decisions/{first.json()['eventId']}").json()["rewards"] == 1
    assert client.post(f"{path}/activate", headers=header).status_code == 204


def test_deferred_events_are_learnt_only_when_activated(run: Callable[..., Any]) -> None:
    running = run()
    client, engine = running.client, running.service.engine
    for name in ("shown", "never"):
        client.post("/personalizer/v1.0/rank", json={**RANK, "eventId": name, "deferActivation": True})
        client.post(f"/personalizer/v1.0/events/{name}/reward", json={"value": 1})
    engine.wait_learnt()
    assert engine.models["default"].lessons == 0
    client.post("/personalizer/v1.0/events/shown/activate")
    engine.wait_learnt()
    assert engine.models["default"].lessons == 1


def test_a_key_finds_its_application(run: Callable[..., Any]) -> None:
    keys = [
        Key(name="news", sha256=digest("n"), roles=["decide", "reward"], applications=["news"]),
        Key(name="boss", sha256=digest("b"), roles=["admin"]),
    ]
    client = run(keys=keys, applications={"shop": Application(), "news": Application()}).client
    news, boss = {"Ocp-Apim-Subscription-Key": "n"}, {"Ocp-Apim-Subscription-Key": "b"}
    assert client.post("/personalizer/v1.0/rank", json=RANK, headers=news).status_code == 201
    assert client.get("/apps/news/v1/decisions/evt-1", headers=boss).status_code == 200
    assert client.get("/apps/shop/v1/decisions/evt-1", headers=boss).status_code == 404
    assert client.post("/apps/shop/personalizer/v1.0/rank", json=RANK, headers=boss).status_code == 201
    for headers in ({}, {"Ocp-Apim-Subscription-Key": "x"}):
        refused = client.post("/personalizer/v1.0/rank", json=RANK, headers=headers)
        assert (refused.status_code, set(refused.json()["error"])) == (401, {"code", "message"})


def test_rewards_below_zero_reach_an_agent_that_takes_zero_to_one(run: Callable[..., Any]) -> None:
    ucb1 = {"class": "UCB1", "n_arms": 2}
    plain = Application(agent=ucb1, arms=["pasta", "salad"])
    mapped = Application(agent=ucb1, arms=["pasta", "salad"], rewards=[-1.0, 1.0], rule="sum", window=0.4)
    running = run(applications={"plain": plain, "mapped": mapped})
    client, engine = running.client, running.service.engine
    client.post("/apps/plain/personalizer/v1.0/rank", json=RANK)
    refused = client.post("/apps/plain/personalizer/v1.0/events/evt-1/reward", json={"value": -0.5})
    assert refused.status_code == 400
    assert "[0, 1]" in refused.json()["error"]["message"]
    for event, values in {"low": [-0.25, -0.25], "over": [1, 1]}.items():
        client.post("/apps/mapped/personalizer/v1.0/rank", json={**RANK, "eventId": event})
        for value in values:  # type: ignore[attr-defined]
            answer = client.post(f"/apps/mapped/personalizer/v1.0/events/{event}/reward", json={"value": value})
            assert answer.status_code == 204
    for _ in range(100):
        if engine.models["mapped"].lessons == 2:
            break
        engine.expire()
        engine.wait_learnt()
        time.sleep(0.05)
    model = engine.models["mapped"]
    assert (model.lessons, model.refused) == (2, 0)
    # -0.5 becomes 0.25; a sum of 2 counts as 1, the end of the range.
    assert model.agent._totals.sum() == pytest.approx(1.25)
