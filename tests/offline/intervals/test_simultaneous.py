"""The level that covers several estimates at once."""

import numpy as np
import pytest

from armwise.offline.intervals.simultaneous import simultaneous_level, simultaneous_p


def test_equal_estimates_need_no_higher_level():
    assert round(simultaneous_level(np.eye(2), 0.95), 2) == 0.97
    assert simultaneous_level(np.ones((2, 2)), 0.95) < 0.96


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.99])
def test_p_values_go_with_the_intervals_of_all_at_once(rho):
    # A difference was said to have p = 0.04 beside an interval that holds 0: the interval was one of three at once.
    covariance = np.full((3, 3), rho) + (1.0 - rho) * np.eye(3)
    for level in (0.9, 0.95, 0.99):
        edge = 1.0 - simultaneous_level(covariance, level)
        below, above, _ = simultaneous_p(covariance, np.array([0.98, 1.02, 1.0]) * edge)
        assert below < 1.0 - level <= above + 1e-3
    found = simultaneous_p(covariance, np.array([1e-9, 1.0, np.nan]))
    assert found[0] <= 3.1e-9 and found[1] == 1.0 and np.isnan(found[2])
    assert simultaneous_p(np.eye(1), np.array([0.04])).tolist() == [0.04]
