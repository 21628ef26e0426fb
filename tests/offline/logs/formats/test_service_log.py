"""Decisions in the logs of the service."""

import pytest

from armwise.offline.logs.formats.service_log import as_event, as_usual, is_service_log, record


def test_the_columns_of_the_services_table():
    assert is_service_log({"context", "arms", "arm", "index", "probability", "reward"})
    assert not is_service_log(["arm", "reward"])


def test_the_usual_columns_are_asked_for():
    assert as_usual({"arms": "arm"}, None)
    assert not as_usual({"arms": "index"}, None)
    assert not as_usual({}, 5)


def test_a_decision_has_a_cost_of_minus_its_reward():
    found = as_event({"context": {}, "arms": ["a"], "index": 0, "probability": 1.0, "reward": 0.5})["_label_cost"]
    assert found == pytest.approx(-0.5)


def test_an_open_decision_is_not_known():
    asked = {"status": "open", "age": 5.0, "window": 9.0, "default": 0.0, "rule": "sum", "learn": "close"}
    found = record(asked | {"Timestamp": "2026-01-01T00:00:00Z", "o": []})
    assert found is not None and not found.known
