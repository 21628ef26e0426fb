"""Directions that are cut."""

import numpy as np
import pytest

from armwise.models.truncated_ridge import TruncatedRidge


def test_directions_of_small_eigenvalues_are_cut():
    model = TruncatedRidge(dim=2)
    model.update(np.array([2.0, 0.0]), 3.0)
    found = model.estimate(np.eye(2), scale=10.0)
    assert found[0] == pytest.approx([1.5, 0.0])
    assert found[1] == pytest.approx([5.0, 1.0])
