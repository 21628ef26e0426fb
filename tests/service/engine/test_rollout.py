"""A changed configuration: settings keep what was learnt, another agent is trained before it takes over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Change, Creation, Settings
from armwise.service.journal.journal import Journal
from armwise.service.log.compact import compact
from armwise.service.log.verify import verify
from tests.service.serving import ARMS, Clock, ask, replayed, settled, state

Make = Callable[..., Engine]


def taught(engine: Engine, n: int = 50, start: int = 0) -> None:
    """Salad pays, the others do not."""
    for k in range(start, start + n):
        it = ask(engine, f"e{k}", {"hour": k % 24})
        engine.reward("shop", f"e{k}", float(it.arm == "salad"))


def test_changed_settings_keep_what_was_learnt(engines: Make) -> None:
    """A window of 60 seconds in the file, after a full restart, began the model anew."""
    engine = engines()
    taught(engine)
    before = settled(engine)
    engine.stop()
    engine = engines(window=60.0, rule="sum")
    model = engine.models["shop"]
    assert (model.lessons, model.settings.window, model.settings.rule) == (50, 60.0, "sum")
    assert before != settled(engine)  # the settings are part of it
    assert state(replayed(engine)["shop"]) == settled(engine)
    engine.configure("shop", Change(window=5.0))  # by request
    engine.stop()
    again = engines(window=60.0, rule="sum")  # the file says what it said: the request stays
    assert again.models["shop"].settings.window == 5.0
    last = again.open_journal().last()
    again.stop()
    assert engines(window=60.0, rule="sum").open_journal().last() == last


@pytest.mark.parametrize(
    "other",
    [{"features": {"dim": 64}}, {"agent": {"class": "LinThompson", "draws": 20}}, {"seed": 5}],
    ids=["dim", "agent", "seed"],
)
def test_another_agent_is_trained_on_the_journal_before_it_takes_over(engines: Make, other: dict[str, Any]) -> None:
    engine = engines()
    taught(engine, 150)
    engine.wait_learnt()
    engine.stop()
    engine = engines(**other)
    model = engine.models["shop"]
    assert (model.lessons, model.refused) == (150, 0)
    best = dict(ask(engine, "after", {"hour": 9}).probabilities)
    assert max(best, key=lambda arm: best[arm]) == "salad"
    assert state(replayed(engine)["shop"]) == settled(engine)
    assert verify(engine.open_journal()).problems == []


def test_a_decision_that_was_open_is_learnt_once(engines: Make) -> None:
    engine = engines()
    taught(engine, 10)
    ask(engine, "open")
    engine.stop()
    engine = engines(seed=5)
    assert (engine.models["shop"].agent.t, engine.models["shop"].lessons) == (12, 10)  # its default, until it is known
    engine.reward("shop", "open", 1.0)
    engine.wait_learnt()
    assert (engine.models["shop"].agent.t, engine.models["shop"].lessons) == (12, 11)
    assert state(replayed(engine)["shop"]) == settled(engine)


def test_what_is_begun_anew_by_request_is_not_trained(engines: Make) -> None:
    engine = engines()
    taught(engine, 10)
    engine.reset("shop")
    assert engine.models["shop"].lessons == 0
    assert state(replayed(engine)["shop"]) == settled(engine)


def test_compaction_never_splits_a_model_from_what_it_was_trained_on(
    engines: Make, clock: Clock, tmp_path: Path
) -> None:
    engine = engines()
    taught(engine, 20)
    engine.stop()
    clock.now += 2000.0
    engine = engines(seed=5)
    taught(engine, 20, start=20)
    before = settled(engine)
    engine.stop()
    journal = Journal(SQLite(tmp_path / "journal.db").connect())
    assert compact(journal, int((clock.now - 500.0) * 1000)) > 0
    assert verify(journal).problems == []
    journal.connection.close()
    again = engines(seed=5)
    assert settled(again) == before


def test_applications_come_and_go_without_a_restart(engines: Make) -> None:
    engine = engines()
    with pytest.raises(InvalidInput, match="nothing called"):
        engine.apply({"shop": Creation(agent={"class": "Nonsense"})})
    kept = Application(seed=7).creation()
    by_request = Creation(seed=7, settings=Settings(by_request=True))
    engine.apply({"news": by_request}, only=False)
    assert engine.decide("news", b"{}", ARMS, id="n1").id == "n1"
    engine.apply({"shop": kept})  # as a file that is read again says; what was made by request stays
    assert sorted(engine.models) == ["news", "shop"]
    engine.stop()
    again = engines(seed=7)
    assert sorted(again.models) == ["news", "shop"]
    assert again.creation("news").seed == 7
    again.apply({"other": Creation()})
    assert sorted(again.models) == ["news", "other"]


def test_two_processes_that_change_it_at_once_agree(tmp_path: Path) -> None:
    """As two on PostgreSQL do: the second finds that the first was quicker, looks again, and has nothing to do."""
    engine = Engine(SQLite(tmp_path / "journal.db"), {"shop": Creation()}, publish_every=0.0)
    engine.start()
    seen = engine.configured
    stale = [seen("shop")]
    new = {"shop": Creation(settings=Settings(window=60.0))}
    engine.apply(new)
    engine.configured = lambda app: stale.pop() if stale else seen(app)  # type: ignore[method-assign]
    other = {"shop": Creation(settings=Settings(window=30.0))}
    engine.apply(other)
    changes = [row for row in engine.open_journal().events() if row.kind == "configure"]
    assert [row.event for row in changes] == [Change(window=60.0), Change(window=30.0)]
    assert engine.models["shop"].settings.window == 30.0
    engine.stop()
