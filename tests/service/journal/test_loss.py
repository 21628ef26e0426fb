"""What is damaged breaks its application only; what was acknowledged and is gone is noticed."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from armwise.cli.main import main
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.databases.tail import Tail
from armwise.service.journal.errors import Unavailable
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import ARMS, Running, ask

Make = Callable[..., Engine]


def problems(path: Path) -> list[str]:
    journal = Journal(SQLite(path).connect())
    found = verify(journal).problems
    journal.connection.close()
    return found


# ---------------------------------------------------------------------- a log that lost its tail


def lose_the_tail(engines: Make, tmp_path: Path) -> Path:
    """A journal whose write-ahead log, at the moment its process was killed, is cut short; 7 events are left of 12."""
    engine = engines()
    for k in range(3):
        ask(engine, f"e{k}")
        engine.reward("shop", f"e{k}", 0.5)
    left = tmp_path / "left"
    left.mkdir()
    log = (tmp_path / "journal.db-wal").read_bytes()
    for k in range(3, 8):
        ask(engine, f"e{k}")
    shutil.copy(tmp_path / "journal.db", left)
    shutil.copy(tmp_path / "journal.db.last", left)
    (left / "journal.db-wal").write_bytes(log)
    return left / "journal.db"


def test_a_log_that_lost_its_tail_is_noticed(
    engines: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = lose_the_tail(engines, tmp_path)
    capfd.readouterr()
    assert main(["journal", "verify", "--storage", str(path)]) == 1
    assert "events 8 to 12 were acknowledged, and are missing" in capfd.readouterr().out
    engine = engines(path)  # it goes on with what there is, and says so
    assert "events 8 to 12 were acknowledged" in caplog.text
    ask(engine, "later")
    engine.stop()
    [problem] = problems(path)  # which is not forgotten
    assert "events 8 to 12 were acknowledged" in problem
    assert "remove" in problem
    Path(f"{path}.lost").unlink()
    assert problems(path) == []


def test_another_history_is_noticed(engines: Make, tmp_path: Path) -> None:
    path = lose_the_tail(engines, tmp_path)
    kept = Path(f"{path}.last").read_bytes()
    engine = engines(path)
    for k in range(9):
        ask(engine, f"other{k}")
    engine.stop()
    Path(f"{path}.lost").unlink()
    Path(f"{path}.last").write_bytes(kept)
    assert problems(path) == ["event 12 is not the one that was acknowledged: the journal has another history"]


def test_one_of_two_records_may_be_torn(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "journal.db")
    tail.note(6, b"a" * 16)
    tail.note(7, b"b" * 16)
    tail.sync()
    assert tail.read() == (7, b"b" * 16)
    tail.close()
    data = bytearray((tmp_path / "journal.db.last").read_bytes())
    data[40] ^= 1  # in the second
    (tmp_path / "journal.db.last").write_bytes(data)
    assert tail.read() == (6, b"a" * 16)


def test_the_record_is_synced_about_twice_per_second(
    engines: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync at every look of the learner, thirty per second, makes the commits beside it wait for the disk."""
    synced: list[float] = []
    monkeypatch.setattr(Tail, "sync", lambda tail: synced.append(time.monotonic()))
    engine = engines()
    for k in range(60):
        ask(engine, f"e{k}")
        engine.wait_learnt()
    engine.stop()
    *while_running, at_the_end = synced
    assert all(later - earlier > 0.4 for earlier, later in itertools.pairwise(while_running))
    assert at_the_end  # and once more when the service stops


def test_a_commit_does_not_fail_where_nothing_can_be_written_beside_it(
    engines: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "journal.db.last").mkdir()
    ask(engines(), "e1")
    assert "would go unnoticed" in caplog.text


# ---------------------------------------------------------------------- damage


@pytest.mark.parametrize("body", ["CAST(body AS TEXT)", "zeroblob(40)"])
@pytest.mark.parametrize("kind", ["create", "decision", "reward"])
def test_a_damaged_body_breaks_its_application_only(tmp_path: Path, kind: str, body: str) -> None:
    config = Config(storage=str(tmp_path), applications={name: Application() for name in ("shop", "news")})
    running = Running(Service(config))
    for app in ("shop", "news"):
        assert running.client.post(f"/apps/{app}/v1/decisions", json={"id": "e1", "arms": ["a", "b"]}).is_success
        assert running.client.post(f"/apps/{app}/v1/decisions/e1/reward", json={"value": 1}).is_success
    running.stop()
    path = tmp_path / "journal.db"
    connection = SQLite(path).connect()
    [[seq]] = connection.execute("SELECT seq FROM events WHERE app = 'shop' AND kind = ?", (kind,))
    connection.execute(f"UPDATE events SET body = {body} WHERE seq = ?", (seq,))
    connection.execute("DELETE FROM snapshots")
    connection.close()
    running = Running(Service(config))
    ready = running.client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["unavailable"] == ["shop"]
    assert f"event {seq} ({kind})" in ready.json()["because"]["shop"]
    refused = running.client.post("/apps/shop/v1/decisions", json={"arms": ["a", "b"]})
    assert (refused.status_code, f"event {seq}" in refused.text) == (503, True)
    assert running.client.post("/apps/news/v1/decisions", json={"arms": ["a", "b"]}).is_success
    assert running.client.get("/apps/news/v1/log").is_success
    assert running.service.engine.models["news"].lessons == 1
    running.stop()
    assert any(f"event {seq}" in problem for problem in problems(path))


def test_a_request_that_meets_damage_is_refused_alone(engines: Make, tmp_path: Path) -> None:
    """The same id again is compared with what was decided: if that cannot be read, the rest of the batch still is."""
    engine = engines()
    ask(engine, "e1")
    engine.wait_learnt()
    SQLite(tmp_path / "journal.db").connect().execute("UPDATE events SET body = CAST('{' AS BLOB) WHERE id = 'e1'")
    outcomes = Journal(engine.store.connect()).append(
        [[engine.prepare("shop", b"{}", ARMS, id="e1")], [engine.prepare("shop", b"{}", ARMS, id="e2")]], engine.now()
    )
    assert isinstance(outcomes[0], Unavailable)
    assert "event 2 (decision) is damaged" in str(outcomes[0])
    assert isinstance(outcomes[1], list)
