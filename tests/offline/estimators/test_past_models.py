"""Predictions from the rows before."""

import numpy as np

from armwise.offline.estimators.past_models import predicted_from_the_past
from armwise.offline.logs.rows import LogBlock


def test_a_row_is_predicted_from_the_rows_before_it():
    rows = LogBlock(np.array([0, 0, 1]), np.array([1.0, 1.0, 0.0]), n_arms=2)
    assert predicted_from_the_past(rows).round(2).tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
