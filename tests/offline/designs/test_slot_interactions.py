"""P-values of slots, and their combination."""

import numpy as np
import pytest

from armwise.offline.designs.slot_interactions import p_value, shared_level


def test_the_p_value_of_a_mean():
    assert p_value(np.array([1.0, -1.0] * 50)) == pytest.approx(1.0)
    assert p_value(np.array([1.0, 0.5] * 50)) < 1e-9


def test_small_p_values_share_the_level_by_cauchys_combination():
    assert shared_level([(1.0, 0.3), (3.0, 0.3)]) == pytest.approx(0.3)
    assert round(shared_level([(1.0, 0.5), (3.0, 0.03)]), 3) == 0.04
