"""Where the journal is kept: nobody else may read it, and no statement grows with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noregret.cli.main import main
from noregret.serve.engine import Engine
from noregret.serve.events import Decision
from noregret.serve.journal import Journal, Write
from noregret.serve.store import SQLite

ARMS = [b'"a"', b'"b"']


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_its_owner_reads_a_journal(engines: Callable[..., Engine], tmp_path: Path) -> None:
    """It holds the secret that arms are drawn with, and every context."""
    before = os.umask(0o022)
    try:
        engine = engines(path=tmp_path / "new" / "journal.db")
        engine.decide("shop", b"{}", ARMS)
        assert mode(tmp_path / "new") == 0o700
        found = {path.name: mode(path) for path in (tmp_path / "new").iterdir()}
    finally:
        os.umask(before)
    assert found == dict.fromkeys(["journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"], 0o600)


@pytest.mark.parametrize("task", ["verify", "export", "compact"])
def test_looking_for_a_journal_makes_none(tmp_path: Path, task: str) -> None:
    assert main(["journal", task, "--storage", str(tmp_path / "nothing")]) == 2
    assert list(tmp_path.iterdir()) == []


class Explained:
    """A connection that notes how each statement finds its rows."""

    def __init__(self, connection: Any) -> None:
        self._connection, self.scans = connection, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if sql.startswith(("SELECT", "INSERT", "DELETE")) and not sql.endswith("LIMIT 1"):
            plan = [step[-1] for step in self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            tables = ("decisions", "requests", "events")
            self.scans += [step for step in plan if step.startswith(tuple(f"SCAN {table}" for table in tables))]
        return self._connection.execute(sql, values)


def test_a_commit_never_reads_a_whole_table() -> None:
    """Else every reward costs more than the one before it: 50 took 150 ms with 300,000 decisions in the journal."""
    connection = Explained(SQLite(":memory:").connect())
    journal = Journal(connection)
    asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(arm) for arm in ARMS], [0.5, 0.5], 0, 0, 1000, 0.0)
    ids = [f"e{k}" for k in range(5)]
    journal.append([[Write(app, "decision", id, asked, f"r{id}") for app in ("shop", "site")] for id in ids], now=5)
    journal.append([[Write(app, "reward", id, 0.5, f"w{id}") for app in ("shop", "site")] for id in ids], now=6)
    journal.append([[Write("shop", "reward", id, 0.5, f"w{id}")] for id in ids], now=7)
    assert len(journal.rewards([("shop", id) for id in ids])) == 5
    assert {status.n for status in journal.statuses([(app, id) for app in ("shop", "site") for id in ids])} == {1}
    assert connection.scans == []
    assert journal.last()[0] == 20
