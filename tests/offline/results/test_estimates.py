"""Levels of one-sided intervals."""

import pytest

from armwise.offline.results.estimates import both_sides


def test_a_one_sided_interval_is_an_end_of_a_two_sided_one():
    assert round(both_sides(0.95, "lower"), 3) == 0.9
    assert both_sides(0.95, None) == pytest.approx(0.95)
