"""Requests that are answered without a task: the same answers as the long way, in order, whoever leaves or hangs on."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from serving import Running

from armwise.service.app import Service
from armwise.service.config import Config
from armwise.service.engine.application import Application
from armwise.service.web import connections, v1
from armwise.service.web.keys import Key, digest


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WAITING", 0.03)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    applications = {"default": Application(), "small": Application(features={"dim": 8})}
    started = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")), applications=applications)))
    yield started
    started.stop()


def raw(running: Running) -> socket.socket:
    address = urlsplit(running.url)
    return socket.create_connection((address.hostname, address.port), timeout=10)


def post(path: str, body: bytes, *headers: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def answers(connection: socket.socket, n: int) -> list[tuple[bytes, Any]]:
    """The heads and the bodies of the next answers."""
    data, found = b"", list[tuple[bytes, Any]]()
    while len(found) < n:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = int(told[1]) if (told := re.search(rb"content-length: (\d+)", head)) else 0
        if end and len(rest) >= length:
            found.append((head, json.loads(rest[:length] or b"null")))
            data = rest[length:]
            continue
        more = connection.recv(65536)
        assert more, data
        data += more
    assert not data, "more was answered than was asked"
    return found


def decision(id: str, **more: Any) -> bytes:
    return json.dumps(
        {"id": id, "context": {"hour": 9}, "arms": ["a", {"id": "b", "features": {"x": 1}}], **more}
    ).encode()


def long_way(connection: socket.socket, request: bytes) -> None:
    """In two pieces, the second later than is waited for: the way of uvicorn."""
    connection.sendall(request[:-1])
    time.sleep(3 * connections.WAITING)
    connection.sendall(request[-1:])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/decisions", decision("same")),  # decided before: the same answer
        ("/apps/small/v1/decisions", decision("same")),
        ("/v1/decisions/same/reward", b'{"value": 1}'),
        ("/v1/decisions", b'{"arms": []}'),
        ("/v1/decisions", b'{"arms": ['),
        ("/v1/decisions", decision("same", context={"hour": 10})),
        ("/v1/decisions/strange/reward", b'{"value": 1}'),
        ("/v1/decisions/same/reward", b'{"value": true}'),
        ("/apps/nothing/v1/decisions", b"{}"),
        ("/nothing/reward", b"{}"),
        ("/personalizer/v1.0/events/same/reward", b'{"value": 1}'),
    ],
)
def test_both_ways_answer_the_same(running: Running, path: str, body: bytes) -> None:
    """A difference would mean that what a client is told depends on how its packets were cut."""
    for application in ("default", "small"):
        running.client.post(f"/apps/{application}/v1/decisions", content=decision("same"))
    headers = ("Idempotency-Key: 7",) if path.startswith("/v1/decisions/same") else ()
    with raw(running) as connection:
        connection.sendall(post(path, body, *headers))
        at_once = answers(connection, 1)
        long_way(connection, post(path, body, *headers))
        assert answers(connection, 1) == at_once


def test_small_requests_need_no_task(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that is called would mean that the short way is never taken."""
    for route in running.service.router.routes:
        assert (route.plan is not None) == (
            route.path in ("v1/decisions", "v1/decisions/{}/reward") and route.method == "POST"
        )

    async def never(call: Any) -> Any:
        raise AssertionError("the long way")

    table = running.service.router._table
    for path in (("v1", "decisions"), ("v1", "decisions", "{}", "reward")):
        monkeypatch.setitem(table[path], "POST", table[path]["POST"]._replace(handler=never))
    assert running.client.post("/v1/decisions", content=decision("direct")).status_code == 201
    assert running.client.post("/v1/decisions/direct/reward", content=b'{"value": 0.5}').json()["learnt"]


@pytest.mark.parametrize("size", [10, 2 * connections.SMALL])
def test_a_body_in_pieces(running: Running, size: int) -> None:
    with raw(running) as connection:
        request = post("/v1/decisions", decision(f"pieces{size}", context={"text": ["x" * 1000] * (size // 1000)}))
        for start in range(0, len(request), 1 + len(request) // 5):
            connection.sendall(request[start : start + 1 + len(request) // 5])
            time.sleep(0.01)
        assert answers(connection, 1)[0][1]["id"] == f"pieces{size}"


def test_requests_in_one_packet_are_answered_in_order(running: Running) -> None:
    with raw(running) as connection:
        get = b"GET /v1/decisions/p1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.sendall(post("/v1/decisions", decision("p1")) + get + post("/v1/decisions", decision("p2")) + get)
        shown = [body["id"] for _, body in answers(connection, 4)]
    assert shown == ["p1", "p1", "p2", "p1"]


def test_more_requests_than_are_submitted_together(running: Running) -> None:
    connections = [raw(running) for _ in range(40)]
    for i, connection in enumerate(connections):
        connection.sendall(post("/v1/decisions", decision(f"many{i}")))
    for i, connection in enumerate(connections):
        [(head, body)] = answers(connection, 1)
        assert (head.split(b"\r\n")[0], body["id"]) == (b"HTTP/1.1 201 Created", f"many{i}")
        connection.close()


def test_who_wants_the_connection_closed_is_answered_first(running: Running) -> None:
    with raw(running) as connection:
        connection.sendall(post("/v1/decisions", decision("close"), "Connection: close"))
        [(head, _)] = answers(connection, 1)
        assert b"\r\nconnection: close" in head
        assert connection.recv(1) == b""


def test_who_leaves_before_the_answer_harms_nobody(running: Running) -> None:
    for i in range(20):
        with raw(running) as connection:
            connection.sendall(post("/v1/decisions", decision(f"gone{i}")))
    assert running.client.post("/v1/decisions", content=decision("stays")).status_code == 201
    asked = {f"gone{i}": running.client.get(f"/v1/decisions/gone{i}").status_code for i in range(20)}
    assert set(asked.values()) <= {200, 404}


def test_an_idle_connection_is_closed(running: Running) -> None:
    with raw(running) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answers(connection, 1)
        port = connection.getsockname()[1]
        every: Any = running._server.server_state.connections
        [mine] = [each for each in every if each.client[1] == port]
        mine.timeout_keep_alive = 0.3
        for i in range(2):
            connection.sendall(post("/v1/decisions", decision(f"idle{i}")))
            answers(connection, 1)
            time.sleep(0.2)  # not idle for long enough
        assert connection.recv(1) == b""


def test_what_fails_in_between_is_an_answer(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that cannot be made must not leave its client waiting."""

    def broken(*args: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(v1, "distribution", broken)
    assert running.client.post("/v1/decisions", content=decision("broken")).status_code == 500


def test_a_writer_that_takes_nothing_says_so(tmp_path: Path) -> None:
    running = Running(Service(Config(storage=str(tmp_path))))
    try:
        running.service.engine.writer._backlog = -1
        answer = running.client.post("/v1/decisions", content=decision("e"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    finally:
        running.stop()


def test_a_request_under_way_is_answered_when_the_service_ends(tmp_path: Path) -> None:
    running = Running(Service(Config(storage=str(tmp_path))))
    writer = running.service.engine.writer
    writer.work(lambda journal: time.sleep(0.5))
    with raw(running) as connection:
        connection.sendall(post("/v1/decisions", decision("last")))
        time.sleep(0.1)
        running._server.should_exit = True
        assert answers(connection, 1)[0][1]["id"] == "last"
        assert connection.recv(1) == b""
    running.stop()


def known(running: Running) -> dict[bytes, Any]:
    found: dict[bytes, Any] = running.service.heads._known
    return found


def test_a_request_that_begins_as_one_before_is_answered_as_if_it_were_the_first(running: Running) -> None:
    """What is remembered of a request line and headers may not change what comes of the body, whole or in pieces."""
    with raw(running) as connection:
        for i in range(3):
            connection.sendall(post("/v1/decisions", decision(f"known{i}")))
            assert answers(connection, 1)[0][1]["id"] == f"known{i}"
        assert [head for head in known(running) if head in post("/v1/decisions", decision("known0"))]
        request = post("/v1/decisions", decision("known3"))
        long_way(connection, request)
        connection.sendall(post("/v1/decisions", decision("known4")) + post("/v1/decisions", decision("known5")))
        connection.sendall(request[:20])
        time.sleep(0.01)
        connection.sendall(request[20:] + post("/v1/decisions", b"?" * len(decision("known6"))))
        shown = answers(connection, 5)
        assert [body.get("id") for _, body in shown] == ["known3", "known4", "known5", "known3", None]
        connection.sendall(post("/v1/decisions", b"?" * len(decision("known6"))))
        assert answers(connection, 1) == shown[4:]


def test_only_what_is_certain_to_mean_the_same_is_remembered(running: Running) -> None:
    with raw(running) as connection:
        before = set(known(running))
        chunked = b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        body = decision("chunked")
        connection.sendall(chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        connection.sendall(post("/v1/decisions", decision("retried"), "Idempotency-Key: k1"))
        connection.sendall(post("/v1/decisions/chunked/reward", b'{"value": 1}'))
        connection.sendall(post("/v1/decisions", decision("long"), "X-Long: " + "x" * connections.LONGEST_KNOWN))
        connection.sendall(post("/v1/decisions", decision("ends"), "Connection: close"))
        assert [head.split()[1] for head, _ in answers(connection, 5)] == [b"201", b"201", b"200", b"201", b"201"]
        assert set(known(running)) == before


def test_what_is_remembered_is_bounded(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_KNOWN", 5)
    with raw(running) as connection:
        for i in range(12):
            connection.sendall(post("/v1/decisions", decision(f"bounded{i}"), f"X-Number: {i}"))
            answers(connection, 1)
    assert 0 < len(known(running)) <= 5


def test_a_key_that_is_taken_away_opens_nothing_on_a_connection_that_is_open(tmp_path: Path) -> None:
    keys = [Key(name=name, sha256=digest(name), roles=["decide"]) for name in ("old", "new")]
    running = Running(Service(Config(storage=str(tmp_path), keys=keys)))
    try:
        with raw(running) as connection:
            for name, status in (("old", b"201"), ("old", b"201"), ("bad", b"401"), ("new", b"201")):
                connection.sendall(post("/v1/decisions", b'{"arms": ["a"]}', f"Authorization: Bearer {name}"))
                assert answers(connection, 1)[0][0].split()[1] == status
            running.service.reload(Config(storage=str(tmp_path), keys=keys[1:]))
            for name, status in (("old", b"401"), ("new", b"201")):
                connection.sendall(post("/v1/decisions", b'{"arms": ["a"]}', f"Authorization: Bearer {name}"))
                assert answers(connection, 1)[0][0].split()[1] == status
    finally:
        running.stop()


def test_an_idempotency_key_that_is_too_long_is_refused_in_words(running: Running) -> None:
    with raw(running) as connection:
        connection.sendall(post("/v1/decisions", decision("retry"), "Idempotency-Key: " + "k" * 257))
        [(head, body)] = answers(connection, 1)
        assert (head.split()[1], body["error"]["code"]) == (b"400", "BadArgument")
