"""The level that covers several estimates at once."""

import numpy as np

from armwise.offline.intervals.simultaneous import simultaneous_level


def test_equal_estimates_need_no_higher_level():
    assert round(simultaneous_level(np.eye(2), 0.95), 2) == 0.97
    assert simultaneous_level(np.ones((2, 2)), 0.95) < 0.96
