"""What ``armwise journal verify`` covers: keys, indexes, every page in use; and it writes nothing."""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from armwise.cli.main import main
from armwise.service.journal import journal as append
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.journal import Journal
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify

PAGE = 4096


def filled(engine: Any) -> None:
    """All that a journal can hold: keys, catalogues, a base, snapshots, open and settled decisions."""
    arms = [json.dumps({"id": f"a{k}", "features": {"x": "y" * 60}}).encode() for k in range(70)]
    for k in range(120):
        context, some = b'{"x": %d, "user": %d}' % (k, k % 7), arms if k % 9 == 0 else [b'"a"', b'"b"']
        engine.decide("shop", context, some, id=f"e{k}", request=f"decide {k}")
        if k % 2:
            engine.reward("shop", f"e{k}", 0.5, request=f"reward {k}")
        if k == 60:
            Retention(engine).erase("shop", "user", 3)
    engine.writer.run(lambda journal: journal.probe())
    engine.snapshot()


def problems(path: pathlib.Path) -> list[str]:
    try:
        connection = SQLite(path).connect_reading()
    except sqlite3.Error as error:
        return [str(error)]
    try:
        return verify(Journal(connection)).problems
    except (sqlite3.Error, ValueError) as error:
        return [str(error)]
    finally:
        connection.close()


@pytest.fixture
def journal(engines: Callable[..., Any], tmp_path: pathlib.Path) -> pathlib.Path:
    engine = engines(tmp_path / "data" / "journal.db", features={"dim": 16})
    filled(engine)
    engine.stop()
    path = tmp_path / "data" / "journal.db"
    assert problems(path) == []
    return path


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("DELETE FROM requests WHERE request = 'reward 101'", "does not continue the chain"),
        ("UPDATE requests SET request = 'reward x' WHERE request = 'reward 101'", "does not continue the chain"),
        ("DELETE FROM requests WHERE request = 'decide 2'", "was altered or lost"),
        ("INSERT INTO requests VALUES ('shop', 'mine', 999999)", "belong to no event"),
        ("UPDATE requests SET app = 'other' WHERE request = 'reward 101'", "belong to no event"),
        ("INSERT INTO requests SELECT app, 'mine', seq FROM requests WHERE request = 'decide 100'", "idempotency keys"),
    ],
)
def test_idempotency_keys_are_covered(journal: pathlib.Path, sql: str, found: str) -> None:
    """Before, a journal without them was said to be well, and a retry counted twice."""
    connection = sqlite3.connect(journal)
    connection.execute(sql)
    connection.commit()
    connection.close()
    assert any(found in problem for problem in problems(journal)), problems(journal)


@pytest.mark.parametrize("index", ["given", "made", "due", "asked"])
def test_secondary_indexes_are_covered(journal: pathlib.Path, index: str) -> None:
    """An index that lost its entries: rewards, windows and keys would not be found, though the tables have them."""
    connection = sqlite3.connect(journal)
    connection.execute("CREATE INDEX other ON decisions (deadline) WHERE closed = 7")
    connection.execute("PRAGMA writable_schema = ON")
    root = "SELECT rootpage FROM sqlite_master WHERE name = 'other'"
    connection.execute(f"UPDATE sqlite_master SET rootpage = ({root}) WHERE name = ?", (index,))
    connection.execute("DELETE FROM sqlite_master WHERE name = 'other'")
    connection.commit()
    connection.close()
    assert any("missing from index" in problem for problem in problems(journal)), problems(journal)


def test_a_scribble_on_any_page_in_use_is_found(journal: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """64 bytes at a random place of each page; those that mean nothing may be overwritten, and nothing else may."""
    chance, passed, seen = random.Random(31), [], 0
    for name in ("journal.db", "journal.db.snapshots"):
        size = (journal.parent / name).stat().st_size
        for page in range(size // PAGE):
            copy = tmp_path / "copy"
            shutil.copytree(journal.parent, copy)
            with open(copy / name, "r+b") as file:
                offset = page * PAGE + chance.randrange(PAGE - 64)
                file.seek(offset)
                old = file.read(64)
                file.seek(offset)
                file.write(bytes(byte ^ 0x5A for byte in old))
            seen += 1
            if not problems(copy / "journal.db") and any(old):
                passed.append((name, page, old))
            shutil.rmtree(copy)
    assert seen > 45
    assert passed == []


def test_what_is_checked_is_named(journal: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "verify", "--storage", str(journal)]) == 0
    said = capsys.readouterr().out
    for word in ("chain:", "rules:", "draws:", "statuses and idempotency keys:", "catalogues:", "snapshots:",
                 "database: SQLite's integrity_check", "tail:"):  # fmt: skip
        assert word in said


@pytest.mark.parametrize("log", [True, False])
def test_a_read_only_journal_is_verified_and_exported(
    engines: Callable[..., Any], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, log: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """With a write-ahead log, as a killed service leaves it, and without."""
    engine = engines(tmp_path / "data" / "journal.db", features={"dim": 16})
    filled(engine)
    if log:
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "data", copy)
        (copy / "journal.db-shm").unlink()
    engine.stop()
    if not log:
        copy = tmp_path / "data"
        assert not (copy / "journal.db-wal").exists()
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert main(["journal", "verify", "--storage", str(copy)]) == 0
    assert "111 decisions" in capsys.readouterr().out
    assert main(["journal", "export", "--storage", str(copy)]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 100
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before, "something was written"


def test_a_journal_of_an_older_format_is_continued(engines: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    """Its chain does not cover idempotency keys; from here on it does."""
    path = tmp_path / "journal.db"
    with pytest.MonkeyPatch.context() as patch:
        link = append.link
        patch.setattr(append, "link", lambda chain, row: link(chain, msgspec.structs.replace(row, request="")))
        engine = engines()
        engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="e1", request="first")
        engine.stop()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (b"3",))
    connection.commit()
    connection.close()
    assert problems(path) == []
    engine = engines()
    assert engine.decide("shop", b"{}", [b'"a"', b'"b"'], request="first").id == "e1"
    engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="e2", request="second")
    engine.stop()
    assert problems(path) == []
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM requests WHERE request = 'second'")
    connection.commit()
    connection.close()
    assert problems(path)
