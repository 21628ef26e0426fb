"""A service over several databases, as its clients see it."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from typing import cast

import httpx
import psycopg
import pyarrow.parquet as pq
import pytest
from database import Server
from serving import Running

from armwise.cli.main import main
from armwise.serve.app import Service
from armwise.serve.config import Config
from armwise.serve.engine.application import Application
from armwise.serve.engine.shards import Shards

ASKED = {"context": {"x": 1, "user": "u1"}, "arms": ["a", "b"]}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def urls(server: Server) -> list[str]:
    return [server.new_database() for _ in range(3)]


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
    client, shards = running.client, cast(Shards, running.service.engine)
    ids = decide(client, 30)
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
        ]  # fmt: skip
        assert [answer.status_code for answer in refused] == [503] * 3, "nothing is done, or answered, by halves"
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
    for method, path in (("GET", "/v1/versions"), ("GET", "/v1/live"), ("GET", "/personalizer/v1.0/evaluations")):
        answer = client.request(method, path)
        assert answer.status_code == 501 and "several" in answer.text, path
    assert client.put("/personalizer/v1.0/model", content=b"x").status_code == 501
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
