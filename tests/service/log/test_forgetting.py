"""``DELETE logs``: nothing shows them any more, and ``armwise journal compact`` takes the bytes, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.cli.main import main
from armwise.core import saving
from armwise.service.adapters.personalizer.admin import _forget_logs
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Unknown
from armwise.service.journal.journal import Journal
from armwise.service.log.compact import compact, deleted_upto
from armwise.service.log.verify import verify
from armwise.service.server.config import Config

ARMS = [b'"a"', b'"b"', b'"c"']


@pytest.fixture
def two(tmp_path: Path, clock: Any) -> Any:
    """An engine with two applications over one journal; ``again`` starts it anew."""
    made: list[Engine] = []

    def start(**site: Any) -> Engine:
        creations = {"shop": Application().creation(), "site": Application(**site).creation()}
        engine = Engine(SQLite(tmp_path / "journal.db"), creations, clock=clock, publish_every=0.0)
        engine.start()
        made.append(engine)
        return engine

    yield start
    for engine in made:
        engine.stop()


def visit(engine: Engine, clock: Any, names: str, rewarded: bool = True) -> None:
    for name in names:
        for app in ("shop", "site"):
            clock.now += 1.0
            engine.decide(app, b'{"who": "%s in %s"}' % (name.encode(), app.encode()), ARMS, id=name, request=name)
            if rewarded:
                engine.reward(app, name, 0.5)


def exported(path: Path, app: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    capfd.readouterr()
    assert main(["journal", "export", "--storage", str(path), "--application", app]) == 0
    return [json.loads(line)["id"] for line in capfd.readouterr().out.splitlines()]


def journal_at(path: Path) -> Journal:
    return Journal(SQLite(path).connect())


def test_nothing_shows_a_deleted_log(run: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    service = run()
    client = service.client
    slots = {"actions": [{"id": "x", "features": []}], "slots": [{"id": "top", "baselineAction": "x"}], "eventId": "m"}
    assert client.post("/personalizer/v1.1-preview.3/multislot/rank", json=slots).status_code == 201
    for id in ("e1", "e2"):
        client.post("/v1/decisions", json={"id": id, "arms": ["a", "b"]})
    client.post("/v1/decisions/e1/reward", json={"value": 1})

    def shown() -> list[str]:
        with client.stream("GET", "/v1/live") as answer:
            told = json.loads(next(answer.iter_lines()).removeprefix("data: "))
        return [each["id"] for each in told["decisions"]]

    assert "e1" in shown()
    assert client.delete("/personalizer/v1.0/logs").status_code == 204
    client.post("/v1/decisions", json={"id": "e3", "arms": ["a", "b"]})
    assert shown() == ["e3"]
    assert [client.get(f"/v1/decisions/{id}").status_code for id in ("e1", "e2", "e3")] == [404, 404, 200]
    path = Path(service.service.config.storage) / "journal.db"
    assert exported(path, "default", capfd) == ["e3"]
    # What was deleted is learnt from all the same.
    assert client.post("/v1/decisions/e2/reward", json={"value": 1}).json()["learnt"] is True
    rewards = {"reward": [{"slotId": "top", "value": 1}]}
    assert client.post("/personalizer/v1.1-preview.3/multislot/events/m/reward", json=rewards).status_code == 204


def test_compaction_takes_what_was_deleted_at_any_age(
    two: Any, clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine, path = two(), tmp_path / "journal.db"
    visit(engine, clock, "klm")
    visit(engine, clock, "o", rewarded=False)
    _forget_logs(engine, "site")
    engine.reward("site", "k", 0.25)  # the same decision, after the deletion
    visit(engine, clock, "xy")
    engine.wait_learnt()
    before = {app: saving.dumps(model) for app, model in engine.learner.masters.items()}
    engine.stop()
    assert deleted_upto(journal_at(path)).keys() == {"site"}
    # Only "site" was deleted, and of it "o" is still open.
    assert compact(journal_at(path), before=0) == 3 * 2 + 1 + 1
    assert compact(journal_at(path), before=0) == 0
    assert verify(journal_at(path)).problems == []
    whole = b"".join(each.read_bytes() for each in tmp_path.glob("journal.db*"))
    assert b"m in shop" in whole
    assert exported(path, "shop", capfd) == list("klmoxy")
    assert exported(path, "site", capfd) == list("xy")
    again = two()
    assert {app: saving.dumps(model) for app, model in again.learner.masters.items()} == before
    assert again.decide("shop", b'{"who": "k in shop"}', ARMS, request="k", id="k").again
    assert again.reward("shop", "k", 0.75).status.n == 2  # what was kept is whole
    with pytest.raises(Unknown):
        again.reward("site", "k", 0.75)
    assert again.reward("site", "o", 1.0).status.closed
    again.wait_learnt()
    assert verify(again.open_journal()).problems == []
    again.stop()
    assert compact(journal_at(path), before=0) == 2  # now that "o" is settled
    assert main(["journal", "compact", "--storage", str(path), "--keep-days", "0"]) == 0
    assert verify(journal_at(path)).problems == []
    assert exported(path, "shop", capfd) == ["o"]  # still open


def test_the_bytes_are_gone(two: Any, clock: Any, tmp_path: Path) -> None:
    engine, path = two(), tmp_path / "journal.db"
    visit(engine, clock, "kl")
    _forget_logs(engine, "site")
    engine.stop()
    assert main(["journal", "compact", "--storage", str(path)]) == 0  # of the last 30 days, as far as the file knows
    whole = b"".join(each.read_bytes() for each in tmp_path.glob("journal.db*"))
    assert b"in site" not in whole


def test_what_was_kept_cannot_be_altered_unseen(two: Any, clock: Any, tmp_path: Path) -> None:
    engine, path = two(), tmp_path / "journal.db"
    visit(engine, clock, "kl")
    _forget_logs(engine, "site")
    engine.stop()
    compact(journal_at(path), before=0)
    change = "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'k in shop', 'z in shop') AS BLOB)"
    journal_at(path).connection.execute(change)
    [problem] = verify(journal_at(path)).problems
    assert "was altered or lost" in problem


def test_a_changed_configuration_does_not_bring_it_back(
    two: Any, clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine, path = two(), tmp_path / "journal.db"
    visit(engine, clock, "k")
    _forget_logs(engine, "site")
    engine.stop()
    again = two(seed=7)  # its model begins anew
    assert again.forgotten("site") > 0
    with pytest.raises(Unknown):
        again.find("site", "k")
    again.stop()
    assert exported(path, "site", capfd) == []
    assert verify(journal_at(path)).problems == []


def test_a_decision_with_later_events_survives_whole(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path
) -> None:
    """A second reward after the cut must find its decision."""
    engine = engines(window=100.0)
    engine.decide("shop", b"{}", ARMS, id="e1")
    engine.reward("shop", "e1", 1.0)
    engine.decide("shop", b"{}", ARMS, id="e2")
    engine.reward("shop", "e2", 1.0)
    clock.now += 110.0
    cut = clock.now
    engine.reward("shop", "e1", 0.5)
    engine.stop()
    assert compact(journal_at(tmp_path / "journal.db"), int(cut * 1000)) == 2
    assert verify(journal_at(tmp_path / "journal.db")).problems == []


def test_days_make_sense(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = SQLite(tmp_path / "journal.db")
    store.connect().close()
    for days in ("nan", "-5", "inf", "soon"):
        assert main(["journal", "compact", "--storage", str(tmp_path / "journal.db"), f"--keep-days={days}"]) == 2
        assert "number of days from 0 to 36500" in capfd.readouterr().err


def test_deleting_the_log_of_a_service_by_name(tmp_path: Path, run: Callable[..., Any]) -> None:
    config = Config(storage=str(tmp_path / "d"), applications={"plain": Application(), "other": Application()})
    service: Any = run(config).service
    assert service.engine.forgotten("plain") == 0
