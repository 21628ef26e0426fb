"""A service under load beside hang-ups, stalled readers, erasures and training; nothing acknowledged may be missing.

``python -m tests.service.soak --seconds 600`` (part of ``make torture``); the tests run a few seconds. Memory, once
warm, must stay flat within 10 % (within 20 MB in a short run). Only the long run shows that memory is flat: its first
third fills whatever is bounded, so that what still grows has no bound. For that the windows are a minute, and the page,
the metrics and an experiment remember 5,000 decisions or units: windows of 600 s, and 20,000 to 100,000 decisions and
units, would take all of the ten minutes to fill.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.service.database import free_port
from tests.service.line import asked
from tests.service.torture import _FORKING, Caller, _wait_ready, _warm_up, check

WINDOW = 60.0  # seconds
LONG = 300.0  # seconds of a run whose first third fills what is bounded
REMEMBERED = 5_000  # decisions, or units, by whoever remembers some; at times twice as many
FILLED = 1_500  # decisions with 2 kB each, so that an export is more than a socket holds
WORN = "w" * 2_000


def resident(pid: int) -> int:
    """Megabytes of a process in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def _serve(storage: str, port: int) -> None:
    from armwise.service.engine import commit_counts
    from armwise.service.engine.application import Application
    from armwise.service.experiments import hosted
    from armwise.service.log import earnings
    from armwise.service.server.config import Config
    from armwise.service.server.run import serve

    earnings.MAX_DECISIONS = commit_counts.MAX_REMEMBERED = hosted.MAX_REMEMBERED = REMEMBERED
    config = Config(
        listen=f"127.0.0.1:{port}",
        storage=storage,
        snapshot_every=0.3,
        log_level="error",
        applications={"default": Application(window=WINDOW)},
    )
    with open(os.devnull, "w") as nowhere:
        serve(config, nowhere)


def _wait(process: Any, ready: Callable[[], bool], most: float = 60.0) -> None:
    began = time.monotonic()
    while not ready():
        assert process.is_alive(), f"the process ended with {process.exitcode}"
        assert time.monotonic() - began < most, f"not ready after {most:g} s"
        time.sleep(0.05)


def soak(seconds: float, storage: str, stalled: int = 200, say: Callable[[str], object] = len) -> dict[str, Any]:
    """Run it; what was done."""
    _warm_up()
    port, stop = free_port(), threading.Event()
    process = _FORKING.Process(target=_serve, args=(storage, port), daemon=True)
    process.start()
    try:
        return _load(process, port, stop, seconds, storage, stalled, say)
    finally:  # where it failed, too: its threads, which are cut off, load nobody any more
        stop.set()
        process.kill()
        process.join()


def _load(
    process: Any, port: int, stop: threading.Event, seconds: float, storage: str, stalled: int,
    say: Callable[[str], object],
) -> dict[str, Any]:  # fmt: skip
    """Load the service for so many seconds and set ``stop``; what was done."""
    chance = random.Random(31)
    _wait_ready(process, port)
    filler = Caller("worn", port, 0)  # whose decisions may be there, or erased
    filler.unsure = {f"worn{k}" for k in range(FILLED)}
    for start in range(0, FILLED, 100):
        some = [
            {"id": f"worn{start + k}", "context": {"user": f"u{k}", "text": WORN}, "arms": ["a", "b"]}
            for k in range(100)
        ]
        assert asked(port, "POST", "/v1/batch/decisions", {"decisions": some}, timeout=60.0)[0] == 200
    done = {"hang-ups": 0, "stalled": 0, "erasures": 0, "versions": 0}
    wrong: list[str] = []

    def hang_up() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 10.0) as reader:
                reader.sendall(b"GET /v1/log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                time.sleep(chance.uniform(0.0, 0.06))
            done["hang-ups"] += 1
            stop.wait(0.05)

    def stall() -> None:
        readers: list[socket.socket] = []
        while not stop.is_set():
            with contextlib.suppress(OSError):
                reader = socket.socket()
                readers.append(reader)  # closed below, whatever fails: one that is not closed is a ResourceWarning
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.connect(("127.0.0.1", port))
                reader.sendall(b"GET /v1/log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                done["stalled"] += 1
            if len(readers) >= stalled:
                readers.pop(0).close()
            stop.wait(0.01)
        for reader in readers:
            reader.close()

    def send(method: str, path: str, body: Any = None, also: int = 503) -> int:
        """Return the status, 0 without an answer; an error other than 503 and ``also`` is wrong."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120.0)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request(method, path, json.dumps(body) if body else None)
            answer = connection.getresponse()
            if answer.status >= 400 and answer.status not in (503, also):
                wrong.append(f"{method} {path}: {answer.status} {answer.read()[:200]!r}")
            return answer.status
        return 0

    def erase() -> None:
        while not stop.is_set():
            send("POST", "/v1/erasures", {"key": "user", "value": f"u{done['erasures'] % 100}"})
            done["erasures"] += 1
            stop.wait(0.5)

    def train() -> None:
        while not stop.is_set():
            name = f"try{done['versions']}"
            made = send("POST", "/v1/versions", {"name": name})
            # A version that was refused with 503, or not answered, may not be there.
            send("DELETE", f"/v1/versions/{name}", also=503 if made == 201 else 404)
            done["versions"] += 1
            stop.wait(0.5)

    callers = [Caller(f"soak{k}", port, k) for k in range(2)]
    others = [threading.Thread(target=work, daemon=True) for work in (hang_up, stall, erase, train)]
    for thread in (*callers, *others):
        thread.start()
    # Warm is a service that has done each kind of work beside as many stalled readers as there will be.
    _wait(process, lambda: done["stalled"] >= stalled)
    before = dict(done)  # one of each may be under way: the next is whole
    _wait(process, lambda: all(done[kind] >= before[kind] + 2 for kind in done))
    began, memory = time.monotonic(), []
    while (spent := time.monotonic() - began) < seconds:
        time.sleep(min(1.0, seconds / 10))
        assert process.is_alive(), f"the process ended with {process.exitcode}"
        memory.append(resident(process.pid or 0))
        say(f"{spent:.0f} s: {memory[-1]} MB, {json.dumps(done)}")
    stop.set()
    for caller in callers:
        caller.halt = True
    for thread in (*callers, *others):
        thread.join(60.0)
    filler.unsure.add("last")  # after the last erasure, so that there is something to replay
    assert asked(port, "POST", "/v1/decisions", {"id": "last", "arms": ["a", "b"]}, timeout=30.0)[0] == 201
    process.terminate()
    process.join(60.0)
    assert not wrong, wrong[:3]
    warm, last = max(memory[: max(1, len(memory) // 3)]), max(memory[-max(1, len(memory) // 3) :])
    assert last <= (1.1 * warm if seconds >= LONG else warm + 20), f"memory grew from {warm} to {last} MB"
    return check(storage, [*callers, filler]) | done | {"MB warm": warm, "MB last": last}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--stalled", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = soak(args.seconds, str(Path(folder) / "data"), args.stalled, say=print)
    print(f"{json.dumps(result)}: nothing lost, nothing doubled, nothing changed; memory flat")


if __name__ == "__main__":
    main()
