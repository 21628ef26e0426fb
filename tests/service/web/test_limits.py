"""What a request may not do: send no host or two, send its body without end, give a cost that is no number."""

from __future__ import annotations

import logging
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.service.engine import writer
from armwise.service.engine.application import Application
from armwise.service.server import app
from armwise.service.server.config import Config, open_store
from armwise.service.web.keys import Key, digest
from tests.service.serving import Running


def speak(running: Running, *pieces: bytes, pause: float = 0.0, timeout: float = 10.0) -> bytes:
    """Send pieces with pauses between them; all that comes back until the connection is closed, or nothing comes."""
    with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2])), timeout) as line:
        line.settimeout(0.0 if pause else timeout)
        said = b""
        for piece in pieces:
            try:
                line.sendall(piece)
                time.sleep(pause)
                said += line.recv(65536) if pause else b""
            except BlockingIOError:
                continue
            except OSError:
                return said
        line.settimeout(timeout)
        try:
            while data := line.recv(65536):
                said += data
        except TimeoutError:
            pass
        return said


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n", 400),
        (b"GET /healthz HTTP/1.0\r\n", 200),
    ],
)
def test_a_request_has_one_host(run: Callable[..., Any], head: bytes, status: int) -> None:
    """Two, and two servers on the way may each believe another one (RFC 9112, section 3.2)."""
    answer = speak(run(), head + b"Connection: close\r\n\r\n")
    assert int(answer.split(b" ")[1]) == status, answer


def test_a_body_that_never_ends_is_cut_off(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then, each soon after the one before, kept a connection for ever."""
    monkeypatch.setattr(app, "BODY_TIMEOUT", 0.5)
    running = run()
    head = b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n"
    began = time.monotonic()
    assert b" 408 " in speak(running, head, *[b" "] * 100, pause=0.1)
    assert time.monotonic() - began < 5.0
    assert b" 408 " in speak(running, head), "nor one of which nothing comes"
    body = b'{"arms": ["a"], "context": {"x": "' + b"y" * 3000 + b'"}}'
    whole = head.replace(b"10000", str(len(body)).encode()).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    halves = [whole, *(body[k : k + 1000] for k in range(0, len(body), 1000))]
    assert b" 201 " in speak(running, *halves, pause=0.15), "one that is slow and comes"


@pytest.mark.parametrize("cost", [True, False, [True], [0.1, True], "1", {}, [[1.0]]])
def test_a_cost_is_a_number(run: Callable[..., Any], cost: Any) -> None:
    client = run().client
    client.post("/v1/decisions", json={"id": "e1", "arms": ["a"]})
    one = client.post("/v1/decisions/e1/reward", json={"value": 1.0, "cost": cost})
    many = client.post("/v1/batch/rewards", json={"rewards": [{"id": "e1", "value": 1.0, "cost": cost}]})
    assert (one.status_code, many.status_code) == (400, 400)
    assert "cost" in one.json()["error"]["message"]
    assert client.get("/v1/decisions/e1").json()["rewards"] == 0


def test_a_refused_change_is_in_the_audit_log(
    run: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = [Key(name="reader", sha256=digest("secret"), roles=["read"])]
    client = run(Config(storage=str(tmp_path / "data"), keys=keys)).client
    client.headers["authorization"] = "Bearer secret"
    with caplog.at_level(logging.INFO, "armwise.audit"):
        assert client.patch("/v1/settings", json={"window": 5}).status_code == 403
        assert client.delete("/v1/apps/other").status_code == 403
        assert client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 403, "no change of settings"
        assert client.get("/v1/agents").status_code == 200
    said = [(record.message, record.data) for record in caplog.records if record.name == "armwise.audit"]  # type: ignore[attr-defined]
    assert [(message, data["who"], data["path"], data["status"]) for message, data in said] == [
        ("refused", "reader", "v1/settings", 403),
        ("refused", "reader", "v1/apps/{}", 403),
    ]


def test_readiness_tries_what_a_decision_does(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that writes elsewhere said that all was well while every decision failed."""
    monkeypatch.setattr(writer, "PROVED", 0.2)
    running = run(Config(storage=str(tmp_path / "data"), applications={"shop": Application(features={"dim": 8})}))
    assert running.client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 201
    other = sqlite3.connect(tmp_path / "data" / "journal.db")
    other.execute("CREATE TRIGGER broken BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no more'); END")
    other.commit()
    time.sleep(0.3)  # without traffic
    for _ in range(5):
        assert running.client.get("/readyz").status_code == 503
        time.sleep(0.3)
    assert running.client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 503
    other.execute("DROP TRIGGER broken")
    other.commit()
    other.close()
    end = time.monotonic() + 10.0
    while running.client.get("/readyz").status_code != 200:
        assert time.monotonic() < end, "it did not heal by itself"
        time.sleep(0.1)
    assert running.client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 201
    running.service.engine.wait_learnt()  # the decision, which the page of agents counts
    before = running.client.get("/v1/agents").json()
    time.sleep(0.3)
    running.client.get("/readyz")
    assert running.client.get("/v1/agents").json() == before, "a probe leaves nothing"


def test_a_journal_without_numbers_left_is_not_ready(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PROVED", 0.2)
    running = run(Config(storage=str(tmp_path / "data")))
    engine = running.service.engine
    engine.writer.run(lambda journal: setattr(journal, "_at", (2**63 - 1, 0, bytes(16))))
    engine.writer.run(lambda journal: setattr(journal, "last", lambda: (2**63 - 1, 0, bytes(16))))
    time.sleep(0.3)
    assert running.client.get("/readyz").status_code == 503
    assert running.client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 503


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hunter2@127.0.0.1:1/name",
        "postgresql://127.0.0.1:1/name?user=me&password=hunter2",
        "postgresql://user@127.0.0.1:1/name?sslmode=disable&password=hunter2&connect_timeout=1",
        "postgresql://user:hunter2@127.0.0.1:1/na@me",
    ],
)
def test_a_storage_url_is_shown_without_its_password(url: str) -> None:
    store = open_store(url)
    assert "hunter2" not in str(store) and "127.0.0.1:1/na" in str(store)
    with pytest.raises(store.errors) as refused:
        store.connect()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["postgresql://host/name?hunter2", "postgresql://host/name?pasword=hunter2", "postgresql://[hunter2/name",
     "postgresql://user:hun%ter2@host/name", "postgresql://user:hun/ter2@host/name", "postgresql://user:a@hun@host/name",
     "postgresql://user:hun/ter2", "postgresql://user@host:hun/name",
     "postgresql://user:123/hun@host/name"],
)  # fmt: skip
def test_a_malformed_storage_url_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"storage: .* expected postgresql://USER:PASSWORD@HOST:PORT/NAME") as refused:
        open_store(url)
    assert "hun" not in str(refused.value)
