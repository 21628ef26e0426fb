"""Idempotency keys: a retry counts once, and a key belongs to one operation of one API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_decision_and_its_reward_may_share_a_key(run: Callable[..., Any]) -> None:
    client = run().client
    key = {"Idempotency-Key": "visit 7"}
    asked = {"arms": ["a", "b"], "defer": True}
    one = client.post("/v1/decisions", json=asked, headers=key)
    again = client.post("/v1/decisions", json=asked, headers=key)
    assert (one.status_code, again.status_code) == (201, 200)
    assert one.json() == again.json()
    path = f"/v1/decisions/{one.json()['id']}"
    for _ in range(2):
        assert client.post(f"{path}/reward", json={"value": 1}, headers=key).status_code == 200
        assert client.post(f"{path}/activate", headers=key).status_code == 200
    assert client.get(path).json()["rewards"] == 1
    assert client.get(path).json()["active"]
    other = client.post("/v1/decisions", json={"arms": ["a", "b"], "id": "other"}).json()["id"]
    assert client.post(f"/v1/decisions/{other}/reward", json={"value": 1}, headers=key).status_code == 200
    assert client.get(f"/v1/decisions/{other}").json()["rewards"] == 1
    changed = client.post(f"{path}/reward", json={"value": 0}, headers=key)
    assert changed.status_code == 409
    assert changed.json()["error"]["message"] == "request visit 7 came before with other content"


def test_the_two_apis_do_not_share_keys(run: Callable[..., Any]) -> None:
    client = run().client
    assert client.post("/v1/decisions", json={"arms": ["a"]}, headers={"Idempotency-Key": "rank 7"}).status_code == 201
    actions = [{"id": "x", "features": []}, {"id": "y", "features": []}]
    ranked = client.post(
        "/personalizer/v1.0/rank", json={"actions": actions, "eventId": "e1"}, headers={"x-ms-client-request-id": "7"}
    )
    assert ranked.status_code == 201
    given = client.post("/v1/decisions/e1/reward", json={"value": 1}, headers={"Idempotency-Key": "7"})
    assert given.status_code == 200
    headers = {"x-ms-client-request-id": "7"}
    assert client.post("/personalizer/v1.0/events/e1/reward", json={"value": 0}, headers=headers).status_code == 204
