"""One service process and two on the same PostgreSQL, and one on SQLite, asked for 10 arms of 20 features.

On one machine the load generators, PostgreSQL and all services share the cores, so two processes can at best use what
one leaves idle. With ``--quota Q`` each service process is held to that share of a core by a control group, as if it
were alone on a (slow) machine of its own, so that the service is what limits: that shows whether they get into each
other's way. The quota is given out in the shortest periods that the kernel allows (1 ms of processor in each), since a
process that has used up its share stands still until the next one, with whatever lock it holds, and with it the other
one: no machine of its own would do that. Turns of the settings alternate; ratios are those of neighbours.

    python -m benchmarks.serve_processes [--quota 0.3] [--connections 64] [--seconds 5] [--turns 4] [--sqlite]
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.serve_load import SCRIPT, bodies, cpu
from benchmarks.serve_shards import backends, start

SLICE = 1_000  # microseconds of processor in a period: the kernel takes no shorter one
OLD, NEW = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")  # control groups, version 1 and 2


@contextlib.contextmanager
def held(pids: list[int], quota: float) -> Iterator[None]:
    """Hold each process to a share of a core, in a control group of its own."""
    if not quota:
        yield
        return
    made: list[Path] = []
    period = round(SLICE / quota)
    old = (OLD / "cpu.cfs_quota_us").exists()
    try:
        for pid in pids:
            group = (OLD if old else NEW) / f"armwise-{pid}"
            group.mkdir()
            made.append(group)
            if old:
                (group / "cpu.cfs_period_us").write_text(str(period))
                (group / "cpu.cfs_quota_us").write_text(str(SLICE))
            else:
                (group / "cpu.max").write_text(f"{SLICE} {period}")
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for group in made:
            for pid_text in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (group.parent / "cgroup.procs").write_text(pid_text)
            with contextlib.suppress(OSError):
                group.rmdir()


def load(addresses: list[str], script: Path, seconds: int, connections: int) -> tuple[float, float, int, float]:
    """Decisions per second of all processes together, the largest 99th percentile in ms, errors, wrk's processor."""
    before = os.times().children_user + os.times().children_system
    words = ["wrk", "-t1", "--timeout", "10s", f"-c{connections}", "-s", str(script), f"-d{seconds}s"]
    asking = [subprocess.Popen([*words, each], stdout=subprocess.PIPE, text=True) for each in addresses]
    texts = [each.communicate()[0] for each in asking]
    used = os.times().children_user + os.times().children_system - before
    found = [re.search(r"RESULT ([\d.]+) ([\d.]+) (\d+)", text) for text in texts]
    rates = [(float(f[1]), float(f[2]), int(f[3])) for f in found if f]
    assert len(rates) == len(addresses), texts
    return sum(r[0] for r in rates), max(r[1] for r in rates), sum(r[2] for r in rates), used


def one_turn(server: Any, processes: int, script: Path, args: Any) -> tuple[float, ...]:
    """Rate, p99, and per decision: microseconds of the services, of PostgreSQL, of wrk, bytes, bytes of its log."""
    import psycopg

    kept = tempfile.mkdtemp() if processes == 0 else ""
    url = kept or server.new_database()
    started = [start([url]) for _ in range(processes or 1)]
    port = int(re.findall(r":(\d+)/", server.url)[0])
    pids = [process.pid for process, _ in started]

    def state() -> tuple[float, float, float, float]:
        size = log = 0.0
        if not kept:
            with psycopg.connect(url, autocommit=True) as connection:
                row = connection.execute(
                    "SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'::pg_lsn"
                ).fetchone()
                assert row is not None
                size, log = float(row[0]), float(row[1])
        return sum(map(cpu, pids)), backends(port), size, log

    try:
        with held(pids, args.quota):
            addresses = [address for _, address in started]
            load(addresses, script, 2, args.connections)
            before = state()
            rate, p99, errors, asking = load(addresses, script, args.seconds, args.connections)
            after = state()
    finally:
        for process, _ in started:
            process.terminate()
        for process, _ in started:
            process.wait()
        if kept:
            shutil.rmtree(kept, ignore_errors=True)
        else:
            with psycopg.connect(server.url + "postgres", autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")
    assert errors == 0, f"{errors} requests failed"
    n = rate * args.seconds
    service, database, size, log = (b - a for a, b in zip(before, after))
    return rate, p99, service / n * 1e6, database / n * 1e6, asking / n * 1e6, size / n, log / n


def line(row: tuple[float, ...]) -> str:
    return (
        f"{row[0]:6.0f} decisions/s, p99 {row[1]:5.0f} ms; per decision {row[2]:4.0f} us of the services, "
        f"{row[3]:4.0f} of PostgreSQL, {row[4]:3.0f} of wrk, {row[5]:5.0f} bytes, {row[6]:5.0f} of write-ahead log"
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--quota", type=float, default=0.0, help="of a core, for each service process; 0: as it is")
    parser.add_argument("--connections", type=int, default=64, help="for each process")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sqlite", action="store_true", help="also one process on SQLite")
    args = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is needed (Debian: wrk)")
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.service.database import Server

    settings = [0, *args.processes] if args.sqlite else args.processes
    results: dict[int, list[tuple[float, ...]]] = {n: [] for n in settings}
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        bodies(Path(folder) / "bodies")
        script = Path(folder) / "ask.lua"
        script.write_text(SCRIPT % (Path(folder) / "bodies"))
        for turn in range(args.turns):
            for n in settings if turn % 2 == 0 else reversed(settings):
                results[n].append(one_turn(server, n, script, args))
                print(f"{f'{n} on PostgreSQL' if n else 'SQLite':15} {line(results[n][-1])}", flush=True)
    for n, rows in results.items():
        middle = tuple(statistics.median(column) for column in zip(*rows))
        print(f"median, {f'{n} on PostgreSQL' if n else 'SQLite'}: {line(middle)}")
    first = args.processes[0]
    for n in args.processes[1:]:
        ratios = sorted(b[0] / a[0] for a, b in zip(results[first], results[n]))
        shown = ", ".join(f"{r:.2f}" for r in ratios)
        print(f"{n} processes / {first}: {statistics.median(ratios):.2f} (turns {shown})")
    if args.sqlite:
        for what, pick in (("service alone", lambda row: row[2]), ("with PostgreSQL", lambda row: row[2] + row[3])):
            ratios = sorted(pick(b) / a[2] for a, b in zip(results[0], results[first]))
            print(f"processor per decision, PostgreSQL / SQLite, {what}: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
