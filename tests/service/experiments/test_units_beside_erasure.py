"""Experiments beside an erasure of one of their units."""

from __future__ import annotations

import functools
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.service.engine.engine import Engine
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import HostedExperiment, create
from armwise.service.journal.journal import Journal
from tests.service.erasing import Erasing, before_statement
from tests.service.serving import Clock

ARMS = ["control", "green", "blue"]
AT_ONCE = {"name": "buy", "window": None}


def test_a_unit_keeps_its_arm_or_is_assigned_anew(engine: Engine) -> None:
    """Before, its assignment was answered 500 where the decision went after its status had been read."""
    test = create(engine, "colour", Definition.read(ARMS, AT_ONCE))
    for n in itertools.count():
        first = test.assign([(f"u{n}", {"user": f"u{n}"})])
        with Erasing(engine, "colour", "user", f"u{n}") as erasure:
            assign = HostedExperiment(engine, "colour").assign  # of one that remembers no unit
            found, met = before_statement(engine, n, erasure.drop, functools.partial(assign, [(f"u{n}", {})]))
            assert found == first, f"rows went before statement {n}"
        if not met:
            break
    assert n > 1, "it was put to the test between all statements"


def test_outcomes_of_other_units_are_taken(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, all outcomes of a request were refused with 404 where one unit went after it had been looked for."""
    test = create(engine, "colour", Definition.read(ARMS, AT_ONCE))
    test.assign([(f"u{k}", {"user": f"u{k}"}) for k in range(3)])
    with Erasing(engine, "colour", "user", "u1") as erasure:
        write = engine.writer.write

        def write_after_the_erasure(group: Any) -> Any:
            monkeypatch.setattr(engine.writer, "write", write)
            erasure.drop()
            return write(group)

        monkeypatch.setattr(engine.writer, "write", write_after_the_erasure)
        told = test.outcome([(f"u{k}", 1.0, None, None) for k in range(3)])
    assert [receipt.status for receipt in told] == ["taken", "not in the experiment", "taken"]


def test_a_unit_that_was_erased_and_came_again_has_one_outcome(tmp_path: Path) -> None:
    """Before, the outcome of its new decision counted for the erased one, too."""
    clock = Clock()
    metric: Any = {"name": "buy", "window": 60.0}
    with aw.Experiment("shop", ["control", "blue"], metric, storage=str(tmp_path), clock=clock) as test:
        for k in range(4):
            test.assign(f"u{k}")
        clock.now += 10.0
        assert sum(test.verdict().units.values()) == 4, "they were read"
        test.erase("u0")
        test.assign("u0")
        assert test.outcome("u0", 1.0).status == "taken"
        clock.now += 120.0
        verdict = test.verdict()
        assert sum(verdict.result(arm, "buy").units for arm in ("control", "blue")) == 4


def test_a_report_has_the_arms_of_the_units_that_it_reads(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, it was refused with 503 where many arms, which are stored apart, went after the units were read."""
    arms = [f"arm {k} {'x' * 100}" for k in range(50)]
    test = create(engine, "colour", Definition.read(arms, AT_ONCE))
    assert len(json.dumps(arms)) > 4096
    test.assign([(f"u{k}", {}) for k in range(3)])
    with Erasing(engine, "colour", "id", arms[0]) as erasure:
        catalogues = Journal.catalogues

        def catalogues_after_the_erasure(journal: Journal, hashes: Any) -> Any:
            monkeypatch.setattr(Journal, "catalogues", catalogues)
            erasure.drop()
            return journal.catalogues(hashes)

        monkeypatch.setattr(Journal, "catalogues", catalogues_after_the_erasure)
        assert sum(test.verdict().units.values()) == 3
