"""The engine's promises: what is learnt, once, and that the models are a function of the journal."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from armwise.core import saving
from armwise.core.agent import Choice
from armwise.features.encoding.arms import read_arm, read_arms
from armwise.features.encoding.tokens import InvalidInput, RequestTokens, part
from armwise.native.choice import draw
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Conflict, Unknown
from armwise.service.journal.events import Change, Creation, Decision, Settings
from armwise.service.journal.journal import Journal
from armwise.service.journal.rules import Status
from armwise.service.log.export_journal import pieces
from armwise.service.model.build import build_model
from armwise.service.model.model import DrawRequest
from armwise.service.web.v1.decisions import decision_json
from tests.service.serving import ARMS, ask, replayed, settled, state

Make = Callable[..., Engine]


def lessons(engine: Engine) -> list[tuple[str, float]]:
    """(event id, reward) of everything that was taught, in journal order."""
    rows = list(engine.open_journal().events())
    ids = {row.seq: row.id for row in rows}
    return [(ids[found[0]], found[1]) for row in rows if (found := row.lesson) is not None]


# ---------------------------------------------------------------------- what is learnt


def test_the_earliest_reward_is_learnt_once(engines: Make) -> None:
    engine = engines()
    ask(engine, "e1")
    assert engine.reward("shop", "e1", 0.7).status.closed  # type: ignore[union-attr]
    engine.reward("shop", "e1", 0.2)
    assert lessons(engine) == [("e1", 0.7)]


def test_sums_are_learnt_when_the_window_closes(engines: Make, clock: Any) -> None:
    engine = engines(rule="sum", window=10.0)
    ask(engine, "e1")
    for value in (0.5, 0.25, -1.0):
        engine.reward("shop", "e1", value)
    assert lessons(engine) == []
    clock.now += 10.5
    engine.expire()
    assert lessons(engine) == [("e1", -0.25)]


def test_a_sum_beyond_what_the_agent_takes_is_learnt_as_its_end(engines: Make, clock: Any) -> None:
    engine = engines(agent={"class": "UCB1", "n_arms": 3}, rule="sum", window=10.0)
    ask(engine, "e1")
    for _ in range(2):
        engine.reward("shop", "e1", 1.0)
    with pytest.raises(InvalidInput, match=r"1\.5"):
        engine.reward("shop", "e1", 1.5)  # a single one beyond is still refused
    clock.now += 10.5
    engine.expire()
    assert lessons(engine) == [("e1", 2.0)]  # the journal keeps what was earned
    engine.wait_learnt()
    master = engine.learner.masters["shop"]
    assert (master.lessons, master.refused) == (1, 0)
    once = build_model(Creation(agent={"class": "UCB1", "n_arms": 3}))
    once.learn(engine.find("shop", "e1")[1], 1.0)
    np.testing.assert_array_equal(master.agent.probabilities(None), once.agent.probabilities(None))


def test_huge_rewards_are_refused_and_sums_stay_finite(engines: Make, clock: Any) -> None:
    engine = engines(rule="sum", window=10.0)
    ask(engine, "e1")
    for value in (1.7e308, -1.1e150):
        with pytest.raises(InvalidInput, match="1e\\+150"):
            engine.reward("shop", "e1", value)
    with pytest.raises(InvalidInput, match="1e\\+150"):
        engine.configure("shop", Change(default=1e200))
    for _ in range(2):
        engine.reward("shop", "e1", 1e150)
    clock.now += 10.5
    engine.expire()
    assert lessons(engine) == [("e1", 1e150)]
    engine.wait_learnt()
    assert engine.models["shop"].refused == 0
    again = Status("shop", "e1", 1, 1000, "sum", 0.0, True)
    for _ in range(2):
        again.reward(1.7e308, time=1)  # as a journal of before has them
    assert again.expire().lesson == 1e150


def test_without_a_reward_the_default_is_learnt(engines: Make, clock: Any) -> None:
    engine = engines(window=10.0, default=-0.5)
    ask(engine, "e1")
    ask(engine, "e2")
    engine.reward("shop", "e2", 1.0)
    clock.now += 9.9
    engine.expire()
    assert lessons(engine) == [("e2", 1.0)]
    clock.now += 0.2
    engine.expire()
    engine.expire()
    assert lessons(engine) == [("e2", 1.0), ("e1", -0.5)]


def test_a_late_reward_is_kept_and_not_learnt(engines: Make, clock: Any) -> None:
    engine = engines(window=10.0)
    ask(engine, "e1")
    clock.now += 11.0
    written = engine.reward("shop", "e1", 1.0)  # before the expiry is journaled
    assert msgspec.json.decode(written.row.body)["late"] is True
    engine.expire()
    engine.reward("shop", "e1", 1.0)  # and after it
    assert lessons(engine) == [("e1", 0.0)]
    assert [row.kind for row in engine.open_journal().events()].count("reward") == 2


def test_a_deferred_decision_is_learnt_only_if_activated(engines: Make, clock: Any) -> None:
    engine = engines(window=10.0, default=-1.0)
    for id in ("never", "shown", "rewarded first", "too late"):
        ask(engine, id, deferred=True)
    engine.reward("shop", "rewarded first", 0.5)
    engine.reward("shop", "never", 0.9)
    assert lessons(engine) == []
    engine.activate("shop", "rewarded first")
    engine.activate("shop", "rewarded first")  # twice is once
    engine.activate("shop", "shown")
    again = [engine.activate("shop", id) for id in ("rewarded first", "shown")]  # closed or not: neither is late
    clock.now += 11.0
    again += [engine.activate("shop", id) for id in ("rewarded first", "shown")]
    assert not any(msgspec.json.decode(written.row.body).get("late", False) for written in again)
    late = engine.activate("shop", "too late")
    assert msgspec.json.decode(late.row.body)["late"]
    engine.expire()
    assert lessons(engine) == [("rewarded first", 0.5), ("shown", -1.0)]


def test_the_window_starts_at_the_decision_also_for_deferred_ones(engines: Make, clock: Any) -> None:
    engine = engines(window=10.0)
    ask(engine, "e1", deferred=True)
    clock.now += 9.0
    engine.activate("shop", "e1")
    clock.now += 2.0
    assert engine.reward("shop", "e1", 1.0).row.body.find(b"late") > 0


def test_an_apprentice_answers_the_first_arm_and_learns_from_it(engines: Make) -> None:
    engine = engines(apprentice=True)
    for k in range(30):
        answer = ask(engine, f"e{k}", excluded=["pasta"])
        assert (answer.arm, answer.probability) == ("salad", 1.0)
        assert dict(answer.probabilities) == {"pasta": 0.0, "salad": 1.0, "soup": 0.0}
        engine.reward("shop", f"e{k}", 1.0)
    engine.wait_learnt()
    engine.configure("shop", Change(apprentice=False))
    best = dict(ask(engine, "after").probabilities)
    assert best["salad"] > 0.9  # it has learnt that the arm pays


def test_a_decision_and_the_log_tell_the_same_reward(engines: Make, clock: Any) -> None:
    engine = engines(window=10.0, default=-0.5)
    for id in ("none", "some"):
        ask(engine, id)
    for id in ("never", "never, rewarded"):
        ask(engine, id, deferred=True)
    engine.reward("shop", "some", 1.0)
    engine.reward("shop", "never, rewarded", 1.0)
    clock.now += 11.0
    engine.expire()
    told = {
        id: decision_json(*engine.find("shop", id))["reward"] for id in ("none", "some", "never", "never, rewarded")
    }
    assert told == {"none": -0.5, "some": 1.0, "never": None, "never, rewarded": None}
    logged = [json.loads(line) for line in b"".join(pieces(engine.open_journal(), "shop")).splitlines()]
    assert told == {line["id"]: line["reward"] for line in logged}


def test_settings_change_only_what_comes_after(engines: Make, clock: Any) -> None:
    engine = engines(window=10.0, default=0.0)
    ask(engine, "before")
    engine.configure("shop", Change(window=100.0, default=1.0, rule="sum", epsilon=1.0))
    answer = ask(engine, "after")
    assert [p for _, p in answer.probabilities] == pytest.approx([1 / 3] * 3)
    clock.now += 11.0
    engine.expire()
    assert lessons(engine) == [("before", 0.0)]
    clock.now += 100.0
    engine.expire()
    assert lessons(engine) == [("before", 0.0), ("after", 1.0)]


# ---------------------------------------------------------------------- exactness


def test_the_arm_is_drawn_with_exactly_the_probability_that_is_answered(engines: Make) -> None:
    """Each arm's share must be its answered probability: a wrong draw would be off by many deviations."""
    engine = engines(agent={"class": "Explore", "epsilon": 0.6, "agent": {"class": "LinUCB"}})
    ask(engine, "first")
    engine.reward("shop", "first", 1.0)
    engine.wait_learnt()
    n, wins, expected, variance = 600, np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(n):
        answer = ask(engine, f"e{k}")
        p = np.array([q for _, q in answer.probabilities])
        names = [name for name, _ in answer.probabilities]
        assert answer.probability == p[names.index(answer.arm)]
        assert names[draw(p, engine.uniform("shop", f"e{k}"))] == answer.arm
        wins[names.index(answer.arm)] += 1
        expected += p
        variance += p * (1 - p)
    assert np.all(np.abs(wins - expected) < 4.0 * np.sqrt(variance))


def test_learning_uses_exactly_what_was_seen_when_deciding(engines: Make) -> None:
    """The features that a lesson is learnt with are those of the decision, though scales have moved since."""
    engine = engines(agent={"class": "LinUCB", "alpha": 0.3}, features={"dim": 16}, learn="arrival")
    model = engine.models["shop"]
    reference = build_model(Creation(agent={"class": "LinUCB", "alpha": 0.3}, features={"dim": 16}))
    rng = np.random.default_rng(5)
    seen, choices = {}, {}
    for k in range(40):
        context = json.dumps({"x": rng.normal(), "y": rng.normal() * 100.0}).encode()
        model = engine.models["shop"]
        [drawn] = model.decide([DrawRequest(context, read_arms(ARMS), engine.uniform("shop", f"e{k}"))])
        view = model.encoder.rows(_stack(context), drawn.seen.scaling)
        answer = engine.decide("shop", context, ARMS, id=f"e{k}")
        seen[k], choices[k] = view, Choice(drawn.arm, answer.probability)
        engine.wait_learnt()
    order = rng.permutation(40)
    for k in order:
        engine.reward("shop", f"e{k}", float(np.sin(k)))
        reference.agent.learn(seen[k], choices[k], float(np.sin(k)))
    engine.wait_learnt()
    assert saving.dumps(engine.learner.masters["shop"].agent) != saving.dumps(model.agent)
    ours, theirs = engine.learner.masters["shop"].agent, reference.agent
    np.testing.assert_array_equal(ours.probabilities(view), theirs.probabilities(view))
    np.testing.assert_array_equal(ours._model.theta, theirs._model.theta)  # type: ignore[attr-defined]


def _stack(context: bytes) -> Any:
    arms = read_arms(ARMS)
    return RequestTokens(part(context, "c"), arms.tail)


def test_the_same_id_gets_the_same_answer_and_other_content_is_refused(engines: Make) -> None:
    engine = engines()
    first = ask(engine, "e1", {"hour": 9, "day": 1})
    engine.reward("shop", "e1", 1.0)
    engine.wait_learnt()
    again = engine.decide("shop", b'{ "day":1, "hour" :9}', ARMS, id="e1")  # the same content, written otherwise
    assert (again.arm, again.probabilities, again.version) == (first.arm, first.probabilities, first.version)
    for context, arms, options in (
        (b'{"hour": 9, "day": 2}', ARMS, {}),
        (b'{"hour": 9, "day": true}', ARMS, {}),
        (b'{"hour": 9, "day": 1}', ARMS[:2], {}),
        (b'{"hour": 9, "day": 1}', ARMS[::-1], {}),
        (b'{"hour": 9, "day": 1}', ARMS, {"deferred": True}),
        (b'{"hour": 9, "day": 1}', ARMS, {"excluded": ["soup"]}),
    ):
        with pytest.raises(Conflict):
            engine.decide("shop", context, arms, id="e1", **options)
    assert [row.kind for row in engine.open_journal().events()].count("decision") == 1


def test_an_idempotency_key_makes_a_retry_harmless(engines: Make) -> None:
    engine = engines(rule="sum")
    one = engine.decide("shop", b"{}", ARMS, request="r1")
    two = engine.decide("shop", b"{}", ARMS, request="r1")
    assert (one.id, one.arm) == (two.id, two.arm)
    engine.reward("shop", one.id, 0.5, request="r2")
    engine.reward("shop", one.id, 0.5, request="r2")
    assert engine.find("shop", one.id)[2].total == 0.5
    for wrong in (
        lambda: engine.decide("shop", b'{"a": 1}', ARMS, request="r1"),
        lambda: engine.reward("shop", one.id, 0.6, request="r2"),
        lambda: engine.reward("shop", one.id, 0.5, request="r1"),
        lambda: engine.decide("shop", b"{}", ARMS, request="r1", id="mine"),
    ):
        with pytest.raises(Conflict):
            wrong()


def test_two_applications_share_a_journal_and_nothing_else(tmp_path: Any) -> None:
    news = Creation(agent={"class": "UCB1", "n_arms": 3}, arms=["a", "b", "c"], settings=Settings(learn="arrival"))
    creations = {"shop": Creation(), "news": news}
    engine = Engine(SQLite(tmp_path / "journal.db"), creations)
    engine.start()
    engine.decide("shop", b"{}", ARMS, id="e1")
    engine.decide("news", b"{}", [b'"b"', b'"a"'], id="e1")
    engine.reward("news", "e1", 1.0)
    engine.wait_learnt()
    assert (engine.models["shop"].lessons, engine.models["news"].lessons) == (0, 1)
    with pytest.raises(Unknown):
        engine.reward("other", "e1", 1.0)
    engine.stop()


def test_concurrent_callers_with_one_id_get_one_answer(engines: Make) -> None:
    engine = engines(agent={"class": "Explore", "epsilon": 1.0, "agent": {"class": "LinUCB"}})
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ask(engine, "e1"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.arm for answer in answers}) == 1
    assert sum(not answer.again for answer in answers) == 1


# ---------------------------------------------------------------------- a function of the journal


def test_recovery_without_any_snapshot_and_with_one_agree(engines: Make, tmp_path: Any) -> None:
    engine = engines()
    for k in range(25):
        ask(engine, f"e{k}", {"x": k * 0.1})
        engine.reward("shop", f"e{k}", k / 25.0)
    engine.stop()
    store = SQLite(tmp_path / "journal.db")
    with_one = engines()
    expected = settled(with_one)
    with_one.stop()
    store.connect().execute("DELETE FROM snapshots")
    assert settled(engines()) == expected


def test_a_changed_configuration_begins_another_model_and_the_old_one_does_not(engines: Make) -> None:
    engine = engines()
    ask(engine, "e1")
    engine.reward("shop", "e1", 1.0)
    engine.stop()
    same = engines()
    assert same.models["shop"].lessons == 1
    same.stop()
    other = engines(agent={"class": "LinUCB", "alpha": 2.0})
    assert repr(other.models["shop"].agent).startswith("LinUCB(dim=128, alpha=2.0")
    assert other.models["shop"].lessons == 1  # it is trained on what was learnt before
    other.reward("shop", "e1", 0.5)  # a decision of before still takes its rewards
    assert state(replayed(other)["shop"]) == settled(other)


def test_export_import_and_reset_are_journaled(engines: Make) -> None:
    engine = engines()
    ask(engine, "e1")
    engine.reward("shop", "e1", 1.0)
    engine.wait_learnt()
    model = engine.export("shop")
    engine.reset("shop")
    assert engine.models["shop"].lessons == 0
    engine.replace("shop", model)
    assert engine.models["shop"].lessons == 1
    assert state(replayed(engine)["shop"]) == settled(engine)
    for wrong in (b"", model[:-1], saving.dumps(engine.models["shop"].agent)):
        with pytest.raises(InvalidInput):
            engine.replace("shop", wrong)


def test_clean_shutdown_leaves_nothing_to_fold(engines: Make, tmp_path: Any) -> None:
    engine = engines()
    for k in range(10):
        ask(engine, f"e{k}")
    engine.stop()
    journal = Journal(SQLite(tmp_path / "journal.db").connect())
    assert journal.snapshot("shop")[0] == journal.last()[0]  # type: ignore[index]


def test_only_one_process_serves_from_a_file(engines: Make, tmp_path: Any) -> None:
    engines()
    with pytest.raises(RuntimeError, match="is serving from this journal"):
        Engine(SQLite(tmp_path / "journal.db"), {}).start()


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda e: ask(e, ""), "1 to 256"),
        (lambda e: ask(e, "x" * 257), "1 to 256"),
        (lambda e: ask(e, "e", excluded=["tea"]), "'tea' is not one"),
        (lambda e: ask(e, "e", excluded=["pasta", "salad", "soup"]), "every arm"),
        (lambda e: e.decide("shop", b"[]]", ARMS), "not JSON"),
        (lambda e: e.decide("shop", b"{}", []), "empty"),
        (lambda e: e.reward("shop", "e", float("nan")), "finite"),
        (lambda e: e.configure("shop", Change(window=-1.0)), "window"),
        (lambda e: e.configure("shop", Change(rule="median")), "rule"),
        (lambda e: e.configure("shop", Change(epsilon=2.0)), "epsilon"),
    ],
)
def test_bad_input_is_refused_and_journals_nothing(engines: Make, call: Callable[[Engine], Any], why: str) -> None:
    engine = engines()
    last = engine.open_journal().last()
    with pytest.raises(InvalidInput, match=why):
        call(engine)
    assert engine.open_journal().last() == last


@pytest.mark.parametrize(
    "application",
    [
        {"agent": {"class": "NoSuch"}},
        {"agent": {"class": "LinUCB", "colour": 1}},
        {"agent": {"class": "LinUCB", "dim": 3}},
        {"agent": {"class": "load"}},
        {"agent": {"class": "Exp3", "n_arms": 3}, "default": -1.0},
        {"agent": {"class": "Exp3", "n_arms": 3}, "arms": ["a"]},
        {"features": {"dim": 0}},
    ],
)
def test_a_bad_application_is_refused_before_it_is_journaled(engines: Make, application: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        engines(**application)


def test_a_decision_keeps_everything_that_was_asked(engines: Make) -> None:
    engine = engines()
    ask(engine, "e1", {"deep": {"list": [1, "two", None]}}, excluded=["salad"])
    answer, decision, status = engine.find("shop", "e1")
    assert isinstance(decision, Decision)
    assert [read_arm(bytes(arm)).id for arm in decision.arms] == ["pasta", "soup", "salad"]
    assert [name for name, _ in answer.probabilities] == ["pasta", "salad", "soup"]
    assert msgspec.json.decode(decision.context) == {"deep": {"list": [1, "two", None]}}
    assert status.deadline - engine.open_journal().row(status.seq).time == 600_000


def test_what_somebody_waits_for_is_learnt_without_a_rest(engines: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner rests beside requests; a Decider in a folder that waited for it took its 14 ms per reward, too."""
    engine, rested = engines(), list[int]()
    engine.wait_learnt()
    assert engine.learner._journal is not None
    monkeypatch.setattr(engine.learner._journal.pace, "rest", lambda: rested.append(1))
    waiter = threading.Thread(target=engine.wait_learnt, args=(engine.learner.published + 1,))
    waiter.start()
    while not engine.learner._waiters:
        time.sleep(0.001)
    ask(engine, "e1")
    waiter.join()
    assert rested == []
