"""Hostile bodies on both faces: 4xx with a reason, soon, and in little memory; never 5xx."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st

from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web import connections
from tests.service.serving import Running

V1, OLD = "/personalizer/v1.0", "/personalizer/v1.1-preview.3"
SLOT = {"id": "top", "baselineAction": "a", "features": [{"size": 1}]}
EVALUATION = {"name": "n", "startTime": "2000-01-01T00:00:00Z", "endTime": "2999-01-01T00:00:00Z", "policies": []}
FACES: dict[str, tuple[str, str, Any]] = {  # method, path, a body that would do
    "decide": ("POST", "/v1/decisions", {"arms": ["a"], "context": {"x": 1}}),
    "give": ("POST", "/v1/decisions/e/reward", {"value": 1}),
    "settings": ("PATCH", "/v1/settings", {"window": 5}),
    "rank": ("POST", f"{V1}/rank", {"actions": [{"id": "a", "features": []}], "contextFeatures": [{"x": 1}]}),
    "reward": ("POST", f"{V1}/events/e/reward", {"value": 1}),
    "slots": ("POST", f"{OLD}/multislot/rank", {"actions": [{"id": "a", "features": []}], "slots": [SLOT]}),
    "slots reward": ("POST", f"{OLD}/multislot/events/e/reward", {"reward": [{"slotId": "top", "value": 1}]}),
    "configuration": ("PUT", f"{OLD}/configurations/service", {"rewardWaitTime": "PT5M"}),
    "policy": ("PUT", f"{OLD}/configurations/policy", {"name": "n", "arguments": '{"class": "LinUCB"}'}),
    "model": ("PUT", f"{OLD}/model", {}),
    "evaluation": ("POST", f"{OLD}/evaluations", EVALUATION),
    "apply": ("POST", f"{OLD}/configurations/applyFromEvaluation", {"evaluationId": "x", "policyName": "n"}),
}
BODIES = {
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "a string": b'"x"',
    "binary": bytes(range(256)),
    "deep lists": b"[" * 400_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "duplicate keys": b'{"value": 1, "value": 1}',
    "not a number": b'{"value": NaN}',
    "infinity": b'{"value": 1e999}',
    "a long number": b'{"value": ' + b"1" * 500_000 + b"}",
    "bad utf-8": b'{"value": "\xff\xfe"}',
    "lone surrogate": b'{"value": "\\ud800"}',
    "unknown": b'{"colour": 1}',
    "long string": b'{"name": "' + b"x" * 1_000_000 + b'"}',
    "truncated": b'{"value": ',
    "too long": b" " * 2_000_000,
}
# Bodies that are right but for one value, put in place of "?".
ONE_WRONG = {
    "deep": b"[" * 50_000 + b"]" * 50_000,
    "deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "nan": b"NaN",
    "huge": b"1e400",
    "bad utf-8": b'"\xc3\x28"',
    "a million characters": b'"' + b"x" * 1_000_000 + b'"',
    "duplicate keys": b'{"a": 1, "a": 2}',
}
PLACES = {
    "rank": [
        b'{"actions": ?}',
        b'{"actions": [?]}',
        b'{"actions": [{"id": ?, "features": []}]}',
        b'{"actions": [{"id": "a", "features": [?]}]}',
        b'{"actions": [{"id": "a", "features": [{"x": ?}]}]}',
        b'{"actions": [{"id": "a", "features": []}], "contextFeatures": [{"x": ?}]}',
        b'{"actions": [{"id": "a", "features": []}], "eventId": ?}',
        b'{"actions": [{"id": "a", "features": []}], "excludedActions": [?, 1]}',
    ],
    "slots": [
        b'{"actions": [{"id": "a", "features": []}], "slots": [{"id": ?, "baselineAction": "a"}]}',
        b'{"actions": [{"id": "a", "features": []}], "slots": [{"id": "s", "baselineAction": ?}]}',
        b'{"actions": [{"id": "a", "features": []}], "slots": [{"id": "s", "baselineAction": "a", "features": [?]}]}',
    ],
    "decide": [b'{"arms": ["a"], "context": {"x": ?}}', b'{"arms": [?]}', b'{"arms": ["a"], "id": ?}'],
    "slots reward": [b'{"reward": [{"slotId": ?, "value": 1}]}', b'{"reward": [{"slotId": "top", "value": ?}]}'],
    "policy": [b'{"name": "n", "arguments": ?}', b'{"name": ?, "arguments": "{}"}'],
    "evaluation": [b'{"name": "n", "startTime": ?, "endTime": "2999-01-01"}'],
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")))))
    running.client.post("/v1/decisions", json={"arms": ["a"], "id": "e"})
    running.client.post(FACES["slots"][1], json={**FACES["slots"][2], "eventId": "e"})
    yield running
    running.stop()


def refused(running: Any, method: str, path: str, body: bytes) -> None:
    started = time.monotonic()
    answer = running.client.request(method, path, content=body)
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.content[:300], body[:100])
    assert set(answer.json()) == {"error"}
    assert answer.json()["error"]["message"]
    assert len(answer.content) < 1200
    assert time.monotonic() - started < 5.0


@pytest.mark.parametrize("face", FACES)
def test_bodies_that_make_no_sense(shared: Any, face: str) -> None:
    method, path, _ = FACES[face]
    for body in BODIES.values():
        refused(shared, method, path, body)


@pytest.mark.parametrize("face", PLACES)
def test_bodies_with_one_hostile_value(shared: Any, face: str) -> None:
    method, path, _ = FACES[face]
    for place in PLACES[face]:
        for value in ONE_WRONG.values():
            refused(shared, method, path, place.replace(b"?", value))


def _memory() -> int:
    """What this process, the service in it included, keeps in memory, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("face", ["rank", "decide", "slots reward", "model"])
@pytest.mark.parametrize("announced", [True, False])
def test_100_megabytes(shared: Any, face: str, announced: bool) -> None:
    """Read away, up to a bound, so that the reason arrives; kept nowhere. (A model may have 64 MB.)"""
    method, path, _ = FACES[face]
    before, started = _memory(), time.monotonic()
    pieces = (b"x" * 1_000_000 for _ in range(100))
    headers = {"Content-Length": "100000000"} if announced else {}
    answer = shared.client.request(method, path, content=pieces, headers=headers)
    assert (answer.status_code, set(answer.json())) == (413, {"error"})
    assert _memory() - before < (200 << 20 if face == "model" else 24 << 20)
    assert time.monotonic() - started < 10.0


def test_a_body_that_never_comes_keeps_nobody_waiting(shared: Any) -> None:
    address = urlsplit(shared.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as raw:
        raw.sendall(f"POST {V1}/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n{{".encode())
        assert b" 413 " in raw.recv(4096)


def test_ids_of_a_million_characters_in_the_path(shared: Any) -> None:
    address = urlsplit(shared.url)
    for path in (f"{V1}/events/{'x' * 1_000_000}/reward", f"{OLD}/multislot/events/{'%2F' * 300_000}/activate"):
        with socket.create_connection((address.hostname, address.port), timeout=10) as raw:
            try:
                raw.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())
                answer = raw.recv(4096)
            except OSError:
                answer = b""
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    for id in ("x" * 257, "%ff", "%00", "%0a"):
        assert shared.client.post(f"{V1}/events/{id}/activate").status_code == 400
        assert shared.client.post(f"{OLD}/multislot/events/{id}/activate").status_code == 400


# ---------------------------------------------------------------------- chance

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def altered(draw: Any) -> tuple[str, str, Any]:
    """A body that would do, with a few of its parts replaced, removed or doubled."""
    method, path, body = FACES[draw(st.sampled_from(sorted(set(FACES) - {"model"})))]
    body = json.loads(json.dumps(body))
    for _ in range(draw(st.integers(0, 3))):
        spot: Any = None
        key: Any = None
        inside: Any = body
        while isinstance(inside, (dict, list)) and inside and (spot is None or draw(st.booleans())):
            key = draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
            spot, inside = inside, inside[key]
        if spot is None:
            break
        if draw(st.booleans()) and isinstance(spot, list):
            spot.append(spot[key])
        else:
            spot[key] = draw(JSON)
    return method, path, body


@hypothesis.settings(
    max_examples=120, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@hypothesis.given(request=altered())
def test_altered_bodies_never_get_5xx(shared: Any, request: tuple[str, str, Any]) -> None:
    method, path, body = request
    answer = shared.client.request(method, path, json=body)
    assert answer.status_code < 500, (body, answer.text)
    if answer.status_code >= 400:
        assert set(answer.json()["error"]) == {"code", "message"}
    else:
        assert answer.status_code in (200, 201, 204)


def _speak(running: Any, *pieces: bytes, wait: float = 5.0) -> bytes:
    with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2])), timeout=wait) as there:
        with contextlib.suppress(OSError):  # it may close while we still send
            for piece in pieces:
                there.sendall(piece)
        heard = b""
        with contextlib.suppress(OSError):
            while piece := there.recv(65536):
                heard += piece
        return heard


def test_headers_without_end_are_cut_off(shared: Any) -> None:
    answer = _speak(shared, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ", *[b"y" * 65536] * 40)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")  # the connection may be reset before it is read
    assert shared.client.get("/healthz").status_code == 200
    large = {"x-large": "y" * 30_000}
    assert shared.client.get("/healthz", headers=large).status_code == 200


def test_a_client_that_says_nothing_is_let_go(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT", 0.2)
    assert _speak(shared).startswith(b"HTTP/1.1 408 ")
    assert _speak(shared, b"GET /healthz HTTP/1.1\r\nhost: local").startswith(b"HTTP/1.1 408 ")


def test_no_path_has_a_nul(shared: Any) -> None:
    assert shared.client.get("/v1/decisions/%00").status_code == 400


def test_readiness_names_the_reason(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared.client.get("/readyz").json() == {"status": "ready"}
    monkeypatch.setattr(type(shared.service.engine.writer), "moving", False)  # its thread says else when it is idle
    answer = shared.client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "reasons": ["the database has not answered for some seconds"]}
