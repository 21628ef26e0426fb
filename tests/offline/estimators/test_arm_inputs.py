"""Reward models for many arms: the sparse indicator answers what the dense one does, without a table of K columns."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from armwise.offline import Log, evaluate
from armwise.offline.estimators.arm_inputs import Indicator, MeanReward, SparseIndicator, arm_inputs, encoding_of
from armwise.offline.logs.rows import LogBlock

K, N = 80, 1500


def make(n=N, n_arms=K, seed=1):
    rng = np.random.default_rng([seed, 12])
    x = rng.normal(size=(n, 2))
    arms = rng.integers(0, n_arms, n)
    good = np.linspace(0.2, 0.8, n_arms)
    rewards = (rng.random(n) < np.clip(good[arms] + 0.05 * x[:, 0], 0, 1)).astype(float)
    return Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.full(n, 1 / n_arms), n_arms=n_arms)


@pytest.mark.parametrize(
    "model",
    [Ridge(solver="sparse_cg", tol=1e-10), LogisticRegression(max_iter=500, tol=1e-10), PoissonRegressor(max_iter=500),
     DecisionTreeRegressor(max_depth=4, random_state=0)],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_sparse_indicators_answer_what_dense_ones_do(model):
    rows = make().rows
    dense, thin = Indicator().fit(clone(model), rows), SparseIndicator().fit(clone(model), rows)
    np.testing.assert_allclose(thin.predict(rows), dense.predict(rows), atol=2e-4)
    linear = isinstance(model, (Ridge, LogisticRegression))
    assert (thin._in_one_sum(rows) is not None) == linear  # Poisson has another link: asked arm by arm


def clone(model):
    from sklearn.base import clone as fresh

    return fresh(model)


def test_which_models_are_told_what():
    rows = make().rows
    assert isinstance(encoding_of(Ridge(), rows), SparseIndicator)
    assert isinstance(encoding_of(HistGradientBoostingRegressor(), rows), MeanReward)
    assert isinstance(encoding_of(make_pipeline(StandardScaler(), Ridge()), rows), MeanReward)
    assert isinstance(encoding_of(Ridge(), make(n_arms=10).rows), Indicator)


def test_a_model_without_sparse_input_learns_which_arms_are_good():
    log = make(n=6000)
    fitted = MeanReward().fit(HistGradientBoostingRegressor(max_iter=30, random_state=0), log.rows)
    q = fitted.predict(log.rows).mean(axis=0)
    assert np.corrcoef(q, np.linspace(0.2, 0.8, K))[0, 1] > 0.85
    target = np.zeros(K)
    target[-20:] = 1 / 20
    found = evaluate(log, target, ["dr"], HistGradientBoostingRegressor(max_iter=30, random_state=0), warn=False)
    assert found["dr"].low < 0.725 < found["dr"].high  # the mean of the last twenty arms


def test_a_thousand_arms_take_no_table_of_a_thousand_columns():
    # Dense indicators of these rows would be 80 MB for the fit alone, and as much for each of the thousand arms.
    log = make(n=10_000, n_arms=1000)
    rows = log.rows
    tracemalloc.start()
    fitted = SparseIndicator().fit(Ridge(solver="sparse_cg"), rows)
    answers = fitted.predict(rows.take(slice(0, 1000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answers.shape == (1000, 1000) and peak < 60e6


def test_shared_features_come_before_the_arms_encoding():
    rows = LogBlock(np.array([0, 1]), np.zeros(2), 2, contexts=np.array([[5.0], [6.0]]))
    assert np.array_equal(arm_inputs(rows, np.array([0, 1])), [[5.0, 1.0, 0.0], [6.0, 0.0, 1.0]])
