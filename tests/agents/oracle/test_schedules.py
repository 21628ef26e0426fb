"""Schedules: a factor, the times themselves, or a function."""

import numpy as np
import pytest

from armwise.agents.oracle.schedules import check_times, next_time


def test_schedules():
    assert [next_time(2.0, m, last) for m, last in ((1, 0), (2, 1), (3, 2), (4, 4))] == [1, 2, 4, 8]
    assert [next_time(1.0, m, last) for m, last in ((1, 0), (2, 1), (3, 2))] == [1, 2, 3]
    assert next_time(lambda m: m * m, 3, 4) == 9
    assert next_time(lambda m: 1, 3, 4) == 5
    for wrong in (0.5, "doubling", [2, 2], [4, 2], [], [1.5], True, np.nan):
        with pytest.raises(ValueError, match="epochs must be"):
            check_times("epochs", wrong)
