"""Idempotency keys: a retry counts once, and a key belongs to one operation of one API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armwise.service.engine.application import Application
from armwise.service.journal.writes import keyed
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify
from armwise.service.server.config import Config


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


def decided(client: Any, *ids: str) -> None:
    for id in ids:
        assert client.post("/v1/decisions", json={"id": id, "arms": ["a", "b"]}).status_code == 201


def counted(client: Any, *ids: str) -> list[int]:
    return [client.get(f"/v1/decisions/{id}").json()["rewards"] for id in ids]


def test_the_key_of_a_batch_of_rewards_names_a_set(run: Callable[..., Any]) -> None:
    client, key = run().client, {"Idempotency-Key": "k1"}
    decided(client, "e1", "e2", "e3")
    one, two, three = ({"id": id, "value": value} for id, value in (("e1", 1.0), ("e2", 0.5), ("e3", 0.0)))

    def send(*rewards: dict[str, Any]) -> Any:
        return client.post("/v1/batch/rewards", json={"rewards": rewards}, headers=key)

    first = send(one, two)
    again = send(two, one)
    assert (first.status_code, again.status_code) == (200, 200)
    assert [each["id"] for each in again.json()["rewards"]] == ["e2", "e1"], "in the order in which they were sent"
    others = {
        "one more": (one, two, three),
        "one less": (one,),
        "another decision": (one, three),
        "another value": (one, two | {"value": 0.75}),
        "a cost": (one, two | {"cost": 0.1}),
        "one twice": (one, two, two),
    }
    codes = {name: send(*rewards).status_code for name, rewards in others.items()}
    assert codes == dict.fromkeys(others, 409)
    assert send(one | {"value": 1}, two).status_code == 200, "1 is 1.0"
    assert counted(client, "e1", "e2", "e3") == [1, 1, 0]
    assert client.post("/v1/decisions/e3/reward", json={"value": 0}, headers=key).status_code == 200
    assert counted(client, "e3") == [1], "the key of a batch is not the key of a single reward"


def test_a_reward_twice_in_one_keyed_batch_is_two_rewards_and_its_retry_none(run: Callable[..., Any]) -> None:
    client, key = run().client, {"Idempotency-Key": "k1"}
    decided(client, "e1")
    twice = {"rewards": [{"id": "e1", "value": 1.0}] * 2}
    for _ in range(2):
        assert client.post("/v1/batch/rewards", json=twice, headers=key).status_code == 200
    assert counted(client, "e1") == [2]


def test_the_key_of_a_batch_of_decisions_names_a_set(run: Callable[..., Any]) -> None:
    client, key = run().client, {"Idempotency-Key": "k1"}
    one, two = {"context": {"x": 1}, "arms": ["a", "b"]}, {"context": {"x": 2}, "arms": ["c", "d"]}

    def send(*decisions: dict[str, Any]) -> Any:
        return client.post("/v1/batch/decisions", json={"decisions": decisions}, headers=key)

    first, again = send(one, two).json()["decisions"], send(two, one).json()["decisions"]
    assert again == first[::-1]
    others = [(one, two, one), (one,), (two, two), (one, two | {"id": "mine"}), (one, two | {"defer": True})]
    assert [send(*decisions).status_code for decisions in others] == [409] * len(others)
    assert client.get("/v1/decisions/mine").status_code == 404


def test_a_key_names_the_cost_of_a_reward_and_the_rows_of_lessons(run: Callable[..., Any]) -> None:
    client, key = run().client, {"Idempotency-Key": "k1"}
    decided(client, "e1")
    costs = (0.1, 0.1, 0.2, None)
    bodies = [{"value": 1.0} if cost is None else {"value": 1.0, "cost": cost} for cost in costs]
    codes = [client.post("/v1/decisions/e1/reward", json=body, headers=key).status_code for body in bodies]
    assert codes == [200, 200, 409, 409]
    assert counted(client, "e1") == [1]
    row = {"context": {"x": 1}, "arms": ["a", "b"], "arm": "a", "probability": 0.5, "reward": 1.0}
    rows = [[row], [row], [row | {"reward": 0.0}], [row, row]]
    codes = [client.post("/v1/lessons", json={"rows": sent}, headers=key).status_code for sent in rows]
    assert codes == [200, 200, 409, 409]


def test_a_key_names_whether_a_reward_is_final(run: Callable[..., Any]) -> None:
    """A failure would mean that a caller believes a decision to be closed that is not."""
    client = run().client
    decided(client, "e1")
    codes = [
        client.post("/v1/decisions/e1/reward", json=body, headers={"Idempotency-Key": "k"}).status_code
        for body in ({"value": 1.0}, {"value": 1.0, "final": True}, {"value": 1.0, "final": False})
    ]
    assert codes == [200, 409, 200]


def test_a_batch_with_one_id_and_two_contents_is_refused_whole(run: Callable[..., Any]) -> None:
    client = run().client

    def send(*decisions: dict[str, Any]) -> Any:
        return client.post("/v1/batch/decisions", json={"decisions": decisions})

    refused = send({"id": "e1", "arms": ["a", "b"]}, {"id": "e2", "arms": ["a"]}, {"id": "e1", "arms": ["c", "d"]})
    assert refused.status_code == 409
    assert refused.json()["error"]["message"] == "event e1 is in this batch with two contents"
    assert [client.get(f"/v1/decisions/{id}").status_code for id in ("e1", "e2")] == [404, 404]
    same = send({"id": "e1", "arms": ["a", "b"]}, {"id": "e1", "arms": ["a", "b"]}).json()["decisions"]
    assert same[0] == same[1]


def test_a_batch_cannot_give_a_decision_more_rewards_than_it_takes(run: Callable[..., Any]) -> None:
    client = run().client
    decided(client, "e1")

    def send(n: int) -> int:
        return int(client.post("/v1/batch/rewards", json={"rewards": [{"id": "e1", "value": 1.0}] * n}).status_code)

    assert [send(600), send(600), send(400), send(1)] == [200, 409, 200, 409]
    assert counted(client, "e1") == [1000]


def test_batches_keep_their_keys_over_several_databases(urls: list[str], run: Callable[..., Any]) -> None:
    client = run(Config(storage=urls, applications={"shop": Application(features={"dim": 8})})).client
    ids = [f"e{k}" for k in range(12)]  # which belong to all three databases
    decided(client, *ids)
    rewards, key = [{"id": id, "value": 1.0} for id in ids], {"Idempotency-Key": "k1"}

    def send(rewards: list[dict[str, Any]]) -> int:
        return int(client.post("/v1/batch/rewards", json={"rewards": rewards}, headers=key).status_code)

    assert [send(rewards[:10]), send(rewards[:10][::-1]), send(rewards), send(rewards[10:])] == [200, 200, 409, 409]
    assert counted(client, *ids) == [1] * 10 + [0] * 2
    asked = [{"context": {"x": k}, "arms": ["a", "b"]} for k in range(6)]

    def decide(decisions: list[dict[str, Any]]) -> Any:
        return client.post("/v1/batch/decisions", json={"decisions": decisions}, headers=key)

    first, again = decide(asked[:5]).json()["decisions"], decide(asked[:5][::-1]).json()["decisions"]
    assert again == first[::-1]
    assert decide(asked).status_code == 409
    twice = [{"id": f"n{k % 7}", "arms": ["a"] if k < 7 else ["b"]} for k in range(8)]
    assert client.post("/v1/batch/decisions", json={"decisions": twice}).status_code == 409
    assert [client.get(f"/v1/decisions/n{k}").status_code for k in range(7)] == [404] * 7


def test_retention_drops_the_record_of_a_batch_with_its_time(engines: Callable[..., Any], clock: Any) -> None:
    engine = engines(window=1.0)
    for id in ("e1", "e2"):
        engine.decide("shop", b"{}", [b'"a"', b'"b"'], id=id)
    rewards = [engine.prepare_reward("shop", id, 1.0) for id in ("e1", "e2")]
    engine.writer.write(keyed(rewards, lambda part: f"batch {part} k1"))
    clock.now += 86_400.0
    engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="e3")
    engine.expire()
    engine.wait_learnt()
    with engine.reading as journal:
        assert journal.connection.execute("SELECT count(*) FROM requests WHERE request LIKE 'batch%'") == [(3,)]
    Retention(engine, days=0.5).run()
    with engine.reading as journal:
        assert journal.connection.execute("SELECT count(*) FROM requests WHERE request LIKE 'batch%'") == [(0,)]
        assert journal.connection.execute("SELECT count(*) FROM events WHERE kind = 'batch'") == [(0,)]
    assert not verify(engine.open_journal()).problems
