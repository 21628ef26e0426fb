"""Files that hold every row several times."""

import numpy as np

from armwise.offline.logs.checks.duplicates import _times


def test_a_file_joined_three_times_is_told():
    assert _times(np.tile(np.arange(50) % 40, 3)) == 3
    assert _times(np.arange(90) % 40) == 1
