"""What callers of ``Decider`` and ``Client`` pass is read once, and what is wrong with it is said by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.service.decider.decided import Decided, Ranked
from armwise.service.decider.describe import Undescribed, described, held_in_memory
from armwise.service.decider.parsing import (
    read_cost,
    read_decision,
    read_id,
    read_list_id,
    read_pairs,
    read_rankings,
    read_request,
    read_requests,
    read_reward,
    rewards_slots,
    rows,
)
from armwise.service.decider.transformed import Transformed, read_encoder


def test_requests_rankings_and_rewards_are_read() -> None:
    assert read_request({"arms": ["a"]}).arms.ids == ("a",)
    assert [each.id for each in read_requests([{"arms": ["a"], "id": "e1"}] * 2)] == ["e1", "e1"]
    assert read_rankings([{"arms": ["a", "b"], "k": 2}])[0].names == ["0", "1"]
    assert read_pairs([("e1", 1), ("e2", 0.5, 0.01)]) == [("e1", 1.0, None), ("e2", 0.5, 0.01)]
    assert read_list_id("e1", None) == "e1"


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (
            lambda: read_requests([{"arms": ["a"], "id": "e1"}, {"arms": ["b"], "id": "e1"}]),
            "requests: 'e1' is asked for twice, with other content",
        ),
        (lambda: read_id(3), "id must be text, got 3"),
        (
            lambda: rows("rewards", [1], "pairs of an id and a reward", 2),
            "rewards must be pairs of an id and a reward, got 1 at position 0",
        ),
        (lambda: read_decision("e1"), "decision must be what decide answered, got str 'e1'"),
        (lambda: read_reward("e1", "much"), "reward must be a number, got 'much'"),
        (lambda: read_cost(float("nan")), "cost must be finite numbers of at most 1e+150 in size, got nan"),
    ],
)
def test_what_cannot_be_read_is_named(read: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        read()
    assert str(refused.value) == said


def test_a_reward_of_a_list_has_arms_or_slots() -> None:
    assert rewards_slots({"a": 1}) and rewards_slots([1, 0])
    assert not rewards_slots(np.float32(1))


def test_a_list_has_the_probability_of_all_its_slots() -> None:
    slots = (Decided("e1", "red", 0.5, {"red": 0.5}), Decided("e1", "green", 0.8, {"green": 0.8}))
    ranked = Ranked("e1", slots)
    assert (ranked.arms, ranked.probabilities, ranked.probability) == (["red", "green"], [0.5, 0.8], 0.4)


def test_an_agent_is_described_without_its_dim() -> None:
    agent = described(aw.LinUCB(dim=3, alpha=0.5))
    assert agent["class"] == "LinUCB" and "dim" not in agent
    assert held_in_memory(aw.LinUCB()) is None
    assert issubclass(Undescribed, ValueError)


def test_a_transformer_makes_named_columns_of_a_context() -> None:
    class Double:
        def transform(self, rows: Any) -> list[list[float]]:
            return [[2.0 * rows[0]["hour"]]]

    assert Transformed(Double())({"hour": 9}) == {"x0": 18.0}
    settings = read_encoder(aw.features.Encoder(dim=64, interactions=False), None)[1]
    assert settings == {"dim": 64, "interactions": False}
