"""Looks before windows are over."""

from armwise.offline.experiments.early import EarlyLooks
from armwise.offline.experiments.metric import Metric


def test_looks_are_at_ages_that_are_fixed_before_the_first_outcome():
    found = EarlyLooks(Metric("buy", window=7 * 86400.0), 2, alpha=0.025, planned=10_000, start=500).ages
    assert found == (590.625, 2362.5, 9450.0, 37800.0, 151200.0)
