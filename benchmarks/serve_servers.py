"""HTTP servers under one bare durable handler: decisions a second, tail, and processor time per decision.

The handler decodes the body, makes one SQLite row durable by group commit and replies (as in ``serve_load``), as an
ASGI application and as the same for Granian's own interface, RSGI. All servers run at once and are asked by turns.

    python -m benchmarks.serve_servers [--seconds 1] [--turns 15] [--connections 64] [--only uvicorn guarded ...]

``guarded`` is uvicorn as ``armwise serve`` runs it. Granian is measured where it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import queue
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import common
from benchmarks.serve_load import SCRIPT, bodies, cpu, free_port, measure

GRANIAN = [
    "--workers",
    "1",
    "--runtime-threads",
    "1",
    "--loop",
    "uvloop",
    "--no-ws",
    "--http",
    "1",
    "--log-level",
    "error",
]
NAMES = ("uvicorn", "guarded", "granian-asgi", "granian-rsgi")


class Rows:
    """One thread that makes rows durable together, then wakes those who wait."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._waiting: queue.SimpleQueue[tuple[str, bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def add(self, id: str, body: bytes) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._write, args=(self._loop,), daemon=True).start()
        future = self._loop.create_future()
        self._waiting.put((id, body, future))
        await future

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        database = sqlite3.connect(self._path, isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT, body BLOB)")
        while True:
            batch = [self._waiting.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < 512:
                    batch.append(self._waiting.get_nowait())
            database.execute("BEGIN")
            database.executemany("INSERT INTO events (id, body) VALUES (?, ?)", [(i, b) for i, b, _ in batch])
            database.execute("COMMIT")
            loop.call_soon_threadsafe(lambda done=batch: [f.done() or f.set_result(None) for _, _, f in done])


rows = Rows(os.environ.get("BARE_ROWS", ":memory:"))


async def answered(body: bytes) -> bytes:
    id = os.urandom(12).hex()
    asked = msgspec.json.decode(body)
    await rows.add(id, body)
    return msgspec.json.encode({"id": id, "arm": asked["arms"][0]["id"], "probability": 1.0})


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    status, reply = (201, await answered(body)) if body else (404, b"{}")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(reply)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reply})


async def rsgi(scope: Any, protocol: Any) -> None:
    body = await protocol()
    status, reply = (201, await answered(body)) if body else (404, b"{}")
    protocol.response_bytes(status, [("content-type", "application/json")], reply)


def uvicorn_alone(port: int, guarded: bool) -> None:
    import uvicorn

    options: dict[str, Any] = {"log_level": "error", "access_log": False, "lifespan": "off", "ws": "none"}
    if guarded:
        from armwise.service.web.connections import BoundedHeaders

        options |= {"http": BoundedHeaders, "server_header": False, "date_header": False}
    uvicorn.run(asgi, host="127.0.0.1", port=port, **options)


def start(name: str, port: int, folder: str) -> subprocess.Popen[bytes]:
    if name.startswith("granian"):
        interface = name.partition("-")[2]
        words = ["-m", "granian", "--interface", interface, "--host", "127.0.0.1", "--port", str(port), *GRANIAN]
        words.append(f"benchmarks.serve_servers:{interface}")
    else:
        words = ["-m", "benchmarks.serve_servers", "--serve", str(port), str(int(name == "guarded"))]
    process = subprocess.Popen([sys.executable, *words], env=os.environ | {"BARE_ROWS": f"{folder}/{name}.db"})
    for _ in range(600):
        with contextlib.suppress(OSError):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1)
            except urllib.error.HTTPError:
                break
        time.sleep(0.1)
    return process


def worker(pid: int) -> int:
    """The process that answers: Granian's is a child of the one that was started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [int(child) for child in children if cpu(int(child)) > 0.1]
    return max(found, key=cpu, default=pid)


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        uvicorn_alone(int(sys.argv[2]), sys.argv[3] == "1")
        return
    parser = common.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--only", nargs="+", default=NAMES)
    args: argparse.Namespace = parser.parse_args()
    names = [n for n in args.only if not n.startswith("granian") or importlib.util.find_spec("granian")]
    results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    running = {}
    with tempfile.TemporaryDirectory() as folder:
        bodies(Path(folder) / "bodies")
        script = Path(folder) / "ask.lua"
        script.write_text(SCRIPT % (Path(folder) / "bodies"))
        try:
            for name in names:
                port = free_port()
                running[name] = start(name, port, folder), port
            for turn in range(-1, args.turns):
                for name, (process, port) in running.items():
                    pid = worker(process.pid)
                    rate, p99, errors, used = measure(pid, port, str(script), args.seconds, args.connections)
                    assert not errors, f"{errors} requests failed"
                    if turn >= 0:  # the first one warms
                        results[name].append((rate, p99, used))
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, _ in running.values():
                process.wait()
    least = results[names[0]]
    for name in names:
        rate, p99, used = (statistics.median(column) for column in zip(*results[name]))
        ratio = statistics.median(mine[0] / theirs[0] for mine, theirs in zip(results[name], least))
        burden = statistics.median(mine[2] / theirs[2] for mine, theirs in zip(results[name], least))
        print(f"{name:13} {rate:7.0f}/s   p99 {p99:6.1f} ms   {used:4.0f} us of processor each", end="")
        print(f"   {ratio:.2f} of the rate and {burden:.2f} of the processor time of {names[0]}")


if __name__ == "__main__":
    main()
