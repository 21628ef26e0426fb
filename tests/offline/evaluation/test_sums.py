"""Sums of evaluations, merged."""

import numpy as np

from armwise.offline.evaluation.sums import Extremes, Sums


def test_extremes_are_those_of_both():
    found = Extremes()
    found.add(np.array([3.0, 5.0]))
    found.merge(Extremes(1.0, 4.0))
    assert found == Extremes(1.0, 5.0)


def test_merged_sums_are_those_of_all_rows():
    one, other = Sums(n_arms=2, n_targets=0), Sums(n_arms=2, n_targets=0)
    one.add(np.array([[1.0], [2.0]]), np.array([1.0, 2.0]))
    other.add(np.array([[6.0]]), np.array([6.0]))
    one.merge(other)
    assert (one.n, one.moments.mean.tolist(), one.rewards) == (3, [3.0], Extremes(1.0, 6.0))
