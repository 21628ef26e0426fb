"""The test of a split."""

import numpy as np

from armwise.offline.experiments.mismatch import MismatchTest


def test_a_split_of_48_percent_is_found():
    test = MismatchTest(2)
    test.update(np.random.default_rng(1).random(40_000) < 0.48, [0.5, 0.5])
    assert int(test.alarm) > 0
    assert test.p_value < 0.01
