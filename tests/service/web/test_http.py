"""The service over HTTP: its own API, keys, limits, and what it says of itself."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from armwise.service.engine.application import Application
from armwise.service.model.build import build_model
from armwise.service.server.app import Service
from armwise.service.server.config import Config, load_config
from armwise.service.web.keys import Key, digest
from tests.service.serving import Running

BODY = {"context": {"hour": 9}, "arms": ["pasta", {"id": "salad", "features": {"fresh": True}}]}


def test_decide_reward_and_look(run: Callable[..., Any]) -> None:
    client = run().client
    asked = client.post("/v1/decisions", json={**BODY, "id": "evt 1/x"})
    assert asked.status_code == 201
    answer = asked.json()
    assert answer["id"] == "evt 1/x"
    assert sum(each["probability"] for each in answer["probabilities"]) == pytest.approx(1.0)
    again = client.post("/v1/decisions", json={**BODY, "id": "evt 1/x"})
    assert (again.status_code, again.json()) == (200, answer)
    assert client.post("/v1/decisions", json={**BODY, "id": "evt 1/x", "defer": True}).status_code == 409
    path = "/v1/decisions/evt%201%2Fx"
    assert client.post(f"{path}/reward", json={"value": 0.75}).json() == {
        "id": "evt 1/x",
        "late": False,
        "learnt": True,
        "repeated": False,
    }
    found = client.get(path).json()
    assert (found["reward"], found["context"], found["arm"]) == (0.75, {"hour": 9}, answer["arm"])
    assert client.post("/v1/decisions/nobody/reward", json={"value": 1}).status_code == 404
    assert client.get("/v1/decisions/nobody").status_code == 404


def test_deferred_and_activated(run: Callable[..., Any]) -> None:
    client = run().client
    id = client.post("/v1/decisions", json={**BODY, "defer": True}).json()["id"]
    assert not client.post(f"/v1/decisions/{id}/reward", json={"value": 1}).json()["learnt"]
    assert client.post(f"/v1/decisions/{id}/activate").json()["learnt"]


def test_what_it_says_of_itself(run: Callable[..., Any]) -> None:
    client = run().client
    client.post("/v1/decisions", json=BODY)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").status_code == 200
    [agent] = client.get("/v1/agents").json()["agents"]
    assert agent["agent"].startswith("Explore(agent=LinUCB(")
    metrics = client.get("/metrics").text
    assert 'armwise_requests_total{method="POST",path="v1/decisions",status="201"} 1' in metrics
    assert client.get("/openapi.json").json()["openapi"] == "3.1.0"
    assert client.head("/healthz").content == b""


def test_ages_in_the_log_are_those_of_now(run: Callable[..., Any]) -> None:
    """Of a quiet service they were those of its last event: a horizon that all had passed was refused."""
    client = run().client
    client.post("/v1/decisions", json=BODY)
    time.sleep(0.2)
    for kind in ("json", "dsjson"):
        assert json.loads(client.get(f"/v1/log?format={kind}").text)["age"] > 0.1


def test_the_log_comes_as_lines(run: Callable[..., Any]) -> None:
    client = run().client
    ids = [client.post("/v1/decisions", json=BODY).json()["id"] for _ in range(5)]
    client.post(f"/v1/decisions/{ids[2]}/reward", json={"value": 0.25})
    lines = [json.loads(line) for line in client.get("/v1/log").text.splitlines()]
    assert [line["id"] for line in lines] == ids
    assert [line["reward"] for line in lines] == [
        None
    ] * 5  # before its window closes, no clicked one before the others
    assert [line["status"] for line in lines] == ["open", "open", "provisional", "open", "open"]
    assert len(client.get(f"/v1/log?after={lines[1]['seq']}&limit=2").text.splitlines()) == 2
    client.post(f"/v1/decisions/{ids[2]}/reward", json={"value": 0.25, "final": True})
    line = client.get("/v1/log?format=dsjson").text.splitlines()[2]
    assert line.index("_label_cost") < line.index('"c"')
    told = json.loads(line)
    assert (told["_label_cost"], told["a"][0] - 1) == (-0.25, told["_labelIndex"])
    assert told["p"][0] == told["_label_probability"]


def test_settings(run: Callable[..., Any]) -> None:
    client = run().client
    changed = client.patch("/v1/settings", json={"window": 5, "rule": "sum", "epsilon": 0.5})
    settings = {"window": 5.0, "default": 0.0, "rule": "sum", "learn": "provisional", "apprentice": False}
    settings |= {"drift": "forget", "new_arms": 0.1, "max_pairs": 10_000_000, "policies": {}}
    assert changed.json() == settings
    assert client.get("/v1/agents").json()["agents"][0]["agent"].endswith("epsilon=0.5)")
    assert client.patch("/v1/settings", json={"window": 0}).status_code == 400
    assert client.patch("/v1/settings", json={"new_arms": 0.25}).json() == settings | {"new_arms": 0.25}
    refused = client.patch("/v1/settings", json={"new_arms": 1.5})
    assert refused.status_code == 400 and "new_arms must be a share between 0 and 1" in refused.text


def test_several_applications(run: Callable[..., Any]) -> None:
    fixed = Application(agent={"class": "Exp3", "n_arms": 2}, arms=["a", "b"])
    client = run(applications={"shop": Application(), "news": fixed}).client
    assert client.post("/apps/news/v1/decisions", json={"arms": ["a", "b"], "id": "e"}).status_code == 201
    assert client.post("/apps/news/v1/decisions", json={"arms": ["c"]}).status_code == 400
    assert client.post("/apps/news/v1/decisions/e/reward", json={"value": -1}).status_code == 400  # Exp3 takes [0, 1]
    assert client.get("/apps/shop/v1/decisions/e").status_code == 404
    assert client.post("/apps/none/v1/decisions", json={"arms": ["c"]}).status_code == 404


# ---------------------------------------------------------------------- keys


@pytest.fixture
def keyed(run: Callable[..., Any]) -> Any:
    keys = [
        Key(name="site", sha256=digest("site"), roles=["decide"]),
        Key(name="back", sha256=digest("back"), roles=["reward"], applications=["shop"]),
        Key(name="eyes", sha256=digest("eyes"), roles=["read"], applications=["news"]),
        Key(name="boss", sha256=digest("boss"), roles=["admin"]),
    ]
    return run(keys=keys, applications={"shop": Application(), "news": Application()}).client


def test_each_key_may_do_what_its_roles_say(keyed: Any) -> None:
    def status(key: str, method: str, path: str, body: Any = None) -> int:
        return int(keyed.request(method, path, json=body, headers={"Authorization": f"Bearer {key}"}).status_code)

    assert status("site", "POST", "/v1/decisions", {**BODY, "id": "e1"}) == 201
    assert status("back", "POST", "/v1/decisions", BODY) == 403
    assert status("site", "POST", "/v1/decisions/e1/reward", {"value": 1}) == 403
    assert status("back", "POST", "/v1/decisions/e1/reward", {"value": 1}) == 200
    assert status("site", "GET", "/v1/agents") == 403
    assert status("boss", "PATCH", "/v1/settings", {"window": 5}) == 200
    assert status("site", "PATCH", "/v1/settings", {"window": 5}) == 403
    assert status("boss", "POST", "/v1/decisions", BODY) == 201


def test_a_key_for_one_application_sees_no_other(keyed: Any) -> None:
    eyes = {"Ocp-Apim-Subscription-Key": "eyes"}
    assert [a["name"] for a in keyed.get("/v1/agents", headers=eyes).json()["agents"]] == ["news"]
    assert 'application="shop"' not in keyed.get("/metrics", headers=eyes).text
    exists, does_not = (keyed.get(f"/apps/{name}/v1/agents", headers=eyes) for name in ("shop", "nothing"))
    assert (exists.status_code, exists.content) == (does_not.status_code, does_not.content) == (403, exists.content)


def test_without_a_key_nothing_is_told(keyed: Any) -> None:
    boss = {"Authorization": "Bearer boss"}
    keyed.post("/v1/decisions", json={**BODY, "id": "e1"}, headers=boss)
    paths = [
        "/v1/decisions/e1",
        "/v1/decisions/e2",
        "/v1/log",
        "/apps/shop/v1/agents",
        "/apps/x/v1/agents",
        "/no",
        "/metrics",
    ]
    answers = [
        keyed.get(path, headers=h) for path in paths for h in ({}, {"x-api-key": "guess"}, {"Authorization": "Basic x"})
    ]
    assert {a.status_code for a in answers} == {401}
    assert len({a.content for a in answers}) == 1
    assert keyed.get("/healthz").status_code == 200


def test_only_hashes_of_keys_are_kept(keyed: Any) -> None:
    with pytest.raises(ValueError, match="64 hexadecimal"):
        Key(name="k", sha256="s3cret", roles=["read"])
    with pytest.raises(ValueError, match="'write' is not one of"):
        Key(name="k", sha256=digest("s"), roles=["write"])


@pytest.mark.parametrize("listen", ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "example.org:80", ":80"])
def test_without_keys_it_listens_only_on_loopback(listen: str) -> None:
    with pytest.raises(ValueError, match="there are no keys"):
        Config(listen=listen)
    Config(listen=listen, keys=[Key(name="k", sha256=digest("s"), roles=["read"])])


# ---------------------------------------------------------------------- without keys


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8484"},
        {"Host": "localhost.evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "192.168.0.1"},
        {"Host": "127.0.0.1:80:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "http://evil.example/http://127.0.0.1"},
        {"Origin": "null"},
        {"Origin": ""},
    ],
)
def test_pages_from_elsewhere_are_refused_where_there_are_no_keys(shared_service: Any, headers: dict[str, str]) -> None:
    """A browser on this machine would send them, or by a name that its owner pointed here ("DNS rebinding")."""
    headers = {"Content-Type": "text/plain", **headers}
    client = shared_service.client
    assert client.get("/v1/agents").status_code == 200  # what was accepted before changes nothing
    before = client.get("/v1/agents").text, len(client.get("/v1/log").text.splitlines())
    for method, path, body in (
        ("POST", "/v1/decisions", BODY),
        ("POST", "/personalizer/v1.0/rank", {"actions": [{"id": "a", "features": []}]}),
        ("GET", "/v1/agents", None),
        ("GET", "/v1/log", None),
        ("PATCH", "/v1/settings", {"window": 5}),
        ("GET", "/", None),
    ):
        answer = client.request(method, path, content=json.dumps(body).encode(), headers=headers)
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "Forbidden"
    assert (client.get("/v1/agents").text, len(client.get("/v1/log").text.splitlines())) == before


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:8484", "[::1]", "[::1]:8484"])
def test_this_machine_is_served_by_each_of_its_names(shared_service: Any, name: str) -> None:
    for headers in ({"Host": name}, {"Origin": f"http://{name}"}, {"Host": name, "Origin": f"https://{name}"}):
        assert shared_service.client.post("/v1/decisions", json=BODY, headers=headers).status_code == 201


def test_a_request_without_a_host_is_not_from_a_browser(shared_service: Any) -> None:
    host, port = urlsplit(shared_service.url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(b"GET /v1/agents HTTP/1.0\r\n\r\n")
        assert b" 200 " in raw.recv(4096)


def test_with_keys_any_name_will_do(keyed: Any) -> None:
    headers = {"Authorization": "Bearer boss", "Host": "shop.example", "Origin": "https://shop.example"}
    assert keyed.post("/v1/decisions", json=BODY, headers=headers).status_code == 201


def test_configuration_file(tmp_path: Any) -> None:
    path = tmp_path / "shop.toml"
    path.write_text(
        f"""
        listen = "127.0.0.1:0"
        storage = "{tmp_path}/data"
        [[keys]]
        name = "site"
        sha256 = "{digest("x")}"
        roles = ["decide"]
        [applications.shop]
        window = 60
        agent = {{class = "Explore", epsilon = 0.2, agent = {{class = "LinThompson", v = 0.5}}}}
        features = {{dim = 64}}
        """
    )
    config = load_config(path)
    assert repr(build_model(config.creations()["shop"]).agent).startswith("Explore(agent=LinThompson(dim=64, v=0.5")
    path.write_text("colour = 1")
    with pytest.raises(ValueError, match="colour"):
        load_config(path)
    path.write_text("colour = ")
    with pytest.raises(ValueError, match=r"shop.toml"):
        load_config(path)


# ---------------------------------------------------------------------- hostile requests


HOSTILE = {
    "deep": b'{"arms": ["a"], "context": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "deep list": b"[" * 500_000,
    "nan": b'{"arms": ["a"], "context": {"x": NaN}}',
    "huge number": b'{"arms": ["a"], "context": {"x": 1e999}}',
    "long number": b'{"arms": ["a"], "context": {"x": ' + b"1" * 100_000 + b"}}",
    "duplicate": b'{"arms": ["a"], "arms": ["b"]}',
    "duplicate inside": b'{"arms": ["a"], "context": {"x": 1, "x": 2}}',
    "duplicate in arm": b'{"arms": [{"id": "a", "features": {"x": 1, "x": 2}}]}',
    "bad utf-8": b'{"arms": ["\xff"]}',
    "bad utf-8 in context": b'{"arms": ["a"], "context": {"x": "\xc3\x28"}}',
    "lone surrogate": b'{"arms": ["\\ud800"]}',
    "long id": b'{"arms": ["a"], "id": "' + b"x" * 1_000_000 + b'"}',
    "long arm": b'{"arms": ["' + b"x" * 1_000_000 + b'"]}',
    "no arms": b'{"arms": []}',
    "not arms": b'{"arms": "a"}',
    "null": b"null",
    "empty": b"",
    "binary": bytes(range(256)),
    "unknown field": b'{"arms": ["a"], "colour": 1}',
    "wrong type": b'{"arms": ["a"], "id": 7}',
    "list context": b'{"arms": ["a"], "context": [1]}',
    "string context": b'{"arms": ["a"], "context": "x"}',
}


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")))))
    yield running
    running.stop()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_get_4xx_soon(shared_service: Any, name: str) -> None:
    started = time.monotonic()
    answer = shared_service.client.post("/v1/decisions", content=HOSTILE[name])
    assert 400 <= answer.status_code < 500
    assert set(answer.json()) == {"error"}
    assert len(answer.content) < 1000
    assert time.monotonic() - started < 5.0


def test_100_megabytes_are_not_read(shared_service: Any) -> None:
    host, port = urlsplit(shared_service.url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n{")
        assert b" 413 " in raw.recv(4096)
    with socket.create_connection((host, int(port)), timeout=10) as raw:  # and without saying so first
        raw.sendall(b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(1600):
                raw.sendall(chunk)
        except OSError:
            pass  # cut off, as it should be
        else:
            assert b" 413 " in raw.recv(4096)
    assert shared_service.client.get("/healthz").status_code == 200


def test_ids_of_a_million_characters_in_the_path(shared_service: Any) -> None:
    host, port = urlsplit(shared_service.url).netloc.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("POST", "/v1/decisions/" + "x" * 1_000_000 + "/reward", b'{"value": 1}')
        with connection.getresponse() as response:
            assert 400 <= response.status < 500
    except (ConnectionError, http.client.HTTPException):
        pass  # refused even sooner
    finally:
        connection.close()
    assert shared_service.client.post(f"/v1/decisions/{'x' * 300}/reward", json={"value": 1}).status_code == 400
    assert shared_service.client.get("/v1/decisions/%ff").status_code == 400


@pytest.mark.parametrize("value", ["NaN", '"1"', "true", "null", "1e999", "[1]", "1" * 500])
def test_hostile_rewards_get_400(shared_service: Any, value: str) -> None:
    shared_service.client.post("/v1/decisions", json={**BODY, "id": "rewarded"})
    answer = shared_service.client.post("/v1/decisions/rewarded/reward", content=f'{{"value": {value}}}'.encode())
    assert answer.status_code == 400
