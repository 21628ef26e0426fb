"""Experiments where several processes assign at once, and where several databases keep the units."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import HostedExperiment, create
from armwise.service.experiments.outcome_reader import SETTLING
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.server.app import Service
from armwise.service.server.config import Config, open_store
from armwise.service.sharding.sharded_engine import ShardedEngine
from tests.service.database import Server, lose
from tests.service.serving import Running

ARMS = ["control", "green", "blue"]
AT_ONCE = {"name": "buy", "window": None}
BEHIND = 0.1 + SETTLING / 1000.0  # seconds

CHILD = """
import json, sys
import armwise as aw
url, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with aw.Experiment("colour", ["control", "green", "blue"], {"name": "buy", "window": None}, storage=url) as test:
    print("ready", flush=True)
    sys.stdin.readline()
    units = [(f"u{i}", {"process": sys.argv[4]}) for i in range(first, last)]
    found = [arm for k in range(0, len(units), 50) for arm in test.assign_many(units[k : k + 50])]
    told = test.outcome_many([(arm.unit, 1.0, "buy", f"order of {arm.unit}") for arm in found])
    print(json.dumps([{arm.unit: str(arm) for arm in found}, [receipt.status for receipt in told]]), flush=True)
"""


def together(url: str, *ranges: tuple[int, int]) -> list[tuple[dict[str, str], list[str]]]:
    """What processes that begin at the same moment answered."""
    words = [sys.executable, "-c", CHILD, url]
    children = [
        subprocess.Popen(
            [*words, str(first), str(last), str(k)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for k, (first, last) in enumerate(ranges)
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    return [tuple(json.loads(child.communicate(timeout=120)[0])) for child in children]


def test_two_processes_assign_every_unit_once_and_count_every_outcome_once(server: Server) -> None:
    """They meet in most of their units, with other contexts; then the shares change, and both are started again.

    A failure would mean that a unit has two arms, or that an outcome that both report counts twice."""
    url = server.new_database()
    (one, told_one), (two, told_two) = together(url, (0, 400), (100, 500))
    assert all(two[unit] == arm for unit, arm in one.items() if unit in two)
    assert (told_one + told_two).count("taken") == 500 and (told_one + told_two).count("repeated") == 300
    whole = one | two
    with aw.Experiment("colour", ARMS, AT_ONCE, storage=url) as test:
        test.split([0.1, 0.1, 0.8])
        verdict = test.verdict()
        assert sum(verdict.units.values()) == 500 and verdict.result("blue", "buy").mean == 1.0
        assert sum(verdict.result(arm, "buy").units for arm in ARMS) == 500
    (one, _), (two, _) = together(url, (0, 500), (0, 500))
    assert one == two == whole
    counts = np.array([list(whole.values()).count(arm) for arm in ARMS])
    assert (
        float(np.square(counts - 500 / 3).sum() / (500 / 3)) < 30
    )  # chi-square, 2 degrees: more is once in 3 million runs
    journal = Journal(open_store(url).connect())
    assert verify(journal).problems == []
    journal.connection.close()


@pytest.fixture
def sharded(urls: list[str], spread: Callable[..., ShardedEngine]) -> tuple[ShardedEngine, list[str]]:
    return spread(urls[:2]), urls[:2]


def test_an_experiment_over_two_databases_is_one_experiment(sharded: tuple[ShardedEngine, list[str]]) -> None:
    engine, urls = sharded
    metrics = [AT_ONCE, {"name": "spent", "kind": "amount", "cap": 50, "window": None}]
    test = create(engine, "colour", Definition.read(ARMS, metrics, holdout=0.1, forced={"tester": "blue"}))
    units = [(f"u{i}", {"device": "phone"}) for i in range(600)]
    found = test.assign(units)
    assert HostedExperiment(engine, "colour").assign([(unit, {"other": 1}) for unit, _ in units]) == found
    assigned = [arm for arm in found if arm.reason == "assigned"]
    told = test.outcome([(arm.unit, float(arm == "blue"), None, None) for arm in assigned])
    assert {receipt.status for receipt in told} == {"taken"}
    unit = assigned[0].unit
    assert [test.outcome([(unit, 9.0, "spent", "o1")])[0].status for _ in range(2)] == ["taken", "repeated"]
    assert test.outcome([("stranger", 1.0, None, None)])[0].status == "not in the experiment"
    per_database = []
    for url in urls:
        journal = Journal(open_store(url).connect())
        assert verify(journal).problems == []
        per_database.append(sum(row.kind == "decision" and row.app == "colour" for row in journal.events()))
        journal.connection.close()
    assert sum(per_database) == len(assigned) and min(per_database) > 150
    time.sleep(BEHIND)
    verdict = test.verdict()
    assert sum(verdict.units.values()) == len(assigned) and verdict.arm == "blue" and verdict.mismatch > 1e-5
    assert test.stop(None, "ann") == "blue"
    after = test.assign([(f"new{i}", {}) for i in range(40)])  # a tenth is held out: by the journal's secret, who
    given = [arm for arm in after if arm.reason == "stopped"]
    assert len(given) > 20 and set(given) == {"blue"}  # as few: less than once in 10^9 runs
    test.mode("bandit")
    engine.wait_learnt()
    new = [arm for arm in test.assign([(f"n{i}", {}) for i in range(200)]) if arm.reason == "assigned"]
    assert sum(arm == "blue" for arm in new) > 0.8 * len(new)  # it has learnt what both databases keep
    erased = test.erase(unit)
    assert erased.found["decisions"] == 2 and erased.remaining == 0
    assert test.outcome([(unit, 1.0, None, None)])[0].status == "not in the experiment"


def test_a_lost_database_takes_its_units_alone(sharded: tuple[ShardedEngine, list[str]]) -> None:
    """Units of the other one are assigned and told; the verdict needs both, and is refused by a sentence."""
    engine, urls = sharded
    test = create(engine, "colour", Definition.read(["control", "blue"], AT_ONCE, mode="adaptive"))
    homes = {f"u{i}": engine.keepers(test.unit_id(f"u{i}"))[0] for i in range(200)}
    here = [unit for unit, keeper in homes.items() if str(keeper.store) == str(engine.stores[0])]
    there = [unit for unit in homes if unit not in here]
    before = test.assign([(unit, {}) for unit in (here[0], there[0])])
    lose(urls[1])
    try:
        found = test.assign([(unit, {}) for unit in here])
        assert found[0] == before[0] and len(found) == len(here)
        assert test.outcome([(here[3], 1.0, None, None)])[0].status == "taken"
        with pytest.raises(Exception, match=r"cannot be|connection|closed"):
            test.assign([(there[1], {})])
        with pytest.raises(Exception, match=r"cannot be|connection|closed"):
            test.verdict()
    finally:
        lose(urls[1], False)


def test_a_unit_of_before_a_database_was_added_keeps_its_arm(
    urls: list[str], spread: Callable[..., ShardedEngine]
) -> None:
    engine = spread(urls[:2])
    test = create(engine, "colour", Definition.read(ARMS, AT_ONCE))
    units: list[tuple[str, Any]] = [(f"u{i}", {}) for i in range(200)]
    before = test.assign(units)
    engine.add([open_store(url) for url in urls])
    assert len(engine.members.newest) == 3
    after = HostedExperiment(engine, "colour")
    both = after.assign([*units, *((f"n{i}", {}) for i in range(200))])
    assert both[:200] == before
    told = after.outcome([(arm.unit, 1.0, None, None) for arm in both])
    assert {receipt.status for receipt in told} == {"taken"}
    time.sleep(BEHIND)
    verdict = after.verdict()
    assert sum(verdict.units.values()) == 400 and verdict.result("blue", "buy").mean == 1.0
    assert len({keeper.store for unit in both for keeper in engine.keepers(after.unit_id(unit.unit))[:1]}) == 3


def test_the_service_over_two_databases_hosts_experiments(urls: list[str]) -> None:
    running = Running(Service(Config(storage=urls[:2])))
    try:
        with aw.Client(running.url) as client:
            test = aw.Experiment("colour", ARMS, AT_ONCE, storage=client)
            arms = test.assign_many([f"u{i}" for i in range(300)])
            test.outcome_many([(arm.unit, float(arm == "blue")) for arm in arms])
            time.sleep(BEHIND)
            assert test.verdict().arm == "blue" and "data:image/png" in test.report()
            assert test.erase("u5").found["decisions"] == 1
            assert test.stop() == "blue"
    finally:
        running.stop()


def test_command_line_reads_an_experiment_in_postgresql(server: Server, capsys: Any, tmp_path: Path) -> None:
    from armwise.cli.main import main

    url = server.new_database()
    with aw.Experiment("colour", ARMS, AT_ONCE, storage=url) as test:
        test.assign_many([f"u{i}" for i in range(10)])
    assert main(["experiment", "list", url]) == 0 and "colour" in capsys.readouterr().out
