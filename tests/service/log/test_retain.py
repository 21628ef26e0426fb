"""Retention while the service runs: what is old or erased goes, what was learnt stays, and the journal stays sound."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.cli.main import main
from armwise.service.engine.engine import Engine
from armwise.service.engine.rollout import add_version
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Change, Creation
from armwise.service.journal.journal import Journal
from armwise.service.log import retain
from armwise.service.log.compact import compact
from armwise.service.log.export_journal import entries
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify
from tests.service.serving import Running, ask, settled, state

Make = Callable[..., Engine]
DAY = 86400.0


def checked(path: Path) -> None:
    journal = Journal(SQLite(path).connect())
    assert verify(journal).problems == []
    journal.connection.close()


def rewarded(engine: Engine, ids: list[str], **context: Any) -> None:
    for id in ids:
        ask(engine, id, {"x": len(id), **context})
        engine.reward("shop", id, 0.5)


def there(engine: Engine, id: str) -> bool:
    try:
        engine.find("shop", id)
    except Unknown:
        return False
    return True


def test_old_decisions_go_while_others_are_made(
    engines: Make, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retain, "MAX_BATCH", 3)
    engine = engines()
    rewarded(engine, [f"old{k}" for k in range(20)])
    ask(engine, "open")  # its window closes 20 days later, after it has become old
    clock.now += 20 * DAY
    rewarded(engine, ["young"])
    stop = threading.Event()
    made: list[int] = []

    def traffic() -> None:
        while not stop.is_set():
            rewarded(engine, [f"new{len(made)}"])
            made.append(1)

    busy = threading.Thread(target=traffic)
    busy.start()
    try:
        retention = Retention(engine, days=10.0)
        assert retention.run() >= 40
    finally:
        stop.set()
        busy.join()
    assert made
    assert not any(there(engine, f"old{k}") for k in range(20))
    assert there(engine, "young")
    assert all(there(engine, f"new{k}") for k in range(len(made)))
    engine.expire()
    retention.run()
    assert not there(engine, "open")
    with pytest.raises(Unknown):
        engine.reward("shop", "old3", 1.0)
    before = settled(engine)
    engine.stop()
    checked(tmp_path / "journal.db")
    for old in tmp_path.glob("*.snapshots*"):
        old.unlink()
    engine = engines()  # from the models with which the journal begins now
    assert settled(engine) == before


@pytest.mark.parametrize("service_runs", [True, False])
def test_what_is_left_is_not_selected_by_outcome(engines: Make, clock: Any, tmp_path: Path, service_runs: bool) -> None:
    """Of decisions older than a day, with a window of three, the rewarded ones went and the silent ones stayed: what
    was left of a shop of 10 % earned nothing."""
    engine = engines(window=3 * DAY)
    for day in range(6):
        for k in range(10):
            ask(engine, f"d{day}-{k}")
        engine.reward("shop", f"d{day}-0", 1.0)
        clock.now += DAY + 1.0
        engine.expire()
    clock.now += 10.0
    engine.expire()
    settled(engine)
    if service_runs:
        assert Retention(engine, days=1.0).run() == 4 * (10 + 1 + 9)  # decisions, rewards and windows that closed
    engine.stop()
    path = tmp_path / "journal.db"
    journal = Journal(SQLite(path).connect())
    if not service_runs:
        assert compact(journal, round((clock.now - DAY) * 1000)) > 0
    left = [entry.record.worth() for entry in entries(journal, "shop")]
    journal.connection.close()
    assert (len(left), sum(left)) == ((20, 2.0) if service_runs else (30, 3.0))  # a stopped one: those open a day ago
    checked(path)


def test_what_was_kept_is_guarded(engines: Make, clock: Any, tmp_path: Path) -> None:
    engine = engines()
    rewarded(engine, ["a", "b"])
    clock.now += 20 * DAY
    rewarded(engine, ["c", "d"])
    assert Retention(engine, days=10.0).run() == 4
    engine.stop()
    path = tmp_path / "journal.db"
    checked(path)
    connection = SQLite(path).connect()
    connection.execute("DELETE FROM events WHERE id = 'c'")
    connection.execute("DELETE FROM decisions WHERE id = 'c'")
    assert any("was altered or lost" in problem for problem in verify(Journal(connection)).problems)
    connection.close()


def test_both_ways_of_compaction_follow_each_other(engines: Make, clock: Any, tmp_path: Path) -> None:
    engine, path = engines(), tmp_path / "journal.db"
    ask(engine, "long open")
    for turn in range(3):
        rewarded(engine, [f"e{turn}{k}" for k in range(4)])
        clock.now += 20 * DAY
        engine.expire()
        engine.wait_learnt()
        before = settled(engine)
        if turn != 1:
            assert Retention(engine, days=1.0).run() > 0
        engine.stop()
        journal = Journal(SQLite(path).connect())
        if turn == 1:
            assert compact(journal, round((clock.now - DAY) * 1000)) > 0
        assert verify(journal).problems == []
        journal.connection.close()
        engine = engines()
        assert settled(engine) == before


@pytest.mark.parametrize("how", ["beside the traffic", "while it is stopped", "one subject", "the whole log"])
def test_what_is_still_to_be_learnt_stays_or_is_learnt_before(
    engines: Make, clock: Any, tmp_path: Path, how: str
) -> None:
    """A version that cannot revise learns clicks when their windows close: until then a replay needs the decision."""
    engine, path = engines(window=5 * DAY), tmp_path / "journal.db"
    counts = Creation(agent={"class": "UCB1", "n_arms": 3}, arms=["pasta", "salad", "soup"])
    add_version(engine, "shop", "counts", counts)
    rewarded(engine, ["a", "b"], user="u7")
    ask(engine, "c", {"user": "u7"})
    clock.now += 2 * DAY
    rewarded(engine, ["d"], user="u8")
    if how == "beside the traffic":
        Retention(engine, days=1.0).run()
        assert there(engine, "a")
    elif how == "one subject":
        Retention(engine).erase("shop", "user", "u7")
        assert not there(engine, "a")
    elif how == "the whole log":
        engine.wait_learnt()
        engine.configure("shop", Change(forgotten=engine.learner.published))
        engine.wait_learnt()  # a decision that still teaches goes with the run after it has taught
        Retention(engine).run()
        assert not there(engine, "a")
    engine.wait_learnt()
    engine.stop()
    journal = Journal(SQLite(path).connect())
    if how == "while it is stopped":
        compact(journal, round((clock.now - DAY) * 1000))
    assert verify(journal).problems == []
    journal.connection.close()
    engine = engines(window=5 * DAY)
    model = engine.models["shop"].versions["counts"].model
    assert model.waits_for() if how in ("beside the traffic", "while it is stopped") else model.lessons >= 2
    clock.now += 6 * DAY
    engine.expire()
    rewarded(engine, ["e"])
    engine.wait_learnt()
    model = engine.models["shop"].versions["counts"].model
    assert (model.lessons, model.refused) == (4, 0)
    before = settled(engine)
    engine.stop()
    checked(path)
    for old in tmp_path.glob("*.snapshots*"):
        old.unlink()
    assert settled(engines(window=5 * DAY)) == before


def test_a_model_in_training_keeps_what_it_is_trained_on(engines: Make, clock: Any) -> None:
    engine = engines()
    rewarded(engine, ["a", "b"])
    clock.now += 20 * DAY
    retention = Retention(engine, days=10.0)
    whole = retention._advance

    def late(journal: Journal) -> None:
        whole(journal)
        engine.apply({"shop": Creation(seed=5)})  # trained on "a" and "b", after the last snapshot

    retention._advance = late  # type: ignore[method-assign]
    assert retention.run() == 0
    retention._advance = whole  # type: ignore[method-assign]
    before = settled(engine)
    assert engine.models["shop"].lessons == 2
    assert retention.run() > 0
    assert settled(engine) == before


def test_catalogues_that_nobody_refers_to_go(engines: Make, clock: Any, tmp_path: Path) -> None:
    engine = engines(features={"dim": 32})
    for id in ("old", "young"):
        arms = [json.dumps({"id": f"{id}{i}", "features": {"x": "y" * 50}}).encode() for i in range(99)]
        engine.decide("shop", b"{}", arms, id=id)
        clock.now += 20 * DAY
        engine.expire()
    assert Retention(engine, days=30.0).run() == 2
    assert len(engine.open_journal().connection.execute("SELECT hash FROM catalogues")) == 1
    assert len(engine.find("shop", "young")[1].arms) == 99
    engine.stop()
    checked(tmp_path / "journal.db")


def test_one_subject_is_forgotten(run: Callable[..., Running], tmp_path: Path) -> None:
    running = run()
    client, engine = running.client, running.service.engine
    for k in range(6):
        body = {"id": f"e{k}", "context": {"user": {"name": f"user-{k % 2}"}}, "arms": ["a", "b"]}
        assert client.post("/v1/decisions", json=body).is_success
        if k < 5:
            assert client.post(f"/v1/decisions/e{k}/reward", json={"value": 1}).is_success
    engine.wait_learnt()
    learnt = state(engine.models["default"].agent)  # type: ignore[arg-type]
    answer = client.post("/v1/erasures", json={"key": "user.name", "value": "user-1"})
    # Two decisions with a reward each; e5's window was still open: it was closed, and goes with its closing.
    assert (answer.status_code, answer.json()["deleted"]) == (200, 6)
    ids = [json.loads(line)["id"] for line in client.get("/v1/log").text.splitlines()]
    assert ids == ["e0", "e2", "e4"]
    assert client.post("/v1/decisions/e5/reward", json={"value": 1}).status_code == 404
    assert running.service.retain()[0].run() == 0
    assert client.get("/v1/decisions/e5").status_code == 404
    assert client.post("/v1/erasures", json={"key": "user.name"}).status_code == 400
    late = client.post("/v1/decisions", json={"context": {"user": {"name": "user-1"}}, "arms": ["a"]})
    running.service.retain()[0].run()
    assert client.get(f"/v1/decisions/{late.json()['id']}").is_success  # made after it
    engine.wait_learnt()
    assert engine.models["default"].lessons == 6  # what they taught stays
    assert state(engine.models["default"].agent) != learnt  # type: ignore[arg-type]
    running.stop()
    path = tmp_path / "data0" / "journal.db"
    checked(path)
    assert main(["journal", "erase", "--storage", str(path), "--key", "user.name", "--value", '"user-0"']) == 0
    checked(path)
    connection = SQLite(path).connect()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert b"user-0" not in path.read_bytes()


def test_erasing_by_command_needs_to_know_whom(tmp_path: Path, engines: Make) -> None:
    engine = engines()
    path = str(tmp_path / "journal.db")
    assert main(["journal", "erase", "--storage", path, "--key", "user", "--value", "7"]) == 2  # it runs
    engine.stop()
    assert main(["journal", "erase", "--storage", path, "--key", "user"]) == 2
    assert main(["journal", "erase", "--storage", path, "--key", "user", "--value", "u7"]) == 2
