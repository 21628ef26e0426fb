"""The learner without its thread: what waits for it, who leads, and the models it stores."""

from __future__ import annotations

import logging
from collections import OrderedDict

import pytest

from armwise.service.engine.commit_counts import CommitCounts
from armwise.service.engine.learning.fold import MAX_RECENT, drop_oldest, fold, give_up, restore
from armwise.service.engine.learning.learner import Learner
from armwise.service.engine.learning.training import train
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation, Reward, Row
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write
from armwise.service.model.build import build_model


def test_an_event_that_is_not_learnt_in_time_is_named() -> None:
    learner = Learner(None, None, None)  # type: ignore[arg-type]
    assert not learner.alive
    with pytest.raises(TimeoutError, match=r"event 1 is not learnt after 0\.01 s; at 0"):
        learner.wait(1, timeout=0.01)


def test_an_application_is_withheld_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    learner = Learner(None, None, None)  # type: ignore[arg-type]
    learner.withhold("shop", "it does not decide")
    assert learner.broken == {"shop": "it does not decide"}
    models, broken = {"shop": build_model(Creation())}, dict[str, str]()
    with caplog.at_level(logging.CRITICAL):
        give_up(models, broken, "shop", "event 3 is damaged")
    assert (models, broken) == ({}, {"shop": "event 3 is damaged"})


def test_a_new_learner_leads_and_has_nothing_to_store() -> None:
    store, saved = SQLite.temporary(), list[object]()
    learner = Learner(store, lambda: Journal(store.connect()), save=lambda *given: saved.append(given))
    learner.recover()
    learner.save()
    store.close()
    assert learner.leader and saved == [([], 0, [])]


def test_an_empty_journal_trains_and_restores_nothing() -> None:
    model, journal = build_model(Creation()), Journal(SQLite(":memory:").connect())
    train(model, journal, "shop", 10, now=0)
    assert model.lessons == 0 and restore(journal) == ({}, 0)


def test_the_oldest_decisions_are_forgotten_as_others_come() -> None:
    """Not thousands at once: freeing them held the GIL for 7 ms, and everybody waited."""
    rows = [Row(seq, 0, "shop", "decision", "", b"", seen=object()) for seq in range(MAX_RECENT + 2)]
    recent = OrderedDict((row.seq, row) for row in rows)
    drop_oldest(recent)
    assert list(recent) == list(range(2, MAX_RECENT + 2))
    assert [row.seen is None for row in rows[:3]] == [True, True, False]


def test_a_creation_makes_a_model_at_its_event() -> None:
    models = {}  # type: ignore[var-annotated]
    fold(models, [Row(1, 0, "shop", "create", "", b"{}")], None)
    assert models["shop"].version == 1


def test_a_reward_of_a_decision_not_at_hand_counts_for_an_unknown_arm() -> None:
    counts = CommitCounts()
    row = Row(2, 0, "shop", "reward", "e1", b"", Reward(1.0, decision=1))
    counts.take([(row, Write("shop", "e1", Reward(1.0)))])
    assert counts.rewards == {("shop", "(unknown)"): 1}
