"""What a long journal costs: the time of a decision and of a recovery, at a thousand events and at a million.

python benchmarks/serve_journal.py [--events 1000000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation, Decision, Reward
from armwise.service.journal.writes import Write

ARMS = [b'"a"', b'{"id": "b", "features": {"x": 1.5}}', b'"c"']


def fill(engine: Engine, events: int, start: int) -> int:
    """Decisions and their rewards, as fast as the writer takes them; the next free number."""
    room = threading.Semaphore(20)
    n = start
    while n < start + events // 2:
        group = []
        for _ in range(250):
            context = json.dumps({"hour": n % 24, "user": f"u{n % 1000}"}).encode()
            group.append(engine.prepare("shop", context, ARMS, id=f"e{n:08d}"))
            group.append(Write("shop", f"e{n:08d}", Reward((n % 7) / 7.0)))
            n += 1
        decisions = [write for write in group if isinstance(write.event, Decision)]
        rewards = [write for write in group if isinstance(write.event, Reward)]
        for part in (decisions, rewards):
            room.acquire()
            engine.writer.submit(part, lambda outcome: (room.release(), _check(outcome)))
    for _ in range(20):
        room.acquire()  # until all is committed
    engine.wait_learnt(timeout=3600.0)
    return n


def _check(outcome: object) -> None:
    if isinstance(outcome, Exception):
        raise outcome


def decisions(engine: Engine, name: str, n: int = 400) -> tuple[float, float]:
    """Median and 99th percentile of a decision alone, durable, in milliseconds."""
    times = []
    for k in range(n):
        started = time.perf_counter()
        engine.decide("shop", b'{"hour": 3}', ARMS, id=f"{name}{k}")
        times.append((time.perf_counter() - started) * 1000.0)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def say(engine: Engine, name: str) -> None:
    at = engine.reading.journal.last()[0]
    print(f"at {at:9} events: a decision takes %.2f ms (p99 %.2f)" % decisions(engine, name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    args = parser.parse_args()
    sys.setswitchinterval(0.0005)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"

        def open_engine() -> Engine:
            engine = Engine(SQLite(path), {"shop": Creation()}, snapshot_every=10.0)
            engine.start()
            return engine

        engine = open_engine()
        n = fill(engine, 1000, 0)
        print(
            f"at {engine.reading.journal.last()[0]:9} events: a decision takes %.2f ms (p99 %.2f)"
            % decisions(engine, "s")
        )
        started = time.perf_counter()
        n = fill(engine, args.events - 1000, n)
        rate = args.events / (time.perf_counter() - started)
        print(
            f"at {engine.reading.journal.last()[0]:9} events: a decision takes %.2f ms (p99 %.2f)"
            % decisions(engine, "l")
        )
        print(f"filled and learnt at {rate:.0f} events/s; the journal has {path.stat().st_size / 1e6:.0f} MB")
        engine.stop()
        for what, extra in (("after a clean stop", 0), ("with 10000 events after the last snapshot", 10_000)):
            if extra:
                engine = Engine(SQLite(path), {"shop": Creation()}, snapshot_every=3600.0)
                engine.start()
                n = fill(engine, extra, n)
                engine.learner._save = lambda snapshots: None  # as if killed: no snapshot at the end
                engine.stop()
            started = time.perf_counter()
            engine = open_engine()
            print(f"recovery {what}: {time.perf_counter() - started:.2f} s (required: below 5)")
            engine.stop()


if __name__ == "__main__":
    main()
