"""Metrics and splits as they are given."""

from armwise.offline.experiments.metric import read_metrics, read_split


def test_metrics_are_names_or_dictionaries():
    found = [metric.name for metric in read_metrics(["purchase", {"name": "revenue", "kind": "amount"}])]
    assert found == ["purchase", "revenue"]


def test_a_split_is_in_the_order_of_the_arms():
    assert read_split({"control": 0.9, "blue": 0.1}, ("control", "blue")).tolist() == [0.9, 0.1]
