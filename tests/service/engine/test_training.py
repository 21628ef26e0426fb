"""A version trained on the journal: what it learns is what a plain reading of the journal says, in little memory."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from armwise.service.engine.engine import Engine
from armwise.service.engine.learning.training import train
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Conflict
from armwise.service.journal.events import Creation, Decision, Expiry, Reward, Sequel, Settings
from armwise.service.journal.journal import Journal
from armwise.service.journal.rules import Status, happen
from armwise.service.journal.writes import Write
from armwise.service.model.build import build_model
from armwise.service.model.model import Model
from tests.service.serving import ask, state

Make = Callable[..., Engine]


def trained_plainly(model: Model, journal: Journal, upto: int, now: int) -> None:
    """The same training with every open decision in memory."""
    waiting: dict[int, tuple[Decision, Status]] = {}
    early: dict[int, tuple[Decision, float]] = {}

    def learn(seq: int, lesson: float | None) -> None:
        decision, status = waiting.pop(seq)
        is_open = status.deadline >= now
        if is_open and lesson is not None and not model.waits(decision) and not model.corrects(decision):
            early[seq] = decision, lesson
        else:
            model.learn_past(decision, seq, status.active, lesson, is_open)

    for row in journal.events():
        if row.seq < upto and isinstance(event := row.event, Decision):
            waiting[row.seq] = model.reencode(event), Status.of(row, event)
        elif row.seq < upto and isinstance(event, Sequel) and event.decision in waiting:
            happen(event, waiting[event.decision][1], row.time)
            if event.lesson is not None:
                learn(event.decision, event.lesson)
    unknown = upto
    for seq, (decision, status) in list(waiting.items()):
        rest = not model.waits(decision) and not model.corrects(decision) and status.active
        over = status.deadline < now
        if rest and not over:
            unknown = min(unknown, seq)
        learn(seq, status.expire().lesson if rest and over else None)
    for seq, (decision, lesson) in early.items():
        if seq < unknown:
            model.learn(decision, lesson)


@pytest.mark.parametrize("rule", ["earliest", "sum"])
@pytest.mark.parametrize("learn", ["", "close", "arrival"])
def test_what_is_learnt_is_what_a_plain_reading_of_the_journal_says(
    engines: Make, clock: Any, learn: str, rule: str
) -> None:
    """Rewards at random, several of them, before a decision is shown or after its window; decisions that are open."""
    engine, rng = (
        engines(features={"dim": 16}, window=60.0, learn=learn, rule=rule, default=0.25),
        np.random.default_rng(5),
    )
    for k in range(400):
        clock.now += float(rng.exponential(0.5))
        ask(engine, f"e{k}", {"hour": int(rng.integers(24)), "x": float(rng.normal())}, deferred=bool(k % 3 == 0))
        for _ in range(2):
            with contextlib.suppress(Conflict):  # closed already
                engine.reward("shop", f"e{rng.integers(max(0, k - 150), k + 1)}", round(float(rng.random()), 3))
        if k % 2:
            engine.activate("shop", f"e{rng.integers(k + 1)}")
        if k == 300:  # whose windows are over later is not journaled
            engine.expire()
    journal = engine.open_journal()
    upto, now = journal.last()[0] + 1, engine.now()
    for agent in ("LinUCB", "SquareCB", "LinThompson"):
        creation = Creation(agent={"class": agent}, features={"dim": 16}, settings=Settings(learn=learn))
        one, other = build_model(creation), build_model(creation)
        train(one, journal, "shop", upto, now)
        trained_plainly(other, journal, upto, now)
        assert one.lessons > 100
        assert state(one) == state(other), agent
    journal.connection.close()


def test_open_decisions_take_little_memory(tmp_path: Path) -> None:
    """Each was kept whole until its outcome, at 4 kB: the windows of 600 s at 400 decisions per second a gigabyte."""
    journal, n = Journal(SQLite(tmp_path / "journal.db").connect()), 4_000
    journal.append([[Write("shop", "", Creation(features={"dim": 16}))]], 1_000_000)
    context = msgspec.Raw(b'{"hour":9,"text":"%s"}' % (b"w " * 400))
    arms = [msgspec.Raw(b'{"id":"a%d","features":{"x":%d}}' % (k, k)) for k in range(5)]
    made = [Decision(context, arms, [0.2] * 5, k % 5, 0, 600_000, 0.0) for k in range(n)]
    for start in range(0, n, 500):
        journal.append([[Write("shop", f"e{k}", made[k])] for k in range(start, start + 500)], 1_000_000)
    journal.append([[Write("shop", f"e{k}", Reward(1.0))] for k in range(0, n, 100)], 1_010_000)
    journal.append([[Write("shop", f"e{k}", Expiry(early=True))] for k in range(1, n, 100)], 1_010_000)
    model = build_model(Creation(features={"dim": 16}))
    tracemalloc.start()
    train(model, journal, "shop", journal.last()[0] + 1, now=1_010_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    journal.connection.close()
    assert model.lessons == n // 100 * 2
    assert peak < 600 * n, f"{peak / n:.0f} bytes for each open decision"
