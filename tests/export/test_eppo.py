"""Eppo's model format, evaluated by its real SDK; its conformance files, where a folder of them is given."""

from __future__ import annotations

import hashlib
import json
import os
import random
from pathlib import Path
from typing import Any

import eppo_client
import numpy as np
import pytest
from eppo_client import AssignmentLogger, ClientConfig, Configuration

import armwise as aw
from armwise.core.policy_document import CannotExport
from armwise.export.eppo import EppoColumns, eppo, eppo_flag, evaluate_eppo, model_version, to_json

CONTEXTS = 1000  # python -m benchmarks.edges has 10,000
ACTIONS = ["red", "grün", "青"]
PLANS = ["free", "pro", "日本", 'a"b', ""]


class Kept(AssignmentLogger):
    def __init__(self) -> None:
        self.actions: list[dict[str, Any]] = []

    def log_assignment(self, event: dict[str, Any]) -> None:
        pass

    def log_bandit_action(self, event: dict[str, Any]) -> None:
        self.actions.append(event)


def context(chance: random.Random, unseen: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if chance.random() < 0.8:
        found["age"] = chance.gauss(40.0, 12.0) if chance.random() < 0.9 else chance.choice([0, -0.0, 1e9, -1e-9])
    if chance.random() < 0.8:
        found["plan"] = "unseen" if unseen and chance.random() < 0.1 else chance.choice(PLANS)
    if chance.random() < 0.8:
        found["new"] = chance.random() < 0.5
    return found


def through_sdk(configuration: Any, asked: list[tuple[dict[str, Any], Any]]) -> list[dict[str, Any]]:
    kept = Kept()
    client = eppo_client.init(
        ClientConfig(
            api_key="none", assignment_logger=kept, initial_configuration=configuration, poll_interval_seconds=None
        )
    )
    try:
        for i, (subject, actions) in enumerate(asked):
            client.get_bandit_action("colours", f"user {i}", subject, actions, "none")
    finally:
        client.shutdown()
    return kept.actions


def test_the_sdk_logs_our_probabilities() -> None:
    """Ties apart: Eppo's best action is one, by name; here those that tie share."""
    chance = random.Random(1)
    seen = [context(chance, unseen=False) for _ in range(400)]
    columns = EppoColumns(seen)
    agent = aw.SquareCB(len(columns.names), n_arms=3, gamma=7.0, lam=1.0, seed=1)
    agent.play(columns.rows(seen), np.random.default_rng(2).random((400, 3)) * [0.2, 0.5, 0.8])
    policy = agent.policy(columns=columns.names, arms=ACTIONS)
    bandits, flags = eppo(policy, "colours", columns), eppo_flag("colours", model_version(policy))
    configuration = Configuration(flags_configuration=to_json(flags), bandits_configuration=to_json(bandits))
    asked = [context(chance) for _ in range(CONTEXTS)]
    logged = through_sdk(configuration, [(subject, {name: {} for name in ACTIONS}) for subject in asked])
    assert len(logged) == CONTEXTS and len({event["action"] for event in logged}) == 3
    for subject, event in zip(asked, logged):
        ours = agent.probabilities(columns.rows([subject])[0])
        assert abs(event["actionProbability"] - ours[ACTIONS.index(event["action"])]) < 1e-12
        assert event["modelVersion"] == model_version(policy)
        model = bandits["bandits"]["colours"]["modelData"]
        again = evaluate_eppo(model, subject, {name: {} for name in ACTIONS})
        np.testing.assert_allclose([again[name] for name in ACTIONS], ours, rtol=0.0, atol=1e-12)


def test_actions_with_attributes() -> None:
    chance = random.Random(2)
    seen = [[context(chance, unseen=False) for _ in range(3)] for _ in range(200)]
    columns = EppoColumns(each for three in seen for each in three)
    agent = aw.SquareCB(len(columns.names), gamma=5.0, lam=1.0, seed=1)
    agent.play(np.array([columns.rows(three) for three in seen]), np.random.default_rng(3).random((200, 3)))
    policy = agent.policy(columns=columns.names)
    bandits, flags = eppo(policy, "colours", columns, actions=ACTIONS), eppo_flag("colours", model_version(policy))
    configuration = Configuration(flags_configuration=to_json(flags), bandits_configuration=to_json(bandits))
    asked = [[context(chance) for _ in range(3)] for _ in range(300)]
    logged = through_sdk(configuration, [({}, dict(zip(ACTIONS, three))) for three in asked])
    different = 0
    for three, event in zip(asked, logged, strict=True):
        ours = agent.probabilities(columns.rows(three))
        if np.sum(ours == ours.max()) == 1:
            different += 1
            assert abs(event["actionProbability"] - ours[ACTIONS.index(event["action"])]) < 1e-12
    assert different > 250


def test_what_eppo_cannot_have_says_so() -> None:
    columns = EppoColumns([{"age": 3}])
    for agent in (
        aw.LinUCB(3, n_arms=2, alpha=0.5, lam=1.0),
        aw.Explore(aw.SquareCB(3, n_arms=2, gamma=3.0, lam=1.0), epsilon=0.1),
    ):
        with pytest.raises(CannotExport, match="the nearest that can be is SquareCB"):
            eppo(agent.policy(columns=columns.names), "colours", columns)
    with pytest.raises(CannotExport, match="SquareCB over EppoColumns"):
        eppo(aw.SquareCB(3, n_arms=2, gamma=3.0, lam=1.0).policy(), "colours", columns)
    with pytest.raises(ValueError, match="a number in some contexts"):
        EppoColumns([{"age": 3}, {"age": "three"}])


def test_conformance_files() -> None:
    """ARMWISE_EPPO_FILES names the folder ``ufc`` of Eppo's public test data, which have no licence to be kept here."""
    folder = os.environ.get("ARMWISE_EPPO_FILES")
    if folder is None:
        pytest.skip("set ARMWISE_EPPO_FILES to the folder ufc of Eppo's sdk-test-data")
    assert conforms(Path(folder)) > 0


def attributes(given: dict[str, Any]) -> dict[str, Any]:
    """One dictionary of a side's attributes: numbers, and texts of whatever a category is; null is missing."""
    numbers = {name: v for name, v in given["numericAttributes"].items() if isinstance(v, (int, float))}
    texts = {name: v if isinstance(v, bool) else str(v) for name, v in given["categoricalAttributes"].items()}
    return numbers | {name: texts[name] for name, v in given["categoricalAttributes"].items() if v is not None}


def shard(text: str) -> int:
    return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) % 10_000


def assigned(flag: str, subject: str, weights: dict[str, float]) -> str:
    """The action on which a subject falls, as Eppo shuffles them."""
    order = sorted(weights, key=lambda name: (shard(f"{flag}-{subject}-{name}"), name))
    ends = np.cumsum([weights[name] for name in order])
    return order[min(int(np.searchsorted(ends, shard(f"{flag}-{subject}") / 10_000, "right")), len(order) - 1)]


def conforms(folder: Path) -> int:
    """Each case's action is the one on which our weights put the subject; where the SDK takes it, so is its weight.

    Python's SDK refuses the attributes of the "dynamic typing" files, which are for languages without types.
    """
    models = json.loads((folder / "bandit-models-v1.json").read_text())["bandits"]
    flags = (folder / "bandit-flags-v1.json").read_bytes()
    kept, cases = Kept(), 0
    client = eppo_client.init(
        ClientConfig(
            api_key="none", assignment_logger=kept, poll_interval_seconds=None,
            initial_configuration=Configuration(
                flags_configuration=flags, bandits_configuration=(folder / "bandit-models-v1.json").read_bytes()
            ),
        )
    )  # fmt: skip
    for path in sorted((folder / "bandit-tests").glob("*.json")):
        test = json.loads(path.read_text())
        for case in test["subjects"]:
            subject, wanted = attributes(case["subjectAttributes"]), case["assignment"]
            actions = {each["actionKey"]: attributes(each) for each in case["actions"]}
            if wanted["action"] is not None:
                weights = evaluate_eppo(models[wanted["variation"]]["modelData"], subject, actions)
                assert assigned(test["flag"], case["subjectKey"], weights) == wanted["action"]
                cases += 1
            if "dynamic-typing" in path.name:
                continue
            kept.actions.clear()
            found = client.get_bandit_action(test["flag"], case["subjectKey"], subject, actions, test["defaultValue"])
            assert found.variation == wanted["variation"] and found.action == wanted["action"]
            for event in kept.actions:
                assert abs(weights[event["action"]] - event["actionProbability"]) < 1e-12
    client.shutdown()
    return cases
