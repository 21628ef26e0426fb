"""Two levels of one estimate, by hand."""

import numpy as np
import pytest

from armwise.models.hierarchical_ridge import HierarchicalRidge


def test_the_coarse_estimate_fills_half_of_what_is_missing():
    model = HierarchicalRidge(np.array([[1.0], [0.0]]), lam=1.0, lam_coarse=1.0)
    model.update(np.array([1.0, 0.0]), 1.0)
    assert model.estimate(np.eye(2))[0] == pytest.approx([0.75, 0.0])


def test_a_merged_model_is_that_of_all_rewards():
    a, b = (HierarchicalRidge(np.eye(1), lam=1.0, lam_coarse=1.0) for _ in range(2))
    b.update(np.ones(1), 1.0)
    a.merge(b)
    assert a.estimate(np.ones((1, 1)))[0].round(9).tolist() == [0.75]
