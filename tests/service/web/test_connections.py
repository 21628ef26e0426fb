"""Requests over sockets: answered in order, whole, whoever leaves or hangs on."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvloop

from armwise.service.engine.application import Application
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.connections import BoundedHeaders, JoinedWrites
from armwise.service.web.keys import Key, digest
from armwise.service.web.v1 import decisions
from tests.service.serving import Running


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


@pytest.mark.parametrize("size", [10, 131_072])
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


def test_many_connections_at_once(running: Running) -> None:
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


def test_a_connection_that_is_reset_leaves_nothing_behind(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keep-alive timer kept everything of it for half a minute: with many hang-ups, memory."""
    left: list[Any] = []
    real = BoundedHeaders.connection_lost

    def lost(self: BoundedHeaders, exc: Exception | None) -> None:
        real(self, exc)
        left.append((type(exc), self.timeout_keep_alive_task))

    monkeypatch.setattr(BoundedHeaders, "connection_lost", lost)
    connection = raw(running)
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answers(connection, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()  # which resets it
    while not left:
        time.sleep(0.01)
    assert left == [(ConnectionResetError, None)]


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

    monkeypatch.setattr(decisions, "answer", broken)
    assert running.client.post("/v1/decisions", content=decision("broken")).status_code == 500


def test_a_writer_that_takes_nothing_says_so(tmp_path: Path) -> None:
    running = Running(Service(Config(storage=str(tmp_path))))
    try:
        writer: Any = running.service.engine.writer
        writer._backlog = -1
        answer = running.client.post("/v1/decisions", content=decision("e"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    finally:
        running.stop()


def test_a_request_under_way_is_answered_when_the_service_ends(tmp_path: Path) -> None:
    running = Running(Service(Config(storage=str(tmp_path))))
    writer: Any = running.service.engine.writer
    writer.work(lambda journal: time.sleep(0.5))
    with raw(running) as connection:
        connection.sendall(post("/v1/decisions", decision("last")))
        time.sleep(0.1)
        running._server.should_exit = True
        assert answers(connection, 1)[0][1]["id"] == "last"
        assert connection.recv(1) == b""
    running.stop()


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


@pytest.mark.parametrize("path", ["/v1/decisions", "/v1/explanations", "/ofrep/v1/evaluate/flags"])
def test_an_idempotency_key_that_is_too_long_is_refused_in_words(running: Running, path: str) -> None:
    """Also by a handler that has nothing to do with it."""
    with raw(running) as connection:
        connection.sendall(post(path, decision("retry"), "Idempotency-Key: " + "k" * 257))
        [(head, body)] = answers(connection, 1)
        assert head.split()[1] == b"400" and "idempotency key must have at most 256" in str(body)


@pytest.mark.parametrize("http", ["httptools", "h11"])
def test_the_application_works_under_any_middleware_and_server_protocol(tmp_path: Path, http: str) -> None:
    """A failure would mean that the service needs more of its server than ASGI gives."""
    service = Service(Config(storage=str(tmp_path)))
    seen: list[str] = []

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-middleware", b"yes")]
            await send(message)

        seen.append(scope["type"])
        await service(scope, receive, sending)

    running = Running(service, middleware, http)
    try:
        made = running.client.post("/v1/decisions", content=decision("wrapped"))
        assert (made.status_code, made.headers["x-middleware"]) == (201, "yes")
        assert running.client.post("/v1/decisions/wrapped/reward", content=b'{"value": 0.5}').json()["learnt"]
        assert seen == ["lifespan", "http", "http"]
    finally:
        running.stop()


def test_a_response_to_a_connection_that_was_just_lost_is_dropped() -> None:
    """Its bytes are sent in the next step of the loop; in a soak each of these was an exception in the log."""

    async def lost() -> list[str]:
        wrong: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: wrong.append(str(context)))
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        transport, _ = await loop.create_connection(asyncio.Protocol, *server.sockets[0].getsockname())
        joined = JoinedWrites(transport, loop)
        transport.abort()
        await asyncio.sleep(0.05)
        joined.write(b"HTTP/1.1 200 OK")
        await asyncio.sleep(0.05)
        server.close()
        return wrong

    assert uvloop.run(lost()) == []


def test_what_one_step_of_the_loop_writes_is_sent_together() -> None:
    sent: list[bytes] = []

    class Transport:
        write, is_closing = sent.append, bool

    async def write() -> None:
        joined = JoinedWrites(Transport, asyncio.get_running_loop())
        joined.write(b"head ")
        joined.write(b"body")
        await asyncio.sleep(0)

    asyncio.run(write())
    assert sent == [b"head body"]
