"""What decisions earn, by age: the numbers that people look at first."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from armwise.offline.logs.cohorts import STATUSES, WHOLE, Record, cohort
from armwise.service.engine.engine import Engine
from armwise.service.journal.events import RULES
from armwise.service.journal.rules import Status
from armwise.service.web.page.watch import Watch
from tests.service.serving import Clock

RATES = {"a": 0.02, "b": 0.06}
ARMS = [b'"a"', b'"b"']


def trade(engine: Engine, clock: Clock, n: int, every: float, seed: int = 1, value: float = 1.0) -> None:
    """Clicks come after an exponential delay of ten minutes; of their lack nobody says anything."""
    rng, waiting = random.Random(seed), list[tuple[float, str]]()
    for k in range(n):
        clock.now += every
        due = [id for when, id in waiting if when <= clock.now]
        waiting = [each for each in waiting if each[0] > clock.now]
        if due:
            engine.writer.write([engine.prepare_reward("shop", id, value) for id in due])
        arm = engine.decide("shop", b"{}", ARMS, id=f"e{k}").arm
        if rng.random() < RATES[arm]:
            waiting.append((clock.now + rng.expovariate(1.0 / 600.0), f"e{k}"))


@pytest.mark.parametrize("value", [1.0, 40.0])
def test_the_page_tells_what_all_decisions_of_an_age_earned(
    engines: Callable[..., Engine], clock: Clock, value: float
) -> None:
    """4,000 decisions at 4.7 % were shown as 1.000, between 0.886 and 1.000."""
    engine = engines(window=86400.0, rewards=[0.0, value], drift="off")
    trade(engine, clock, 1500, every=10.0, value=value)
    watch = Watch(engine, "shop")
    seen = watch.look()
    watch.close()
    rewards, whole = seen["rewards"], seen["cohort"]
    assert rewards["n"] == 750 and whole["left_out"] == 750
    assert 0.02 * value < rewards["mean"] < 0.08 * value
    assert rewards["low"] < 0.04 * value < rewards["high"] < 0.12 * value
    assert "rewarded or not" in whole["said"]
    rows = {row["arm"]: row for row in seen["arms"]}
    assert sum(row["shown"] for row in rows.values()) == 1500
    assert sum(row["n"] for row in rows.values()) == 750
    for arm, row in rows.items():
        assert row["low"] <= RATES[arm] * value <= row["high"]
    assert rows["b"]["expected"] > rows["a"]["expected"]
    for policy in seen["policies"]:
        assert 0.0 <= policy["value"] <= value, "an arm was said to earn less than nothing, and to be trusted"
    assert seen["open"]["n"] == 1500
    assert seen["open"]["low"] <= seen["open"]["brings"] <= seen["open"]["high"]
    assert 0.3 * value < seen["open"]["brings"] < 8.0 * value  # about 4 % of the 60 of the last ten minutes
    assert seen["open"]["unknown_beyond"]
    assert 600.0 < seen["delays"]["recommended"] < 7200.0


def test_a_reward_that_comes_after_its_cohort_was_judged_moves_the_number(
    engines: Callable[..., Engine], clock: Clock
) -> None:
    engine = engines(window=60.0, policies={"bold": {"class": "SquareCB"}})
    for k in range(10):
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
    clock.now += 100.0
    watch = Watch(engine, "shop")
    before = watch.look()
    assert before["rewards"]["mean"] == 0.0 and all(each["value"] == 0.0 for each in before["policies"])
    engine.reward("shop", "e3", 1.0)
    watch._answer = {}
    seen = watch.look()
    watch.close()
    assert seen["rewards"]["mean"] == pytest.approx(0.1)
    assert (seen["cohort"]["late"], seen["cohort"]["moved"]) == (1, pytest.approx(0.1))
    assert "bold" in [each["name"] for each in seen["policies"]]
    assert all(each["value"] > 0.0 for each in seen["policies"] if each["name"] != "always the first arm")


def test_a_reward_after_a_final_one_moves_the_number_and_is_late(engines: Callable[..., Engine]) -> None:
    """It was answered as taken, was not learnt, and moved the number without a word."""
    engine = engines(window=60.0, rule="sum")
    for k in range(10):
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
        engine.writer.write([engine.prepare_reward("shop", f"e{k}", 0.0, final=True)])
    engine.reward("shop", "e3", 1.0)
    watch = Watch(engine, "shop")
    seen = watch.look()
    watch.close()
    assert seen["cohort"]["within"] == "the whole window" and seen["cohort"]["n"] == 10
    assert seen["rewards"]["mean"] == pytest.approx(0.1)
    assert (seen["cohort"]["late"], seen["cohort"]["moved"]) == (1, pytest.approx(0.1))
    assert seen["open"]["n"] == 0


@pytest.mark.parametrize(("n", "rate", "clicks"), [(400, 0.3, False), (100, 0.05, True), (30, 0.05, True)])
def test_what_is_open_is_foretold(n: int, rate: float, clicks: bool) -> None:
    """200 shops: what their decisions bring after the look lies between the ends in 95 %. Of 100 decisions with about
    five clicks it did in 77 %, and where no click had come yet it was said to be nothing for sure."""
    from armwise.service.journal.events import Decision, Reward, Row
    from armwise.service.log.earnings import Earnings

    inside, errors, end = 0, [], 10_000 * n
    for seed in range(200):
        rng = np.random.default_rng(seed)
        earnings, future = Earnings(), 0.0
        for k in range(n):
            made = Decision([], [b'"a"'], [1.0], 0, 0, 86_400_000, 0.0, "sum")  # type: ignore[list-item, arg-type]
            earnings.take(1, Row(k, 10_000 * k, "shop", "decision", f"e{k}", b"", made))
            for _ in range(int(rng.random() < rate) if clicks else rng.poisson(rate)):
                came, value = 10_000 * k + rng.exponential(600_000), 1.0 if clicks else rng.exponential(2.0)
                if came <= end:
                    reward = Reward(value, decision=k)
                    earnings.take(1, Row(1000 + k, int(came), "shop", "reward", f"e{k}", b"", reward))
                elif came - 10_000 * k <= end:  # no older than any decision is now
                    future += value
        told = earnings.judge(end, [0.0, 1.0]).open()
        assert told["high"] > 0.0
        inside += told["low"] <= future <= told["high"]
        errors.append(told["brings"] - future)
    assert inside >= 186
    assert n < 400 or abs(np.mean(errors)) < 3.0 * np.std(errors) / np.sqrt(200)


def test_many_arms_are_fifty_rows(engines: Callable[..., Engine]) -> None:
    engine = engines()
    for k in range(70):
        engine.decide("shop", b"{}", [b'"arm %d"' % k], id=f"e{k}")
    watch = Watch(engine, "shop")
    rows = watch.look()["arms"]
    watch.close()
    assert len(rows) == 50 and (rows[-1]["arm"], rows[-1]["arms"], rows[-1]["shown"]) == ("other", 21, 21)


@pytest.mark.parametrize("rule", RULES)
def test_rewards_come_to_the_same_in_a_journal_and_in_a_log(rule: str) -> None:
    rng = random.Random(3)
    for _ in range(50):
        status, rewards = Status("shop", "e", 1, 10_000, rule, default=-0.5, active=True, learn="close"), []
        for _ in range(rng.randrange(4)):
            value = rng.choice([-1.0, 0.0, 0.25, 2.0])
            rewards.append((rng.random(), value))
            status.reward(value, 5)
        record = Record(20.0, 10.0, -0.5, rule, STATUSES[2], False, rewards, len(rewards))
        assert record.worth() == pytest.approx(status.outcome)


def test_a_cohort_is_a_matter_of_age() -> None:
    ages, windows = np.arange(10.0, 0.0, -1.0), np.full(10, 100.0)
    clicked = np.arange(10) % 2 == 0
    for known in (clicked, ~clicked):
        found = cohort(ages, windows, known, np.zeros(10, bool))
        assert (found.horizon, found.rows.tolist()) == (6.0, [True] * 5 + [False] * 5)
    assert cohort(ages, np.full(10, 3.0), clicked, np.zeros(10, bool)).horizon == WHOLE
    assert cohort(ages, windows, np.ones(10, bool), np.zeros(10, bool)).rows.all()


def test_a_promise_takes_those_before_the_first_that_did_not_come() -> None:
    ages, windows, kept = np.arange(10.0, 0.0, -1.0), np.full(10, 100.0), np.ones(10, bool)
    reported = np.arange(10) < 8
    found = cohort(ages, windows, reported, kept)
    assert (found.horizon, found.rows.tolist()) == (WHOLE, [True] * 8 + [False] * 2)
    reported[2] = False  # one was lost: by age, as where nothing is promised
    found = cohort(ages, windows, reported, kept)
    assert (found.horizon, found.rows.tolist()) == (6.0, [True] * 5 + [False] * 5)


def test_the_page_says_that_a_promise_is_broken(engines: Callable[..., Engine], clock: Clock) -> None:
    engine = engines(window=60.0, learn="arrival", agent={"class": "UCB1", "n_arms": 2}, arms=["a", "b"])
    for k in range(20):
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
    engine.reward("shop", "e3", 1.0)
    clock.now += 1.0
    watch = Watch(engine, "shop")
    assert watch.look()["rewards"]["n"] == 20 and watch.look()["cohort"]["silent"] == 0
    clock.now += 100.0
    watch._answer = {}
    seen = watch.look()
    watch.close()
    assert seen["rewards"]["mean"] == pytest.approx(0.05) and seen["cohort"]["silent"] == 19


def test_no_number_is_shown_of_a_policy_whose_arms_are_never_tried(engines: Callable[..., Engine]) -> None:
    """An agent that draws one arm for sure: random arms were said to earn 0.3 of rewards of 0.03, the middle of what
    nobody knows."""
    engine = engines(agent={"class": "UCB1", "n_arms": 2}, arms=["a", "b"], learn="arrival")
    for k in range(20):
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
        engine.reward("shop", f"e{k}", 0.0)
        engine.wait_learnt()
    watch = Watch(engine, "shop")
    seen = watch.look()
    watch.close()
    over, [random] = seen["uplift"]["random"], [each for each in seen["policies"] if each["name"] == "at random"]
    assert over["value"] is None and random["value"] is None and random["uplift"] is None
    assert over["low"] < over["high"] and "arms that are never tried here" in over["warning"]
