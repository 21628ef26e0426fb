"""Multi-slot rank: an action of its own for every slot, all or nothing, retried without harm."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armwise.service.adapters.personalizer.slots import choosable
from armwise.service.engine.application import Application
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

ACTIONS: list[dict[str, Any]] = [{"id": name, "features": [{"kind": name}]} for name in "abcd"]
SLOTS: list[dict[str, Any]] = [
    {"id": "top", "features": [{"size": "large"}], "excludedActions": ["c"], "baselineAction": "a"},
    {"id": "side", "baselineAction": "b"},
]
RANK: dict[str, Any] = {"contextFeatures": [{"hour": 9}], "actions": ACTIONS, "slots": SLOTS}
PATH = "/personalizer/v1.1-preview.3/multislot"


def test_slots_show_different_actions_and_retries_the_same(run: Callable[..., Any]) -> None:
    running = run()
    client = running.client
    for i in range(10):
        body = {**RANK, "eventId": f"e/{i}"}
        ranked = client.post(f"{PATH}/rank", json=body)
        assert ranked.status_code == 201
        answer = ranked.json()
        assert answer["eventId"] == f"e/{i}"
        assert [slot["id"] for slot in answer["slots"]] == ["top", "side"]
        top, side = (slot["rewardActionId"] for slot in answer["slots"])
        assert top != side and top != "c"
        sent = {"reward": [{"slotId": "side", "value": 0.5}, {"slotId": "top", "value": -0.5}]}
        assert client.post(f"{PATH}/events/e%2F{i}/reward", json=sent).status_code == 204
        running.service.engine.wait_learnt()  # the model has changed, the answer must not
        assert client.post(f"{PATH}/rank", json=body).json() == answer
    engine = running.service.engine
    assert engine.models["default"].lessons == 20
    assert engine.find("default", "e/0\x1f0")[2].value == -0.5
    assert engine.find("default", "e/0\x1f1")[2].value == 0.5
    _, first, _ = engine.find("default", "e/0\x1f0")
    assert b'"large"' in bytes(first.context)
    changed = {**RANK, "eventId": "e/0", "slots": SLOTS[:1]}
    assert client.post(f"{PATH}/rank", json=changed).status_code == 409


def test_the_request_id_alone_makes_retries_harmless(run: Callable[..., Any]) -> None:
    running = run()
    header = {"x-ms-client-request-id": "r1"}
    answers = [running.client.post(f"{PATH}/rank", json=RANK, headers=header).json() for _ in range(3)]
    assert answers == [answers[0]] * 3
    sent = {"reward": [{"slotId": "top", "value": 1}]}
    for _ in range(3):
        path = f"{PATH}/events/{answers[0]['eventId']}/reward"
        assert running.client.post(path, json=sent, headers=header).status_code == 204
    assert running.service.engine.find("default", f"{answers[0]['eventId']}\x1f0")[2].n == 1


def test_deferred_slots_wait_for_activation(run: Callable[..., Any]) -> None:
    running = run()
    engine = running.service.engine
    running.client.post(f"{PATH}/rank", json={**RANK, "eventId": "e", "deferActivation": True})
    sent = {"reward": [{"slotId": "top", "value": 1}, {"slotId": "side", "value": 1}]}
    running.client.post(f"{PATH}/events/e/reward", json=sent)
    engine.wait_learnt()
    assert engine.models["default"].lessons == 0
    assert running.client.post(f"{PATH}/events/e/activate").status_code == 204
    engine.wait_learnt()
    assert engine.models["default"].lessons == 2


def test_an_apprentice_shows_the_baselines(run: Callable[..., Any]) -> None:
    client = run(applications={"shop": Application(apprentice=True)}).client
    slots = [{"id": "1", "baselineAction": "c"}, {"id": "2", "baselineAction": "a"}]
    answer = client.post(f"{PATH}/rank", json={**RANK, "slots": slots}).json()
    assert [slot["rewardActionId"] for slot in answer["slots"]] == ["c", "a"]


def test_no_slot_is_left_without_an_action(run: Callable[..., Any]) -> None:
    """Each later slot may show one action only; were it taken before, nothing would be left for it."""
    client = run().client
    slots = [
        {"id": "any", "baselineAction": "d"},
        {"id": "b", "baselineAction": "b", "excludedActions": ["a", "c", "d"]},
        {"id": "c", "baselineAction": "c", "excludedActions": ["a", "b", "d"]},
    ]
    for _ in range(20):
        answer = client.post(f"{PATH}/rank", json={**RANK, "slots": slots})
        assert answer.status_code == 201
        first, *others = (slot["rewardActionId"] for slot in answer.json()["slots"])
        assert (first in "ad", others) == (True, ["b", "c"])


def test_choosable_is_what_every_assignment_says() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        K, S = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        allowed, free = rng.random((S, K)) < 0.6, rng.random(K) < 0.8
        possible = [
            actions
            for actions in itertools.permutations(range(K), S)
            if all(free[a] and allowed[s, a] for s, a in enumerate(actions))
        ]
        if not possible:  # read_slots sees to it that the baselines are one
            continue
        expected = np.isin(np.arange(K), [actions[0] for actions in possible])
        np.testing.assert_array_equal(choosable(allowed, free), expected)


BAD: dict[str, Any] = {
    "no slots": {**RANK, "slots": []},
    "same slot twice": {**RANK, "slots": [SLOTS[0], {**SLOTS[1], "id": "top"}]},
    "same baseline twice": {**RANK, "slots": [SLOTS[0], {**SLOTS[1], "baselineAction": "a"}]},
    "strange baseline": {**RANK, "slots": [{"id": "1", "baselineAction": "z"}]},
    "excluded baseline": {**RANK, "slots": [{"id": "1", "baselineAction": "a", "excludedActions": ["a"]}]},
    "more slots than actions": {**RANK, "actions": ACTIONS[:1]},
    "51 slots": {**RANK, "slots": [{"id": str(i), "baselineAction": "a"} for i in range(51)]},
    "no baseline": {**RANK, "slots": [{"id": "1"}]},
    "bad features": {**RANK, "slots": [{**SLOTS[0], "features": "x"}]},
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")))))
    yield running
    running.stop()


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_get_400(shared: Any, name: str) -> None:
    assert shared.client.post(f"{PATH}/rank", json=BAD[name]).status_code == 400


def test_bad_rewards_are_refused_whole(shared: Any) -> None:
    shared.client.post(f"{PATH}/rank", json={**RANK, "eventId": "e"})
    good = {"slotId": "top", "value": 1}
    for bad in (
        {"slotId": "none", "value": 1},
        {"slotId": "side", "value": 2},
        {"slotId": "side"},
        {"slotId": "top", "value": 0},
        7,
    ):
        assert shared.client.post(f"{PATH}/events/e/reward", json={"reward": [good, bad]}).status_code == 400
    assert shared.service.engine.find("default", "e\x1f0")[2].n == 0
    assert shared.client.post(f"{PATH}/events/f/reward", json={"reward": [good]}).status_code == 404
    assert shared.client.post(f"{PATH}/events/f/activate").status_code == 404
