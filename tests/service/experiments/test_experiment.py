"""Experiments on the journal: sticky units, outcomes, windows, who is counted, and what becomes of them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.service.experiments.hosted import HostedExperiment
from armwise.service.journal.journal import Journal
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify
from armwise.service.server.config import open_store

ARMS = ["control", "green", "blue"]
AT_ONCE = {"name": "buy", "window": None}


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "decisions")


def test_a_unit_keeps_its_arm_over_restarts_shares_contexts_and_ramps(folder: str) -> None:
    units = [f"u{i}" for i in range(600)]
    with aw.Experiment("colour", ARMS, AT_ONCE, storage=folder) as test:
        first = test.assign_many(units)
    for change in ("split", "ramp", "mode"):
        with aw.Experiment("colour", ARMS, AT_ONCE, storage=folder) as test:
            if change == "split":
                test.split({"control": 0.05, "green": 0.05, "blue": 0.9})
            elif change == "ramp":
                test.ramp(0.0)
            else:
                test.mode("adaptive")
            assert test.assign_many([(unit, {"device": "phone", "change": change}) for unit in units]) == first
            assert test.assign("u5", {"other": 1}) == first[5]
    counts = [first.count(arm) for arm in ARMS]  # type: ignore[arg-type]
    assert sum((n - 200) ** 2 / 200 for n in counts) < 30  # chi-square, 2 degrees: more is once in 3 million runs


def test_new_units_follow_the_split_in_force(folder: str) -> None:
    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=folder) as test:
        test.split({"control": 0.9, "blue": 0.1})
        arms = test.assign_many([f"u{i}" for i in range(1000)])
        assert 60 <= sum(arm == "blue" for arm in arms) <= 145
        assert all(arm.probability == (0.1 if arm == "blue" else 0.9) for arm in arms)
        for arm in arms:
            test.outcome(arm.unit, 0.0)
        verdict = test.verdict()
        assert verdict.mismatch > 1e-5 and sum(verdict.units.values()) == 1000


def test_outcomes_count_within_the_window_and_silence_is_a_zero(folder: str, clock: Clock) -> None:
    metrics: list[Any] = [
        {"name": "buy", "window": 3600.0},
        {"name": "spent", "kind": "amount", "cap": 50, "window": 60.0},
    ]
    with aw.Experiment("shop", ["control", "blue"], metrics, storage=folder, clock=clock) as test:
        for i in range(40):
            test.assign(f"u{i}")
        clock.now += 30.0
        assert test.outcome("u0").status == "taken" and test.outcome("u0").status == "taken"  # happened is happened
        assert [test.outcome("u1", 20.0, "spent", id=f"o{i % 2}").status for i in range(4)] == [
            "taken", "taken", "repeated", "repeated",
        ]  # fmt: skip
        assert test.verdict().result("blue", "buy").units == 0  # no window is over
        clock.now += 60.0
        assert test.outcome("u2", 20.0, "spent").status == "late"
        verdict = test.verdict()
        spent = [verdict.result(arm, "spent") for arm in ("control", "blue")]
        assert sum(r.units for r in spent) == 40
        assert sum(r.units * r.mean for r in spent) == pytest.approx(40.0)
        assert verdict.result("blue", "buy").units == 0 and any("not settled" in note for note in verdict.notes)
        clock.now += 3600.0
        verdict = test.verdict()
        assert sum(verdict.result(arm, "buy").units * verdict.result(arm, "buy").mean for arm in verdict.units) == 1.0
    with aw.Experiment("shop", ["control", "blue"], metrics, storage=folder, clock=clock) as test:
        assert str(test.verdict()) == str(verdict)  # read anew from the journal


def test_who_is_not_counted(folder: str) -> None:
    options: dict[str, Any] = {"eligible": {"country": ["de", "at"]}, "holdout": 0.2, "forced": {"tester": "blue"}}
    units = [(f"u{i}", {"country": "de"}) for i in range(500)]
    with aw.Experiment("colour", ARMS, AT_ONCE, storage=folder, ramp=0.5, **options) as test:
        assert test.assign("u1", {"country": "fr"}).reason in ("not eligible", "holdout")
        forced = test.assign("tester", {"country": "de"})
        assert (forced, forced.reason) == ("blue", "forced")
        found = test.assign_many(units)
        out = {arm.unit for arm in found if arm.reason == "holdout"}
        assert 60 <= len(out) <= 140 and all(arm == "control" for arm in found if not arm.counted)
        assert 140 <= sum(arm.counted for arm in found) <= 260
        assert sum(test.verdict().units.values()) == sum(arm.counted for arm in found)
        assert test.outcome("tester").status == "not in the experiment"
        test.ramp(1.0, by="ann", why="looks fine")
        assert sum(arm.counted for arm in test.assign_many(units)) == 500 - len(out)
        with aw.Experiment("price", ARMS, AT_ONCE, storage=folder) as later:  # it says nothing of a holdout
            assert {arm.unit for arm in later.assign_many(units) if arm.reason == "holdout"} == out
            later.learn()
            assert {arm.unit for arm in later.assign_many(units) if arm.reason == "holdout"} == out
        assert test.settings["log"][-1]["by"] == "ann"


def test_units_count_when_they_are_exposed(folder: str, clock: Clock) -> None:
    options: dict[str, Any] = {"storage": folder, "clock": clock, "exposure": True}
    metrics = [{"name": "buy", "window": 100.0}, {"name": "refund", "guardrail": True, "window": 100.0}]
    with aw.Experiment("page", ["control", "blue"], metrics, **options) as test:
        arms = test.assign_many([f"u{i}" for i in range(200)])
        assert sum(test.verdict().units.values()) == 0
        assert test.outcome("u0").status == "not in the experiment"
        clock.now += 1000.0
        assert all(test.expose(f"u{i}") for i in range(100)) and not test.expose("stranger")
        assert test.expose("u0")
        clock.now += 50.0
        assert test.outcome("u0").status == "taken"  # the window is counted from the exposure
        clock.now += 51.0
        verdict = test.verdict()
        exposed = arms[:100]
        assert verdict.units == {arm: sum(each == arm for each in exposed) for arm in ("control", "blue")}
        assert verdict.result(arms[0], "buy").mean == pytest.approx(1.0 / verdict.units[arms[0]])
    journal = Journal(open_store(folder).connect())
    assert verify(journal).problems == [], "an exposure has the arm that was drawn for the assignment"
    journal.connection.close()


def test_a_test_finds_the_better_arm_stops_and_says_why(folder: str) -> None:
    rng = np.random.default_rng(3)
    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=folder) as test:
        arms = test.assign_many([f"u{i}" for i in range(3000)])
        test.outcome_many([(arm.unit, float(rng.random() < (0.4 if arm == "blue" else 0.25))) for arm in arms])
        verdict = test.verdict()
        assert verdict.sentence == "stop: blue is better than control (risk at most 5 %, however often you looked)"
        assert test.stop(by="ann") == "blue"
        assert test.assign("somebody new").reason == "stopped" and test.assign(arms[0].unit) == "blue"
        assert test.settings["state"] == "stopped"
        line = test.settings["log"][-1]
        assert line["what"] == "stopped with blue" and line["by"] == "ann" and "better than control" in line["why"]


def test_outcomes_of_units_that_are_not_in_the_experiment_are_counted(folder: str) -> None:
    with aw.Experiment("colour", ARMS, AT_ONCE, storage=folder, forced={"tester": "blue"}) as test:
        test.assign_many(["u1", "tester"])
        told = test.outcome_many([("u1", 1.0), ("stranger", 1.0), ("tester", 1.0)])
        assert [receipt.status for receipt in told] == ["taken", "not in the experiment", "not in the experiment"]
        test.outcome("stranger")
        [note] = [note for note in test.verdict().notes if "outside the experiment" in note]
        assert note.endswith(": 3") and sum(test.verdict().units.values()) == 1


def test_a_unit_of_too_many_outcomes_is_named(folder: str) -> None:
    with aw.Experiment("shop", ["a", "b"], {"name": "spent", "kind": "amount"}, storage=folder) as test:
        test.assign("ann")
        test.outcome_many([("ann", 1.0)] * 1000)
        with pytest.raises(ValueError, match="unit 'ann' has 1000 rewards already"):
            test.outcome("ann", 1.0)


def test_a_promise_of_every_outcome_that_is_not_kept_is_noticed(folder: str) -> None:
    """Reports only of what happened, where zeros were promised: the better arm has more of them, and a rate of 1."""
    rng = np.random.default_rng(6)
    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=folder) as test:
        arms = test.assign_many([f"u{i}" for i in range(4000)])
        bought = [arm.unit for arm in arms if rng.random() < (0.5 if arm == "blue" else 0.35)]
        test.outcome_many([(unit, 1.0) for unit in bought])
        verdict = test.verdict()
        assert verdict.action == "check" and "outcomes of buy do not come from the arms" in verdict.sentence
        assert any("zeros that are not reported" in note for note in verdict.notes)
        assert "Outcomes of buy come" not in test.report()


def test_it_goes_on_as_a_bandit_that_knows_what_was_seen(folder: str) -> None:
    rng = np.random.default_rng(4)

    def world(arm: str, device: str) -> float:
        return float(rng.random() < (0.8 if (arm == "blue") == (device == "phone") else 0.2))

    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=folder) as test:
        devices = {f"u{i}": ("phone", "membership")[i % 2] for i in range(1200)}
        arms = test.assign_many([(unit, {"device": device}) for unit, device in devices.items()])
        test.outcome_many([(arm.unit, world(arm, devices[arm.unit])) for arm in arms])
        test.learn()
        new = test.assign_many([(f"n{i}", {"device": ("phone", "membership")[i % 2]}) for i in range(400)])
        right = [(arm == "blue") == (i % 2 == 0) for i, arm in enumerate(new)]
        assert np.mean(right) > 0.8  # warm: from its first unit on
        test.outcome_many([(arm.unit, world(arm, ("phone", "membership")[i % 2])) for i, arm in enumerate(new)])
        verdict = test.verdict()
        assert sum(verdict.units.values()) == 1600 and verdict.mismatch > 1e-5
        assert any("bandit" in note for note in verdict.notes)


@pytest.mark.parametrize("window", [None, 60.0])
@pytest.mark.parametrize("kind", ["rate", "amount"])
def test_a_bandit_wants_less_of_a_goal_whose_direction_is_down(kind: str, window: float | None, clock: Clock) -> None:
    """Blue brings more of what nobody wants: the bandit is to leave it, and the numbers are those that were told."""
    metric = {"name": "refund", "kind": kind, "cap": 1.0 if kind == "amount" else None, "window": window}
    rng = np.random.default_rng(8)
    with aw.Experiment("page", ["control", "blue"], metric | {"direction": "down"}, clock=clock) as test:
        arms = test.assign_many([f"u{i}" for i in range(800)])
        bad = [float(rng.random() < (0.6 if arm == "blue" else 0.2)) for arm in arms]
        test.outcome_many([(arm.unit, value) for arm, value in zip(arms, bad, strict=True)])
        test.outcome_many([(arm.unit, 0.0) for arm in arms])  # once it happened, it happened
        clock.now += 100.0
        verdict = test.verdict()
        assert verdict.sentence.startswith("stop: control is better than blue")
        mean = np.mean([value for arm, value in zip(arms, bad, strict=True) if arm == "blue"])
        assert verdict.result("blue", "refund").mean == pytest.approx(mean)
        test.learn()
        assert isinstance(test._hosted, HostedExperiment)
        test._hosted.engine.expire()
        test._hosted.engine.wait_learnt()
        assert test.assign_many([f"n{i}" for i in range(200)]).count("control") > 170  # type: ignore[arg-type]


def test_the_holdout_and_who_is_not_eligible_keep_control_when_it_stops(folder: str) -> None:
    units = [(f"u{i}", {"country": "de" if i % 2 else "fr"}) for i in range(200)]
    options: dict[str, Any] = {"holdout": 0.3, "eligible": {"country": "de"}, "ramp": 0.5, "storage": folder}
    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, **options) as test:
        before = test.assign_many(units)
        test.stop("blue")
    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, **options) as test:
        for arm, now in zip(before, test.assign_many(units), strict=True):
            kept = arm.reason in ("holdout", "not eligible")
            assert (now, now.reason) == (("control", arm.reason) if kept else ("blue", "stopped"))
        assigned = next(arm.unit for arm in before if arm.counted)
        assert test.assign(assigned).reason == "stopped"  # by another page, which does not know its country


def test_without_metrics_the_first_outcome_names_the_goal(folder: str) -> None:
    with aw.Experiment("colour", ARMS, storage=folder) as test:
        test.assign("u1")
        assert test.outcome("stranger", 1.0, "typo").status == "not in the experiment"
        assert test.outcome("u1", 1.0, "purchase").metric == "purchase"
        assert {r.metric for r in test.verdict().results} == {"purchase"}
        with pytest.raises(ValueError, match="metric must be one of"):
            test.outcome("u1", 1.0, "refund")
    with aw.Experiment("colour", ARMS, storage=folder) as test:
        assert test.outcome("u1").metric == "purchase"
        with pytest.raises(ValueError, match="metric must be one of"):
            test.outcome_many([("u1", 1.0, "purchase"), ("u1", 1.0, "outcome")])
        test.stop("blue")
        test.learn()


def test_an_outcome_that_does_not_count_is_in_the_remarks(folder: str) -> None:
    metric = {"name": "spent", "kind": "amount", "window": None}
    with aw.Experiment("shop", ["control", "blue"], metric, storage=folder) as test:
        test.assign("u1")
        assert [test.outcome("u1", value).status for value in (5.0, 7.0)] == ["taken", "repeated"]
        assert [test.outcome("u1", 8.0, id="o1").status for _ in range(2)] == ["repeated", "repeated"]
        [note] = [note for note in test.verdict().notes if "do not count" in note]
        assert note.startswith("outcomes of spent") and note.endswith(": 2")


def test_an_adaptive_split_moves_within_its_limits(folder: str) -> None:
    rng = np.random.default_rng(5)
    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=folder, mode="adaptive", least=0.2) as test:
        for start in range(0, 2000, 200):
            arms = test.assign_many([f"u{i}" for i in range(start, start + 200)])
            test.outcome_many([(arm.unit, float(rng.random() < (0.3 if arm == "blue" else 0.2))) for arm in arms])
        last = [arm.probability for arm in arms if arm == "blue"]
        assert 0.6 < last[0] <= 0.8
        assert test.verdict().result("blue", "buy").lift == pytest.approx(0.1, abs=0.1)


def test_an_erased_unit_leaves_nothing_in_the_journal(folder: str) -> None:
    metrics = [AT_ONCE, {"name": "spent", "kind": "amount"}]
    with aw.Experiment("shop", ["control", "blue"], metrics, storage=folder) as test:
        test.assign_many([f"u{i}" for i in range(5)])
        test.outcome("u3", 1.0)
        test.outcome("u3", 30.0, "spent")
        answer = test.erase("u3")
        assert answer.found["decisions"] == 2 and answer.remaining == 0
        assert test.outcome("u3").status == "not in the experiment"
        assert isinstance(test._hosted, HostedExperiment)
        id = test._hosted.unit_id("u3")
    journal = Journal(open_store(folder).connect())
    ids = {row.id for row in journal.events()}
    assert verify(journal).problems == []
    journal.connection.close()
    assert id not in ids and not any("u3" in each for each in ids)


def test_units_whose_assignment_was_dropped_do_not_stop_the_verdict(folder: str, clock: Clock) -> None:
    """Retention drops what is settled: here the goal's window is short, that of another metric is long."""
    metrics = [{"name": "buy", "window": 10.0}, {"name": "stay", "window": 1e6}]
    with aw.Experiment("shop", ["control", "blue"], metrics, storage=folder, clock=clock) as test:
        test.assign_many([f"u{i}" for i in range(20)])
        assert isinstance(test._hosted, HostedExperiment)
        clock.now += 5e5
        test._hosted.engine.expire()
        test._hosted.engine.snapshot()
        assert Retention(test._hosted.engine.each[0], days=1.0).run() > 0
    with aw.Experiment("shop", ["control", "blue"], metrics, storage=folder, clock=clock) as test:
        test.assign_many([f"n{i}" for i in range(5)])
        assert sum(test.verdict().units.values()) == 5


def test_two_sessions_on_one_journal_agree(folder: str) -> None:
    """As two processes would: each with its own memory of assignments, contexts that differ, units that meet."""
    with aw.Experiment("colour", ARMS, AT_ONCE, storage=folder) as test:
        assert isinstance(test._hosted, HostedExperiment)
        other = HostedExperiment(test._hosted.engine, "colour")
        one = test.assign_many([(f"u{i}", {"from": "one"}) for i in range(0, 60)])
        two = other.assign([(f"u{i}", {"from": "two"}) for i in range(30, 90)])
        assert one[30:] == two[:30]
        other._remember = lambda ids: None if len(ids) > 1 else HostedExperiment._remember(other, ids)  # type: ignore[method-assign]
        test.assign("late", {"from": "one"})
        assert other.assign([("late", {"from": "two"})]) == [test.assign("late")]


def test_what_an_experiment_is_made_of_stays(folder: str) -> None:
    with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=folder):
        with pytest.raises(ValueError, match="arms: experiment 'colour' was made with"):
            aw.Experiment("colour", ["control", "red"], AT_ONCE, storage=folder)
        with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=folder) as again:
            assert again.settings["log"][0]["what"] == "created" and len(again.settings["log"]) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.outcome("u", 1.0, "clicks"), "metric must be one of"),
        (lambda t: t.outcome("u", 2.0), "must lie in"),
        (lambda t: t.outcome("u", math.nan), "value must be a finite number"),
        (lambda t: t.assign(7), "unit must be a text"),
        (lambda t: t.assign(""), "unit must be a text"),
        (lambda t: t.stop("red"), "arm must be one of"),
        (lambda t: t.mode("fast"), "mode must be"),
        (lambda t: t.ramp(2), "ramp must be"),
        (lambda t: t.split([0.5, 0.6]), "split must be"),
        (lambda t: t.force("x", "red"), "forced"),
        (lambda t: t.expose("u"), "exposure=True"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(call: Any, message: str) -> None:
    with aw.Experiment("colour", ["control", "blue"], "buy") as test:
        before = test.settings
        with pytest.raises(ValueError, match=message):
            call(test)
        assert test.settings == before


def test_bad_definitions_are_named() -> None:
    for arguments, message in (
        ({"arms": ["a"]}, "arms"), ({"holdout": 1.5}, "holdout"), ({"storage": 5}, "storage"),
        ({"least": 0.9}, "least"),
        ({"metrics": "assigned"}, "'assigned'"), ({"name": "a/b"}, "no '/'"), ({"eligible": ["de"]}, "eligible"),
        ({"clock": 3}, "clock must be a function"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            aw.Experiment(**({"name": "colour", "arms": ["a", "b"]} | arguments))


def test_the_journal_names_no_tester_and_erasing_one_forgets_it(folder: str) -> None:
    """Testers are kept by a hash, as all units are; the log of changes says what was done, not to whom."""
    with aw.Experiment("colour", ARMS, AT_ONCE, storage=folder, forced={"ann@shop.example": "blue"}) as test:
        test.force("bob@shop.example", "green", by="eve")
        assert [test.assign(f"{name}@shop.example").reason for name in ("ann", "bob")] == ["forced", "forced"]
        assert test.settings["log"][-1]["what"] == "forced a tester to green"
        assert any("hash of the tester" in place for place in test.erase("bob@shop.example").elsewhere)
        assert not any("hash of the tester" in place for place in test.erase("bob@shop.example").elsewhere)
        assert test.assign("bob@shop.example").reason == "assigned" and len(test.settings["forced"]) == 1
        test.force("ann@shop.example", None)
    journal = Journal(open_store(folder).connect())
    assert not any(b"shop.example" in bytes(row.body) for row in journal.events())
    journal.connection.close()
