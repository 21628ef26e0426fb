"""Arms that are not on offer in every row."""

import numpy as np

from armwise.offline import Log
from armwise.offline.evaluation.offers import offered


def test_rows_count_where_the_policy_has_an_arm_on_offer():
    log = Log(arms=[0, 1], rewards=[1, 0], probabilities=0.5, available=[[True, True], [False, True]], n_arms=2)
    found = offered(log, {"first": np.array([1.0, 0.0]), "second": np.array([0.0, 1.0])})
    assert found is not None
    assert {name: rows.tolist() for name, rows in found.items()} == {"first": [True, False], "second": [True, True]}
