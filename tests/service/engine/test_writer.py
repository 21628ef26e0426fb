"""The writer while the database fails or hangs: nobody waits without end, and it heals without a client's help."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from armwise.service.engine.engine import Engine
from armwise.service.engine.writer import Writer
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Conflict, Unavailable
from armwise.service.journal.events import EARLIEST, Change, Creation, Reward, Settings
from armwise.service.journal.journal import Journal
from armwise.service.journal.rules import MAX_REWARDS, Status, check
from armwise.service.journal.writes import Write
from tests.service.serving import ARMS, Clock


class Failing(Journal):
    """A journal whose database is full, or does not answer, for as long as a test says so."""

    full = False

    def __init__(self) -> None:
        super().__init__(SQLite(":memory:").connect())
        self.free = threading.Event()
        self.free.set()

    def append(self, groups: Any, now: int, more: Any = None) -> Any:
        self.free.wait(30.0)
        if self.full:
            raise OSError("database or disk is full at secret.host:5432")
        return super().append(groups, now, more)

    def probe(self) -> None:
        if self.full:
            raise OSError("database or disk is full")
        super().probe()


def _until(condition: Any, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_disk_that_stays_full_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A traceback for each commit that failed made a thousand lines of a full disk."""
    journal = Failing()
    writer = Writer(lambda: journal, now=lambda: 5, pause=1e9)
    writer.start()
    journal.full = True
    for _ in range(3):
        with pytest.raises(Unavailable):
            writer.write([Write("shop", "", Change())])
    writer.stop()
    assert [bool(record.exc_info) for record in caplog.records] == [True, False, False]


def test_health_returns_by_itself_when_the_disk_is_free_again() -> None:
    journal = Failing()
    writer = Writer(lambda: journal, now=lambda: 5, pause=0.02)
    writer.start()
    journal.full = True
    with pytest.raises(Unavailable, match="the journal cannot be written now") as refusal:
        writer.write([Write("shop", "", Change())])
    assert "secret.host" not in str(refusal.value)
    time.sleep(0.1)
    assert not writer.healthy
    journal.full = False
    _until(lambda: writer.healthy)
    writer.write([Write("shop", "", Change())])
    writer.stop()


def test_whoever_waits_for_a_database_that_hangs_is_refused_in_time() -> None:
    journal = Failing()
    writer = Writer(lambda: journal, now=lambda: 5, pause=0.02, stall=0.3)
    writer.start()
    journal.free.clear()
    answers: list[Any] = []
    for _ in range(3):
        writer.submit([Write("shop", "", Change())], answers.append)
        time.sleep(0.02)
    assert writer.moving
    _until(lambda: len(answers) == 3)
    assert {str(answer) for answer in answers} == {"the database has not answered for 0.3 s"}
    assert not writer.moving
    with pytest.raises(Unavailable, match="has not answered"):
        writer.submit([Write("shop", "", Change())], answers.append)
    journal.free.set()
    _until(lambda: writer.moving)
    assert writer.write([Write("shop", "", Change())])[0].row.seq == 2  # the one under way was committed after all
    assert len(answers) == 3  # and nobody was answered twice
    writer.stop()


def test_windows_close_in_batches_between_which_decisions_are_taken(tmp_path: Any) -> None:
    clock = Clock()
    engine = Engine(SQLite(tmp_path / "journal.db"), {"shop": Creation(settings=Settings(window=10.0))}, clock=clock)
    engine.start()
    engine.writer._pause = 1e9  # nothing by itself
    engine.writer.run(lambda journal: None)
    for k in range(1100):
        engine.writer.submit([engine.prepare("shop", b"{}", ARMS, id=f"e{k}")], lambda outcome: None)
    engine.writer.run(lambda journal: None)
    clock.now += 60.0
    more: list[bool] = []
    engine.writer.run(lambda journal: more.append(engine.expire_some(journal)))
    open_ = engine.reading.journal.connection.execute("SELECT count(*) FROM decisions WHERE closed = 0")[0][0]
    assert more == [True] and open_ == 600  # 500 per turn, and the turn says that there is more
    engine.expire()
    assert engine.reading.journal.connection.execute("SELECT count(*) FROM decisions WHERE closed = 0")[0][0] == 0
    engine.stop()


def test_a_decision_takes_so_many_rewards_and_no_more() -> None:
    status = Status("shop", "e1", 1, 1000, EARLIEST, 0.0, True)
    status.n = MAX_REWARDS
    with pytest.raises(Conflict, match="decision e1 has 1000 rewards already"):
        check(Reward(1.0), status, "e1", time=5)


def test_late_rewards_are_limited_too(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept and change no status: 1,503 were taken for one decision."""
    monkeypatch.setattr("armwise.service.journal.intake.MAX_REWARDS", 5)
    clock = Clock()
    engine = Engine(SQLite(tmp_path / "journal.db"), {"shop": Creation(settings=Settings(window=10.0))}, clock=clock)
    engine.start()
    engine.decide("shop", b"{}", ARMS, id="e1")
    engine.reward("shop", "e1", 1.0)
    clock.now += 60.0
    for _ in range(4):
        engine.reward("shop", "e1", 1.0)
    with pytest.raises(Conflict, match="which is the maximum"):
        engine.reward("shop", "e1", 1.0)
    [[kept]] = engine.reading.journal.connection.execute("SELECT count(*) FROM events WHERE kind = 'reward'")
    assert kept == 5
    engine.stop()


def test_a_journal_that_nobody_writes_to_is_tried_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk was found out by the first client whose decision it refused."""
    monkeypatch.setattr("armwise.service.engine.writer.PROVED", 0.0)
    journal = Failing()
    writer = Writer(lambda: journal, now=lambda: 0, pause=0.01)
    writer.start()
    journal.full = True
    time.sleep(0.1)
    assert writer.healthy  # nobody asked
    writer.doubt()
    _until(lambda: not writer.healthy)
    journal.full = False
    _until(lambda: writer.healthy)  # without being asked again
    writer.stop()


def test_a_writer_that_does_not_run_takes_nothing() -> None:
    writer = Writer(lambda: None, now=lambda: 0)  # type: ignore[arg-type, return-value]
    with pytest.raises(Unavailable, match="the service is stopping"):
        writer.submit([], print)
    assert writer.depth == 0 and writer.moving


def test_a_journal_that_cannot_be_opened_is_said_at_the_start() -> None:
    def refused() -> Journal:
        raise OSError("no such database")

    with pytest.raises(OSError, match="no such database"):
        Writer(refused, now=lambda: 0).start()
