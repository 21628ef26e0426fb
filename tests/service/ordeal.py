"""What a service lives through: frozen processes, restarts of the database, roll-outs, storms, full disks, wild clocks.

``python -m tests.service.ordeal --freezes 50`` (part of ``make torture``); the tests run each once. Throughout:
nothing acknowledged is lost, doubled or changed; a process is ready again within ``READY`` seconds without a client's
help; the healthy one of two acknowledges something at least every ``GAP`` seconds; ``verify`` finds nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from armwise.service.engine import engine as engine_module
from armwise.service.engine.application import Application
from armwise.service.engine.clock import TrustedClock
from armwise.service.engine.writer import MAX_COMMIT_SECONDS
from armwise.service.server.config import Config
from tests.service.database import Server, free_port
from tests.service.line import asked
from tests.service.torture import _FORKING, _wait_ready, _warm_up, check

READY, GAP = 10.0, 5.0


def serve(
    storage: str | list[str], port: int, window: float, offset: Synchronized[float], full: Synchronized[int]
) -> None:
    """A service whose clock is ``offset`` seconds off, and whose disk is full while ``full`` says so."""
    from armwise.service.server.run import serve

    class Wild(TrustedClock):
        def __init__(self) -> None:
            super().__init__(wall=lambda: time.time() + offset.value)

    assert vars(engine_module)["TrustedClock"] is TrustedClock, "else the clock would not be wild"
    setattr(engine_module, "TrustedClock", Wild)  # noqa: B010  (this process only)

    def disk() -> None:
        while True:
            limit = 8192 if full.value else resource.RLIM_INFINITY  # no file may grow beyond
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            time.sleep(0.02)

    threading.Thread(target=disk, daemon=True).start()
    config = Config(
        listen=f"127.0.0.1:{port}",
        storage=storage,
        snapshot_every=0.5,
        log_level="error",
        applications={"default": Application(window=window)},
    )
    with open(os.devnull, "w") as nowhere:
        serve(config, nowhere)


class Client(threading.Thread):
    """Decides and rewards at one process, asks again where it was cut off, remembers acknowledgements and when."""

    def __init__(self, name: str, port: int, insists: bool = True) -> None:
        super().__init__(daemon=True)
        self._insists = insists  # asks for the same again until it has it
        self._name, self._port, self._random = name, port, random.Random(name)
        self.decided: dict[str, bytes] = {}
        self.listed: dict[str, tuple[str, float]] = {}
        self.rewarded: dict[str, float] = {}
        self.assigned: dict[str, str] = {}  # units: this client has none
        self.told: dict[str, float] = {}
        self.unsure: set[str] = set()
        self.strange: list[str] = []
        self.moments: list[float] = []  # of acknowledgements
        self.slowest = 0.0  # seconds that an answer took, whatever it was
        self.halt, self.go = False, threading.Event()
        self.go.set()

    def run(self) -> None:
        n = 0
        while not self.halt:
            self.go.wait(1.0)
            if not self.go.is_set():
                continue
            id, n = f"{self._name}-{n}", n + 1
            body = {"id": id, "context": {"x": self._random.random()}, "arms": ["a", {"id": "b", "features": {"y": n}}]}
            self.unsure.add(id)
            while not self.halt and self.go.is_set():
                if (data := self.post("/v1/decisions", body)) is not None:
                    self.decided[id] = data
                    self.unsure.discard(id)
                    value = round(self._random.random(), 3)
                    if self.post(f"/v1/decisions/{id}/reward", {"value": value}) is not None:
                        self.rewarded[f"{id}:{value}"] = value
                    break
                if not self._insists:
                    break
                time.sleep(0.1)
            time.sleep(0.01)

    def post(self, path: str, body: Any) -> bytes | None:
        """The answer; None where there was none, or it was said that nothing can be done now."""
        began = time.monotonic()
        try:
            status, data = asked(self._port, "POST", path, body, timeout=6 if self._insists else 15)
        except OSError:
            return None
        finally:
            self.slowest = max(self.slowest, time.monotonic() - began)
        if status in (200, 201):
            self.moments.append(time.monotonic())
            return data
        if status != 503:
            self.strange.append(f"{path}: {status} {data[:200]!r}")
        return None

    def longest_gap(self, since: float, until: float) -> float:
        seen = [since, *[moment for moment in self.moments if since < moment < until], until]
        return max(b - a for a, b in itertools.pairwise(seen))


class Fleet:
    """Some processes on one storage, two clients at each."""

    def __init__(self, storage: str | list[str], n: int, window: float = 600.0) -> None:
        _warm_up()
        self.storage, self.ports = storage, [free_port() for _ in range(n)]
        self.offset, self.full = _FORKING.Value("d", 0.0), _FORKING.Value("i", 0)
        self.processes = [self._start(port, window) for port in self.ports]
        insists = isinstance(storage, str)  # of several databases, the others go on
        self.teams = [[Client(f"{port}.{i}", port, insists) for i in range(2)] for port in self.ports]
        for client in self.clients:
            client.start()

    @property
    def clients(self) -> list[Client]:
        return [client for team in self.teams for client in team]

    def _start(self, port: int, window: float) -> Any:
        process = _FORKING.Process(target=serve, args=(self.storage, port, window, self.offset, self.full), daemon=True)
        process.start()
        _wait_ready(process, port)
        return process

    def ready(self, i: int) -> bool:
        """Whether a process says that it is ready."""
        with suppress(OSError):
            return asked(self.ports[i], "GET", "/readyz", timeout=2)[0] == 200
        return False

    def ready_after(self, i: int, pause: bool = False) -> float:
        """Seconds until a process says that it is ready; with ``pause`` no client asks anything meanwhile."""
        began = time.monotonic()
        for client in self.clients if pause else ():
            client.go.clear()
        while time.monotonic() - began < 60.0 and not self.ready(i):
            time.sleep(0.05)
        for client in self.clients:
            client.go.set()
        return time.monotonic() - began

    def whole(self, i: int) -> bool:
        """Whether all databases take writes, as a process says."""
        with suppress(OSError):
            return set(json.loads(asked(self.ports[i], "GET", "/readyz")[1])["databases"].values()) == {"ready"}
        return False

    def freeze(self, i: int, seconds: float) -> tuple[float, float]:
        """Stop a process for a while: the longest silence of the others, and when it was ready again."""
        began = time.monotonic()
        os.kill(self.processes[i].pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.processes[i].pid, signal.SIGCONT)
        ready = self.ready_after(i)
        others = [client for j, team in enumerate(self.teams) if j != i for client in team]
        return min(client.longest_gap(began, time.monotonic()) for client in others), ready

    def roll_out(self, window: float) -> None:
        """Restart every process with other settings, one after the other."""
        for i, port in enumerate(self.ports):
            self.processes[i].terminate()
            self.processes[i].join(30)
            self.processes[i] = self._start(port, window)

    def settings(self) -> list[dict[str, Any]]:
        answers = [asked(port, "GET", "/v1/agents", timeout=10)[1] for port in self.ports]
        return [json.loads(answer)["agents"][0]["settings"] for answer in answers]

    def storm(self, i: int, n: int) -> None:
        """Many decisions at once, whose windows close at once."""
        client = self.teams[i][0]
        for k in range(0, n, 500):
            ids = [f"storm{time.monotonic_ns()}-{j}" for j in range(k, min(n, k + 500))]
            client.unsure.update(ids)
            client.post("/v1/batch/decisions", {"decisions": [{"id": id, "arms": ["a", "b"]} for id in ids]})

    def end(self) -> dict[str, int]:
        """Stop everything, and check what was acknowledged."""
        for client in self.clients:
            client.halt = True
            client.go.set()
        for client in self.clients:
            client.join()
        for process in self.processes:
            process.terminate()
            process.join(30)
        return check(self.storage, self.clients)  # type: ignore[arg-type]


def two_on_postgres(freezes: int, restarts: int, storm: int, seed: int = 1, say: Any = print) -> dict[str, Any]:
    """Freezes and clocks that jump, restarts of the database, an expiry storm and a roll-out, under load."""
    chance, worst = random.Random(seed), {"gap": 0.0, "ready": 0.0}
    with Server() as server:
        fleet = Fleet(server.new_database(), 2)
        for k in range(freezes):
            time.sleep(chance.uniform(0.05, 0.8))
            fleet.offset.value = chance.choice((30 * 86400.0, -3600.0, 0.0))  # their own clocks, which nobody asks
            gap, ready = fleet.freeze(k % 2, chance.uniform(0.3, 7.0))
            worst = {"gap": max(worst["gap"], gap), "ready": max(worst["ready"], ready)}
            say(f"freeze {k + 1}: the other was silent for {gap:.1f} s, ready again after {ready:.1f} s")
            assert gap < GAP, f"freeze {k + 1}: nothing was acknowledged for {gap:.1f} s"
            assert ready < READY, f"freeze {k + 1}: ready again after {ready:.1f} s"
        for k in range(restarts):
            server.control("restart", "-m", "immediate" if k % 2 else "fast")
            ready = max(fleet.ready_after(i, pause=True) for i in range(2))
            worst["ready"] = max(worst["ready"], ready)
            say(f"restart {k + 1} of the database: ready again after {ready:.1f} s")
            assert ready < READY, f"restart {k + 1}: ready again after {ready:.1f} s"
        fleet.roll_out(window=3.0)
        assert [settings["window"] for settings in fleet.settings()] == [3.0, 3.0]
        began = time.monotonic()
        fleet.storm(0, storm)
        time.sleep(5.0)
        gap = min(client.longest_gap(began, time.monotonic()) for client in fleet.teams[1])
        say(f"{storm} windows closed at once: the other was silent for {gap:.1f} s")
        assert gap < GAP
        return fleet.end() | worst


def two_on_several(
    hangs: int, seed: int = 1, say: Any = print, length: tuple[float, float] = (1.0, 4.0), silence: float = 1.0
) -> dict[str, Any]:
    """Two processes on two databases, of which one hangs for a while, and then a process: the others go on.

    ``length`` of a hang once it is known, and the longest ``silence`` that a client may hear meanwhile, in seconds.
    """
    chance, worst = random.Random(seed), {"gap": 0.0, "slowest": 0.0, "again": 0.0}
    with Server() as one, Server() as two:
        fleet = Fleet([one.new_database(), two.new_database()], 2)
        for k in range(hangs):
            time.sleep(chance.uniform(0.05, 0.8))
            for client in fleet.clients:
                client.slowest = 0.0
            server = (one, two)[k % 2]
            server.signal(signal.SIGSTOP)
            time.sleep(MAX_COMMIT_SECONDS + 1.0)  # by then it is known to hang: its share is refused at once
            began = time.monotonic()
            time.sleep(chance.uniform(*length))
            gap = max(client.longest_gap(began, time.monotonic()) for client in fleet.clients)
            server.signal(signal.SIGCONT)
            resumed = time.monotonic()
            while not all(map(fleet.whole, range(2))) and time.monotonic() - resumed < 60.0:
                time.sleep(0.05)
            again, slowest = time.monotonic() - resumed, max(client.slowest for client in fleet.clients)
            say(f"hang {k + 1}: answers took at most {slowest:.1f} s, then the longest silence of a client was "
                f"{gap:.1f} s; whole again after {again:.1f} s")  # fmt: skip
            assert slowest < MAX_COMMIT_SECONDS + 3.0, f"hang {k + 1}: an answer took {slowest:.1f} s"
            assert gap < silence, f"hang {k + 1}: with one database at work a client heard nothing for {gap:.1f} s"
            assert again < READY, f"hang {k + 1}: whole again after {again:.1f} s"
            frozen, ready = fleet.freeze(k % 2, chance.uniform(0.3, 7.0))
            say(f"freeze {k + 1}: the other process was silent for {frozen:.1f} s, ready again after {ready:.1f} s")
            assert frozen < GAP and ready < READY
            worst = {"gap": max(worst["gap"], gap, frozen), "slowest": max(worst["slowest"], slowest),
                     "again": max(worst["again"], again)}  # fmt: skip
        return fleet.end() | worst


def two_on_full_postgres(rounds: int, seed: int = 1, say: Any = print) -> dict[str, Any]:
    """The disk of PostgreSQL itself is full for a while, under load; where its log cannot be written, it ends itself.

    Then it is started again, as an init system would: that fails until there is room.
    """
    chance, worst, starts, refused = random.Random(seed), 0.0, 0, 0
    with Server(room=160) as server:
        fleet, halt = Fleet(server.new_database(), 2), threading.Event()

        def keep_up() -> None:
            nonlocal starts
            while not halt.wait(0.1):
                if not server.runs:
                    starts += 1
                    with suppress(subprocess.CalledProcessError):
                        server.control("start")

        keeper = threading.Thread(target=keep_up, daemon=True)
        keeper.start()
        for k in range(rounds):
            time.sleep(chance.uniform(0.3, 1.0))
            before = sum(len(client.moments) for client in fleet.clients)
            server.fill(leave=(k % 2) * 700_000)  # room for rows, and none for the next piece of its log
            fleet.storm(0, 500 * (k % 2))
            time.sleep(chance.uniform(1.0, 6.0))
            well = all(map(fleet.ready, range(2)))
            refused += not well
            server.free()
            ready = max(fleet.ready_after(i, pause=True) for i in range(2))
            worst, taken = max(worst, ready), sum(len(client.moments) for client in fleet.clients) - before
            say(f"round {k + 1}: the database's disk was full, {taken} answers came from there on, at its end "
                f"{'both were still' if well else 'one was not'} ready; ready again after {ready:.1f} s")  # fmt: skip
            assert ready < READY, f"round {k + 1}: ready again after {ready:.1f} s"
        halt.set()
        keeper.join()
        assert refused, "no round filled the disk so far that a process was not ready: nothing was tried"
        return fleet.end() | {"ready": worst, "refused": refused, "starts": starts}


def one_on_sqlite(folder: str, rounds: int, say: Any = print) -> dict[str, int]:
    """A clock that jumps forward and back, and a disk that is full for a while."""
    fleet = Fleet(folder, 1)
    for k in range(rounds):
        for jump in (30 * 86400.0, -3600.0, 0.0):
            fleet.offset.value = jump
            time.sleep(0.3)
        fleet.full.value = 1
        time.sleep(0.6)
        fleet.full.value = 0
        ready = fleet.ready_after(0, pause=True)
        say(f"round {k + 1}: the disk was full, ready again after {ready:.1f} s")
        assert ready < READY
        time.sleep(0.3)
    fleet.storm(0, 1000)
    return fleet.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--freezes", type=int, default=50)
    args = parser.parse_args()
    print(json.dumps(two_on_postgres(args.freezes, restarts=6, storm=20_000)))
    print(json.dumps(two_on_several(hangs=max(args.freezes // 10, 1))))
    print(json.dumps(two_on_full_postgres(rounds=max(args.freezes // 5, 1))))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(one_on_sqlite(str(Path(folder) / "data"), rounds=10)))
    print("nothing lost, nothing doubled, nothing changed; the models equal a replay")


if __name__ == "__main__":
    main()
