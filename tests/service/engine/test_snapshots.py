"""Snapshots: only of models that changed, beside the commits and not between them, and never of another journal."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.models.ridge import Ridge
from armwise.service.engine.engine import Engine
from armwise.service.engine.learning.fold import restore
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from tests.service.serving import ARMS, ask, replayed, settled, state

Make = Callable[..., Engine]


def stored(path: Path) -> list[tuple[str, int]]:
    connection = SQLite(path).connect()
    rows = connection.execute("SELECT app, seq FROM snapshots WHERE app <> '' ORDER BY seq")
    connection.close()
    return [(app, seq) for app, seq in rows]


def many(path: Path, names: str = "abcde") -> Engine:
    engine = Engine(SQLite(path), {name: Creation() for name in names}, publish_every=0.0)
    engine.start()
    return engine


def test_only_models_that_changed_are_stored(tmp_path: Path) -> None:
    """With 3,000 applications every snapshot of all of them held decisions up for 2.2 s."""
    path = tmp_path / "journal.db"
    engine = many(path)
    engine.snapshot()
    assert [app for app, _ in stored(path)] == list("abcde")
    engine.decide("c", b"{}", ARMS, id="e1")
    engine.snapshot()
    engine.snapshot()  # nothing changed
    assert [app for app, _ in stored(path)] == [*"abcde", "c"]
    engine.decide("e", b"{}", ARMS, id="e1")
    engine.wait_learnt()
    before = {name: state(model) for name, model in engine.learner.masters.items()}
    engine.stop()
    assert [app for app, _ in stored(path)] == [*"abcde", "c", "e"]
    engine = many(path)
    assert engine.learner._saved == engine.learner.position  # nothing was left to fold
    assert {name: state(model) for name, model in engine.learner.masters.items()} == before
    engine.decide("a", b"{}", ARMS, id="e1")
    engine.stop()
    assert verify(Journal(SQLite(path).connect())).problems == []


def test_no_commit_waits_for_a_snapshot(engines: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storing a model of 4,096 features took 1.5 s, in which nothing was acknowledged."""
    engine = engines()
    ask(engine, "e1")
    engine.wait_learnt()
    begun, go_on = threading.Event(), threading.Event()
    whole = Journal.put_snapshots

    def slow(self: Journal, *args: Any, **options: Any) -> None:
        self.connection.begin()
        self.connection.execute("INSERT INTO snapshots VALUES ('slow', 1, ?)", (b"0" * 100_000,))
        begun.set()
        go_on.wait(20.0)
        self.connection.rollback()
        whole(self, *args, **options)

    monkeypatch.setattr(Journal, "put_snapshots", slow)
    saving = threading.Thread(target=engine.snapshot)
    saving.start()
    assert begun.wait(20.0)
    ask(engine, "e2")  # committed while the snapshot is being written
    engine.writer.write([engine.prepare("shop", b"{}", ARMS) for _ in range(600)])  # more than one statement takes
    assert not go_on.is_set()
    go_on.set()
    saving.join()


def test_the_log_is_copied_and_models_are_stored_while_events_come_faster_than_they_are_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The learner did both when nothing was left to learn: at full load the log grew to 64 MB, and the commit that had
    to copy it kept all others waiting."""
    engine = Engine(SQLite(tmp_path / "journal.db"), {"shop": Creation()}, publish_every=0.0, snapshot_every=0.01)
    engine.start()
    learner, copied, saved = engine.learner, threading.Event(), threading.Event()
    assert learner._journal is not None
    fold, tidy, save = learner._fold, learner._journal.connection.tidy, learner.save

    def endless() -> bool:
        return fold() or not (copied.is_set() and saved.is_set())

    def tidy_and_say(seq: int) -> None:
        tidy(seq)
        copied.set()

    def save_and_say() -> None:
        save()
        saved.set()

    monkeypatch.setattr(learner._journal.connection, "tidy", tidy_and_say)
    monkeypatch.setattr(learner, "save", save_and_say)
    monkeypatch.setattr(learner, "_fold", endless)
    try:
        engine.decide("shop", b"{}", ARMS)
        assert copied.wait(10.0)
        assert saved.wait(10.0)
    finally:
        copied.set()
        saved.set()
        engine.stop()


def test_an_application_that_broke_is_folded_from_its_events_again(tmp_path: Path) -> None:
    """Its last snapshot is older than what the others have: what came between must not be left out."""
    path = tmp_path / "journal.db"
    engine = many(path, "ab")
    engine.decide("a", b"{}", ARMS, id="e1")
    engine.snapshot()
    seq = engine.writer.write([engine.prepare("a", b"{}", ARMS, id="e2")])[0].row.seq
    engine.wait_learnt()
    engine.learner.masters.pop("a")  # as ``give_up`` leaves it
    engine.learner.broken["a"] = "damaged"
    engine.decide("b", b"{}", ARMS, id="e1")
    engine.snapshot()
    engine.stop()
    engine = many(path, "ab")
    assert engine.learner.masters["a"].version == seq
    assert state(engine.learner.masters["a"]) == state(replayed(engine)["a"])
    engine.stop()


def test_snapshots_of_another_journal_are_not_loaded(engines: Make, tmp_path: Path) -> None:
    """An older copy of the journal was put back, and the snapshots beside it know what it does not."""
    engine = engines()
    ask(engine, "e1")
    engine.stop()
    path = tmp_path / "journal.db"
    shutil.copy(path, tmp_path / "copy.db")
    engine = engines()
    ask(engine, "e2")
    engine.reward("shop", "e2", 1.0)
    engine.stop()
    shutil.copy(tmp_path / "copy.db", path)
    engine = engines()
    assert settled(engine) == state(replayed(engine)["shop"])


def test_a_journal_of_format_2_is_refused_with_what_to_do(engines: Make, tmp_path: Path) -> None:
    engines().stop()
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        raw.execute("UPDATE meta SET value = ? WHERE key = 'format'", (b"2",))
    raw.close()
    with pytest.raises(ValueError, match="the journal has format b'2'; this armwise reads b'4': use the one that"):
        engines()


def test_a_snapshot_of_an_earlier_version_is_folded_again_and_its_model_file_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A model that follows its rows was kept otherwise by 0.1: the journal has all of it, a file by itself has not."""

    def opened() -> Engine:
        engine = Engine(SQLite(tmp_path / "journal.db"), {"shop": Creation(agent={"class": "LinUCB"})})
        engine.start()
        return engine

    engine = opened()
    for k in range(20):
        ask(engine, f"e{k}", {"hour": k})
        engine.reward("shop", f"e{k}", k % 2)
    before = settled(engine)
    kept = Ridge._state
    with monkeypatch.context() as earlier:
        earlier.setattr(Ridge, "_state", lambda self: {k: v for k, v in kept(self).items() if k != "centre"})
        engine.stop()
        aw.LinUCB(dim=3).save(tmp_path / "agent.aw")
    with pytest.raises(aw.LoadError, match="let a new agent learn again from the log or the journal") as refused:
        aw.load(tmp_path / "agent.aw")
    assert "\n" not in str(refused.value)
    engine = opened()
    assert settled(engine) == before
    engine.stop()
    [said] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert said.getMessage().startswith("its model is rebuilt from the first event on: snapshot of shop: a ridge")
    assert said.exc_info is None


def test_snapshots_that_the_leader_replaces_while_they_are_loaded_are_loaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a process that started at that moment ended, or served without the application."""
    engine = many(tmp_path / "journal.db", "ab")
    engine.snapshot()
    journal = engine.open_journal()
    seq, _ = journal.snapshot("a") or (0, b"")
    execute, replaced = journal.connection.execute, list[int]()

    def replacing(sql: str, values: Any = ()) -> Any:
        if sql.startswith("SELECT data FROM snapshots WHERE app = ? AND seq") and not replaced:
            for k in range(3):  # of each application two are kept
                replaced.append(k)
                engine.decide("a", b"{}", ARMS, id=f"e{k}")
                engine.decide("b", b"{}", ARMS, id=f"e{k}")
                engine.snapshot()
        return execute(sql, values)

    monkeypatch.setattr(journal.connection, "execute", replacing)
    models, position = restore(journal)
    assert len(replaced) == 3 and sorted(models) == ["a", "b"]
    assert models["a"].version > seq and position == journal.last()[0]
    journal.connection.close()
    engine.stop()
