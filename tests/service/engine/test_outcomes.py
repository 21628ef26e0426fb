"""When outcomes are learnt, and what several rewards of a decision come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.events import Change, decided
from armwise.service.log.verify import verify
from armwise.service.model.build import build_model
from tests.service.serving import ask, replayed, settled, state

Make = Callable[..., Engine]
CLICKS = np.array([[0.5, 0.05, 0.1, 0.05], [0.05, 0.1, 0.05, 0.5], [0.05, 0.5, 0.05, 0.1]])  # taste x arm
FOUR = [b'"a"', b'"b"', b'"c"', b'"d"']


def clicks(engine: Engine, clock: Any, n: int, rng: np.random.Generator) -> list[float]:
    """One decision per second; a click is told after three, and nothing else ever is."""
    earned: list[float] = []
    waiting: list[tuple[int, str]] = []
    for k in range(n):
        clock.now += 1.0
        engine.expire()
        for id in [id for due, id in waiting if due <= k]:
            engine.reward("shop", id, 1.0)
        waiting = [(due, id) for due, id in waiting if due > k]
        taste = int(rng.integers(3))
        engine.wait_learnt()
        it = engine.decide("shop", b'{"taste": "t%d"}' % taste, FOUR, id=f"e{clock.now}")
        click = rng.random() < CLICKS[taste, "abcd".index(it.arm)]
        earned.append(float(click))
        if click:
            waiting.append((k + 3, it.id))
    return earned


def test_with_clicks_only_the_default_is_better_than_random_from_the_first_window_on(
    engines: Make, clock: Any, tmp_path: Path
) -> None:
    """Successes must not be learnt before failures. Three runs of two windows of 150 decisions; random earns 0.19, with
    a standard error of 0.02. Learnt on arrival, the same runs earn 0.20 and 0.21."""
    earned = []
    for run in range(3):
        engine = engines(tmp_path / f"{run}.db", window=150.0)
        earned.append(clicks(engine, clock, 300, np.random.default_rng(run)))
        assert state(replayed(engine)["shop"]) == settled(engine)
        assert verify(engine.open_journal()).problems == []
    first, second = np.reshape(earned, (3, 2, 150)).mean(axis=(0, 2))
    assert first > 0.3
    assert second > 0.4


def test_a_provisional_outcome_is_corrected_exactly(engines: Make, clock: Any) -> None:
    engine, rng = engines(window=10.0, default=0.25), np.random.default_rng(1)
    for k in range(40):
        ask(engine, f"e{k}", {"hour": int(rng.integers(24))})
        if k % 3:
            engine.reward("shop", f"e{k}", float(rng.random()))
    clock.now += 11.0
    engine.expire()
    engine.wait_learnt()
    reference = build_model(engine.creations["shop"])
    journal = engine.open_journal()
    made = {row.seq: decided(row) for row in journal.events() if row.kind == "decision"}
    outcomes = {lesson[0]: lesson[1] for row in journal.events() if (lesson := row.lesson) is not None}
    assert outcomes.keys() == made.keys()
    for seq, decision in made.items():
        reference.learn_reward(decision, outcomes[seq])
    learnt = engine.models["shop"]
    np.testing.assert_allclose(learnt.agent.agent._model.models, reference.agent.agent._model.models, atol=1e-12)  # type: ignore[attr-defined]
    assert (learnt.lessons, learnt.refused) == (40, 0)


def test_until_it_is_known_the_default_counts_as_the_outcome(engines: Make) -> None:
    engine = engines()
    ask(engine, "e1")
    engine.wait_learnt()
    assert (engine.models["shop"].agent.t, engine.models["shop"].lessons) == (2, 0)
    engine.reward("shop", "e1", 1.0)
    engine.wait_learnt()
    assert (engine.models["shop"].agent.t, engine.models["shop"].lessons) == (2, 1)


def test_a_deferred_decision_is_assumed_when_it_is_shown(engines: Make, clock: Any) -> None:
    engine = engines(window=10.0)
    for id in ("shown", "rewarded first", "never"):
        ask(engine, id, deferred=True)
    engine.wait_learnt()
    assert engine.models["shop"].agent.t == 1
    engine.reward("shop", "rewarded first", 1.0)
    for id in ("shown", "shown", "rewarded first"):
        engine.activate("shop", id)
    engine.wait_learnt()
    assert (engine.models["shop"].agent.t, engine.models["shop"].lessons) == (3, 1)
    clock.now += 11.0
    engine.expire()
    assert state(replayed(engine)["shop"]) == settled(engine)
    assert (engine.models["shop"].agent.t, engine.models["shop"].lessons) == (3, 2)


def test_a_model_that_begins_anew_untrained_learns_nothing_of_what_was_open(engines: Make) -> None:
    """It would learn the clicks of those decisions at once, and their lack a window later."""
    engine = engines()
    ask(engine, "e1")
    engine.reset("shop")
    engine.reward("shop", "e1", 1.0)
    assert state(replayed(engine)["shop"]) == settled(engine)
    assert (engine.models["shop"].agent.t, engine.models["shop"].lessons) == (1, 0)


def test_an_agent_that_cannot_revise_learns_at_the_close(engines: Make, clock: Any) -> None:
    engine = engines(agent={"class": "UCB1", "n_arms": 3}, window=10.0)
    for id, value in (("e1", 1.0), ("e2", None)):
        ask(engine, id)
        if value is not None:
            engine.reward("shop", id, value)
    engine.wait_learnt()
    assert engine.models["shop"].lessons == 0
    clock.now += 11.0
    engine.expire()
    engine.wait_learnt()
    assert engine.models["shop"].lessons == 2
    assert verify(engine.open_journal()).problems == []
    with pytest.raises(InvalidInput, match="UCB1 cannot revise"):
        engine.configure("shop", Change(learn="provisional"))
    engine.configure("shop", Change(learn="arrival"))
    ask(engine, "e3")
    engine.reward("shop", "e3", 1.0)
    engine.wait_learnt()
    assert engine.models["shop"].lessons == 3


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [("earliest", 0.5), ("latest", 0.25), ("sum", 0.5), ("mean", 0.125), ("max", 0.5), ("min", -0.5)],
)
def test_several_rewards_come_to_what_the_rule_says(engines: Make, clock: Any, rule: str, outcome: float) -> None:
    engine = engines(rule=rule, window=10.0)
    ask(engine, "e1")
    for value in (0.5, -0.5, 0.25, 0.25):
        engine.reward("shop", "e1", value)
    assert engine.find("shop", "e1")[2].value == outcome
    clock.now += 11.0
    engine.reward("shop", "e1", 0.75)  # late
    engine.expire()
    lessons = [row.lesson for row in engine.open_journal().events() if row.lesson is not None]
    assert [value for _, value in lessons] == [outcome]
    assert verify(engine.open_journal()).problems == []
    assert state(replayed(engine)["shop"]) == settled(engine)


def test_no_other_rule_or_way_to_learn_is_taken(engines: Make) -> None:
    for bad in ({"rule": "median"}, {"learn": "never"}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            Application(**bad).check()  # type: ignore[arg-type]
