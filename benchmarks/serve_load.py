"""Decisions a second, beside the least that any durable service must do.

In one run, by turns: a bare handler (Starlette, msgspec, one SQLite row with ``synchronous=FULL`` and group commit
before the reply) and ``armwise serve``, both asked by wrk from a process of its own, for 10 arms of 20 features each.
The ratio is what counts: the machine is the same, the disk is the same.

    python -m benchmarks.serve_load [--seconds 1] [--turns 15] [--connections 64]

With ``--arms N`` the service alone is asked for N arms in each request, another choice from a catalogue of a fifth more
every time; with ``--catalogue`` the arms are sent once and named by their hash.

    python -m benchmarks.serve_load --arms 1000 --connections 8 [--catalogue]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import queue
import random
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from benchmarks import common

SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local n = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  n = n %% #bodies + 1
  return wrk.format(nil, "/v1/decisions", nil, bodies[n])
end
done = function(summary, latency)
  io.write(string.format("RESULT %%f %%f %%d\\n", summary.requests / (summary.duration / 1e6),
    latency:percentile(99) / 1000, summary.errors.status + summary.errors.read + summary.errors.timeout))
end
"""


def items(chance: random.Random, n: int, features: int = 20) -> list[dict[str, object]]:
    """Arms, each with features of its own."""
    return [
        {"id": f"item-{i}", "features": {f"f{j}": round(chance.gauss(0, 1), 4) for j in range(features)}}
        for i in range(n)
    ]


def bodies(path: Path, arms: int = 10, features: int = 20, n: int = 20_000, catalogue: str = "") -> None:
    """Requests with arms from a catalogue of 200; more of them than the service remembers contexts or sets of arms.

    Of many arms it is as many and a fifth; ``catalogue`` names one that the service has instead.
    """
    chance = random.Random(1)
    every = items(chance, max(200, arms * 6 // 5), features)
    with path.open("w") as file:
        for _ in range(n):
            context = {"hour": chance.randrange(24), "age": chance.randrange(90), "city": chance.choice("abcdefgh")}
            chosen = {"catalogue": catalogue} if catalogue else {"arms": chance.sample(every, arms)}
            file.write(json.dumps({"context": context, **chosen}) + "\n")


def bare(port: int, folder: str) -> None:
    """The bare handler: decode, one row in a group commit, reply."""
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    waiting: queue.SimpleQueue[tuple[str, bytes, asyncio.Future[None]]] = queue.SimpleQueue()
    loop: asyncio.AbstractEventLoop

    def write() -> None:
        database = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT, body BLOB)")
        while True:
            batch = [waiting.get()]
            while not waiting.empty() and len(batch) < 512:
                batch.append(waiting.get())
            database.execute("BEGIN")
            database.executemany("INSERT INTO events (id, body) VALUES (?, ?)", [(i, b) for i, b, _ in batch])
            database.execute("COMMIT")
            loop.call_soon_threadsafe(lambda done=batch: [f.done() or f.set_result(None) for _, _, f in done])

    async def decide(request: Request) -> Response:
        nonlocal loop
        loop = asyncio.get_running_loop()
        body = await request.body()
        asked = msgspec.json.decode(body)
        id, future = os.urandom(12).hex(), loop.create_future()
        waiting.put((id, body, future))
        await future
        answer = {"id": id, "arm": asked["arms"][0]["id"], "probability": 1.0}
        return Response(msgspec.json.encode(answer), 201, media_type="application/json")

    threading.Thread(target=write, daemon=True).start()
    app = Starlette(routes=[Route("/v1/decisions", decide, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def start(kind: str, port: int, folder: str) -> subprocess.Popen[bytes]:
    if kind == "bare":
        words = ["-m", "benchmarks.serve_load", "--bare", str(port), folder]
    else:
        code = "from armwise.cli.main import main; main()"
        words = ["-c", code, "serve", "--listen", f"127.0.0.1:{port}", "--storage", f"{folder}/data"]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1)
            break
        except urllib.error.HTTPError:
            break
        except OSError:
            time.sleep(0.1)
    return process


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def measure(pid: int, port: int, script: str, seconds: int, connections: int) -> tuple[float, float, int, float]:
    """Decisions per second, the 99th percentile in ms, errors, and microseconds of processor per decision."""
    before = cpu(pid)
    words = ["wrk", "-t1", f"-c{connections}", "-s", script, f"http://127.0.0.1:{port}", f"-d{seconds}s"]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    used = cpu(pid) - before
    found = re.search(r"RESULT ([\d.]+) ([\d.]+) (\d+)", out)
    assert found, out
    return float(found[1]), float(found[2]), int(found[3]), used / (float(found[1]) * seconds) * 1e6


def until_learnt(port: int) -> None:
    """Wait until the service has learnt all that it journaled, so that it does not learn during another's turn."""
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            found = re.search(r"^armwise_journal_lag (\S+)", answer.read().decode(), re.MULTILINE)
        assert found, "the metrics do not say what is not yet learnt"
        if float(found[1]) == 0.0:
            return
        time.sleep(0.05)


def cpu(pid: int) -> float:
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def many(args: argparse.Namespace) -> None:
    """The service alone, asked for many arms."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        process = start("armwise", port, folder)
        try:
            name = ""
            if args.catalogue:
                sent = json.dumps({"arms": items(random.Random(1), args.arms)}).encode()
                address = urllib.request.Request(f"http://127.0.0.1:{port}/v1/catalogues", sent)
                with urllib.request.urlopen(address) as answer:
                    name = json.loads(answer.read())["catalogue"]
            bodies(Path(folder) / "bodies", args.arms, n=20_000 if name else 200, catalogue=name)
            script = Path(folder) / "ask.lua"
            script.write_text(SCRIPT % (Path(folder) / "bodies"))
            for turn in range(-1, args.turns):
                row = measure(process.pid, port, str(script), args.seconds, args.connections)
                assert not row[2], f"{row[2]} requests failed"
                if turn >= 0:  # the first one warms
                    rows.append(row)
                    print(f"{row[0]:6.0f} decisions/s, p99 {row[1]:6.1f} ms, {row[3]:5.0f} us of processor", flush=True)
        finally:
            process.terminate()
            process.wait()
    rate, p99, _, used = (statistics.median(column) for column in zip(*rows))
    how = "named by a catalogue" if args.catalogue else "in each request"
    print(f"median, {args.arms} arms {how}: {rate:.0f} decisions/s, p99 {p99:.1f} ms, {used:.0f} us of processor each")


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "--bare":
        bare(int(sys.argv[2]), sys.argv[3])
        return
    parser = common.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--arms", type=int, default=0, help="the service alone, asked for so many")
    parser.add_argument("--catalogue", action="store_true", help="with --arms: they are named by their hash")
    args = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is needed (Debian: wrk)")
    if args.arms:
        many(args)
        return
    results: dict[str, list[tuple[float, float, float]]] = {"bare": [], "armwise": []}
    running: dict[str, tuple[subprocess.Popen[bytes], int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        bodies(Path(folder) / "bodies")
        script = Path(folder) / "ask.lua"
        script.write_text(SCRIPT % (Path(folder) / "bodies"))
        try:
            for kind in results:
                port = free_port()
                running[kind] = start(kind, port, folder), port
            for turn in range(-1, args.turns):  # by turns, and short: what else the machine does hits both
                for kind, (process, port) in running.items():
                    rate, p99, errors, used = measure(process.pid, port, str(script), args.seconds, args.connections)
                    if kind == "armwise":
                        until_learnt(port)
                    if turn < 0:  # warm
                        continue
                    results[kind].append((rate, p99, used))
                    line = f"{kind:9} {rate:8.0f} decisions/s   p99 {p99:6.1f} ms   {used:4.0f} us of processor each"
                    print(f"{line}   {errors} errors", flush=True)
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, _ in running.values():
                process.wait()
    middle = {kind: [statistics.median(column) for column in zip(*rows)] for kind, rows in results.items()}
    burdens = [ours[2] / theirs[2] for ours, theirs in zip(results["armwise"], results["bare"])]
    ratios = [ours[0] / theirs[0] for ours, theirs in zip(results["armwise"], results["bare"])]
    print(f"median: {middle['armwise'][0]:.0f}/s against {middle['bare'][0]:.0f}/s bare, ", end="")
    print(f"p99 {middle['armwise'][1]:.1f} against {middle['bare'][1]:.1f} ms, ", end="")
    print(f"processor {middle['armwise'][2]:.0f} against {middle['bare'][2]:.0f} us per decision")
    ours, least = middle["armwise"], middle["bare"]
    note = f"p99 {ours[1]:.1f} and {least[1]:.1f} ms; processor {ours[2]:.0f} and {least[2]:.0f} us per decision"
    rates = [f"{middle[kind][0]:,.0f}/s" for kind in ("armwise", "bare")]
    common.report("durable decisions over HTTP, 10 arms of 20 features", rates[0], "bare handler, same disk", rates[1],
                  statistics.median(ratios), note)  # fmt: skip
    print(
        f"ratio {statistics.median(ratios):.2f} (turns {', '.join(f'{r:.2f}' for r in sorted(ratios))}); required 0.75"
    )
    print(f"processor time per decision: {statistics.median(burdens):.2f} of the bare handler's")


if __name__ == "__main__":
    main()
