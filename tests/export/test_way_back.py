"""Logs of exported policies: evaluated and learnt like logs at home."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from eppo_client import Configuration

import armwise as aw
from armwise import export
from armwise.export.eppo import EppoColumns, eppo, eppo_flag, model_version, to_json
from armwise.offline import EdgeLog, LogError
from tests.export.test_eppo import ACTIONS, context, through_sdk
from tests.export.worlds import taught, through_python

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import edge_loop


def beacon(id: str, **more: Any) -> dict[str, Any]:
    made = {
        "kind": "decision",
        "id": id,
        "unit": id,
        "time": 0.0,
        "context": {"age": 3},
        "arms": ["a", "b"],
        "arm": "b",
    }
    return made | {"probability": 0.5, "policy": "3ab4"} | more


def test_a_policy_at_the_edge_teaches_a_decider_as_one_at_home(tmp_path: Path) -> None:
    shop = taught(aw.Decider(dim=16, seed=1), 100, seed=1)
    shop.export(tmp_path / "policy.py")
    space: dict[str, Any] = {}
    exec((tmp_path / "policy.py").read_text(), space)
    chance, lines = random.Random(2), []
    for i in range(200):
        chosen = space["decide"]({"device": chance.choice(["phone", "tv"])}, ["red", "grün"], unit=f"u{i}")
        lines += [space["event"](chosen), space["event"](chosen)]  # a beacon that is sent again counts once
        if chosen["arm"] == "grün":
            lines.append(space["outcome"](chosen, 1.0))
    (tmp_path / "beacons.jsonl").write_text("".join(lines), encoding="utf-8")
    log = EdgeLog.from_beacons(tmp_path / "beacons.jsonl", horizon=60.0, now=1e11)
    assert len(log) == 200 and set(log.policies) == {shop.export(tmp_path / "p.json").checksum}
    assert log.rewards.sum() == sum(row["arm"] == "grün" for row in log.decisions) > 0
    other = aw.Decider(seed=3)
    assert other.warm_start(log.lessons()) == 200
    assert other.decide({"device": "tv"}, ["red", "grün"]).probabilities["grün"] > 0.9


def test_eppos_events_are_evaluated_with_their_probabilities() -> None:
    """The value of playing one action always is known; its interval has it but in 1 of 1,000 seeds."""
    chance = random.Random(1)
    columns = EppoColumns(context(chance, unseen=False) for _ in range(200))
    agent = aw.SquareCB(len(columns.names), n_arms=3, gamma=2.0, lam=1.0, seed=1)
    policy = agent.policy(columns=columns.names, arms=ACTIONS)
    configuration = Configuration(
        flags_configuration=to_json(eppo_flag("colours", model_version(policy))),
        bandits_configuration=to_json(eppo(policy, "colours", columns)),
    )
    events = through_sdk(configuration, [(context(chance), {name: {} for name in ACTIONS}) for _ in range(1500)])
    rates = dict(zip(ACTIONS, (0.2, 0.5, 0.8)))
    outcomes = [
        {"subject": event["subject"], "value": 1.0, "timestamp": event["timestamp"]}
        for event in events
        if chance.random() < rates[event["action"]]
    ]
    log = EdgeLog.from_eppo(events, outcomes, horizon=60.0, now=1e11)
    assert len(log) == 1500 and log.arm_names == sorted(ACTIONS)
    always = [float(name == "青") for name in log.arm_names]
    found = aw.offline.evaluate(log.log(columns), always, ["snips"], cluster=log.units, level=0.999)["snips"]
    assert found.low < 0.8 < found.high and found.high - found.low < 0.3
    learnt = aw.fit_log(agent.clone(seed=1), log.log(columns))
    assert learnt.probabilities(columns.rows([{}])[0]).argmax() == log.arm_names.index("青")


def test_ages_and_outcomes() -> None:
    lines = [
        beacon("old"), beacon("late"), beacon("young", time=995.0), beacon("silent", unit=None),
        {"kind": "outcome", "id": "old", "reward": 2.0, "time": 9.0},
        {"kind": "outcome", "id": "old", "reward": 1.0, "time": 5.0},
        {"kind": "outcome", "id": "late", "reward": 1.0, "time": 11.0},
        {"kind": "outcome", "id": "young", "reward": 1.0, "time": 996.0},
        {"kind": "outcome", "id": "nobody", "reward": 1.0, "time": 996.0},
    ]  # fmt: skip
    log = EdgeLog.from_beacons(lines, horizon=10.0, now=1000.0, default=-1.0)
    earned = dict(zip((row["key"] for row in log.decisions), log.rewards.tolist()))
    assert earned == {"old": 1.0, "late": -1.0, "silent": -1.0} and log.too_young == 1
    assert sorted(log.units) == ["late", "old", "silent"]


def test_lines_come_in_any_shape_and_junk_among_them_is_no_file() -> None:
    several = beacon("two", context=[{"device": "tv"}, {"hour": 9}], arm="b",
                     arms=["a", {"id": "b", "features": [{"price": 3}, {"id": "shelf"}]}])  # fmt: skip
    lines: list[Any] = [json.dumps(beacon("one")).encode(), json.dumps(several), "", "no such file", "[]", beacon("x")]
    log = EdgeLog.from_beacons(lines, horizon=1.0, now=9.0, skip=True)
    assert [row["key"] for row in log.decisions] == ["one", "two", "x"]
    assert log.contexts[1] == {"device": "tv", "hour": 9} and log.lessons()[1]["arms"][1] == {"price": 3, "id": "b"}
    with pytest.raises(LogError, match="line 4: not JSON"):
        EdgeLog.from_beacons(lines, horizon=1.0)
    with pytest.raises(FileNotFoundError):
        EdgeLog.from_beacons("no such file", horizon=1.0)
    with pytest.raises(ValueError, match="now must be a number, got nan"):
        EdgeLog.from_beacons([beacon("one")], horizon=1.0, now=float("nan"))
    with pytest.raises(ValueError, match="no decisions as old as its horizon: 1 are younger"):
        EdgeLog.from_beacons([beacon("one")], horizon=1.0, now=0.5).log(EppoColumns())
    later, earlier = (
        {"subject": "u", "banditKey": "b", "action": arm, "actionProbability": 0.5, "modelVersion": "3",
         "timestamp": f"2026-01-01T00:00:{second:02}Z"} for arm, second in (("red", 9), ("blue", 3))
    )  # fmt: skip
    frame = pd.DataFrame([later, earlier])
    for events in (frame, [later, earlier]):
        [first] = EdgeLog.from_eppo(events, [], horizon=60, now=2e9).decisions
        assert first["arm"] == "blue"


def test_bytes_that_are_no_text_are_one_wrong_line_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "beacons.jsonl"
    path.write_bytes(
        b"\n".join([json.dumps(beacon("one")).encode(), b'{"id": "\xff"}', json.dumps(beacon("two")).encode()])
    )
    assert len(EdgeLog.from_beacons(path, horizon=1.0, now=9.0, skip=True)) == 2
    with pytest.raises(LogError, match="line 2: not JSON"):
        EdgeLog.from_beacons(path, horizon=1.0, now=9.0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: not JSON"),
        ("[1]", "expected an object"),
        (json.dumps(beacon("e", probability=0.0)), r"probability must lie in \(0, 1\]"),
        (json.dumps(beacon("e", probability=float("nan"))), "probability must be a number"),
        (json.dumps(beacon("e", arm="c")), "one of them as arm"),
        (json.dumps(beacon("e", time="now")), "time must be a number"),
        (json.dumps(beacon("e", context=[])), "context must be an object"),
        (json.dumps(beacon("e", context=[{"a": 1}, 2])), "context must be an object"),
        (json.dumps(beacon("e", arms=["a", "b", "a"])), "arms must be different"),
        (json.dumps(beacon("e", kind="click")), "kind must be decision or outcome, got 'click'"),
    ],
)
def test_lines_that_are_wrong_are_named_or_left_out(line: str, said: str) -> None:
    if line[0] == "[":
        lines: list[Any] = [json.loads(line)]
    else:
        lines = [line]
    with pytest.raises(LogError, match=said):
        EdgeLog.from_beacons(lines, horizon=1.0)
    assert len(EdgeLog.from_beacons([*lines, beacon("e")], horizon=1.0, now=9.0, skip=True)) == 1


@pytest.mark.filterwarnings("ignore::armwise.offline.WeakLogWarning")  # a confident policy leaves a weak log
def test_the_nightly_loop_learns_and_promotes(capsys: pytest.CaptureFixture[str]) -> None:
    """The policy of the first day earns .18 a visit, the best .35: a loop that never promotes stays at .18 +- .01."""
    earned = edge_loop.loop(days=2, visitors=1200)
    assert "promoted" in capsys.readouterr().out
    assert earned[-1] > earned[0] + 0.03


def test_the_page_and_the_log_agree_on_probabilities(tmp_path: Path) -> None:
    """Whoever doubts what a client reported asks the policy again."""
    shop = taught(aw.Decider(dim=16, seed=1), 50, seed=1)
    export.write(shop.export(tmp_path / "policy.json"), tmp_path / "policy.py")
    honest = beacon("e", arms=["red", "青"], arm="red", context={"device": "tv"})
    [p] = through_python(tmp_path, "policy", [honest])
    log = EdgeLog.from_beacons([honest | {"probability": p[0]}], horizon=1.0, now=9.0)
    assert np.array_equal(log.probabilities, [p[0]])
