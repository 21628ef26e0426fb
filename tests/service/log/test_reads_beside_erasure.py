"""Whoever reads the journal beside an erasure sees a decision whole, as it stood, or not at all."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.cli.main import main
from armwise.core.policy_document import Policy
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases import sqlite
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Row
from armwise.service.journal.journal import Journal
from armwise.service.log.export_journal import pieces
from armwise.service.log.retain import Retention
from armwise.service.web.v1.decisions import _found
from tests.service.erasing import Erasing, before_statement


def decide(engine: Engine, id: str, user: str) -> None:
    """A decision with two rewards; its context names the user, and so do its arms, which are stored apart."""
    arms = [json.dumps({"id": f"a{k}", "features": {"user": user, "text": "x" * 100}}).encode() for k in range(60)]
    engine.decide("shop", json.dumps({"user": user}).encode(), arms, id=id)
    for value in (0.5, 0.25):
        engine.reward("shop", id, value)


def exported(engine: Engine, journal: Journal, id: str) -> Any:
    """A decision as it is in the log, beside one that nobody erases."""
    lines = {line["id"]: line for line in map(json.loads, b"".join(pieces(journal, "shop")).splitlines())}
    assert lines["stays"]["rewards"] == len(lines["stays"]["outcomes"]) == 2
    return lines.get(id)


def shown(engine: Engine, journal: Journal, id: str) -> Any:
    """A decision as ``GET /v1/decisions/{id}`` answers it."""
    engine.reading.journal._arms.clear()  # as if other arms had been asked for since
    try:
        return _found(engine, "shop", id)
    except Unknown as error:
        return None if error.id == id else str(error)


@pytest.mark.parametrize("read", [exported, shown])
def test_a_decision_is_read_whole_or_not_at_all(engine: Engine, read: Callable[[Engine, Journal, str], Any]) -> None:
    """Before, an export beside an erasure was answered 500, cut off, or had decisions without their rewards."""

    def with_session(id: str, around: Callable[[Callable[[], Any]], Any] = lambda read: read()) -> Any:
        journal = engine.open_journal()
        try:
            return around(lambda: read(engine, journal, id))
        finally:
            journal.connection.close()

    decide(engine, "stays", "nobody")
    for n in itertools.count():
        decide(engine, id := f"e{n}", user := f"u{n}")
        with Erasing(engine, "shop", "user", user) as erasure:
            whole = with_session(id)
            assert whole["rewards"] == len(whole["outcomes"]) == 2
            found, met = with_session(id, functools.partial(before_statement, engine, n, erasure.drop))
            assert found in (whole, None), f"rows went before statement {n}"
        assert with_session(id) is None
        if not met:
            break
    assert n > 3, "it was put to the test between all statements"


def test_a_policy_is_exported_with_what_an_erased_decision_taught(
    engines: Callable[..., Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, ``armwise export`` was refused where a decision went whose reward had been read."""
    engine = engines(features={"dim": 8})
    for k in range(3):
        engine.decide("shop", b'{"user": "u%d"}' % k, [b'"a"', b'"b"'], id=f"e{k}")
    engine.snapshot()
    for k in range(3):
        engine.reward("shop", f"e{k}", 0.5 + k)
    engine.wait_learnt()
    after = Journal.after

    def after_which_one_is_erased(journal: Journal, seq: int, limit: int = 500) -> list[Row]:
        monkeypatch.setattr(Journal, "after", after)
        rows = journal.after(seq, limit)
        assert Retention(engine).erase("shop", "user", "u1").remaining == 0
        return rows

    monkeypatch.setattr(sqlite, "MAX_CHECKPOINT_TRIES", 1)
    monkeypatch.setattr(Journal, "after", after_which_one_is_erased)
    file = tmp_path / "policy.json"
    assert main(["export", str(tmp_path / "journal.db"), "--output", str(file)]) == 0
    assert Policy.load(file).document["lessons"] == 3
