"""Estimates and draws of agents without features."""

import numpy as np
import pytest

from armwise.agents.arms.counts import draw_many, kary_estimates


def test_an_untried_arm_has_an_infinite_width():
    found = kary_estimates(np.array([3.0, 0.0]), np.array([4.0, 0.0]))
    assert found[0] == pytest.approx([0.75, 0.0])
    assert found[1] == pytest.approx([0.5, np.inf])


def test_a_certain_arm_is_drawn_every_time():
    assert draw_many(np.array([0.0, 1.0]), np.random.default_rng(1), 3).arms.tolist() == [1, 1, 1]
