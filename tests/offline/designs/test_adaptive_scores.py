"""Scores and boundaries of adaptive logs, by hand."""

import numpy as np
import pytest

from armwise.offline.designs.adaptive_scores import hardly_tried, mixture_boundary, recent, running


def test_decisions_that_an_agent_hardly_takes_are_a_share():
    assert hardly_tried(np.ones(4), np.array([1e-9, 0.5, 1e-3, 0.2]), 4) == pytest.approx(0.5)


def test_the_boundary_is_robbins_formula():
    assert mixture_boundary(np.array([100.0]), np.array([1000]), 0.95).round(2).tolist() == [30.35]


def test_running_means_and_squares_by_hand():
    mean, squares, _ = running(np.ones(4), np.array([0.0, 2.0, 0.0, 2.0]))
    assert mean.round(2).tolist() == [0.0, 1.0, 0.67, 1.0]
    assert squares.round(2).tolist() == [0.0, 2.0, 2.67, 4.0]


def test_the_recent_mean_is_known_before_the_row():
    assert recent(np.array([[1.0], [3.0], [3.0]]), prior=2.0).ravel().round(3).tolist() == [2.0, 1.952, 2.048]
