"""The ridge model: exact after a million updates, and what it keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armwise.core import saving
from armwise.models.ridge import Ridge
from armwise.models.ridge_size import RIDGE_SHARE
from armwise.native import ridge


def solve_precisely(A, B):
    """A^-1 B to extended precision, by iterative refinement."""
    rough = np.linalg.inv(A.astype(float))
    X = (rough @ B.astype(float)).astype(np.longdouble)
    for _ in range(6):
        X = X + (rough @ (B - A @ X).astype(float)).astype(np.longdouble)
    return X


@pytest.mark.parametrize("order", ["mixed", "small directions last"])
def test_a_million_updates_at_condition_number_a_million(order):
    """Estimates and widths agree with a direct solve to 1e-6 relative; a drifting inverse fails by orders."""
    d, n, lam = 12, 10**6, 1e-4
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scale, theta = np.logspace(0, -3, d), rng.normal(size=d)
    model = Ridge(d, lam)
    A, b = lam * np.eye(d, dtype=np.longdouble), np.zeros(d, np.longdouble)
    for part in range(10):
        now = scale if order == "mixed" or part < 9 else np.where(scale < 0.1, scale, 0.0)
        X = np.ascontiguousarray((rng.normal(size=(n // 10, d)) * now) @ Q.T)
        r = X @ theta + 0.1 * rng.normal(size=len(X))
        ridge.update_rows(model.models[0], X, r)
        # Sums over 1,000 rows at a time, added up in extended precision: off by far less than is tolerated.
        rows = X.reshape(-1, 1000, d).transpose(0, 2, 1)
        A = A + (rows @ X.reshape(-1, 1000, d)).astype(np.longdouble).sum(axis=0)
        b = b + (rows @ r.reshape(-1, 1000, 1)).astype(np.longdouble).sum(axis=0)[:, 0]
    assert np.linalg.cond(A.astype(float)) > 5e5
    probes = np.vstack([Q.T, rng.normal(size=(20, d))])
    means, widths = model.estimate(np.ascontiguousarray(probes))
    expected_theta = solve_precisely(A, b)
    inverse = solve_precisely(A, np.eye(d, dtype=np.longdouble))
    squares = np.einsum("ai,ij,aj->a", probes, inverse, probes)
    assert np.linalg.norm(model.theta[0] - expected_theta) < 1e-6 * np.linalg.norm(expected_theta)
    np.testing.assert_allclose(widths**2, squares.astype(float), rtol=1e-6)
    np.testing.assert_allclose(means, (probes @ expected_theta).astype(float), rtol=1e-6, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    dim=st.integers(1, 40),
    rows=st.integers(0, 60),
    lam=st.floats(1e-3, 1e3),
    zeros=st.floats(0, 0.95),
    seed=st.integers(0, 10**6),
)
def test_any_shape_agrees_with_a_direct_solve(dim, rows, lam, zeros, seed):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(rows, dim)) * (rng.random((rows, dim)) > zeros), rng.normal(size=rows)
    model = Ridge(dim, lam)
    for x, reward in zip(X, r, strict=True):
        model.update(x, reward)
    A = lam * np.eye(dim) + X.T @ X
    probes = rng.normal(size=(12, dim))
    means, widths = model.estimate(probes)
    np.testing.assert_allclose(means, probes @ np.linalg.solve(A, X.T @ r), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(widths**2, np.einsum("ai,ia->a", probes, np.linalg.solve(A, probes.T)), rtol=1e-8)
    assert model.log_det() == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-8)
    W = model.factor()
    np.testing.assert_allclose(W.T @ W @ A, np.eye(dim), atol=1e-7)


def test_many_rows_at_once_and_one_by_one_agree():
    rng = np.random.default_rng(2)
    model = Ridge(45, 0.5)
    for _ in range(100):
        model.update(rng.normal(size=45), rng.normal())
    X = rng.normal(size=(30, 45))
    together, alone = model.estimate(X), [model.estimate(x[None]) for x in X]
    np.testing.assert_allclose(together[0], [m[0] for m, _ in alone], rtol=1e-10)
    np.testing.assert_allclose(together[1], [w[0] for _, w in alone], rtol=1e-10)


def test_state_is_one_factor_a_model_and_no_history():
    model = Ridge(20, n_models=3)
    before = sum(a.nbytes for a in (model.models, model._grams, model._moments, model._recent))
    assert before <= 3 * (24 + 3) * 24 * 8
    for _ in range(1000):
        model.update(np.random.default_rng(1).normal(size=20), 1.0, model=1)
    assert sum(a.nbytes for a in (model.models, model._grams, model._moments, model._recent)) == before
    arrays = {name for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    assert arrays == {"models", "_gone", "_grams", "_moments", "_recent"}


def test_a_number_too_large_to_square_is_refused_and_changes_nothing():
    model = Ridge(3)
    before = saving.dumps(model)
    for bad in (np.array([1.0, np.nan, 0.0]), np.array([np.inf, 0.0, 0.0]), np.array([1e200, 0.0, 0.0])):
        with pytest.raises(ValueError, match="finite"):
            model.update(bad, 1.0)
    assert saving.dumps(model) == before


def taught(rows, rewards, **settings):
    model = Ridge(dim=len(rows[0]), **settings)
    for x, reward in zip(rows, rewards, strict=True):
        model.update(np.array(x, float), reward)
    return model


def test_a_prior_mean_is_one_for_all_models_or_a_row_for_each():
    assert Ridge(2, n_models=2, prior_mean=[1, 0.5]).prior_means.tolist() == [[1.0, 0.5]] * 2
    model = Ridge(1, n_models=2, prior_mean=[[1.0], [2.0]])
    model.add_model()
    assert model.prior_means.tolist() == [[1.0], [2.0], [0.0]]
    with pytest.raises(ValueError, match="prior_mean must have shape"):
        Ridge(2, n_models=2, prior_mean=[1.0])


def test_an_open_ridge_is_a_share_of_the_first_row_that_says_something():
    model = Ridge(2)
    model.settle_ridge(np.zeros(2))
    assert not model.settled
    model.settle_ridge(np.array([3.0, 4.0]))
    assert model.settled and model.ridge == 25.0 * RIDGE_SHARE
    assert Ridge(2, lam=1.0).settled and not Ridge(2, lam=1.0, centred=True).settled


def test_an_open_ridge_follows_the_geometric_mean_of_the_rows_squared_lengths():
    model = taught([[100.0], [1.0], [1.0], [1.0]], [0.0] * 4)
    model.rescale()
    assert model.ridge == pytest.approx(10.0 * RIDGE_SHARE)


def test_a_centre_that_moves_is_as_if_it_had_always_been_there():
    X, r = np.random.default_rng(3).normal(size=(9, 2)), np.arange(9.0)
    moved = taught(X, r, lam=1.0, centred=True)
    moved.recentre(3.0)
    means = moved.estimate(np.eye(2))[0]
    np.testing.assert_allclose(means, 3.0 + np.linalg.solve(np.eye(2) + X.T @ X, X.T @ (r - 3.0)), rtol=1e-12)


def test_a_weight_a_merge_and_a_fade_count_rows_as_often_as_they_say():
    one = np.ones(1)
    model = Ridge(1, lam=1.0)
    model.update(one, 1.0, weight=3.0)
    assert model.theta == pytest.approx(0.75)  # 3 / (1 + 3)
    a, b = taught([[1.0]], [1.0], lam=1.0), taught([[1.0]], [1.0], lam=1.0)
    a.merge(b)
    assert a.theta == pytest.approx(2 / 3)
    model.update(one, 1.0)
    model.fade(0.25)
    assert model.theta == pytest.approx(0.5)  # of 4 rows 1 is left
    model = Ridge(1, lam=1.0)
    model.learn_many(np.ones((3, 2, 1)), np.array([0, 1, 1]), np.ones(3))
    assert model.theta == pytest.approx(0.75)


def test_a_reward_that_is_revised_is_as_if_it_had_come_so():
    model = taught([[1.0]], [0.0], lam=1.0)
    model.revise(np.ones((1, 1)), 0, 1.0)
    assert model.theta == pytest.approx(0.5)


def test_models_after_one_that_is_removed_move_down():
    model = Ridge(1, lam=1.0, n_models=2, centred=True)
    model.update(np.ones(1), 1.0, model=1)
    assert model.untried() == pytest.approx([1.0, 0.0])
    before = model.theta[1]
    model.remove_model(0)
    assert model.theta == before and model.untried() is None
    assert Ridge(1, n_models=2).untried() == pytest.approx([0.5, 0.5])


def test_sums_are_of_the_window_and_of_what_the_rows_added():
    assert taught([[1.0]] * 3, [1.0, 2.0, 3.0], window=2).recent_sums() == (2.0, 5.0, 13.0)
    assert [part.round(9).tolist() for part in taught([[2.0]], [3.0], lam=0.5).learnt()] == [[[4.0]], [6.0]]
    # r'r, degrees of freedom, and 0 for what is not kept of rewards of 1
    assert taught([[1.0]] * 2, [1.0, 3.0], lam=1e-9).explained() == pytest.approx([8.0, 1.0, 0.0, 0.0])


def test_a_draw_is_the_estimate_and_its_factor_times_what_is_normal():
    model = taught([[1.0, 2.0], [0.0, 1.0]], [1.0, 2.0], lam=4.0)
    z = np.array([1.0, -2.0])
    np.testing.assert_allclose(model.sample(z, scale=2.0), model.theta[0] + 2.0 * model.factor().T @ z)
    [exported] = model.exported([0.5])
    assert exported.widths[0][0] == 0.5
