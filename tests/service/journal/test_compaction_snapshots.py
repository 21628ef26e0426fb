"""Models with which a journal begins: written in pieces beside the traffic, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.service.engine.engine import Engine
from armwise.service.journal import compaction_snapshots
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Unavailable
from armwise.service.journal.journal import Journal
from armwise.service.log.compact import compact
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify
from tests.service.serving import ask, settled, state

Make = Callable[..., Engine]


class Weighed:
    """A session that remembers how many bytes each transaction wrote."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.transactions: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def begin(self, lock: str = "") -> None:
        self.transactions.append(0)
        self._connection.begin(lock)

    def execute(self, sql: str, values: Any = ()) -> Any:
        if self.transactions and not sql.startswith("SELECT"):
            self.transactions[-1] += sum(len(value) for value in values if isinstance(value, bytes))
        return self._connection.execute(sql, values)


def filled(engine: Engine, prefix: str = "e") -> None:
    for k in range(10):
        ask(engine, f"{prefix}{k}", {"user": k % 2, "x": k})
        engine.reward("shop", f"{prefix}{k}", 0.5)


def test_no_commit_waits_for_a_whole_model(engines: Make, tmp_path: Path) -> None:
    """More bytes in one transaction would mean that a decision waits until a large model is on the disk."""
    engine = engines(features={"dim": 512})
    filled(engine)
    weighed: list[Weighed] = []

    def weigh(journal: Journal) -> None:
        weighed.append(Weighed(journal.connection))
        journal.connection = weighed[0]

    engine.writer.run(weigh)
    retention = Retention(engine)
    for user, n in ((0, 10), (1, 20)):
        assert retention.erase("shop", "user", user).deleted == n
        filled(engine, f"after{user}.")
    assert sum(weighed[0].transactions) > 2 * 512 * 512 * 8, "the models did not go this way"
    assert max(weighed[0].transactions) < 2 * compaction_snapshots.CHUNK_BYTES
    before = settled(engine)
    engine.stop()
    journal = Journal(SQLite(tmp_path / "journal.db").connect())
    assert verify(journal).problems == []
    assert compaction_snapshots.unused(journal.connection) == [], (
        "pieces of a model that is no longer needed stay for ever"
    )
    [(n,)] = journal.connection.execute("SELECT count(*) FROM pieces")
    assert n > 4
    journal.connection.execute("DELETE FROM aside.snapshots")  # what is left is the base
    journal.connection.close()
    again = engines(features={"dim": 512})
    assert state(again.learner.masters["shop"]) == before
    again.stop()
    journal = Journal(SQLite(tmp_path / "journal.db").connect())
    compact(journal, 10**15)
    assert verify(journal).problems == []
    assert journal.connection.execute("SELECT count(*) FROM pieces") == [(0,)]
    journal.connection.close()


def test_a_model_that_is_not_whole_is_never_begun_with(
    engines: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that leads meanwhile may tidy up: then the journal begins where it began before."""
    engine = engines(features={"dim": 256})
    filled(engine)
    put = compaction_snapshots.put_chunk

    def tidied(connection: Any, app: str, seq: int, n: int, piece: bytes) -> None:
        put(connection, app, seq, n, piece)
        if n == 1:
            compaction_snapshots.drop_chunk(connection, app, seq, 0)

    monkeypatch.setattr(compaction_snapshots, "put_chunk", tidied)
    retention = Retention(engine)
    with pytest.raises(Unavailable, match="is journaled") as refused:
        retention.erase("shop", "user", 0)
    assert "another process deleted some" in str(refused.value.__cause__)
    monkeypatch.undo()
    assert retention.run() == 10
    engine.stop()
    journal = Journal(SQLite(tmp_path / "journal.db").connect())
    assert verify(journal).problems == []
    journal.connection.close()
