"""Readers that never read: each is cut off after a time, and only so many exports are under way at once."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from armwise.service.engine.application import Application
from armwise.service.log.export_journal import MAX_PAGE_BYTES, pieces
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.database import Server
from tests.service.serving import Running

PADDING = b'{"text": "' + b"x" * 4_000 + b'"}'
DECISIONS = 3_000  # with 4 kB each: more than the buffers of two sockets


def fill(running: Running) -> None:
    engine = running.service.engine
    engine.writer.write([engine.prepare("shop", PADDING, [b'"a"', b'"b"']) for _ in range(DECISIONS)])


def config(storage: str, **options: Any) -> Config:
    return Config(storage=storage, applications={"shop": Application(features={"dim": 8})}, **options)


@contextlib.contextmanager
def stalled(running: Running, n: int, target: str = "/v1/log", buffer: int = 4096) -> Iterator[list[socket.socket]]:
    """Readers that ask for something and read none of it."""
    port = int(running.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        readers = []
        for _ in range(n):
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            reader.connect(("127.0.0.1", port))
            reader.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            readers.append(reader)
        yield readers


def until(holds: Callable[[], bool], seconds: float, why: str) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, why
        time.sleep(0.02)


def test_a_reader_that_takes_nothing_is_cut_off(run: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    running = run(config(str(tmp_path / "data"), send_timeout=0.5))
    fill(running)
    exports = running.service.exports
    with stalled(running, 3) as readers:
        until(lambda: exports.under_way == 3, 10.0, "the exports never began")
        until(lambda: exports.under_way == 0, 10.0, "the readers were never cut off")
        for reader in readers:
            with contextlib.suppress(ConnectionResetError):
                while reader.recv(1 << 20):
                    pass
    assert len(running.client.get("/v1/log").text.splitlines()) == DECISIONS, "who reads gets all"


def test_a_reader_that_takes_nothing_is_cut_off_under_a_middleware_and_a_plain_server(tmp_path: pathlib.Path) -> None:
    """A failure would mean that the limit is a server's of our own, and the application alone does not have it."""
    service = Service(config(str(tmp_path / "data"), send_timeout=0.5))

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        await service(scope, receive, send)

    running = Running(service, middleware, "httptools")
    try:
        fill(running)
        with stalled(running, 2):
            until(lambda: service.exports.under_way == 2, 10.0, "the exports never began")
            until(lambda: service.exports.under_way == 0, 10.0, "the readers were never cut off")
    finally:
        running.stop()


def test_a_slow_reader_that_goes_on_gets_everything(run: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    running = run(config(str(tmp_path / "data"), send_timeout=0.5))
    fill(running)
    received, began = 0, time.monotonic()
    with stalled(running, 1, buffer=1 << 17) as [reader]:
        reader.settimeout(10.0)
        tail = b""
        while not tail.endswith(b"0\r\n\r\n"):
            data = reader.recv(1 << 18)
            assert data, f"it was cut off after {received} bytes"
            received, tail = received + len(data), (tail + data)[-5:]
            if time.monotonic() - began < 2.0:  # four times as long as one that takes nothing has
                time.sleep(0.05)
    assert received > DECISIONS * 4_000


def test_only_so_many_exports_are_under_way(run: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    running = run(config(str(tmp_path / "data"), max_exports=2))
    fill(running)
    exports = running.service.exports
    with stalled(running, 2):
        until(lambda: exports.under_way == 2, 10.0, "the exports never began")
        refused = running.client.get("/v1/log")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"]["message"] == "2 exports are running, which is the limit: try again"
        assert running.client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 201
    until(lambda: exports.under_way == 0, 10.0, "readers that hung up still count")
    for _ in range(3):
        assert running.client.head("/v1/log").status_code == 200
        assert running.client.get("/v1/log?limit=1").status_code == 200
    assert exports.under_way == 0


def test_stalled_readers_leave_sessions_for_a_process_that_starts(run: Callable[..., Any], server: Server) -> None:
    """The server takes 60 sessions: before, as many readers took all of them."""
    url = server.new_database()
    running = run(config(url))
    fill(running)
    with stalled(running, 80):
        until(lambda: running.service.exports.under_way == running.service.config.max_exports, 10.0, "too few began")
        other = run(config(url))
        assert other.client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 201
        assert running.client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 201


@pytest.mark.parametrize("setting", [{"max_exports": 0}, {"send_timeout": 0.0}, {"send_timeout": float("nan")}])
def test_limits_that_limit_nothing_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        Config(**setting)


def test_a_piece_of_an_export_is_bounded_by_bytes(engines: Callable[..., Any]) -> None:
    engine = engines()
    body = b'{"texts": ["' + b'","'.join([b"x" * 4_000] * 15) + b'"]}'
    engine.writer.write([engine.prepare("shop", body, [b'"a"']) for _ in range(300)])
    journal = engine.open_journal()
    sizes: list[int] = []
    read = journal.after

    def noted(seq: int, limit: int = 500) -> Any:
        rows = read(seq, limit)
        sizes.append(sum(len(row.body) for row in rows))
        return rows

    journal.after = noted
    written = [len(piece) for piece in pieces(journal, "shop")]
    journal.connection.close()
    assert sum(written) > 300 * 60_000
    assert max(written) < 2 * MAX_PAGE_BYTES
    assert max(sizes[1:]) < 2 * MAX_PAGE_BYTES, "after the first page the next ones are as short as its rows are long"
