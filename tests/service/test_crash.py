"""Crashes: kill -9 under load, and the power going at every write."""

from __future__ import annotations

import json
import pathlib
import random
import shutil
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from armwise.service.engine.engine import Engine
from armwise.service.engine.requests.draw import answer as said
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Written
from armwise.service.log.verify import verify
from armwise.service.web.v1.decisions import DecisionAnswer
from tests.service.powerloss import Disk, Files, Remembered, write
from tests.service.torture import TEST, Caller, torture


def test_twenty_kills_under_load(tmp_path: pathlib.Path) -> None:
    result = torture(20, str(tmp_path / "data"), seed=7)
    assert result["decisions"] > 100  # it was put to the test
    assert result["rewards"] > 50 and result["units"] > 50


def test_a_caller_makes_the_experiment_unless_it_is_there() -> None:
    """While another caller makes it, the service answers 503: all that asked for it then was refused, and strange."""

    class Answers:
        def __init__(self, there: int) -> None:
            self.there, self.asked = there, list[str]()

        def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
            self.asked.append(f"{method} {path}")
            if path != TEST:
                raise ConnectionError("cut off")
            return (self.there if method == "GET" else 200), b""

    for there in (200, 404, 503):
        line, caller = Answers(there), Caller("c", 0, 1)
        with pytest.raises(ConnectionError):
            caller._ask_until_cut_off(line)  # type: ignore[arg-type]
        assert (f"PUT {TEST}" in line.asked) == (there != 200), there
        assert caller.strange == []


def short_run(folder: pathlib.Path, disk: Disk, synchronous: str) -> list[tuple[int, str, bytes | float]]:
    """Decide and reward a little; (operations done when it was acknowledged, id, answer or reward)."""
    store = Remembered(folder / "journal.db", disk, synchronous)
    engine = Engine(store, {"shop": Creation(features={"dim": 8})})
    engine.start()
    acknowledged: list[tuple[int, str, bytes | float]] = []
    for k in range(12):
        context = json.dumps({"x": k / 3.0, "day": k % 2 == 0}).encode()
        answer = engine.decide("shop", context, [b'"a"', b'{"id": "b", "features": {"y": 1}}'], id=f"e{k}")
        acknowledged.append((len(disk.operations), f"e{k}", msgspec.json.encode(DecisionAnswer.of(answer))))
        if k % 2:
            engine.reward("shop", f"e{k - 1}", k / 12.0)
            acknowledged.append((len(disk.operations), f"e{k - 1}", k / 12.0))
        if k == 6:
            engine.snapshot()
    engine.stop()
    store.shut()
    return acknowledged


Found = tuple[list[str], dict[str, bytes], list[tuple[str, float]]]  # problems, decisions as answered, rewards


def found(files: Files, folder: pathlib.Path) -> Found:
    """What a journal says that is opened on a surviving disk."""
    write(files, folder)
    journal = Journal(SQLite(folder / "journal.db").connect())
    problems = verify(journal).problems
    decided, rewarded = {}, []
    for row in journal.events():
        if row.kind == "decision":
            decided[row.id] = msgspec.json.encode(DecisionAnswer.of(said(Written(row))))
        elif row.kind == "reward":
            rewarded.append((row.id, msgspec.json.decode(row.body)["value"]))
    journal.connection.close()
    shutil.rmtree(folder)
    return problems, decided, rewarded


def lost(there: Found, acknowledged: list[tuple[int, str, bytes | float]], moment: int) -> list[str]:
    """What a surviving disk lacks of what had been acknowledged, or has wrong."""
    problems, decided, rewarded = there
    missing = list(problems)
    for done, id, what in acknowledged:
        if done <= moment:
            kept = decided.get(id) == what if isinstance(what, bytes) else rewarded.count((id, what)) == 1
            if not kept:
                missing.append(f"{id}: {what!r}")
    return missing


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk(f"remembering{random.random()}")
    yield made
    made.unregister()


def test_the_power_goes_at_every_write(tmp_path: pathlib.Path, disk: Disk) -> None:
    acknowledged = short_run(tmp_path / "run", disk, "FULL")
    assert len(acknowledged) == 18
    n = len(disk.operations)
    assert n > 150
    assert any(name == "journal.db" and what == "write" for what, name, _, _ in disk.operations[30:])  # checkpoints
    known: dict[Files, Found] = {}  # between two syncs many disks are the same to the byte
    for moment in range(n + 1):
        for kind, chance in (("nothing", None), ("some", random.Random(moment))):
            files = disk.survivor(moment, chance)
            if files not in known:
                known[files] = found(files, tmp_path / f"{kind}{moment}")
            missing = lost(known[files], acknowledged, moment)
            assert missing == [], f"{kind} of what was not synced survived at {moment}"
    assert len(known) > n // 2


def test_after_the_power_went_the_service_goes_on(tmp_path: pathlib.Path, disk: Disk) -> None:
    short_run(tmp_path / "run", disk, "FULL")
    for moment in range(40, len(disk.operations), 60):
        folder = tmp_path / f"at{moment}"
        write(disk.survivor(moment, random.Random(moment)), folder)
        engine = Engine(SQLite(folder / "journal.db"), {"shop": Creation(features={"dim": 8})})
        engine.start()
        engine.decide("shop", b"{}", [b'"a"'], id="after")
        engine.wait_learnt()
        engine.stop()
        assert verify(Journal(SQLite(folder / "journal.db").connect())).problems == []


def test_the_simulation_would_notice(tmp_path: pathlib.Path, disk: Disk) -> None:
    """With synchronous=NORMAL only checkpoints are synced: if no moment lost anything, these tests could not fail."""
    acknowledged = short_run(tmp_path / "run", disk, "NORMAL")
    losses = []
    for moment, _, _ in acknowledged:
        there = found(disk.survivor(moment, None), tmp_path / f"left-{moment}")
        losses += lost(there, acknowledged, moment)
    assert losses != []
