"""The settings of an experiment, what callers say of units and outcomes, and the answers to them."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.service.experiments.arguments import read_outcome_id, read_said, read_unit, read_value
from armwise.service.experiments.assignment import Assignment
from armwise.service.experiments.definition import Definition


def test_the_first_metric_is_the_goal_unless_none_is_named() -> None:
    made = Definition.read(["control", "blue"], ["purchase"])
    assert made.goal.name == "purchase" and not made.unnamed and made.state == "running"
    assert Definition.read(["a", "b"]).unnamed


def test_a_definition_comes_back_from_json() -> None:
    made = Definition.read(["a", "b"], "buy", ramp=0.5)
    assert Definition.read(**made.asked()) == made
    assert made.plain()["arms"] == ["a", "b"]  # lists, as the journal has them


def test_a_metric_to_lower_changes_its_sign_both_ways() -> None:
    made = Definition.read(["a", "b"], {"name": "refund", "direction": "down"})
    assert made.reward("refund", 1.0) == -1.0
    assert made.reward("refund", made.reward("refund", 3.0)) == 3.0


def test_only_eligible_units_are_admitted() -> None:
    made = Definition.read(["a", "b"], "buy", eligible={"country": ["de", "at"]})
    assert made.admits({"country": "de"}) and not made.admits({"country": "fr"})


def test_units_values_and_ids_are_read_from_python_and_numpy() -> None:
    assert read_unit("user-17") == "user-17"
    assert (read_value(True), read_value(np.float32(0.5))) == (1.0, 0.5)
    assert (read_outcome_id(17), read_outcome_id(None)) == ("17", None)
    assert read_said("ann", "enough units") == ("ann", "enough units")
    with pytest.raises(ValueError):
        read_value("much")


def test_an_assignment_is_its_arm_and_counts_unless_it_was_forced() -> None:
    arm, forced = Assignment("blue", "u1", "assigned", 0.5), Assignment("blue", "u1", "forced")
    assert arm == "blue" == arm.to_dict()["arm"]
    assert arm.counted and not forced.counted
