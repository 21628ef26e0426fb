"""DriftDetector: an alarm when tastes change, hardly ever otherwise; what was learnt before counts little then."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from armwise.core import saving
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.models.ridge import Ridge
from armwise.service.engine.engine import Engine
from armwise.service.journal.events import Change, Creation, Decision, Reward, Row, Settings
from armwise.service.log.verify import verify
from armwise.service.model.build import build_model
from armwise.service.model.drift import MAX_OPEN, DriftDetector
from armwise.service.model.model import DecisionOutcome, DrawRequest
from tests.service.serving import replayed, settled, state

ARMS = read_arms([json.dumps(f"a{k}").encode() for k in range(6)])


def earned(drift: str, seed: int, changes: bool, n: int = 500) -> tuple[list[float], int]:
    """What the default earns in blocks of ``n`` decisions, the tastes of four kinds of people changing at half time."""
    rng = np.random.default_rng(seed)
    model = build_model(Creation(settings=Settings(drift=drift), features={"dim": 64}))

    pays = rng.uniform(0.02, 0.2, (4, 6))
    pays[range(4), rng.permutation(6)[:4]] = 0.55
    after, chance = np.roll(pays, 3, axis=1), rng.random((4 * n, 3)).tolist()
    found = []
    for t, (who, u, luck) in enumerate(chance):
        now = after if changes and t >= 2 * n else pays
        person = int(4 * who)
        context = b'{"person": "p%d"}' % person
        [it] = model.decide([DrawRequest(context, ARMS, u)])
        asked = Decision(
            msgspec.Raw(context), list(ARMS.raws), it.p.tolist(), it.arm, 0, 1, 0.0,
            scaling=it.seen.scaling.packed,
        )  # fmt: skip
        model.watch_for_drift(Row(t + 1, t, "shop", "decision", "", b""), asked, it.seen)
        model.learn_default(asked, at_hand=it.seen)
        outcome = Reward(0.0, t + 1, lesson=float(luck < now[person, it.arm]))
        model.apply_outcomes([DecisionOutcome(outcome, asked, it.seen)])
        model.version = t + 1
        found.append(now[person, it.arm])
    return np.reshape(found, (4, n)).mean(axis=1).tolist(), len(model.drift.alarms)


def test_it_is_saved_by_the_name_that_files_written_before_have() -> None:
    data = saving.dumps(DriftDetector())
    assert b"armwise:Drift" in data and b"DriftDetector" not in data
    assert saving.loads(data).n == 0


def test_after_tastes_change_the_default_recovers() -> None:
    """Mean of three worlds. A failure would mean that drift is not seen, or that what was learnt still decides."""
    forgetting, alarms = zip(*[earned("forget", seed, changes=True) for seed in range(3)])
    lasting, _ = zip(*[earned("off", seed, changes=True) for seed in range(3)])
    assert all(n >= 1 for n in alarms)
    assert np.mean(forgetting, axis=0)[2] > np.mean(lasting, axis=0)[2] + 0.08
    assert np.mean(forgetting, axis=0)[3] > 0.38


def test_without_drift_it_costs_nothing() -> None:
    for seed in range(2):
        (forgetting, alarms), (lasting, _) = (earned(way, seed, changes=False) for way in ("forget", "off"))
        assert alarms == 0
        assert forgetting == lasting


def test_false_alarms_are_rare() -> None:
    """20,000 decisions in the mean, at least: in 40 runs of 1,000 about two would be many, and six a mistake."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(40):
        drift, mean = DriftDetector(), rng.uniform(0.05, 0.95)
        rewards, hopes = (rng.random(1000) < mean).tolist(), (mean + rng.normal(0.05, 0.1, 1000)).tolist()
        alarms += sum(drift.add(hope, float(reward), 0.0, 1.0) for hope, reward in zip(hopes, rewards))
    assert alarms <= 5


def test_to_learn_what_pays_is_no_drift() -> None:
    """It expects nothing at first and earns a lot, then what it earns: its promises were never too high."""
    rng = np.random.default_rng(2)
    drift = DriftDetector()
    hopes = np.minimum(np.linspace(0.0, 1.0, 400), 0.5)
    assert not any(drift.add(hope, float(luck < 0.5), 0.0, 1.0) for hope, luck in zip(hopes.tolist(), rng.random(400)))


def test_zeros_that_come_when_windows_close_are_no_drift() -> None:
    """Clicks come at once, their lack later and all together: decisions are taken in the order they were made."""
    rng = np.random.default_rng(3)
    drift = DriftDetector()
    for start in range(0, 6000, 200):
        clicks = rng.random(200) < 0.4
        for k in range(200):
            drift.watch(start + k, 0.4, deadline=start + 500)
        alarms = [drift.settle(start + k, 1.0, [0.0, 1.0]) for k in np.flatnonzero(clicks).tolist()]
        alarms += [drift.settle(start + k, 0.0, [0.0, 1.0]) for k in np.flatnonzero(~clicks).tolist()]
        assert not any(alarms)
    assert (drift.n, drift.open, drift.earned) == (6000, {}, {})


def test_decisions_that_are_waited_for_are_bounded_and_not_waited_for_for_ever() -> None:
    model = build_model(Creation())
    asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1000, 0.0)
    for seq in range(1, 2 * MAX_OPEN):
        model.watch_for_drift(Row(seq, seq, "shop", "decision", "", b""), asked)
    assert len(model.drift.open) == MAX_OPEN
    model.watch_for_drift(Row(9999, 10**6, "shop", "decision", "", b""), asked)
    assert model.drift.open == {}


def test_a_faded_ridge_is_the_one_that_learnt_with_less_weight() -> None:
    rng = np.random.default_rng(1)
    X, rewards = rng.normal(size=(30, 5)), rng.random(30)
    faded, light = Ridge(5, lam=0.7, prior_mean=[1, 0, 0, 0, 2]), Ridge(5, lam=0.7, prior_mean=[1, 0, 0, 0, 2])
    for x, reward in zip(X, rewards):
        faded.update(x, reward)
        light.update(x, reward, weight=0.1)
    faded.fade(0.1)
    np.testing.assert_allclose(faded.theta, light.theta)
    np.testing.assert_allclose(faded.log_det(), light.log_det())
    with pytest.raises(ValueError, match="forgets by itself"):
        Ridge(5, discount=0.9).fade(0.5)


def test_an_outcome_of_before_the_alarm_counts_as_its_decision_does() -> None:
    """Assumed, faded, then known: the same as if it had been known when it faded."""
    early, late = build_model(Creation()), build_model(Creation())
    asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1000, 0.0)
    for model in (early, late):
        model.version = 1
        model.learn_default(asked)
    early.apply_outcomes([DecisionOutcome(Reward(1.0, 1, lesson=1.0), asked)])
    early.forget()
    late.forget()
    late.apply_outcomes([DecisionOutcome(Reward(1.0, 1, lesson=1.0), asked)])
    (one, _), (two, _) = (model.estimate(b"{}", read_arms([b'"a"'])) for model in (early, late))
    np.testing.assert_allclose(one, two, atol=1e-12)
    assert one[0] > 0.0


def test_drift_is_a_fold_of_the_journal(engines: Callable[..., Engine]) -> None:
    engine = engines(drift="forget")

    def play(start: int, pays: str) -> None:
        for first in range(start, start + 120, 20):
            ids = [f"e{k}" for k in range(first, first + 20)]
            asked = [engine.prepare("shop", b"{}", [b'"a"', b'"b"', b'"c"'], id=id) for id in ids]
            engine.writer.write(asked)
            arms = ["abc"[write.event.arm] for write in asked]  # type: ignore[union-attr]
            engine.writer.write([engine.prepare_reward("shop", id, float(a == pays)) for id, a in zip(ids, arms)])
            engine.wait_learnt()

    play(0, "a")
    play(120, "c")
    assert len(engine.models["shop"].drift.alarms) == 1
    assert state(replayed(engine)["shop"]) == settled(engine)
    engine.snapshot()
    assert verify(engine.open_journal()).problems == []
    with pytest.raises(InvalidInput, match="drift must be forget, alert or off"):
        engine.configure("shop", Change(drift="sometimes"))
    engine.configure("shop", Change(drift="off"))
    assert engine.models["shop"].settings.drift == "off"
