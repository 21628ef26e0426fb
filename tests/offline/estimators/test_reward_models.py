"""Folds of rows and of clusters."""

import numpy as np

from armwise.offline.estimators.reward_models import cluster_uniforms, folds_of
from armwise.offline.logs.rows import LogBlock


def test_folds_are_those_of_rows_or_of_their_clusters():
    found = folds_of(LogBlock(np.zeros(9, np.int64), np.zeros(9), 1), folds=3).tolist()
    assert found == [0, 2, 2, 0, 1, 0, 1, 0, 2]
    found = folds_of(LogBlock(np.zeros(4, np.int64), np.zeros(4), 1), 3, 0, np.array(["a", "b", "a", "b"])).tolist()
    assert found == [0, 2, 0, 2]


def test_a_cluster_decides_its_number():
    a, b = cluster_uniforms(np.array([7, 7]), 0, "split")
    assert a == b
