"""Decisions spread over 1, 2 and 3 PostgreSQL databases on one machine.

What is measured, with one service process, asked by wrk for 10 arms of 20 features over 64 connections per database (so
that a commit holds as many decisions, however many databases there are): decisions per second, processor
time per decision of the service and of PostgreSQL, bytes per decision; the lag of the merged model in the process that
learns and in one that follows; the seconds until a database that was lost takes writes again; the time of a merge. All
databases are in one cluster, on one disk: what several machines would add is not in these numbers.

    python -m benchmarks.serve_shards [--seconds 5] [--turns 3] [--connections 64] [--only throughput|lag|lost|merge]
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.serve_load import SCRIPT, bodies, cpu

sys.path.insert(0, str(Path(__file__).parents[1]))

ASKED = {"context": {"x": 1.0}, "arms": ["a", "b", "c"]}


def start(urls: list[str]) -> tuple[subprocess.Popen[bytes], str]:
    """A service over these databases, and its address, once it is ready."""
    from tests.service.database import free_port

    port = free_port()
    words = ["-c", "from armwise.cli.main import main; main()", "serve", "--listen", f"127.0.0.1:{port}"]
    for url in urls:
        words += ["--storage", url]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    for _ in range(1200):
        try:
            urllib.request.urlopen(f"{address}/readyz", timeout=5)
            return process, address
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the service did not start")


def ask(address: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, data), timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, {}


def backends(port: int) -> float:
    """Seconds of processor that PostgreSQL has used: its server and all sessions that live."""
    found = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            line = (folder / "cmdline").read_bytes() + Path(f"/proc/{parent}/cmdline").read_bytes()
            if (folder / "comm").read_text().strip() == "postgres" and f"{port}".encode() in line:
                found += cpu(int(folder.name))
        except (OSError, ValueError):  # it ended meanwhile
            continue
    return found


def throughput(server: Any, args: Any) -> None:
    import psycopg

    port = int(re.findall(r":(\d+)/", server.url)[0])
    results: dict[int, list[tuple[float, ...]]] = {n: [] for n in args.databases}
    with tempfile.TemporaryDirectory() as folder:
        bodies(Path(folder) / "bodies")
        script = Path(folder) / "ask.lua"
        script.write_text(SCRIPT % (Path(folder) / "bodies"))
        for _ in range(args.turns):
            for n, rows in results.items():
                urls = [server.new_database() for _ in range(n)]
                process, address = start(urls)
                try:
                    base = ["wrk", "-t1", f"-c{args.connections * n}", "-s", str(script), address]
                    subprocess.run([*base, "-d2s"], check=True, capture_output=True)
                    used, database, size = cpu(process.pid), backends(port), _bytes(urls)
                    out = subprocess.run([*base, f"-d{args.seconds}s"], check=True, capture_output=True, text=True)
                    used, database = cpu(process.pid) - used, backends(port) - database
                    size = _bytes(urls) - size
                finally:
                    process.terminate()
                    process.wait()
                found = re.search(r"RESULT ([\d.]+) ([\d.]+) (\d+)", out.stdout)
                assert found and found[3] == "0", out.stdout
                rate = float(found[1])
                total = rate * args.seconds
                rows.append((rate, float(found[2]), used / total * 1e6, database / total * 1e6, size / total))
                print(f"{n} databases: {_line(rows[-1])}", flush=True)
                for url in urls:
                    with psycopg.connect(server.url + "postgres", autocommit=True) as connection:
                        connection.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")
    middle = {n: tuple(statistics.median(column) for column in zip(*rows)) for n, rows in results.items()}
    for n, row in middle.items():
        print(f"median of {args.turns}, {n} databases: {_line(row)}")


def _line(row: tuple[float, ...]) -> str:
    rate, p99, used, database, size = row
    return (
        f"{rate:6.0f} decisions/s, p99 {p99:5.0f} ms; per decision {used:4.0f} us of the service, {database:4.0f} us "
        f"of PostgreSQL, {size:5.0f} bytes; {1e6 / used:5.0f} decisions per processor second of the service, "
        f"{1e6 / (used + database):5.0f} of both"
    )


def _bytes(urls: list[str]) -> float:
    import psycopg

    total = 0.0
    for url in urls:
        with psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            total += found[0] if found else 0
    return total


def lag(server: Any, args: Any) -> None:
    """Seconds from the answer to a reward until the merged model has it, in each of two processes that share the lead:
    what one learns itself it has at once, what the other learns it loads."""
    urls = [server.new_database() for _ in range(3)]
    one, two = start(urls), start(urls)
    time.sleep(5.0)  # until the leads are shared out
    try:
        found: dict[str, list[float]] = {"first": [], "second": []}
        for _ in range(args.samples):
            for kind, address in (("first", one[1]), ("second", two[1])):
                id = ask(address, "/v1/decisions", ASKED)[1]["id"]
                lessons = ask(address, "/v1/agents")[1]["agents"][0]["lessons"]
                ask(address, f"/v1/decisions/{id}/reward", {"value": 1})
                at = time.perf_counter()
                while ask(address, "/v1/agents")[1]["agents"][0]["lessons"] <= lessons:
                    time.sleep(0.005)
                found[kind].append(time.perf_counter() - at)
                while min(ask(each[1], "/v1/agents")[1]["agents"][0]["lessons"] for each in (one, two)) <= lessons:
                    time.sleep(0.01)  # both know all before the next one
        for kind, times in found.items():
            print(
                f"lag of the merged model in the {kind} of two processes: median {statistics.median(times):.2f} s, "
                f"largest {max(times):.2f} s, n = {len(times)}"
            )
    finally:
        for process, _ in (two, one):
            process.terminate()
            process.wait()


def lost(server: Any, args: Any) -> None:
    """What a lost database costs, and for how long; how soon a restarted process is ready."""
    import psycopg

    urls = [server.new_database() for _ in range(3)]
    process, address = start(urls)
    name = urls[1].rpartition("/")[2]
    healed: list[float] = []
    try:
        ids = [ask(address, "/v1/decisions", ASKED)[1]["id"] for _ in range(300)]
        for _ in range(args.turns):
            with psycopg.connect(server.url + "postgres", autocommit=True) as connection:
                connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
                codes = [ask(address, f"/v1/decisions/{id}/reward", {"value": 1})[0] for id in ids]
                fresh = [ask(address, "/v1/decisions", ASKED)[0] for _ in range(300)]
                connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            at, mine = time.perf_counter(), ids[codes.index(503)]
            while ask(address, f"/v1/decisions/{mine}/reward", {"value": 1})[0] != 200:
                time.sleep(0.01)
            healed.append(time.perf_counter() - at)
            print(
                f"one of three lost: {codes.count(503)} of 300 rewards answered 503, {codes.count(200)} taken; "
                f"{fresh.count(503)} of 300 new decisions 503; writes again after {healed[-1]:.2f} s",
                flush=True,
            )
        print(f"median until a database that is back takes writes: {statistics.median(healed):.2f} s")
    finally:
        process.terminate()
        process.wait()
    at = time.perf_counter()
    process, _ = start(urls)
    print(f"a process is ready {time.perf_counter() - at:.2f} s after its start, interpreter and imports included")
    process.kill()
    process.wait()


def merging(args: Any) -> None:
    """Milliseconds of one merge, by the number of features and of databases."""
    from armwise.service.journal.events import Creation
    from armwise.service.model.build import build_model
    from armwise.service.model.merged_views import merge

    rng = np.random.default_rng(1)
    for dim in (128, 512, 1024):
        for n in (3, 10, 30):
            if dim * dim * 8 * n > 1 << 28:
                continue
            parts = [build_model(Creation(features={"dim": dim})) for _ in range(n)]
            for part in parts:
                agent: Any = part.agent
                for _ in range(20):
                    agent.agent._model.update(rng.normal(size=dim), 1.0)
            times = []
            for _ in range(3):
                at = time.thread_time()
                merge(parts)
                times.append(time.thread_time() - at)
            print(f"merging {n:2} databases of dim {dim:4}: {statistics.median(times) * 1e3:7.1f} ms of processor")


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64, help="for each database")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--databases", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", choices=("throughput", "lag", "lost", "merge"))
    args = parser.parse_args()
    if args.only in (None, "merge"):
        merging(args)
    if args.only == "merge":
        return
    if not shutil.which("wrk"):
        sys.exit("wrk is needed (Debian: wrk)")
    from tests.service.database import Server

    with Server() as server:
        for name, measured in (("throughput", throughput), ("lag", lag), ("lost", lost)):
            if args.only in (None, name):
                measured(server, args)


if __name__ == "__main__":
    main()
