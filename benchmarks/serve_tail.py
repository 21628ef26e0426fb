"""The tail of decisions at a fixed rate while the service learns, beside the least that any durable service must do.

The bare handler of ``serve_load`` and ``armwise serve`` run at once and are asked in short turns, each decision at its
own moment (open loop): one that waits is late by all that it waited for, the load generator's own lateness included.
Requests have 10 arms of 20 features and no two contexts alike; every decision is learnt (its default, provisionally).

    python -m benchmarks.serve_tail [--rate 4000] [--seconds 4] [--turns 15] [--connections 64]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from benchmarks import common
from benchmarks.serve_load import bodies, cpu, free_port, start, until_learnt

KINDS = ("bare", "armwise")


class Asker(asyncio.Protocol):
    """One connection: requests go out when they are due, pipelined if the answer before is still on its way."""

    def __init__(self, times: list[float]) -> None:
        self._times, self._due, self._rest = times, [], b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def ask(self, due: float, request: bytes) -> None:
        self._due.append(due)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            head = self._rest[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self._rest) < end + 4 + length:
                return
            assert head[9:12] == b"201", self._rest[:300]
            self._rest = self._rest[end + 4 + length :]
            self._times.append(time.perf_counter() - self._due.pop(0))


def load(port: int, path: str, rate: float, seconds: float, connections: int, seed: int, answer: object) -> None:
    """Ask at a fixed rate for some seconds; the latencies in seconds go to ``answer``, a queue."""
    import uvloop

    chance = random.Random(seed)
    sent = [line.encode() for line in Path(path).read_text().splitlines()]
    head = b"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
    requests = [head % len(body) + body for body in chance.sample(sent, min(len(sent), int(rate * seconds)))]

    async def run() -> list[float]:
        loop, times = asyncio.get_running_loop(), list[float]()
        askers = [
            (await loop.create_connection(lambda: Asker(times), "127.0.0.1", port))[1] for _ in range(connections)
        ]
        began, n = time.perf_counter() + 0.1, int(rate * seconds)
        for k in range(n):
            due = began + k / rate
            if (left := due - time.perf_counter()) > 0.0:
                await asyncio.sleep(left)
            askers[k % connections].ask(due, requests[k % len(requests)])
            if k % 8 == 0:
                await asyncio.sleep(0)
        for _ in range(500):
            if len(times) == n:
                break
            await asyncio.sleep(0.02)
        assert len(times) == n, f"{n - len(times)} of {n} requests were not answered"
        return times

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answer.put(runner.run(run()))  # type: ignore[attr-defined]


def measured(port: int, path: str, args: argparse.Namespace, seed: int) -> np.ndarray:
    """Latencies in ms, asked for by a process of its own."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    asking = context.Process(
        target=load, args=(port, path, args.rate, args.seconds, args.connections, seed, answer), daemon=True
    )
    asking.start()
    times = np.array(answer.get(timeout=args.seconds + 60.0)) * 1000.0
    asking.join()
    return times


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rate", type=float, default=4000.0)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--connections", type=int, default=64)
    args = parser.parse_args()
    rows: dict[str, list[np.ndarray]] = {kind: [] for kind in KINDS}
    used: dict[str, list[float]] = {kind: [] for kind in KINDS}
    running = {}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/bodies"
        bodies(Path(path))
        try:
            for kind in KINDS:
                port = free_port()
                running[kind] = start(kind, port, folder), port
            for turn in range(-1, args.turns):
                for kind, (process, port) in running.items():
                    before = cpu(process.pid)
                    times = measured(port, path, args, turn)
                    if kind == "armwise":
                        until_learnt(port)
                    if turn < 0:  # the first one warms
                        continue
                    rows[kind].append(np.percentile(times, [50, 99, 99.9, 100]))
                    used[kind].append((cpu(process.pid) - before) / len(times) * 1e6)
                    shown = "  ".join(
                        f"{name} {value:6.2f}" for name, value in zip(("p50", "p99", "p99.9", "max"), rows[kind][-1])
                    )
                    print(f"{kind:9} {shown} ms   {used[kind][-1]:4.0f} us of processor each", flush=True)
            port = running["armwise"][1]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/agents") as answer:
                [agent] = json.load(answer)["agents"]
            print(f"the model has learnt up to event {agent['version']:,}")
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, _ in running.values():
                process.wait()
    middle = {kind: np.median(rows[kind], axis=0) for kind in KINDS}
    ratios = np.median(np.array(rows["armwise"]) / np.array(rows["bare"]), axis=0)
    for place, name, most in ((1, "p99", 1.5), (2, "p99.9", 2.0)):
        ours, least = middle["armwise"][place], middle["bare"][place]
        print(f"{name}: {ours:.2f} ms against {least:.2f} ms bare, ratio {ratios[place]:.2f} (at most {most} wanted)")
    burden = statistics.median(a / b for a, b in zip(used["armwise"], used["bare"]))
    print(f"processor time per decision: {burden:.2f} of the bare handler's")


if __name__ == "__main__":
    sys.exit(main())
