"""Readers that hang up: their threads finish before their sessions are closed."""

from __future__ import annotations

import asyncio
import json
import pathlib
import random
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from armwise.service.engine.engine import Engine
from armwise.service.journal.errors import Unavailable
from armwise.service.journal.events import Creation
from armwise.service.server.config import open_store
from armwise.service.web.offload import in_thread
from armwise.service.web.v1.log_stream import stream
from tests.service.database import Server
from tests.service.line import asked
from tests.service.serving import ARMS

HANG_UPS = 80
DECISIONS = 3_000  # an export of so many is still being read when its reader hangs up


def hang_up_again_and_again(folder: pathlib.Path, storage: str) -> None:
    """Hang up on exports of a service in a process of its own; it must answer afterwards."""
    engine = Engine(open_store(storage), {"default": Creation(features={"dim": 8})})
    engine.start()
    writes = [engine.prepare("default", b"{}", ARMS) for _ in range(DECISIONS)]
    engine.writer.write(writes)
    engine.stop()
    config = folder / "armwise.toml"
    config.write_text(
        f'listen = "127.0.0.1:0"\nstorage = "{storage}"\n[applications.default]\nfeatures = {{dim = 8}}\n'
    )
    command = [sys.executable, "-m", "armwise", "serve", str(config), "--json"]
    moments = random.Random(31)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(json.loads(process.stdout.readline())["address"].rpartition(":")[2])
            for n in range(HANG_UPS):
                with socket.create_connection(("127.0.0.1", port), 10.0) as reader:
                    reader.sendall(b"GET /v1/log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    time.sleep(moments.uniform(0.0, 0.06))
                assert process.poll() is None, f"the process ended with {process.poll()} after {n + 1} hang-ups"
            assert asked(port, "GET", "/v1/agents", timeout=20.0)[0] == 200
        finally:
            process.terminate()
            process.wait(30.0)
    assert process.returncode == 0


def test_a_reader_that_hangs_up_does_not_end_the_process(tmp_path: pathlib.Path) -> None:
    """Before, the session was closed while a thread read from it: a segmentation fault after about 15 hang-ups."""
    hang_up_again_and_again(tmp_path, str(tmp_path / "data"))


def test_a_reader_that_hangs_up_does_not_end_a_process_on_postgresql(tmp_path: pathlib.Path, server: Server) -> None:
    hang_up_again_and_again(tmp_path, server.new_database())


def test_a_cancelled_caller_waits_for_its_thread() -> None:
    """Also if it is cancelled twice, and if the thread fails meanwhile."""
    done: list[str] = []
    began, go_on = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go_on.wait(10.0)
        done.append("thread")
        raise ValueError("nobody asks for this any more")

    async def cancel_twice() -> None:
        task = asyncio.ensure_future(in_thread(work))
        while not began.is_set():
            await asyncio.sleep(0.001)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done(), "the caller went on while its thread was at work"
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        done.append("caller")

    asyncio.run(cancel_twice())
    assert done == ["thread", "caller"]


def test_sessions_that_open_while_the_reader_hangs_up_are_closed(run: Callable[..., Any]) -> None:
    """Before, a session that was opened after the hang-up stayed open."""
    engine = run().service.engine
    opened: list[Any] = []
    closed: list[Any] = []
    began, go_on = threading.Event(), threading.Event()
    open_journal = engine.open_journal

    def slow() -> Any:
        began.set()
        go_on.wait(10.0)
        journal = open_journal()
        close = journal.connection.close

        def noted() -> None:
            closed.append(journal)
            close()

        journal.connection.close = noted
        opened.append(journal)
        return journal

    async def hang_up() -> None:
        pieces = stream([engine], "default", "json", 0, 10)
        step = asyncio.ensure_future(anext(pieces))
        while not began.is_set():
            await asyncio.sleep(0.001)
        step.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await step

    engine.open_journal = slow
    try:
        asyncio.run(hang_up())
    finally:
        engine.open_journal = open_journal
    assert len(opened) == 1 and closed == opened


def test_the_session_for_questions_is_closed_only_when_nobody_asks(run: Callable[..., Any]) -> None:
    reading = run().service.engine.reading
    connection = reading.journal.connection
    ending = threading.Thread(target=reading.close)
    with reading as journal:
        ending.start()
        ending.join(0.1)
        assert journal.last()[0] >= 1, "the session was closed under its reader"
    ending.join(10.0)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


def test_the_page_goes_on_after_the_configuration_was_read_again(run: Callable[..., Any]) -> None:
    """Before, its stream went on with a closed session and broke off."""
    running = run()
    with running.client.stream("GET", "/v1/live") as page:
        lines = page.iter_lines()
        assert next(lines).startswith("data: ")
        running.service.reload(running.service.config)
        running.client.post("/v1/decisions", json={"arms": ["a"], "id": "after"})
        for line in lines:
            if "after" in line:
                break
        else:
            pytest.fail("the stream ended")


def test_a_watch_that_was_closed_opens_no_session_again(run: Callable[..., Any]) -> None:
    watch = run().service.watch("default")
    watch.look()
    watch.close()
    with pytest.raises(Unavailable, match="closed"):
        watch.look()
