"""Columns that are probabilities."""

import numpy as np

from armwise.offline.logs.checks.leaks import are_probabilities


def test_probabilities_are_known_by_their_mean_inverse_or_name():
    arms = np.random.default_rng(0).choice(2, 2000, p=[0.8, 0.2])
    assert are_probabilities("chance", np.array([0.8, 0.2])[arms], arms)
    assert not are_probabilities("age", arms + 30.0, arms)
    assert are_probabilities("p", np.array(["50%"] * 2000, object), arms)
