"""Work that can wait leaves most of the time to requests, and takes all of it when none come."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from armwise.service.engine.learning.learner import MAX_PIECE_EVENTS
from armwise.service.engine.rollout import add_version
from armwise.service.journal.events import Creation
from armwise.service.journal.pace import MAX_PAGE_ROWS, MAX_PIECE, MAX_SHARE, Pace
from armwise.service.log.export_journal import pieces
from armwise.service.log.retain import Retention
from armwise.service.model.model import Model


def work(rest: Callable[[], None], seconds: float = 0.05) -> float:
    """Use so much processor time; how long it took."""
    began, until = time.monotonic(), time.thread_time() + seconds
    while time.thread_time() < until:
        rest()
    return time.monotonic() - began


def test_work_rests_while_requests_come() -> None:
    slept: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", slept.append)
        work(Pace(lambda: True).rest)
    assert sum(slept) >= 0.8 * 0.05 * (1.0 / MAX_SHARE - 1.0), "three times as long as it works"
    assert len(slept) > 0.05 / MAX_PIECE / 4, "in short pieces"


def test_work_does_not_rest_without_requests() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: pytest.fail("nobody waits"))
        work(Pace(lambda: False).rest)


def rewarded(engines: Callable[..., Any]) -> Any:
    """An engine with 300 decisions of three users, each with its reward."""
    engine = engines(features={"dim": 16})
    for k in range(300):
        engine.decide("shop", b'{"x": %d, "user": %d}' % (k, k % 3), [b'"a"', b'"b"'], id=f"e{k}")
        engine.reward("shop", f"e{k}", 0.5)
    engine.wait_learnt()
    return engine


def test_exports_erasures_and_training_keep_the_pace(engines: Callable[..., Any]) -> None:
    engine = rewarded(engines)
    rested: dict[str, int] = {}

    def during(name: str, do: Callable[[], object]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            count = [0]
            patch.setattr(Pace, "rest", lambda self: count.__setitem__(0, count[0] + 1))
            do()
        rested[name] = count[0]

    journal = engine.open_journal()
    during("export", lambda: list(pieces(journal, "shop")))
    journal.connection.close()
    during("training", lambda: add_version(engine, "shop", "bold", Creation(features={"dim": 16})))
    during("erasure", lambda: Retention(engine).erase("shop", "user", 1))
    assert all(n >= 300 for n in rested.values()), rested


@pytest.mark.parametrize("agent", ["LinUCB", "SquareCB"])
def test_training_rests_between_decisions_whose_windows_are_open(engines: Callable[..., Any], agent: str) -> None:
    """There may be thousands: to learn them at the end, without a rest, kept decisions waiting for 30 milliseconds."""
    engine = engines(features={"dim": 16})
    for k in range(100):
        engine.decide("shop", b'{"x": %d}' % k, [b'"a"', b'"b"'], id=f"e{k}")
        if k < 50:
            engine.reward("shop", f"e{k}", 0.5)
    engine.wait_learnt()
    steps: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("learn_past", "learn"):
            real = getattr(Model, name)

            def noted(self: Model, *args: Any, name: str = name, real: Any = real, **more: Any) -> None:
                steps.append(name)
                real(self, *args, **more)

            patch.setattr(Model, name, noted)
        patch.setattr(Pace, "rest", lambda self: steps.append("rest"))
        add_version(engine, "shop", "bold", Creation(agent={"class": agent}, features={"dim": 16}))
    assert sum(step != "rest" for step in steps) >= 100
    works = [len(list(group)) for rests, group in itertools.groupby(steps, lambda step: step == "rest") if not rests]
    assert max(works) <= 2, "several decisions without a rest between them"


def test_learning_what_came_meanwhile_rests_although_somebody_waits(engines: Callable[..., Any]) -> None:
    """After a version was trained for seconds, the next request about versions waits for all that came meanwhile."""
    engine = engines(features={"dim": 16})
    learner = engine.learner
    engine.wait_learnt()
    learner.stop()
    for k in range(3 * MAX_PIECE_EVENTS):
        engine.decide("shop", b'{"x": %d}' % k, [b'"a"', b'"b"'])
    rests: list[int] = []
    learner._journal, learner._waiters = engine.open_journal(), 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pace, "rest", lambda self: rests.append(learner.position))
        assert learner._fold()
    learner._journal.connection.close()
    assert len(rests) == 2, "after each piece but the last"


@pytest.mark.parametrize("kind", ["json", "dsjson"])
def test_an_export_rests_after_each_short_page(engines: Callable[..., Any], kind: str) -> None:
    """Whatever it reads at once is short: pages of 500 rows held the interpreter for five to seven milliseconds."""
    engine = engines(features={"dim": 16})
    for k in range(200):
        engine.decide("shop", b'{"x": %d}' % k, [b'"a"', b'"b"'], id=f"e{k}")
        engine.reward("shop", f"e{k}", 0.5)
    journal = engine.open_journal()
    steps: list[int] = []  # rows that were read since the last rest; 0: a rest
    real = journal.connection.execute

    def execute(sql: str, values: Any = ()) -> list[Any]:
        found: list[Any] = real(sql, values)
        steps.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal.connection, "execute", execute)
        patch.setattr(Pace, "rest", lambda self: steps.append(0))
        assert sum(piece.count(b"\n") for piece in pieces(journal, "shop", kind)) == 200
    journal.connection.close()
    assert max(steps) <= MAX_PAGE_ROWS
    assert all(sum(steps[at : at + 4]) <= 2 * MAX_PAGE_ROWS for at in range(len(steps))), "no rest between statements"


def test_an_erasure_rests_after_each_short_page(engines: Callable[..., Any]) -> None:
    """Its search, the new beginning of the journal and the events that go: pages of 2,000 rows held the interpreter."""
    engine = rewarded(engines)
    steps: list[int] = []  # rows that were read since the last rest; 0: a rest
    real = engine.open_journal

    def open_journal() -> Any:
        journal = real()
        execute = journal.connection.execute

        def noted(sql: str, values: Any = ()) -> list[Any]:
            found: list[Any] = execute(sql, values)
            steps.append(len(found))
            return found

        journal.connection.execute = noted
        return journal

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "open_journal", open_journal)
        patch.setattr(Pace, "rest", lambda self: steps.append(0))
        assert Retention(engine).erase("shop", "user", 1).deleted == 200
    rows = [sum(group) for rests, group in itertools.groupby(steps, lambda step: step == 0) if not rests]
    assert sum(rows) >= 3 * 600, "each event is read to be searched, to be chained and to be found again"
    assert max(rows) <= 3 * MAX_PAGE_ROWS, "no rest between statements"


def test_work_of_several_threads_is_counted_together() -> None:
    """An export is read by whichever thread of the pool is free: what one did counts when the next one goes on."""
    slept: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", slept.append)
        pace = Pace(lambda: True)
        for _ in range(40):  # each by a thread of its own, for less than a piece
            thread = threading.Thread(target=work, args=(pace.rest, MAX_PIECE / 2))
            thread.start()
            thread.join()
    assert sum(slept) >= 0.8 * 40 * MAX_PIECE / 2 * (1.0 / MAX_SHARE - 1.0)
