"""The ramp: arms that are new beside known ones get at most a share of a decision, until they were tried."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.native.tokens import arm_hash
from armwise.service.engine.application import Application
from armwise.service.journal.events import Change, Creation, Settings
from armwise.service.model.build import build_model
from armwise.service.model.drawing.ramp import KNOWN, MAX_COUNTED, TRIED, DrawCounts, beyond_ramp, ramped
from armwise.service.model.merged_views import merge
from armwise.service.model.model import DrawRequest, Model
from armwise.service.model.versions import Challenger, inherit

OLD, ALL = read_arms([b'"a"', b'"b"', b'"d"']), read_arms([b'"a"', b'"b"', b'"d"', b'"fresh"'])


def taught(share: float = 0.1, agent: dict[str, Any] | None = None) -> Model:
    """A model to which a is known, and b and c as arms that were tried."""
    made = Creation(settings=Settings(new_arms=share)) if agent is None else Creation(agent)
    model = build_model(made)
    for k, draws in enumerate((KNOWN, TRIED, TRIED)):
        for _ in range(draws):
            model.counts.add(arm_hash(OLD.tail.words, k), 1)
    drawn = model.see(b"{}", OLD)
    for _ in range(400):
        for k, reward in enumerate((0.2, 0.0, 0.0)):
            model.agent.learn(drawn.view, aw.Choice(k, 1 / 3), reward)
    return model


def decide(model: Model, u: float = 0.5, arms: Any = ALL) -> Any:
    [drawn] = model.decide([DrawRequest(b"{}", arms, u)])
    return drawn


def test_a_new_arm_gets_the_share_and_the_others_their_floor() -> None:
    assert decide(taught(1.0)).p.round(9).tolist() == [0.025, 0.025, 0.025, 0.925]
    assert decide(taught(0.1)).p.round(9).tolist() == [0.85, 0.025, 0.025, 0.1]
    assert decide(taught(0.0)).p.round(9).tolist() == [0.925, 0.025, 0.025, 0.025]  # no less than its floor
    model = taught(0.1)
    drawn = [decide(model, (k + 0.5) / 1000) for k in range(1000)]
    assert np.bincount([each.arm for each in drawn]).tolist() == [850, 25, 25, 100]  # drawn with what is answered
    full = model.see(b"{}", ALL).view
    assert all(np.array_equal(each.seen.view[0], full[each.arm]) for each in drawn[::50])  # the row to learn from


def test_the_ramp_ends_when_the_arm_was_tried_and_begins_with_a_known_arm() -> None:
    model = taught(0.1)
    for _ in range(TRIED):
        assert decide(model).p[3] == pytest.approx(0.1)
        model.counts.add(arm_hash(ALL.tail.words, 3), 1)
    assert decide(model).p[3] == pytest.approx(0.925)
    fresh = build_model(Creation())  # all arms are new: nothing is held back
    assert decide(fresh).p.tolist() == [0.25] * 4
    strangers = read_arms([b'"x"', b'"y"'])
    assert decide(taught(0.1), arms=strangers).p.tolist() == [0.5, 0.5]


def test_several_new_arms_share_it() -> None:
    three = read_arms([b'"a"', b'"n1"', b'"n2"', b'"b"'])
    p = decide(taught(0.2), arms=three).p
    assert p[1] + p[2] == pytest.approx(0.2) and p.sum() == pytest.approx(1.0) and p.min() >= 0.025 - 1e-12


def test_ramped_is_a_distribution_that_keeps_the_floor() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        K, epsilon, share = int(rng.integers(2, 12)), rng.uniform(0.0, 0.5), rng.uniform(0.0, 1.0)
        new = np.zeros(K, bool)
        new[: rng.integers(1, K)] = True
        p = (1.0 - epsilon) * np.eye(K)[int(rng.integers(new.sum()))] + epsilon / K  # the agent wants a new one
        known = np.full(K - new.sum(), epsilon / (K - new.sum()))
        known[-1] += 1.0 - epsilon
        if not beyond_ramp(p.tolist(), new.tolist(), share):
            continue
        found = ramped(p, known, new, share)
        assert found.sum() == pytest.approx(1.0) and found.min() >= epsilon / K - 1e-12
        assert found[new].max() == pytest.approx(max(share, epsilon / K))  # the one it wants; the others their floor
        assert found[-1] == pytest.approx(1.0 - found[:-1].sum()) and found[-1] == found[~new].max()


@pytest.mark.parametrize("name", ["SquareCB", "LinUCB", "RegCB"])
def test_agents_that_are_not_compiled_have_it_too(name: str) -> None:
    model = taught(agent={"class": name})
    for _ in range(60):
        model.agent.learn(model.see(b"{}", ALL).view, aw.Choice(3, 0.5), 0.9)
    model.configure(Change(new_arms=1.0))
    assert decide(model).p[3] > 0.5
    model.configure(Change(new_arms=0.1))
    assert decide(model).p[3] == pytest.approx(0.1) and decide(model).p.sum() == pytest.approx(1.0)


def test_an_agent_with_a_row_for_each_of_its_arms_has_none() -> None:
    """Asked about the known arms alone it refused, so every decision failed once an arm was known."""
    model = build_model(Creation({"class": "HybridLinUCB", "n_arms": 4, "shared": 64}))
    for _ in range(KNOWN):
        model.counts.add(arm_hash(OLD.tail.words, 0), 1)
    drawn = model.see(b"{}", ALL)
    for _ in range(60):
        for k, reward in enumerate((0.2, 0.0, 0.0, 0.9)):
            model.agent.learn(drawn.view, aw.Choice(k, 0.25), reward)
    assert decide(model).p[3] == 1.0


def test_counts_are_bounded_saved_and_merged() -> None:
    counts = DrawCounts()
    for _ in range(KNOWN):
        counts.add(arm_hash(OLD.tail.words, 0), 1)
    for k in range(MAX_COUNTED):
        counts.add(arm_hash(read_arms([b'"arm%d"' % k]).tail.words, 0), 1)
    assert len(counts.drawn) == MAX_COUNTED and counts.known == 0  # the arm that was drawn longest ago went
    model = taught()
    again = saving.loads(saving.dumps(model))
    assert decide(again).p.tolist() == decide(model).p.tolist() and again.counts.drawn == model.counts.drawn
    assert list(again.counts.drawn) == list(model.counts.drawn)
    views = merge([taught(), taught()])
    assert max(views[-1].counts.drawn.values()) == 2 * KNOWN and views[-1].counts.known == 1
    twin = model.copy()
    twin.counts.add(arm_hash(ALL.tail.words, 3), 1)
    assert len(model.counts.drawn) == 3  # shares nothing


def test_a_snapshot_without_counts_loads() -> None:
    model = build_model(Creation())
    state = model._state()
    del state["counts"]
    model._restore(state)
    assert model.counts.drawn == {}


def grown(shop: aw.Decider, seed: int, before: int, after: int, rate: float) -> tuple[int, list[float]]:
    """How often a new arm was drawn, and with what chance, after rounds without it."""
    rng, drawn, chances = np.random.default_rng(seed), 0, []
    for t in range(before + after):
        arms = ["a", "b", "d"] + ["fresh"] * (t >= before)
        d = shop.decide({}, arms)
        if rng.random() < {"a": 0.3, "b": 0.1, "d": 0.1, "fresh": rate}[d.arm]:
            shop.reward(d, 1.0)
        if t >= before:
            drawn += d.arm == "fresh"
            chances.append(d.probabilities["fresh"])
    return drawn, chances


def test_a_good_new_arm_is_found_and_a_bad_one_costs_little() -> None:
    """Three seeds; without the ramp a new arm's first chance is above .9. A failure would mean that the ramp does not
    hold in a Decider, or that it holds for ever."""
    for seed in range(3):
        _, chances = grown(aw.Decider(seed=seed, new_arms=0.1), seed, 1500, 1600, 0.6)
        assert max(chances[:500]) == pytest.approx(0.1) and np.mean(chances[-200:]) > 0.85
        drawn, _ = grown(aw.Decider(seed=seed, new_arms=0.1), seed, 1500, 500, 0.01)
        assert drawn < 75  # .1 of 500, and luck
    _, free = grown(aw.Decider(seed=1, new_arms=1.0), 1, 1500, 1, 0.6)
    assert free[0] > 0.9


def test_it_is_a_setting_that_stays(tmp_path: Path) -> None:
    with aw.Decider(tmp_path, new_arms=0.3) as shop:
        shop.decide({}, ["a"])
    with aw.Decider(tmp_path) as again:
        assert again._backend.model().settings.new_arms == 0.3
        assert again._backend.model().counts.drawn  # from snapshot or journal
    with pytest.raises(InvalidInput, match=r"new_arms must be a share between 0 and 1, got 1\.5"):
        aw.Decider(new_arms=1.5)
    with pytest.raises(ValueError, match="new_arms must be a number, got str"):
        aw.Decider(new_arms="some")  # type: ignore[arg-type]
    assert Application(new_arms=0.5).creation().settings.new_arms == 0.5


def test_every_version_has_the_leaders_counts() -> None:
    model, other = taught(), build_model(Creation())
    other.versions["bold"] = Challenger(build_model(Creation()))
    inherit(model, other)
    assert model.versions["bold"].model.counts is model.counts
    twin = model.copy()
    assert twin.versions["bold"].model.counts is twin.counts is not model.counts
    model.configure(Change(new_arms=0.4))
    assert model.versions["bold"].model.settings.new_arms == 0.4


def test_counts_are_a_fold_of_the_journal(tmp_path: Path) -> None:
    """In a folder that is read again, and in memory; decided one by one and together."""
    asked = [{"context": {"hour": t % 24}, "arms": ["a", "b"], "id": f"e{t}"} for t in range(60)]
    with aw.Decider(tmp_path) as folder:
        made = folder.decide_many(asked[:40]) + [folder.decide(each["context"], ["a", "b"]) for each in asked[40:]]
        drawn = collections.Counter(d.arm for d in made)
    with aw.Decider(tmp_path) as again:
        assert sorted(again._backend.model().counts.drawn.values()) == sorted(drawn.values())
    memory = aw.Decider(seed=1)
    made = memory.decide_many(asked[:40]) + [memory.decide(each["context"], ["a", "b"]) for each in asked[40:]]
    drawn = collections.Counter(d.arm for d in made)
    assert sorted(memory._backend.model().counts.drawn.values()) == sorted(drawn.values())
