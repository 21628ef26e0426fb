"""Applications report clicks, not their lack: a Decider learns and judges by age, never by outcome."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.core.capabilities.revising import can_revise

HOUR, DAY = 3600.0, 86400.0
RATES = {"good": 0.06, "bad": 0.02}


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["memory", "folder"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return {} if request.param == "memory" else {"storage": tmp_path / "d"}


@contextlib.contextmanager
def shop_of(where: dict[str, Any], **options: Any) -> Iterator[tuple[aw.Decider, Clock]]:
    clock = Clock()
    with aw.Decider(**where, clock=clock, **options) as shop:
        yield shop, clock


def trade(
    shop: aw.Decider,
    clock: Clock,
    n: int,
    seed: int = 0,
    every: float = 10.0,
    amount: float = 1.0,
    delay: float = 600.0,
) -> int:
    """Decisions with clicks after an exponential delay, and silence otherwise; how many clicks were told."""
    rng, waiting, told = random.Random(seed), list[tuple[float, str]](), 0
    for _ in range(n):
        clock.now += every
        due = [each for each in waiting if each[0] <= clock.now]
        waiting = [each for each in waiting if each[0] > clock.now]
        if due:
            shop.reward_many([(id, amount) for _, id in due])
            told += len(due)
        made = shop.decide({}, arms=list(RATES))
        if rng.random() < RATES[made.arm]:
            waiting.append((clock.now + rng.expovariate(1.0 / delay), made.id))
    return told


# ---------------------------------------------------------------------- finding 3: shop.log()


@pytest.mark.parametrize("amount", [1.0, 40.0])
def test_a_log_has_every_decision_of_its_age_and_not_the_clicked_ones(where: dict[str, Any], amount: float) -> None:
    """Clicked ones alone would give the amount itself; 2,000 decisions at .02 to .06 have a standard error of .005."""
    with shop_of(where, window=DAY, seed=1) as (shop, clock):
        told = trade(shop, clock, 1500, amount=amount)
        assert told > 20
        log = shop.log()
        assert 700 < len(log.rewards) < 800  # the older half
        assert 0.005 < log.rewards.mean() / amount < 0.08
        assert "left out as younger than" in log.remarks[0]
        found = aw.offline.evaluate(log, [[1.0, 0.0]] * len(log.rewards), warn=False)
        assert found["snips"].value / amount < 0.15


def test_a_horizon_counts_what_came_within_it_for_all(where: dict[str, Any]) -> None:
    with shop_of(where, window=DAY, default=-1.0, rule="sum") as (shop, clock):
        one = shop.decide({}, arms=["a", "b"])
        clock.now += 60.0
        two = shop.decide({}, arms=["a", "b"])
        shop.reward(one, 2.0)
        clock.now += 100.0
        shop.reward(one, 3.0)
        shop.reward(two, -4.0)
        clock.now += 10.0
        young = shop.decide({}, arms=["a", "b"])
        shop.reward(young, 9.0)
        clock.now += 5.0
        assert shop.log(horizon=100.0).rewards.tolist() == [2.0, -4.0]  # never the young one, though it was rewarded
        assert shop.log(horizon=99.0).rewards.tolist() == [2.0, -1.0]  # nothing came of the second: the default
        assert shop.log(horizon=50.0).rewards.tolist() == [-1.0, -1.0]
        assert shop.log(horizon=165.0).rewards.tolist() == [5.0]
        with pytest.raises(ValueError, match="horizon is 10 min, but the oldest decision is"):
            shop.log(horizon=600.0)
        with pytest.raises(ValueError, match="horizon must be seconds above 0"):
            shop.log(horizon=0.0)
        clock.now += 2 * DAY
        assert shop.log().rewards.tolist() == [5.0, -4.0, 9.0] and not shop.log().remarks
        shop.reward(two, 1.0)  # late: not learnt, but earned, and said
        late = shop.log()
        assert late.rewards.tolist() == [5.0, -3.0, 9.0]
        assert late.remarks[-1].startswith("1 decision was rewarded after it was closed")


@pytest.mark.parametrize("rule", ["latest", "sum", "mean", "max", "min"])
def test_a_reward_after_a_final_one_is_late(where: dict[str, Any], rule: str) -> None:
    with shop_of(where, window=DAY, rule=rule) as (shop, clock):
        made = shop.decide({}, arms=["a", "b"])
        told = [shop.reward(made, 1.0).status, shop.reward(made, 2.0, final=True).status]
        lessons = shop._backend.model().lessons
        assert [*told, shop.reward(made, 4.0, final=True).status] == ["taken", "taken", "late"]
        assert shop._backend.model().lessons == lessons
        clock.now += 1.0
        log = shop.log()
        assert log.rewards[0] == {"latest": 4.0, "sum": 7.0, "mean": 7.0 / 3.0, "max": 4.0, "min": 1.0}[rule]
        assert log.remarks[-1].startswith("1 decision was rewarded after it was closed")


def test_every_outcome_told_leaves_nothing_out(where: dict[str, Any]) -> None:
    with shop_of(where, seed=1) as (shop, clock):
        for k in range(20):
            clock.now += 1.0
            shop.reward(shop.decide({}, arms=["a", "b"]), float(k % 2))
        assert len(shop.log().rewards) == 20 and not shop.log().remarks
        shop.decide({}, arms=["a", "b"])  # one is silent: by age then
        clock.now += 1.0
        assert len(shop.log().rewards) == 11 and "10 left out as younger than 10 s" in shop.log().remarks[0]
    with shop_of({}, learn="arrival") as (shop, clock):
        made = []
        for _ in range(20):
            clock.now += 1.0
            made.append(shop.decide({}, arms=["a", "b"]))
        shop.reward_many([(each, 1.0) for each in made[:15] + made[17:]])
        assert len(shop.log().rewards) == 15  # every outcome was promised: those before the first that did not come
        assert "5 left out as no older than the oldest one that was not reported" in shop.log().remarks[0]


def test_a_promise_that_is_broken_selects_nothing(where: dict[str, Any]) -> None:
    """Where learn is "arrival" and only clicks are told, the clicked ones were taken at any age, and earned 1.000."""
    with shop_of(where, agent=aw.UCB1(n_arms=2), window=DAY, learn="arrival", seed=1) as (shop, clock):
        told = trade(shop, clock, 1000)
        assert told > 10
        log = shop.log()
        assert len(log.rewards) == 500 and 0.0 < log.rewards.mean() < 0.1
        assert "younger than" in log.remarks[0]
        clock.now += DAY + 10.0
        shop.decide({}, arms=list(RATES))
        whole = shop.log()
        assert len(whole.rewards) == 1000 and whole.rewards.mean() < 0.1
        assert not any("whose outcome was reported" in said for said in whole.remarks)
        assert any("promises every outcome" in said and "learn='close'" in said for said in whole.remarks)


def test_who_learns_from_a_log_says_what_was_left_out(where: dict[str, Any]) -> None:
    """As ``evaluate`` does: half of the rows were left out in silence."""
    with shop_of(where, window=DAY, seed=1) as (shop, clock):
        trade(shop, clock, 600)
        log = shop.log()
    said = "300 left out as younger than"
    agents = [aw.UCB1(n_arms=2, seed=1), aw.Exp3(n_arms=2, seed=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", aw.offline.WeakLogWarning)
        lived = aw.offline.replay(log, agents[0], runs=2)
        both = aw.offline.compare_learners(log, *agents, runs=2)
    for found in (lived, both):
        assert said in str(found) and any(said in text for text in found.to_dict()["warnings"])
    assert said in lived._repr_html_()
    with pytest.warns(aw.offline.WeakLogWarning, match=said):
        aw.fit_log(aw.UCB1(n_arms=2), log)


# ---------------------------------------------------------------------- finding 6: learning


@pytest.mark.parametrize(
    "agent", [aw.UCB1(n_arms=2), aw.Auto(dim=128), aw.LinUCB(), aw.RegCB()], ids=lambda a: type(a).__name__
)
def test_no_click_is_learnt_before_its_lack(where: dict[str, Any], agent: aw.Agent) -> None:
    with shop_of(where, agent=agent, window=HOUR, seed=1) as (shop, clock):
        made = [shop.decide({}, arms=["a", "b"]) for _ in range(10)]
        shop.reward(made[0], 1.0)
        model = shop._backend.model()
        assert model.learns == ("provisional" if can_revise(shop.agent) else "close")
        assert model.lessons == (1 if can_revise(shop.agent) else 0)
        shop.reward(made[1], 1.0, final=True)
        assert shop._backend.model().lessons == (2 if can_revise(shop.agent) else 1)
        clock.now += HOUR + 1.0
        assert shop._backend.model().lessons == 10  # each outcome once
        assert shop.reward(made[2], 1.0).status == "late"
        assert shop._backend.model().lessons == 10


def test_learn_is_checked_against_the_agent(where: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="learn: UCB1 cannot revise what it learnt: use 'close'"):
        aw.Decider(**where, agent=aw.UCB1(n_arms=2), learn="provisional")
    budget = aw.HardStop(aw.LinUCB(), budget=10.0, max_cost=1.0)  # at the close nobody says what a decision cost
    for learn in ("close", "provisional"):
        with pytest.raises(
            ValueError, match="learn: HardStop counts what each decision cost: use 'arrival', and report"
        ):
            aw.Decider(**where, agent=budget, learn=learn)
    with pytest.raises(ValueError, match="learn must be provisional, close or arrival, got 'never'"):
        aw.Decider(**where, learn="never")
    with aw.Decider(**where, agent=aw.UCB1(n_arms=2), learn="arrival", seed=1) as shop:
        shop.reward(shop.decide({}, arms=["a", "b"]), 0.0)
        assert shop._backend.model().lessons == 1
    with pytest.raises(ValueError, match="clock must be a function that gives seconds"):
        aw.Decider(clock=3.0)  # type: ignore[arg-type]
    for told in (None, "now", float("nan")):
        with pytest.raises(ValueError, match="clock must be a function that gives seconds"):
            aw.Decider(**where, clock=[told].pop)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["ten", None, float("nan")])
def test_a_clock_that_goes_wrong_is_named_and_changes_nothing(where: dict[str, Any], wrong: Any) -> None:
    """It failed with a TypeError from inside; times may also go back, which stops the time and nothing else."""
    now: list[Any] = [1000.0]
    with aw.Decider(**where, clock=lambda: now[0], window=HOUR, seed=1) as shop:
        made = shop.decide({}, arms=["a", "b"])
        now[0] = wrong
        for verb in (lambda: shop.decide({}, arms=["a", "b"]), lambda: shop.reward(made, 1.0)):
            with pytest.raises(ValueError, match=r"clock must be a function that gives seconds.*got"):
                verb()
        now[0] = 500.0
        assert shop.reward(made, 1.0).status == "taken" and len(shop.log()) == 1
        with pytest.raises(ValueError, match="horizon must be seconds above 0, got 'long'"):
            shop.log(horizon="long")  # type: ignore[arg-type]


def test_an_agent_that_would_starve_says_so_once(where: dict[str, Any]) -> None:
    with aw.Decider(**where, agent=aw.UCB1(n_arms=2)) as shop:
        with pytest.warns(
            UserWarning, match=r"UCB1 learns an outcome when its window of 7 days closes.*learn='arrival'"
        ):
            shop.decide({}, arms=["a", "b"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shop.decide({}, arms=["a", "b"])
    for options in ({"window": HOUR}, {"learn": "close"}, {"learn": "arrival"}):
        with aw.Decider(agent=aw.UCB1(n_arms=2), **options) as shop, warnings.catch_warnings():
            warnings.simplefilter("error")
            shop.decide({}, arms=["a", "b"])


@pytest.mark.parametrize("agent", [aw.Auto(dim=128), aw.RegCB()], ids=lambda a: type(a).__name__)
def test_agents_that_cannot_revise_prefer_the_better_arm(agent: aw.Agent) -> None:
    """6 % against 2 %, clicks told and their lack not. Learnt as they came, clicks gave the better arm .16 to .33 of
    the decisions (Auto, 10 of 10 seeds)."""
    with shop_of({}, agent=agent.clone(seed=3), window=HOUR, seed=3) as (shop, clock):
        trade(shop, clock, 4000, seed=3)
        p = shop.decide({}, arms=list(RATES)).probabilities
        assert p["good"] > 0.6


def test_a_burst_of_new_decisions_does_not_shorten_the_horizon() -> None:
    """With the median age alone, a nightly batch made log() forget every click of the closed decisions."""
    now = [1e9]
    shop = aw.Decider(clock=lambda: now[0], seed=1, window=86400.0)
    made = shop.decide_many([{"arms": ["a", "b"]}] * 400)
    now[0] += 7200.0
    shop.reward_many((d, 1.0) for d in made[::4])
    now[0] += 10 * 86400.0
    shop.decide_many([{"arms": ["a", "b"]}] * 1000)
    log = shop.log()
    assert len(log) == 400 and log.rewards.mean() == 0.25


# ---------------------------------------------------------------------- a model that begins anew


def expected(shop: aw.Decider) -> dict[str, float]:
    """What the model expects of each arm."""
    why = shop.explain(shop.decide({}, arms=list(RATES)))
    return {arm: numbers["estimate"] for arm, numbers in why.arms.items()}


def test_a_model_that_begins_anew_learns_no_click_before_its_lack(tmp_path: Path) -> None:
    """A week's window: of 800 decisions of two hours, the new model learnt the clicked ones alone, worth 1.0 each."""
    clock = Clock()
    where: dict[str, Any] = {"storage": tmp_path / "d", "window": 7 * DAY, "clock": clock}
    with aw.Decider(**where, seed=1) as shop:
        told = trade(shop, clock, 800)
        made = [shop.decide({}, arms=list(RATES)).id for _ in range(20)]
        before = expected(shop)
    assert told > 10 and max(before.values()) < 0.12
    other = aw.Explore(aw.LinUCB(alpha=0.6, lam=1.0), epsilon=0.1)
    with aw.Decider(**where, agent=other) as shop:
        assert expected(shop) == pytest.approx(before, rel=0.05)  # their lack is learnt, until a click corrects it
        shop.reward_many([(id, 1.0) for id in made])
        corrected = expected(shop)
        assert sum(corrected.values()) > sum(before.values()) + 0.02
        clock.now += 8 * DAY
        assert expected(shop) == pytest.approx(corrected, abs=1e-2)
    with aw.Decider(**where, agent=aw.Explore(aw.LinUCB(alpha=0.7, lam=1.0), epsilon=0.1)) as shop:
        assert expected(shop) == pytest.approx(corrected, abs=1e-2)  # the same, when all windows are closed


def test_what_cannot_revise_begins_with_decisions_whose_window_is_over(tmp_path: Path) -> None:
    clock = Clock()
    where: dict[str, Any] = {"storage": tmp_path / "d", "window": 7 * DAY, "clock": clock}
    with aw.Decider(**where, seed=1) as shop:
        told = trade(shop, clock, 300)
        clock.now += 8 * DAY
        young = trade(shop, clock, 300)
    with aw.Decider(**where, agent=aw.RegCB(), learn="close") as shop:
        assert told > 3 and young > 3
        assert shop._backend.model().lessons == 300  # the older ones, clicked or not
        clock.now += 8 * DAY
        assert shop._backend.model().lessons == 300  # those that were open when it began are not its own


def test_a_promise_that_is_taken_back_is_learnt_again(tmp_path: Path) -> None:
    clock = Clock()
    where: dict[str, Any] = {"storage": tmp_path / "d", "window": DAY, "clock": clock}
    with aw.Decider(**where, agent=aw.BetaThompson(n_arms=2), learn="arrival", seed=1) as shop:
        told = trade(shop, clock, 300)
        assert shop._backend.model().lessons == told  # clicks, before their lack
    clock.now += DAY + 1.0
    with aw.Decider(**where, learn="close") as shop:
        model = shop._backend.model()
        assert model.learns == "close" and model.lessons == 300
        assert max(model.agent.estimate(None)[0]) < 0.2
    with aw.Decider(**where) as shop:
        assert shop._backend.model().learns == "close"


def test_more_positions_are_trained_on_the_lack_of_clicks_too() -> None:
    """When the tenth decision asked for more positions, the new model knew the clicked ones alone."""
    clock = Clock()
    shop = aw.Decider(clock=clock, window=7 * DAY, seed=1)
    arms = [f"arm{k}" for k in range(20)]
    for k in range(10):
        made = shop.decide({"x": "y"}, arms=arms)
        if k == 0:
            shop.reward(made, 1.0)
    wide = {f"f{k}": "v" for k in range(30)}
    shop.decide(wide, arms=arms)
    assert shop._backend.model().encoder.dim > 128 and isinstance(shop.agent, aw.Explore)
    assert shop.agent.agent.t == 1 + 11  # as many as were decided


@pytest.mark.parametrize("learn", [None, "close", "provisional"])
def test_an_agent_that_forgets_what_is_open_must_be_told_every_outcome(learn: str | None) -> None:
    """Of 20,000 decisions it restarted at the 16,384th, without a window of outcomes: .78 instead of .92."""
    for agent in (
        aw.Doubling("Exp3.theoretical", {"n_arms": 2}),
        aw.Explore(aw.Doubling("Exp3.theoretical", {"n_arms": 2}), epsilon=0.1),
    ):
        with pytest.raises(ValueError, match=r"begins anew at times.*use 'arrival'"):
            aw.Decider(agent=agent, learn=learn)
        shop = aw.Decider(agent=agent, learn="arrival")
        shop.reward(shop.decide({}, ["a", "b"]).id, 1.0)
