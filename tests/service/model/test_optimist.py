"""One compiled call decides what the steps decide, and what is learnt of it is the same: all to the bit."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from armwise.core import saving
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.from_python import arm_to_json, read_context, read_named_arms
from armwise.service.journal.events import DEFAULT_AGENT, Creation, Decision, Reward, Row, Settings
from armwise.service.model.build import build_model
from armwise.service.model.model import DecisionOutcome, DrawRequest, Model
from armwise.service.model.versions import Challenger, draw_among

AGENTS: dict[str, dict[str, Any]] = {
    "default": dict(DEFAULT_AGENT),
    "LinUCB": {"class": "LinUCB", "alpha": 0.3, "lam": 0.7},
    "ellipsoid": {"class": "LinUCB", "alpha": {"class": "Ellipsoid", "noise": 0.2, "norm": 1.0, "delta": 0.1}},
    "noise learnt": {"class": "Explore", "epsilon": 0.2, "agent": {"class": "LinUCB", "lam": 1.0}},
}


def request(rng: random.Random, k: int) -> tuple[Any, list[Any]]:
    context: dict[str, Any] = {f"f{i}": rng.choice(["north", "south", True, None]) for i in range(k % 4)}
    context |= {f"n{i}": rng.choice([rng.random(), rng.randrange(9), 5]) for i in range(k % 7)}
    arms: list[Any] = [f"arm{i}" for i in range(1 + k % 19)]
    if k % 3:
        arms = [{"id": arm, "price": rng.random(), "kind": rng.choice("ab"), "size": i} for i, arm in enumerate(arms)]
    return context, arms


def by_steps(creation: Creation) -> Model:
    model = build_model(creation)
    assert model.optimist is not None
    model.optimist = model.alone = None  # what stands beside it is taught in compiled calls alone
    return model


@pytest.mark.parametrize("dim", [8, 21, 128])
@pytest.mark.parametrize("agent", AGENTS)
def test_one_call_is_the_steps_to_the_bit(agent: str, dim: int) -> None:
    # Drift is off: what is expected of an arm is summed up otherwise by the steps.
    features = {"dim": dim, "interactions": dim != 21}
    creation = Creation(AGENTS[agent], features, settings=Settings(drift="off"))
    quick, slow, rng = build_model(creation), by_steps(creation), random.Random(dim)
    quick.alone = None
    for k in range(120):
        context, arms = request(rng, k)
        (text, tokens), offered, u = read_context(context), read_named_arms(arms), rng.random()
        [ours] = quick.decide([DrawRequest(text, offered, u, tokens)])
        [theirs] = slow.decide([DrawRequest(text, offered, u)])
        assert (ours.arm, ours.p.tobytes(), ours.seen.scaling) == (theirs.arm, theirs.p.tobytes(), theirs.seen.scaling)
        assert ours.seen.chosen_row_only and ours.seen.view.tobytes() == theirs.seen.view[theirs.arm].tobytes()
        made = Decision(msgspec.Raw(text), offered.raws, ours.p.tolist(), ours.arm, k, 1, 0.0, learn=quick.learns)
        made.scaling = ours.seen.scaling.packed
        row, outcome = Row(k + 1, k, "shop", "decision", "", b""), Reward(float(k % 2), k + 1, lesson=float(k % 2))
        quick.register_decisions([msgspec.structs.replace(row, at_hand=made, seen=ours.seen)])
        slow.register_decisions([msgspec.structs.replace(row, at_hand=made)])  # as a replay does: from the journal
        quick.apply_outcomes([DecisionOutcome(outcome, made, ours.seen)])
        slow.apply_outcomes([DecisionOutcome(outcome, made)])
        quick.version = slow.version = k + 1
    assert saving.dumps(quick) == saving.dumps(slow)


def test_arms_by_value_are_told_apart() -> None:
    first = read_named_arms([{"id": "a", "n": 1}, "b"])
    assert read_named_arms([{"id": "a", "n": 1}, "b"]) is first
    for other in ({"id": "a", "n": 1.0}, {"id": "a", "n": True}, {"id": "a", "m": 1}, {"id": "a", "n": 1, "m": None}):
        read = read_named_arms([other, "b"])
        assert read is not first
        features = {name: value for name, value in other.items() if name != "id"}
        assert bytes(read.raws[0]) == msgspec.json.encode({"id": "a", "features": features})
    changing = {"id": "a", "n": 1}
    read = read_named_arms([changing, "c"])
    changing["n"] = 2
    assert bytes(read.raws[0]) == b'{"id":"a","features":{"n":1}}'  # as it was when it was asked


@pytest.mark.parametrize("arm", [{"id": "a", "x": float("inf")}, {"id": "a", "x": 10**200}, {"id": "", "x": 1}])
def test_arms_that_cannot_be_learnt_are_refused(arm: Any) -> None:
    read_named_arms([{"id": "a", "x": 1.0}])  # the name is known
    with pytest.raises(ValueError, match=r"finite|1e150|characters"):
        read_named_arms([arm])


@pytest.mark.parametrize("context", [{"\ud800": None}, {"a": "\ud800"}])
def test_half_a_surrogate_pair_is_refused(context: Any) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        read_context(context)


def test_what_the_versions_draw_is_learnt_with_the_row_of_the_arm_that_was_played() -> None:
    leader = build_model(Creation())
    leader.versions["bold"] = challenger = Challenger(build_model(Creation({"class": "UCB1", "n_arms": 3})))
    challenger.share, rng, other = 0.9, random.Random(1), 0
    for _ in range(60):
        arms = read_named_arms(["a", "b", "c"])
        made = Decision(msgspec.Raw(b"{}"), arms.raws, [0.0, 1.0, 0.0], 1, 0, 1, 0.0)
        leader.learn(made, 1.0)  # so that it would play b
        challenger.model.learn(msgspec.structs.replace(made, arm=0, p=[1.0, 0.0, 0.0]), 1.0)
        drawn, _, _ = draw_among(leader, b"{}", arms, rng.random(), None)
        played = leader.agent_view.recall_choice(
            msgspec.structs.replace(made, p=drawn.p.tolist(), arm=drawn.arm), drawn.seen, leader.name
        )
        assert (played[0][played[1].arm] == leader.see(b"{}", arms).view[drawn.arm]).all()
        other += drawn.arm != 1
    assert other > 10


@pytest.mark.parametrize("agent", ["default", "LinUCB"])
def test_decisions_registered_together_are_those_registered_one_by_one_to_the_bit(agent: str) -> None:
    """A difference would mean that a model depends on how many events its learner found at once."""
    creation = Creation(AGENTS[agent])
    quick, slow, rng = build_model(creation), build_model(creation), random.Random(7)
    waiting: list[Any] = []
    k = 0
    while k < 400:
        batch = []
        for _ in range(rng.randrange(1, 9)):
            k += 1
            context, arms = request(rng, k)
            (text, tokens), offered = read_context(context), read_named_arms(arms)
            [drawn] = quick.decide([DrawRequest(text, offered, rng.random(), tokens)])
            made = Decision(msgspec.Raw(text), offered.raws, drawn.p.tolist(), drawn.arm, k, 9, 0.0)
            made.scaling = drawn.seen.scaling.packed
            batch.append(Row(k, k, "shop", "decision", "", b"", made, seen=drawn.seen))
        for row in batch:
            slow.register_decisions([msgspec.structs.replace(row, seen=None)])
        quick.register_decisions(batch)
        quick.version = slow.version = k
        waiting += batch
        while len(waiting) > 4:  # rewards come in any order
            row = waiting.pop(rng.randrange(len(waiting)))
            reward = float(k % 2) if k < 250 else -1.0
            quick.apply_outcomes([DecisionOutcome(Reward(reward, row.seq, lesson=reward), row.event, row.seen)])
            slow.apply_outcomes([DecisionOutcome(Reward(reward, row.seq, lesson=reward), row.event)])
    assert quick.drift.alarms
    assert saving.dumps(quick) == saving.dumps(slow)


def test_arms_whose_values_differ_are_read_as_if_for_the_first_time() -> None:
    # Only their values are written anew: a failure means that a token, or the text, is that of another request's arm.
    rng, values = random.Random(3), [1, 2.5, True, None, float("nan"), "x", "y", -(2**60), 0.0]
    for _ in range(300):
        arms: list[Any] = [{"a": rng.choice(values), "id": i, "b": rng.choice(values)} for i in "pqr"]
        arms = [*arms, "s"] if rng.random() < 0.8 else arms[::-1]
        read, fresh = read_named_arms(arms), read_arms([arm_to_json(arm) for arm in arms])
        assert (read.ids, read.tail) == (fresh.ids, fresh.tail)
        assert [msgspec.json.decode(raw) for raw in read.raws] == [msgspec.json.decode(raw) for raw in fresh.raws]
