"""Kill a service under load, again and again; nothing it acknowledged may be missing, doubled or changed.

The load is decisions, lists, and the units and outcomes of an experiment.

``python -m tests.service.torture --kills 200`` (``make torture``); the tests run 20.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import msgspec

from armwise.service.engine.interface import ServedEngine
from armwise.service.engine.requests.draw import answer
from armwise.service.engine.requests.slots import MARK, slot_id
from armwise.service.journal.events import Decision
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Written
from armwise.service.log.verify import verify
from armwise.service.server.config import Config
from armwise.service.web.v1.decisions import DecisionAnswer
from tests.service.line import Line, asked

TEST = "/v1/experiments/torture"
ARMS = ["control", "green", "blue"]
_FORKING = multiprocessing.get_context("forkserver")


def _warm_up() -> None:
    """Start the process that services are forked from, with everything loaded, so that a start takes a moment."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        _FORKING.set_forkserver_preload(["tests.service.warm"])
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def _serve(storage: str, port: int) -> None:
    from armwise.service.server.run import serve

    with open(os.devnull, "w") as nowhere:
        serve(Config(listen=f"127.0.0.1:{port}", storage=storage, snapshot_every=0.3, log_level="error"), nowhere)


class Caller(threading.Thread):
    """Decides, ranks, rewards and tests as fast as it is answered, and remembers every answer."""

    def __init__(self, name: str, port: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._name, self._port, self._random = name, port, random.Random(seed)
        self.decided: dict[str, bytes] = {}  # id -> the answer
        self.listed: dict[str, tuple[str, float]] = {}  # id of a list's slot -> its arm and probability
        self.rewarded: dict[str, float] = {}
        self.assigned: dict[str, str] = {}  # unit of the experiment -> its arm
        self.told: dict[str, float] = {}  # unit -> its outcome
        self.unsure: set[str] = set()  # asked, and cut off before an answer
        self.strange: list[str] = []
        self.halt = False

    def run(self) -> None:
        with suppress(OSError), Line(self._port, timeout=10) as line:
            self._ask_until_cut_off(line)

    def _ask_until_cut_off(self, line: Line) -> None:
        if line.ask("GET", TEST)[0] != 200:  # 503 while another caller makes it
            self._post(line, TEST, {"arms": ARMS, "metrics": {"name": "spent", "kind": "amount"}}, 200, "PUT")
        n = self._random.randrange(12)  # on a busy machine a caller has few turns: some begin with a list or units
        while not self.halt:
            n += 1
            id = f"{self._name}-{n}"
            context = {"x": self._random.random(), "day": self._random.choice(["mo", "tu"])}
            body = {"id": id, "context": context, "arms": ["a", {"id": "b", "features": {"y": n % 3}}, "c"]}
            self.unsure.add(id)
            self.decided[id] = self._post(line, "/v1/decisions", body, 201)
            self.unsure.discard(id)
            if self._random.random() < 0.7:
                earlier = self._random.choice(list(self.decided))
                value = round(self._random.random(), 3)
                self._post(line, f"/v1/decisions/{earlier}/reward", {"value": value}, 200)
                self.rewarded.setdefault(f"{earlier}:{value}:{n}", value)
            if n % 3 == 0:
                self._rank(line, f"{id}-list", context, n)
            if n % 4 == 0:
                self._test(line, [f"{id}-unit-{k}" for k in range(3)])

    def _test(self, line: Line, units: list[str]) -> None:
        self.unsure.update(units)
        body = {"units": [{"unit": unit, "context": {"x": self._random.random()}} for unit in units]}
        found = json.loads(self._post(line, f"{TEST}/assignments", body, 200))["assignments"]
        self.assigned |= {each["unit"]: each["arm"] for each in found}
        told = {unit: round(self._random.random(), 3) for unit in units[:2]}
        outcomes = [{"unit": unit, "value": value, "id": f"of {unit}"} for unit, value in told.items()]
        statuses = json.loads(self._post(line, f"{TEST}/outcomes", {"outcomes": outcomes}, 200))["outcomes"]
        if any(each["status"] != "taken" for each in statuses):
            self.strange.append(f"{TEST}/outcomes: {statuses}")
        self.told |= told

    def _rank(self, line: Line, id: str, context: Any, n: int) -> None:
        slots = [slot_id(id, k) for k in range(2)]
        self.unsure.update(slots)
        body = {"id": id, "context": context, "arms": ["a", {"id": "b", "features": {"y": n % 3}}, "c"], "k": 2}
        made = json.loads(self._post(line, "/v1/rankings", body, 201))["slots"]
        self.listed |= {slot: (each["arm"], each["probability"]) for slot, each in zip(slots, made)}
        self.unsure.difference_update(slots)
        value = round(self._random.random(), 3)
        self._post(line, f"/v1/rankings/{id}/rewards", {"slots": {"1": value}}, 200)
        self.rewarded.setdefault(f"{slots[1]}:{value}:{n}", value)

    def _post(self, line: Line, path: str, body: Any, expected: int, method: str = "POST") -> bytes:
        status, data = line.ask(method, path, body)
        if status != expected:
            self.strange.append(f"{path}: {status} {data[:200]!r}")
        return data


def torture(kills: int, storage: str, seed: int = 1, callers: int = 4, say: Any = lambda text: None) -> dict[str, int]:
    """Kill ``kills`` times; raises AssertionError with what broke, or says how much was put to the test."""
    chance = random.Random(seed)
    _warm_up()
    everyone: list[Caller] = []
    for kill in range(kills):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = _FORKING.Process(target=_serve, args=(storage, port), daemon=True)
        process.start()
        _wait_ready(process, port)
        team = [Caller(f"{kill}.{i}", port, seed * 10_000 + kill * 10 + i) for i in range(callers)]
        for caller in team:
            caller.start()
        time.sleep(chance.uniform(0.02, 0.5))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        for caller in team:
            caller.halt = True
            caller.join()
        everyone += team
        if kill % 20 == 19:
            say(f"{kill + 1} kills, {sum(len(c.decided) for c in everyone)} decisions")
    return check(storage, everyone) | {"kills": kills}


def _wait_ready(process: Any, port: int) -> None:
    limit = time.monotonic() + 120.0
    while time.monotonic() < limit:
        assert process.is_alive(), "the service did not come back"
        try:
            if asked(port, "GET", "/readyz")[0] == 200:
                return
        except OSError:
            time.sleep(0.01)
    raise AssertionError("the service is not ready after 120 s")


def check(storage: str | list[str], callers: list[Caller]) -> dict[str, int]:
    """Everything that was acknowledged is in the journal once, as it was said; the models equal a replay."""
    strange = [text for caller in callers for text in caller.strange]
    assert not strange, strange[:3]
    acknowledged = {id: data for caller in callers for id, data in caller.decided.items()}
    listed = {slot: shown for caller in callers for slot, shown in caller.listed.items()}
    rewards = [(key.split(":")[0], value) for caller in callers for key, value in caller.rewarded.items()]
    unsure = {id for caller in callers for id in caller.unsure}
    engine = Config(storage=storage).engine()
    engine.start()  # recovers from the last snapshot
    engine.wait_learnt()
    units = {_unit(engine, unit): arm for caller in callers for unit, arm in caller.assigned.items()}
    rewards += [(_unit(engine, unit), value) for caller in callers for unit, value in caller.told.items()]
    allowed = set(acknowledged) | set(listed) | set(units) | unsure | {_unit(engine, id) for id in unsure}
    engine.stop()  # and stores one of all it knows, which verify compares with a replay
    found: dict[str, int] = {}
    kept: dict[tuple[str, float], int] = {}
    events = lessons = 0
    for store in Config(storage=storage).stores():
        journal = Journal(store.connect())
        report = verify(journal)
        assert report.problems == [], report.problems[:3]
        assert report.snapshots >= 1
        events, lessons = events + report.events, lessons + report.lessons
        for row in journal.events():
            if row.kind == "decision":
                found[row.id] = found.get(row.id, 0) + 1
                if row.id in acknowledged:
                    same = msgspec.json.encode(DecisionAnswer.of(answer(Written(row)))) == acknowledged[row.id]
                    assert same, f"{row.id} was answered otherwise than it is journaled"
                if row.id in listed:
                    kept_as = answer(Written(row))
                    assert (kept_as.arm, kept_as.probability) == listed[row.id], f"{row.id} was answered otherwise"
                if row.id in units:
                    assert answer(Written(row)).arm == units[row.id], f"{row.id} was answered otherwise"
                assert row.id in allowed, f"{row.id} was never asked for"
                assert abs(sum(msgspec.json.decode(row.body, type=Decision).p) - 1.0) < 1e-9
            elif row.kind == "reward":
                key = row.id, msgspec.json.decode(row.body)["value"]
                kept[key] = kept.get(key, 0) + 1
        journal.connection.close()
    missing = (set(acknowledged) | set(listed) | set(units)) - set(found)
    assert not missing, f"{len(missing)} acknowledged decisions are gone"
    halves = [
        id for id in found if MARK in id and any(slot_id(id.partition(MARK)[0], k) not in found for k in range(2))
    ]
    assert not halves, f"{len(halves)} lists are there in part, such as {halves[0]}"
    assert set(found.values()) <= {1}, "a decision is there twice"
    for key in rewards:
        assert kept.get(key, 0) > 0, f"the acknowledged reward of {key} is gone"
        kept[key] -= 1
    return {
        "decisions": len(acknowledged),
        "lists": len(listed) // 2,
        "units": len(units),
        "rewards": len(rewards),
        "events": events,
        "lessons": lessons,
    }


def _unit(engine: ServedEngine, unit: str) -> str:
    """The id of a unit in the journal."""
    return engine.pseudonym(f"unit\0{unit}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = torture(args.kills, str(Path(folder) / "data"), args.seed, say=print)
    print(f"{json.dumps(result)}: nothing lost, nothing doubled, nothing changed; the models equal a replay")


if __name__ == "__main__":
    main()
