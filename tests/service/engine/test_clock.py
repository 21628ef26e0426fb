"""A clock that jumps: windows close in time, whatever it says meanwhile."""

from __future__ import annotations

from pathlib import Path

from armwise.service.engine.clock import LASTING, TrustedClock
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation, Settings
from tests.service.serving import ARMS

DAY = 86_400.0


class Machine:
    """A machine whose wall clock somebody sets."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 50.0

    def clock(self) -> TrustedClock:
        return TrustedClock(wall=lambda: self.wall, steady=lambda: self.steady)

    def passes(self, seconds: float) -> None:
        self.wall, self.steady = self.wall + seconds, self.steady + seconds


def test_a_jump_forward_and_back_leaves_no_trace_in_the_journal() -> None:
    # A failure would mean that windows stay open for the 30 days that the clock once was ahead.
    machine = Machine()
    clock = machine.clock()
    engine = Engine(SQLite.temporary(), {"shop": Creation(settings=Settings(window=10.0))}, clock=clock)
    engine.start()
    machine.wall += 30 * DAY
    engine.decide("shop", b"{}", ARMS, id="meanwhile")
    machine.wall -= 30 * DAY
    engine.decide("shop", b"{}", ARMS, id="afterwards")
    machine.passes(11.0)
    engine.expire()
    assert engine.reading.journal.connection.execute("SELECT count(*) FROM decisions WHERE closed = 0")[0][0] == 0
    assert engine.clock_jumps == 2
    engine.stop()


def test_a_jump_forward_that_lasts_is_followed_and_one_back_is_approached() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += DAY
    assert clock() == machine.wall - DAY
    machine.passes(LASTING + 1.0)
    assert clock() == machine.wall
    machine.wall -= 100.0
    before = clock()
    assert before == machine.wall + 100.0  # it never goes back
    machine.passes(10.0)
    assert before + 8.0 < clock() < before + 10.0
    for _ in range(30):
        machine.passes(100.0)
        clock()
    assert clock() == machine.wall
    assert clock.jumps == 2


def test_a_journal_ahead_of_the_clock_goes_on(tmp_path: Path) -> None:
    machine = Machine()
    machine.wall += 30 * DAY
    there = {"shop": Creation(settings=Settings(window=10.0))}
    engine = Engine(SQLite(tmp_path / "journal.db"), there, clock=machine.clock())
    engine.start()
    engine.decide("shop", b"{}", ARMS, id="e1")
    engine.stop()
    machine.wall -= 30 * DAY
    again = Engine(SQLite(tmp_path / "journal.db"), there, clock=machine.clock())
    again.start()
    machine.passes(15.0)
    again.expire()
    assert again.reading.journal.connection.execute("SELECT count(*) FROM decisions WHERE closed = 0")[0][0] == 0
    again.stop()
