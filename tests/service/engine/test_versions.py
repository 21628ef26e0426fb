"""Named versions of a model: beside the leading one, with a share of the decisions, promoted and rolled back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.core import saving
from armwise.features.encoding.arms import ArmColumns, read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.engine import Engine
from armwise.service.engine.learning import fold as fold_module
from armwise.service.engine.learning import training
from armwise.service.engine.requests.draw import answer
from armwise.service.engine.rollout import add_version, promote, remove_version, roll_back, share_version, versions
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Conflict, Unknown
from armwise.service.journal.events import Change, Creation, Decision
from armwise.service.journal.journal import Journal
from armwise.service.log.compact import compact
from armwise.service.log.verify import verify
from armwise.service.model.model import DrawRequest
from armwise.service.web.page.watch import Watch
from tests.service.serving import ARMS, Clock, ask, replayed, settled, state

Make = Callable[..., Engine]
BOLD = Creation(
    agent={"class": "Explore", "epsilon": 0.5, "agent": {"class": "LinUCB", "alpha": 0.5, "lam": 2.0}}, seed=4
)


def played(engine: Engine, n: int, start: int = 0, pays: str = "salad") -> None:
    """Decisions and their rewards, ten in a commit."""
    for first in range(start, start + n, 10):
        ids = [f"e{k}" for k in range(first, min(first + 10, start + n))]
        asked = [engine.prepare("shop", b'{"hour": %d}' % (int(id[1:]) % 24), ARMS, id=id) for id in ids]
        chosen = [answer(written, write).arm for write, written in zip(asked, engine.writer.write(asked))]
        engine.writer.write([engine.prepare_reward("shop", id, float(arm == pays)) for id, arm in zip(ids, chosen)])
        engine.wait_learnt()


def decisions(engine: Engine) -> list[Decision]:
    return [row.event for row in engine.open_journal().events() if isinstance(row.event, Decision)]


def sound(engine: Engine) -> None:
    """The models, versions and comparisons included, are what the journal says."""
    assert state(replayed(engine)["shop"]) == settled(engine)
    engine.snapshot()
    assert verify(engine.open_journal()).problems == []


def test_a_decision_is_drawn_from_the_whole_mixture(engines: Make) -> None:
    engine = engines()
    played(engine, 30)
    add_version(engine, "shop", "bold", BOLD, share=0.4)
    leader = engine.models["shop"]
    assert leader.versions["bold"].model.lessons == 30  # trained before it decides
    it = ask(engine, "mixed", {"hour": 9})
    made = decisions(engine)[-1]
    [alone] = [drawn.p for drawn in leader.decide([DrawRequest(b'{"hour": 9}', _arms(), 0.5)])]
    bold = leader.versions["bold"].model
    [other] = [drawn.p for drawn in bold.decide([DrawRequest(b'{"hour": 9}', _arms(), 0.5)])]
    assert made.p == pytest.approx((0.6 * alone + 0.4 * other).tolist())
    assert it.probability == made.p[made.arm]
    assert (made.among["v1"].share, made.among["v1"].p) == (0.6, alone[made.arm])
    assert made.among["bold"].p == other[made.arm]
    assert made.among["bold"].weight <= 1.0 / 0.4
    played(engine, 30, start=30)
    sound(engine)


def compared(engine: Engine) -> list[dict[str, Any]]:
    """The versions as the page and the API show them."""
    watch = Watch(engine, "shop")
    try:
        return watch.versions()
    finally:
        watch.close()


def _arms() -> ArmColumns:
    return read_arms(ARMS)


def test_a_shadow_is_asked_and_changes_nothing(engines: Make, tmp_path: Path) -> None:
    engine = engines()
    played(engine, 20)
    before = [made.p for made in decisions(engine)]
    add_version(engine, "shop", "shadow", BOLD)
    leader = engine.models["shop"]
    [alone] = [drawn.p for drawn in leader.decide([DrawRequest(b'{"hour": 9}', _arms(), 0.5)])]
    ask(engine, "one", {"hour": 9})
    made = decisions(engine)[-1]
    assert made.p == alone.tolist()
    assert made.among["shadow"].share == 0.0
    assert 0.0 < made.among["shadow"].p < 1.0
    engine.reward("shop", "one", 1.0)
    engine.wait_learnt()
    assert len(before) == 20
    assert compared(engine)[1]["uplift"]["n"] == 1
    sound(engine)


def test_the_better_version_is_found_to_be_better(engines: Make) -> None:
    """A version that decides at random beside one that does not: the interval of its uplift lies below zero."""
    engine = engines()
    played(engine, 60)
    blind = Creation(agent={"class": "Explore", "epsilon": 1.0, "agent": {"class": "LinUCB", "alpha": 0.5}})
    add_version(engine, "shop", "blind", blind, share=0.5)
    played(engine, 400, start=60)
    engine.wait_learnt()
    found = compared(engine)
    assert [one["name"] for one in found] == ["v1", "blind"]
    assert found[1]["uplift"]["n"] == 400
    assert found[1]["uplift"]["high"] < 0.0
    assert found[1]["uplift"]["low"] < -0.5 < found[1]["uplift"]["high"]


def test_promotion_and_roll_back_keep_what_was_learnt(engines: Make) -> None:
    engine = engines()
    played(engine, 20)
    ask(engine, "open", {"hour": 3})
    add_version(engine, "shop", "bold", BOLD)
    played(engine, 20, start=20)
    with pytest.raises(Conflict, match="no version that led before"):
        roll_back(engine, "shop")
    promote(engine, "shop", "bold")
    leader = engine.models["shop"]
    assert (leader.name, leader.previous, list(leader.versions)) == ("bold", "v1", ["v1"])
    assert (leader.lessons, leader.settings.window) == (40, 600.0)
    engine.reward("shop", "open", 1.0)  # made by the one that led then
    played(engine, 20, start=40)
    sound(engine)
    engine.stop()
    again = engines()  # the file says what it said: the promotion stays
    assert again.models["shop"].name == "bold"
    assert roll_back(again, "shop") == "v1"
    assert again.models["shop"].lessons == 61
    assert again.models["shop"].previous == "bold"
    again.configure("shop", Change(window=60.0))
    roll_back(again, "shop")
    assert again.models["shop"].settings.window == 60.0  # settings are the application's
    remove_version(again, "shop", "v1")
    assert [one["name"] for one in versions(again, "shop")] == ["bold"]
    sound(again)


def test_what_is_promoted_never_takes_what_another_saw(engines: Make) -> None:
    """Another dim: a decision that the old leader prepared is committed after the promotion."""
    engine = engines()
    played(engine, 10)
    add_version(engine, "shop", "wide", Creation(features={"dim": 64}))
    write = engine.prepare("shop", b'{"hour": 4}', [b'"a"', b'"b"'], id="between", keep=True)
    promote(engine, "shop", "wide")
    engine.writer.write([write])
    engine.reward("shop", "between", 1.0)
    sound(engine)


def test_agents_with_notes_take_part_with_their_share(engines: Make) -> None:
    """Their draw is their own, so it is drawn which version decides; the probability is still the mixture's."""
    engine = engines(agent={"class": "EpsilonGreedy", "n_arms": 3}, arms=["pasta", "salad", "soup"])
    noting = Creation(
        agent={
            "class": "Corral",
            "agents": [{"class": "UCB1", "n_arms": 3}, {"class": "Exp3", "n_arms": 3}],
            "horizon": 500,
        },
        arms=["pasta", "salad", "soup"],
    )
    add_version(engine, "shop", "noting", noting, share=0.5)
    played(engine, 40)
    made = decisions(engine)
    by = [one.drawn_by for one in made]
    assert set(by) == {"v1", "noting"}
    for one in made:
        assert sum(one.p) == pytest.approx(1.0)
        assert (one.note is not None) == (one.drawn_by == "noting")
        assert one.p[one.arm] == pytest.approx(sum(share.share * share.p for share in one.among.values()))
    engine.wait_learnt()
    assert engine.models["shop"].refused == 0
    sound(engine)


def test_a_version_that_cannot_answer_leaves_its_share_to_the_leading_one(engines: Make) -> None:
    engine = engines()
    add_version(engine, "shop", "two", Creation(agent={"class": "UCB1", "n_arms": 2}), share=0.9)
    it = ask(engine, "e1")  # between three
    made = decisions(engine)[-1]
    assert list(made.among) == ["v1"]
    assert made.among["v1"].share == 1.0
    assert it.probability == made.p[made.arm]
    engine.reward("shop", "e1", 1.0)
    engine.wait_learnt()
    assert compared(engine)[1]["unanswered"] == 1
    sound(engine)


def test_what_cannot_be_is_refused_and_journals_nothing(engines: Make) -> None:
    engine = engines()
    add_version(engine, "shop", "bold", BOLD, share=0.4)
    last = engine.open_journal().last()
    for name, share, error, match in [
        ("bold", 0.0, Conflict, "already"),
        ("v7", 0.0, InvalidInput, "v and a number"),
        ("more", 0.7, InvalidInput, r"share must lie in \[0, 0.6\]"),
        ("more", float("nan"), InvalidInput, "share must lie"),
    ]:
        with pytest.raises(error, match=match):
            add_version(engine, "shop", name, BOLD, share=share)
    with pytest.raises(InvalidInput, match="nothing called"):
        add_version(engine, "shop", "odd", Creation(agent={"class": "Nonsense"}))
    with pytest.raises(InvalidInput, match="arms and rewards"):
        add_version(engine, "shop", "odd", Creation(rewards=[0.0, 5.0]))
    with pytest.raises(Unknown, match="there are v1, bold"):
        promote(engine, "shop", "nobody")
    with pytest.raises(Conflict, match="leads"):
        remove_version(engine, "shop", "v1")
    assert engine.open_journal().last() == last


def test_two_changes_at_once_are_a_conflict(engines: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """As two processes on PostgreSQL: the second made its change after an event that another came after."""
    engine = engines()
    add_version(engine, "shop", "bold", BOLD)
    stale = engine.models["shop"].copy()
    share_version(engine, "shop", "bold", 0.2)
    monkeypatch.setattr(engine, "model", lambda app: stale)
    with pytest.raises(Conflict):
        share_version(engine, "shop", "bold", 0.3)


def test_versions_survive_import_reset_and_compaction(engines: Make, clock: Clock, tmp_path: Path) -> None:
    engine = engines()
    add_version(engine, "shop", "bold", BOLD, share=0.25)
    played(engine, 30)
    data = engine.export("shop")
    assert saving.loads(data).versions == {}
    engine.replace("shop", data)
    assert engine.models["shop"].versions["bold"].share == 0.25
    assert compared(engine)[1]["uplift"]["n"] == 0  # compared with the model that leads now
    engine.reset("shop")
    played(engine, 10, start=30)
    before = settled(engine)
    engine.stop()
    clock.now += 1000.0
    journal = Journal(SQLite(tmp_path / "journal.db").connect())
    assert compact(journal, int((clock.now - 500.0) * 1000)) > 0
    assert verify(journal).problems == []
    journal.connection.close()
    again = engines()
    assert settled(again) == before
    assert [one["share"] for one in versions(again, "shop")] == [0.75, 0.25]


def test_a_version_is_not_judged_on_the_decisions_that_were_clicked(engines: Make, clock: Clock) -> None:
    """5 % are clicked, at once; nobody says that the others were not. On the clicked ones alone a version that plays
    other arms than the leading one had an uplift of -0.25."""
    engine = engines(window=86400.0)
    add_version(engine, "shop", "bold", BOLD, share=0.5)
    for k in range(400):
        clock.now += 10.0
        ask(engine, f"e{k}")
        if k % 20 == 7:
            engine.reward("shop", f"e{k}", 1.0)
    [_, bold] = compared(engine)
    assert (bold["uplift"]["n"], bold["uplift"]["horizon"]) == (200, 2000.0)
    assert abs(bold["uplift"]["value"]) < 0.1


def test_a_young_version_is_judged_within_its_own_age(engines: Make, clock: Clock) -> None:
    """Beside a model whose windows of a week have closed, a new version had no number for a week."""
    engine = engines(window=7 * 86400.0)
    for k in range(400):
        ask(engine, f"old{k}", {"hour": 9})
    clock.now += 8 * 86400.0
    add_version(engine, "shop", "bold", BOLD, share=0.5)
    for k in range(100):
        ask(engine, f"new{k}", {"hour": 9})
        if k % 10 == 0:
            engine.reward("shop", f"new{k}", 1.0)
        clock.now += 30.0
    [_, bold] = compared(engine)
    assert bold["uplift"]["n"] == 50 and bold["uplift"]["horizon"] == pytest.approx(1500.0, rel=0.02)
    assert -1.0 <= bold["uplift"]["low"] <= bold["uplift"]["value"] <= bold["uplift"]["high"] <= 1.0


def test_a_database_that_fails_while_a_version_is_trained_withholds_nothing(
    engines: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the application was withheld until a restart: its events were taken for damaged."""
    engine = engines()
    ask(engine, "e1")
    real, failed = training.train, list[int]()

    def train(*args: Any) -> None:
        if len(failed) < 2:
            failed.append(1)
            raise sqlite3.OperationalError("disk I/O error")
        real(*args)

    monkeypatch.setattr(fold_module, "train", train)
    add_version(engine, "shop", "bold", BOLD)
    assert len(failed) == 2 and engine.broken == {}
    assert [one["name"] for one in versions(engine, "shop")][1:] == ["bold"]
    assert state(engine.learner.masters["shop"]) == state(replayed(engine)["shop"])


COUNTS = Creation(agent={"class": "UCB1", "n_arms": 3}, arms=["pasta", "salad", "soup"])


def seen(engine: Engine, name: str) -> tuple[int, int, int]:
    """What a version has learnt, what it refused, and what it keeps for later."""
    engine.wait_learnt()
    model = engine.models["shop"]
    model = model if model.name == name else model.versions[name].model
    return model.lessons, model.refused, len(model.waiting)


def test_a_version_that_cannot_revise_learns_a_click_when_its_window_closes(engines: Make, clock: Clock) -> None:
    """Beside a leading version that corrects what it assumed it learnt clicks when they came, and their lack an hour
    later: of an arm's hundred decisions with five clicks it knew five rewards of 1."""
    engine = engines(window=3600.0)
    add_version(engine, "shop", "counts", COUNTS, share=0.5)
    for k in range(100):
        clock.now += 10.0
        ask(engine, f"e{k}")
        if k % 20 == 7:
            engine.reward("shop", f"e{k}", 1.0)
    assert seen(engine, "counts") == (0, 0, 5)
    final = engine.prepare_reward("shop", "e0", 0.0, final=True)  # nothing more will come: no reason to wait
    engine.writer.write([final])
    assert seen(engine, "counts") == (1, 0, 5)
    sound(engine)
    clock.now += 3600.0 - 500.0  # half of the windows are over
    engine.expire()
    ask(engine, "next")
    lessons, refused, waiting = seen(engine, "counts")
    assert 48 <= lessons <= 52 and refused == 0 and waiting == 2
    sound(engine)
    clock.now += 3600.0
    engine.expire()
    ask(engine, "last")
    assert seen(engine, "counts") == (100, 0, 0)
    agent = engine.models["shop"].versions["counts"].model.agent
    assert sum(agent._totals) == pytest.approx(5.0)
    sound(engine)


def test_what_a_version_keeps_for_later_survives_its_promotion(engines: Make, clock: Clock) -> None:
    """An outcome of a decision that another version corrected was refused by the version that leads now."""
    engine = engines(window=3600.0)
    add_version(engine, "shop", "counts", COUNTS, share=0.5)
    for k in range(20):
        ask(engine, f"e{k}")
    engine.reward("shop", "e1", 1.0)
    promote(engine, "shop", "counts")
    engine.reward("shop", "e2", 1.0)
    assert seen(engine, "counts") == (0, 0, 2)
    engine.stop()
    again = engines()  # what is kept is in the snapshot
    assert len(again.models["shop"].waiting) == 2
    clock.now += 3601.0
    again.expire()
    ask(again, "next")
    assert seen(again, "counts") == (20, 0, 0)
    sound(again)
