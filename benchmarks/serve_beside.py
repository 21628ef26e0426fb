"""Latency of decisions beside an export, erasures and the training of a version, against none of them, in one run.

A service on SQLite in a process of its own, with a journal that is filled first; decisions at a fixed rate from another
process. The phases take turns, so that whatever else the machine does is in all of them.

    python -m benchmarks.serve_beside [--decisions 20000] [--rate 300] [--seconds 4] [--turns 3] [--what export]

Other work on the machine hides the difference. ``chrt -r 1`` (or ``nice -n -20``) before it gives the service the
processors when it asks for them, and TMPDIR=/dev/shm keeps other work's disk out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

BODY = {"arms": [{"id": f"a{k}", "features": {f"f{j}": (k * j) % 7 for j in range(20)}} for k in range(10)]}
CONNECTIONS = 16


def ask(address: str, method: str, path: str, body: Any = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120.0) as answer:
        return answer.read()  # type: ignore[no-any-return]


def fill(address: str, n: int) -> None:
    for start in range(0, n, 200):
        asked = [{"id": f"e{start + k}", "context": {"user": (start + k) % 997}} | BODY for k in range(200)]
        ask(address, "POST", "/v1/batch/decisions", {"decisions": asked})
        ask(
            address,
            "POST",
            "/v1/batch/rewards",
            {"rewards": [{"id": f"e{start + k}", "value": k % 2} for k in range(200)]},
        )


def load(port: int, rate: float, seconds: float, answer: Any) -> None:
    """Decisions at a fixed rate; each is late by what those before it on its connection took."""
    body = json.dumps({"context": {"hour": 9}} | BODY).encode()
    head = f"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def one(number: int, times: list[float]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        began = time.perf_counter() + number / rate
        for k in range(int(rate * seconds / CONNECTIONS)):
            due = began + k * CONNECTIONS / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            writer.write(head + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(lines.partition(b"content-length: ")[2].partition(b"\r")[0]))
            assert b" 201 " in lines, lines
            times.append(time.perf_counter() - due)
        writer.close()

    async def every() -> list[float]:
        times: list[float] = []
        await asyncio.gather(*(one(number, times) for number in range(CONNECTIONS)))
        return times

    answer.send(asyncio.run(every()))


def beside(address: str, what: str, stop: threading.Event, done: list[int]) -> None:
    n = 0
    while not stop.is_set():
        if what == "export":
            ask(address, "GET", "/v1/log")
        elif what == "erasure":
            ask(address, "POST", "/v1/erasures", {"key": "user", "value": (n + len(done) * 50) % 997})
            stop.wait(0.2)
        elif what == "training":
            ask(address, "POST", "/v1/versions", {"name": f"try{n}"})
            ask(address, "DELETE", f"/v1/versions/try{n}")
        else:
            stop.wait(0.1)
        n += 1
    done.append(n)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind, default in (
        ("decisions", int, 20_000),
        ("rate", float, 300.0),
        ("seconds", float, 4.0),
        ("turns", int, 3),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--what", default="export,erasure,training", help="of these, which are measured")
    args = parser.parse_args(words)
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "armwise.toml"
        config.write_text(
            f'listen = "127.0.0.1:0"\nstorage = "{folder}/data"\n[applications.default]\nfeatures = {{dim = 64}}\n'
        )
        command = [sys.executable, "-m", "armwise", "serve", str(config), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                address = json.loads(process.stdout.readline())["address"]
                fill(address, args.decisions)
                found: dict[str, list[float]] = {}
                counts: dict[str, list[int]] = {}
                for _ in range(args.turns):
                    for what in ("nothing", *args.what.split(",")):
                        stop, done = threading.Event(), counts.setdefault(what, [])
                        other = threading.Thread(target=beside, args=(address, what, stop, done))
                        here, there = context.Pipe()
                        loader = context.Process(
                            target=load, args=(int(address.rpartition(":")[2]), args.rate, args.seconds, there)
                        )
                        other.start()
                        loader.start()
                        found.setdefault(what, []).extend(here.recv())
                        loader.join()
                        stop.set()
                        other.join()
            finally:
                process.terminate()
                process.wait(60.0)
    base = 1000.0 * np.quantile(found["nothing"], 0.99)
    for what, times in found.items():
        p50, p99, p999 = (1000.0 * np.quantile(times, q) for q in (0.5, 0.99, 0.999))
        shown = f"{what:9} p50 {p50:7.1f}  p99 {p99:7.1f}  p99.9 {p999:7.1f} ms  p99 / alone {p99 / base:5.2f}"
        print(f"{shown}  done {sum(counts[what])}")


if __name__ == "__main__":
    main()
