"""Heavy tails and rare rewards."""

import numpy as np

from armwise.offline.results.diagnostics import pareto_k, rare_rewards


def test_the_shape_of_a_heavy_tail():
    w = np.random.default_rng(0).pareto(0.8, 4000) + 1.0
    assert round(pareto_k(w, 4000), 1) == 1.4
    assert pareto_k(np.full(100, 2.0), 100) == 0.0


def test_rewards_that_are_all_but_one_the_same_are_rare():
    found = rare_rewards(np.array([0.0] * 299 + [1.0]))[0][:60]
    assert found == "few different rewards: 1 of 300 matching rows differs from t"
    found = rare_rewards(np.array([0.0] * 30 + [1.0] * 300), weights=np.repeat([10.0, 0.01], [30, 300]))[0][:60]
    assert found == "few different rewards: 0 of 31 matching rows differ from the"
