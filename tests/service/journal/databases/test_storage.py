"""Where the journal is kept: nobody else may read it, and no statement grows with it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from armwise.cli.main import main
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases import sqlite
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Change, Creation, Decision, Reward
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write
from armwise.service.log import verify as verifying

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
    names = [f"journal.db{aside}{log}" for aside in ("", ".snapshots") for log in ("", "-wal", "-shm")]
    assert found == dict.fromkeys([*names, "journal.db.lock", "journal.db.last"], 0o600)


@pytest.mark.parametrize("task", ["verify", "export", "compact"])
def test_looking_for_a_journal_makes_none(tmp_path: Path, task: str) -> None:
    assert main(["journal", task, "--storage", str(tmp_path / "nothing")]) == 2
    assert list(tmp_path.iterdir()) == []


class Explained:
    """A connection that notes how each statement finds its rows."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.scans: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if sql.startswith(("SELECT", "INSERT", "DELETE")) and not sql.endswith("LIMIT 1"):
            plan = [step[-1] for step in self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            tables = ("decisions", "requests", "events")
            self.scans += [step for step in plan if step.startswith(tuple(f"SCAN {table}" for table in tables))]
        rows: list[Any] = self._connection.execute(sql, values)
        return rows


def test_a_commit_never_reads_a_whole_table() -> None:
    """Else every reward costs more than the one before it: 50 took 150 ms with 300,000 decisions in the journal."""
    connection = Explained(SQLite(":memory:").connect())
    journal = Journal(connection)
    asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(arm) for arm in ARMS], [0.5, 0.5], 0, 0, 1000, 0.0)
    ids = [f"e{k}" for k in range(5)]
    journal.append([[Write(app, id, asked, f"r{id}") for app in ("shop", "site")] for id in ids], now=5)
    journal.append([[Write(app, id, Reward(0.5), f"w{id}") for app in ("shop", "site")] for id in ids], now=6)
    journal.append([[Write("shop", id, Reward(0.5), f"w{id}")] for id in ids], now=7)
    assert len(journal.rewards([("shop", id) for id in ids])) == 5
    assert {status.n for status in journal.statuses([(app, id) for app in ("shop", "site") for id in ids])} == {1}
    assert connection.scans == []
    assert journal.last()[0] == 20


def test_what_an_application_is_made_of_is_found_by_an_index() -> None:
    """Else a start with 3,000 applications reads the whole journal 3,000 times."""
    connection = Explained(SQLite(":memory:").connect())
    journal = Journal(connection)
    journal.append([[Write(f"shop{k}", "", Creation(seed=k))] for k in range(5)], now=5)
    found = journal.configured("shop3")[1]
    assert found is not None
    assert found.seed == 3
    assert connection.scans == []


# ---------------------------------------------------------------------- damage


def full(engines: Callable[..., Engine], tmp_path: Path, n: int = 60) -> Path:
    engine = engines(window=1000.0)
    for k in range(n):
        engine.decide("shop", b'{"x": %d}' % k, ARMS, id=f"e{k}")
        engine.reward("shop", f"e{k}", 0.5)
    engine.stop()
    return tmp_path / "journal.db"


def checked(path: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capfd.readouterr()
    code = main(["journal", "verify", "--storage", str(path)])
    said = capfd.readouterr()
    return code, said.out + said.err


def test_what_is_no_database_is_called_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"this is a letter, not a journal" * 100)
    code, said = checked(path, capfd)
    assert (code, said.count("\n")) == (2, 1)
    assert f"the journal at {path} cannot be read: file is not a database" in said


def test_a_damaged_page_is_reported(
    engines: Callable[..., Engine], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = full(engines, tmp_path, 600)
    connection = SQLite(path).connect()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    [[root]] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'")
    [[size]] = connection.execute("PRAGMA page_size")
    connection.close()
    data = bytearray(path.read_bytes())
    start = (root - 1) * size
    data[start : start + size] = bytes(size)
    path.write_bytes(data)
    code, said = checked(path, capfd)
    assert code in (1, 2)
    assert "malformed" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("UPDATE events SET body = CAST(body AS TEXT) WHERE seq = 20", "event 20: its body is stored as str"),
        ("UPDATE events SET chain = 'abc' WHERE seq = 20", "event 20: its chain is stored as str"),
        ("UPDATE events SET body = CAST(substr(body, 1, 30) AS BLOB) WHERE seq = 20", "event 20 (decision) is against"),
        ("UPDATE events SET body = CAST(substr(body, 1, 30) AS BLOB) WHERE seq = 20", "replayed: event 20 (decision):"),
        ("UPDATE events SET body = CAST('[]' AS BLOB) WHERE seq = 21", "event 21 (reward) is against the rules"),
        ("UPDATE events SET time = 'now' WHERE seq = 20", "event 20 cannot be checked"),
        ("DELETE FROM events WHERE seq = 20", "there is no decision e9 before it"),
        ("UPDATE meta SET value = CAST('{' AS BLOB) WHERE key = 'base'", "it cannot be read further than 0 events"),
        ("DELETE FROM meta WHERE key = 'secret'", "meta has no secret"),
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "there is a snapshot of event 121"),
    ],
)  # fmt: skip
def test_damage_is_reported_with_the_event(
    engines: Callable[..., Engine], tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: str, found: str
) -> None:
    path = full(engines, tmp_path)
    SQLite(path).connect().execute(damage)
    code, said = checked(path, capfd)
    assert code == 1
    assert found in said


@pytest.mark.parametrize("task", ["export", "compact"])
@pytest.mark.parametrize("body", ["CAST(body AS TEXT)", "CAST(substr(body, 1, 30) AS BLOB)"])
def test_what_cannot_be_exported_or_compacted_is_named(
    engines: Callable[..., Engine], tmp_path: Path, capfd: pytest.CaptureFixture[str], task: str, body: str
) -> None:
    path = full(engines, tmp_path)
    SQLite(path).connect().execute(f"UPDATE events SET body = {body} WHERE seq = 20")
    assert main(["journal", task, "--storage", str(path)]) == 2
    assert "event 20" in capfd.readouterr().err


def test_a_database_that_cannot_be_reached_is_called_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "verify", "--storage", "postgresql://me:secret@127.0.0.1:1/none"]) == 2
    said = capfd.readouterr().err
    assert "the journal at 127.0.0.1:1/none cannot be read" in said
    assert "secret" not in said


def test_a_service_may_write_while_its_journal_is_verified(
    engines: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is read as it was when the check began; else the statuses are ahead of the events."""
    engine = engines(window=1000.0)
    for k in range(30):
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
    check = verifying._check_statuses

    def later(*args: Any) -> None:
        for k in range(30):
            engine.reward("shop", f"e{k}", 0.5)
        engine.decide("shop", b"{}", ARMS, id="new")
        check(*args)

    monkeypatch.setattr(verifying, "_check_statuses", later)
    report = verifying.verify(engine.open_journal())
    assert report.problems == []
    assert (report.decisions, report.rewards) == (30, 0)
    monkeypatch.setattr(verifying, "_check_statuses", check)
    assert verifying.verify(engine.open_journal()).rewards == 30


def test_a_session_more_does_not_drop_the_locks_of_the_others(engines: Callable[..., Engine], tmp_path: Path) -> None:
    """The system drops all locks of a process on a file when it closes it once; SQLite knows, we must not do it.

    Without them another process takes itself for the last one, and removes the write-ahead log under the service.
    """
    engine = engines()
    engine.decide("shop", b"{}", ARMS)
    engine.open_journal().connection.close()
    look = "import sqlite3; c = sqlite3.connect({!r}); c.execute('SELECT count(*) FROM events').fetchall(); c.close()"
    subprocess.run([sys.executable, "-c", look.format(str(tmp_path / "journal.db"))], check=True)
    assert (tmp_path / "journal.db-wal").stat().st_size > 0


def test_a_checkpoint_is_made_beside_the_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit that made it kept all others waiting for as long as a disk takes to copy the log."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_EVENTS", 20)
    store = SQLite(tmp_path / "journal.db")
    journal, other = Journal(store.connect()), store.connect()
    for k in range(30):
        journal.append([[Write("shop", "", Change())]], now=k)
    assert journal.connection.execute("PRAGMA wal_autocheckpoint") == [(sqlite.MAX_LOG_PAGES,)]
    before = (tmp_path / "journal.db").stat().st_size
    other.tidy(19)
    assert (tmp_path / "journal.db").stat().st_size == before
    journal.connection.begin()
    journal.connection.execute("INSERT INTO meta VALUES ('under way', 'x')")
    other.tidy(30)  # without waiting for the one that writes
    assert (tmp_path / "journal.db").stat().st_size > before
    journal.connection.commit()
    journal.connection.close()
    other.close()


def test_a_lock_that_cannot_be_written_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk must not leave a lock behind that nobody can close."""

    def full() -> int:
        raise OSError(28, "No space left on device")

    first, second = SQLite(tmp_path / "journal.db"), SQLite(tmp_path / "journal.db")
    monkeypatch.setattr("armwise.service.journal.databases.sqlite.os.getpid", full)
    with pytest.raises(OSError, match="No space left") as kept:
        first.lead()
    monkeypatch.undo()
    assert second.lead(), kept  # whose traceback keeps what was open
    second.close()
