"""How long commits wait beside checkpoints of the write-ahead log, by how many events a checkpoint copies.

One thread commits rows as the journal's writer does, at a fixed rate; another makes a passive checkpoint after so many
events, as the learner does (``journal/sqlite.CHECKPOINT_EVENTS``). Settings take turns, on the disk of ``--folder``.

    python -m benchmarks.serve_checkpoints [--every 4000 1000 500 250] [--rate 3000] [--seconds 3] [--turns 8]
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import threading
import time
from dataclasses import dataclass, field

import numpy as np

from benchmarks import common

BODY = os.urandom(3_600)  # of a decision between 10 arms of 20 features
TABLES = (
    "CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT, body BLOB)",
    "CREATE TABLE decisions (app TEXT, id TEXT, seq INTEGER, PRIMARY KEY (app, id)) WITHOUT ROWID",
)


@dataclass
class Found:
    events: int = 0
    checkpoints: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)  # commits while a checkpoint was under way
    apart: list[float] = field(default_factory=list)


def connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=16000"):
        database.execute(f"PRAGMA {pragma}")
    return database


def run(found: Found, every: int, rate: float, seconds: float, folder: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        writer, ended = connect(f"{own}/journal.db"), threading.Event()
        for table in TABLES:
            writer.execute(table)
        done, checkpoints, commits = 0, list[tuple[float, float]](), list[tuple[float, float]]()

        def copy() -> None:
            database, copied = connect(f"{own}/journal.db"), 0
            while not ended.wait(0.01):
                if done - copied >= every:
                    copied, began = done, time.perf_counter()
                    database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                    checkpoints.append((began, time.perf_counter()))

        copier = threading.Thread(target=copy)
        copier.start()
        start = time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            n = min(int(passed * rate) - done, 512)
            if n <= 0:
                time.sleep(0.0005)
                continue
            numbers = range(done, done + n)
            writer.execute("BEGIN")
            writer.executemany("INSERT INTO events VALUES (?, ?, ?)", [(k + 1, f"{k:032x}", BODY) for k in numbers])
            writer.executemany("INSERT INTO decisions VALUES (?, ?, ?)", [("default", f"{k:032x}", k) for k in numbers])
            began = time.perf_counter()
            writer.execute("COMMIT")
            commits.append((began, time.perf_counter()))
            done += n
        ended.set()
        copier.join()
    found.events += done
    found.checkpoints += [end - begin for begin, end in checkpoints]
    for begin, end in commits:
        beside = any(first < end and begin < last for first, last in checkpoints)
        (found.beside if beside else found.apart).append(end - begin)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--every", type=int, nargs="+", default=[4000, 1000, 500, 250])
    parser.add_argument("--rate", type=float, default=3000.0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--folder", default=".")
    args: argparse.Namespace = parser.parse_args()
    results = {every: Found() for every in args.every}
    for _ in range(args.turns):
        for every, found in results.items():
            run(found, every, args.rate, args.seconds, args.folder)
    for every, found in results.items():
        each, total = 1e3 * np.median(found.checkpoints), 1e6 * sum(found.checkpoints) / found.events
        beside, apart = (np.percentile(times, [50, 99, 100]) * 1e3 for times in (found.beside, found.apart))
        print(
            f"every {every:5}: {each:6.1f} ms a checkpoint, {total:5.1f} ms per 1,000 events; a commit beside one "
            f"p50 {beside[0]:.1f}, p99 {beside[1]:.1f}, max {beside[2]:.1f} ms; apart p50 {apart[0]:.1f}, "
            f"p99 {apart[1]:.1f} ms"
        )


if __name__ == "__main__":
    main()
