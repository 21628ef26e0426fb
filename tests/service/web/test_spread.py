"""A service over several databases, as its clients see it."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import httpx
import numpy as np
import psycopg
import pyarrow.parquet as pq
import pytest

from armwise.cli.main import main
from armwise.service.engine.application import Application
from armwise.service.journal.writes import keyed
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.sharding.sharded_engine import ShardedEngine
from tests.service.serving import Running

ASKED = {"context": {"x": 1, "user": "u1"}, "arms": ["a", "b"]}


def config(urls: list[str], **settings: object) -> Config:
    return Config(storage=urls, applications={"shop": Application(features={"dim": 8}, **settings)})  # type: ignore[arg-type]


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(urls: list[str], **settings: object) -> Running:
        made.append(Running(Service(config(urls, **settings))))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def allow(url: str, connections: bool) -> None:
    base, _, name = url.rpartition("/")
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {connections}")
        if not connections:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


def decide(client: httpx.Client, n: int) -> list[str]:
    return [client.post("/v1/decisions", json=ASKED | {"id": f"e{k}"}).json()["id"] for k in range(n)]


def test_a_lost_database_is_503_for_its_share_and_the_process_stays_ready(
    urls: list[str], serve: Callable[..., Running]
) -> None:
    running = serve(urls)
    client, shards = running.client, cast(ShardedEngine, running.service.engine)
    ids = decide(client, 30)
    assert client.put("/v1/experiments/colour", json={"arms": ["a", "b"]}).status_code == 200
    assert client.get("/readyz").json() == {"status": "ready", "databases": dict.fromkeys("123", "ready")}
    allow(urls[1], False)
    try:
        codes: dict[bool, set[int]] = {True: set(), False: set()}
        for id in ids:
            answer = client.post(f"/v1/decisions/{id}/reward", json={"value": 1})
            codes[shards.label(shards.members.owner(id)) == "2"].add(answer.status_code)
            if answer.status_code == 503:
                assert answer.headers["retry-after"] == "1" and "127.0.0.1" not in answer.text
        assert codes == {True: {503}, False: {200}}
        ready = client.get("/readyz")
        assert ready.status_code == 200, "a load balancer must not take the process away"
        assert ready.json()["databases"] == {"1": "ready", "2": "cannot be written", "3": "ready"}
        text = client.get("/metrics").text
        assert 'armwise_database_up{database="2"} 0' in text and 'armwise_database_up{database="1"} 1' in text
        refused = [
            client.patch("/v1/settings", json={"window": 5}), client.get("/v1/log"),
            client.post("/v1/erasures", json={"key": "user", "value": "u1"}),
            *[client.post("/v1/experiments/colour/erasures", json={"unit": f"u{k}"}) for k in range(6)],
        ]  # fmt: skip
        assert [answer.status_code for answer in refused] == [503] * 9, "nothing is done, or answered, by halves"
    finally:
        allow(urls[1], True)
    end = time.monotonic() + 20.0
    while client.get("/readyz").json()["databases"]["2"] != "ready":
        assert time.monotonic() < end, "it did not heal by itself"
        time.sleep(0.1)
    answers = [client.post(f"/v1/decisions/{id}/reward", json={"value": 1}).status_code for id in ids]
    assert answers == [200] * 30


def test_what_concerns_all_databases_is_answered_from_all(
    urls: list[str], serve: Callable[..., Running], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    running = serve(urls, window=3600.0)
    client = running.client
    ids = decide(client, 24)
    for id in ids:
        client.post(f"/v1/decisions/{id}/reward", json={"value": 1})
    for kind in ("json", "dsjson"):
        lines = [json.loads(line) for line in client.get(f"/v1/log?format={kind}").text.splitlines()]
        assert sorted(line.get("id") or line["EventId"] for line in lines) == sorted(ids)
    table = pq.read_table(io.BytesIO(client.get("/v1/log?format=parquet").content))
    assert sorted(table["id"].to_pylist()) == sorted(ids)
    assert len(client.get("/v1/log?limit=7").text.splitlines()) == 7
    assert client.get("/v1/log?after=3").status_code == 400
    batch = {"rewards": [{"id": id, "value": 0.5} for id in ids]}
    assert len(client.post("/v1/batch/rewards", json=batch).json()["rewards"]) == 24
    made = client.post("/v1/batch/decisions", json={"decisions": [ASKED] * 5}, headers={"Idempotency-Key": "k"})
    again = client.post("/v1/batch/decisions", json={"decisions": [ASKED] * 5}, headers={"Idempotency-Key": "k"})
    assert [one["id"] for one in made.json()["decisions"]] == [one["id"] for one in again.json()["decisions"]]
    catalogue = client.post("/v1/catalogues", json={"arms": ["a", "b", "c"]}).json()["catalogue"]
    asked = [client.post("/v1/decisions", json={"catalogue": catalogue}).status_code for _ in range(9)]
    assert asked == [201] * 9
    assert client.patch("/v1/settings", json={"window": 5}).json()["window"] == 5
    assert client.get("/v1/agents").json()["agents"][0]["lessons"] == 24
    assert client.put("/personalizer/v1.0/model", content=b"x").status_code == 400
    erased = client.post("/v1/erasures", json={"key": "user", "value": "u1"}).json()
    assert erased["deleted"] >= 48, "what is settled goes, in every database"
    slots = {"actions": [{"id": "a", "features": []}, {"id": "b", "features": []}],
             "slots": [{"id": "s", "baselineAction": "a"}, {"id": "t", "baselineAction": "b"}]}  # fmt: skip
    path, key = "/personalizer/v1.1-preview.3/multislot", {"x-ms-client-request-id": "m"}
    ranked = [client.post(f"{path}/rank", json=slots, headers=key).json() for _ in range(2)]
    assert ranked[0] == ranked[1], "a retry without an event id is the same event"
    given = client.post(f"{path}/events/{ranked[0]['eventId']}/reward", json={"reward": [{"slotId": "t", "value": 1}]})
    assert given.status_code == 204
    assert client.get("/personalizer/v1.0/logs/properties").status_code == 200
    assert client.delete("/personalizer/v1.0/logs").status_code == 204
    assert client.get("/v1/log").text == ""
    named = [word for url in urls for word in ("--storage", url)]
    assert main(["journal", "verify", *named]) == 0
    assert capsysbinary.readouterr().out.count(b"all is well") == 3
    assert main(["journal", "export", "--storage", urls[0]]) == 2, "of one database it would be half the log"
    assert b"must be named too" in capsysbinary.readouterr().err


def test_a_database_is_added_by_reading_the_configuration_again(urls: list[str], serve: Callable[..., Running]) -> None:
    running = serve(urls[:2])
    client, service = running.client, running.service
    ids = decide(client, 20)
    service.reload(config(urls))
    assert client.get("/readyz").json()["databases"] == dict.fromkeys("123", "ready")
    assert [client.get(f"/v1/decisions/{id}").status_code for id in ids] == [200] * 20
    assert [client.post("/v1/decisions", json=ASKED | {"id": id}).status_code for id in ids] == [200] * 20
    assert client.get("/v1/decisions/nobody").status_code == 404
    with pytest.raises(ValueError, match="cannot be taken away"):
        service.reload(config(urls[:2]))
    assert len(service.retain()) == 3


def test_nothing_is_refused_while_a_database_is_added(urls: list[str], serve: Callable[..., Running]) -> None:
    """Before, a decision with an idempotency key that was drawn just before and committed just after it was 503."""
    running = serve(urls[:2])
    service = running.service
    shards = cast(Any, service.engine)
    keys = [f"v1\x1fdecide\x1fk{k}" for k in range(12)]
    drawn = [shards.prepare("shop", b'{"x": 1}', [b'"a"', b'"b"'], request=key) for key in keys]
    batch = [shards.prepare("shop", b'{"x": %d}' % k, [b'"a"', b'"b"'], request="v1\x1fdecide\x1fb") for k in range(4)]
    batch = keyed(batch, lambda part: f"v1\x1fbatch decide\x1f{part}\x1fb")
    service.reload(config(urls))
    written = [shards.writer.write([write])[0] for write in drawn]
    whole = shards.writer.write(batch)
    assert len(whole) == 5 and len({each.row.id for each in written}) == 12
    assert [shards.members.owner(each.row.id) for each in written] == [shards.members.owner(f"k{k}") for k in range(12)]
    again = [shards.prepare("shop", b'{"x": 1}', [b'"a"', b'"b"'], request=key) for key in keys]
    assert [shards.writer.write([write])[0].row.id for write in again] == [each.row.id for each in written]


def test_the_page_shows_what_all_databases_have_and_goes_on_without_a_lost_one(
    urls: list[str], serve: Callable[..., Running]
) -> None:
    running = serve(urls, window=3600.0)
    client, shards = running.client, cast(ShardedEngine, running.service.engine)
    values = {id: float(k % 4 == 0) for k, id in enumerate(decide(client, 40))}
    for id, value in values.items():
        client.post(f"/v1/decisions/{id}/reward", json={"value": value})
    shards.wait_learnt()
    with client.stream("GET", "/v1/live") as answer:
        first = next(line for line in answer.iter_lines() if line.startswith("data: "))
    seen = json.loads(first.removeprefix("data: "))
    assert (seen["rewards"]["n"], seen["rewards"]["mean"]) == (40, 0.25), "each database has only its share of them"
    times = [shown["time"] for shown in seen["decisions"]]
    assert len(times) == 12 and times == sorted(times, reverse=True), "the newest first, whichever database has them"
    homes = {shards.members.owner(shown["id"]) for shown in seen["decisions"]}
    assert len(homes) > 1, "e28 to e39 belong to several databases"
    assert all(shown["reward"] == values[shown["id"]] for shown in seen["decisions"])
    assert seen["uplift"]["random"]["n"] == 40 and seen["health"]["lessons"] == 40
    assert (seen["health"]["databases"], seen["health"]["read"], seen["health"]["unread"]) == (3, 3, 0)
    watch = running.service.watch("shop")
    allow(urls[1], False)
    try:
        end = time.monotonic() + 20.0
        while (seen := watch.look())["health"]["read"] != 2:
            assert time.monotonic() < end, "the lost database was never noticed"
            time.sleep(0.1)
        while (made := client.post("/v1/decisions", json=ASKED)).status_code == 503:  # its database is lost, too
            assert time.monotonic() < end, "a lost database takes decisions with it"
            time.sleep(0.1)
        client.post(f"/v1/decisions/{made.json()['id']}/reward", json={"value": 1})
        while watch.look()["rewards"]["n"] != 41:
            assert time.monotonic() < end, "the page stopped with one database of three"
            time.sleep(0.1)
    finally:
        allow(urls[1], True)
    end = time.monotonic() + 20.0
    while watch.look()["health"]["read"] != 3:
        assert time.monotonic() < end, "it did not heal by itself"
        time.sleep(0.1)
    assert shards.model("shop").lessons == 41 and watch.look()["rewards"]["n"] == 41, "nothing is counted twice"


def test_an_evaluation_judges_the_decisions_of_all_databases(urls: list[str], serve: Callable[..., Running]) -> None:
    running = serve(urls, window=3600.0)
    client = running.client
    for k, id in enumerate(decide(client, 60)):
        client.post(f"/v1/decisions/{id}/reward", json={"value": float(k % 3 == 0)})
    body = {"name": "all", "startTime": "2020-01-01", "endTime": "2999-01-01", "policies": []}
    where = client.post("/personalizer/v1.0/evaluations", json=body).headers["location"]
    end = time.monotonic() + 30.0
    while (found := client.get(where).json())["status"] == "pending":
        assert time.monotonic() < end, "the evaluation never ended"
        time.sleep(0.1)
    assert found["status"] == "completed", found
    lines = [json.loads(line) for line in client.get("/v1/log").text.splitlines()]
    results = {result["name"]: result["totalSummary"] for result in found["policyResults"]}
    assert results["Online"]["ipsEstimatorDenominator"] == len(lines) == 60
    assert results["Online"]["averageReward"] == pytest.approx(20 / 60)
    terms = [(line["index"] == 0) / line["probability"] for line in lines]
    earned = sum(term * line["outcomes"][0]["value"] for term, line in zip(terms, lines))
    assert results["Baseline"]["ipsEstimatorNumerator"] == pytest.approx(earned), "inverse propensities, over all"


def test_an_imported_model_counts_once_whatever_the_databases_have_learnt(
    urls: list[str], serve: Callable[..., Running]
) -> None:
    running = serve(urls, window=3600.0)
    client, shards = running.client, cast(ShardedEngine, running.service.engine)
    ids = decide(client, 30)
    for id in ids[:15]:
        client.post(f"/v1/decisions/{id}/reward", json={"value": 1})
    shards.wait_learnt()
    exported = client.get("/personalizer/v1.0/model").content
    before, rows = shards.model("shop"), np.eye(8)
    client.patch("/v1/settings", json={"window": 1800.0})
    for id in ids[15:]:
        client.post(f"/v1/decisions/{id}/reward", json={"value": 0})
    shards.wait_learnt()
    assert client.put("/personalizer/v1.0/model", content=exported).status_code == 204
    after = shards.model("shop")
    for mine, theirs in zip(after.agent.estimate(rows), before.agent.estimate(rows)):
        np.testing.assert_allclose(np.array(mine), np.array(theirs), rtol=1e-9, atol=1e-12)
    assert (after.lessons, after.settings.window) == (15, 1800.0), "settings are the application's, not the model's"
    assert [engine.learner.served["shop"].lessons for engine in shards.each] == [15, 0, 0]
    fresh = client.post("/v1/decisions", json=ASKED).json()["id"]
    client.post(f"/v1/decisions/{fresh}/reward", json={"value": 1})
    shards.wait_learnt()
    learnt = shards.model("shop")
    assert learnt.lessons == 16
    running.stop()
    again = cast(ShardedEngine, serve(urls, window=3600.0).service.engine)
    again.wait_learnt()
    for mine, theirs in zip(again.model("shop").agent.estimate(rows), learnt.agent.estimate(rows)):
        np.testing.assert_allclose(np.array(mine), np.array(theirs), rtol=1e-9, atol=1e-12)
    assert main(["journal", "verify", *[word for url in urls for word in ("--storage", url)]]) == 0
