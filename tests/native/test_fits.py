"""What a ridge model explains, from its factor: against the definition, whatever the memory that the factor lies in."""

import numpy as np
import pytest

from armwise.models.ridge import Ridge
from armwise.native import fits


@pytest.mark.parametrize("d", [1, 2, 7, 8, 21])
def test_it_is_theta_A_theta_and_the_trace_of_the_inverse(d):
    rng, model = np.random.default_rng(d), Ridge(dim=d, lam=0.3, n_models=2)
    X, rewards = rng.normal(size=(40, d)), rng.normal(size=40)
    for x, reward in zip(X, rewards):
        model.update(x, reward, 1)
    A = X.T @ X + 0.3 * np.eye(d)
    theta = np.linalg.solve(A, X.T @ rewards)
    fit, trace, *nothing, taught = fits.explained(model.models[1:], d)
    np.testing.assert_allclose([fit, trace], [theta @ A @ theta, np.trace(np.linalg.inv(A))], rtol=1e-10)
    assert nothing == [0.0, 0.0] and taught == 1


@pytest.mark.parametrize("d", [1, 7, 8])
def test_with_counts_it_knows_what_rewards_of_one_would_have_taught(d):
    """h' A theta and h' A h, and a model that has learnt nothing is not looked at."""
    rng, model = np.random.default_rng(d), Ridge(dim=d, lam=0.3, n_models=3, centred=True)
    X, rewards = rng.normal(size=(40, d)) + 0.5, rng.normal(size=40)
    for x, reward in zip(X, rewards):
        model.update(x, reward, 1)
    model.recentre(0.0)
    A, s = X.T @ X + 0.3 * np.eye(d), X.sum(axis=0)
    theta, h = np.linalg.solve(A, X.T @ rewards), np.linalg.solve(A, s)
    *_, cross, ones, taught = fits.explained(model.models, d)
    np.testing.assert_allclose([cross, ones], [h @ A @ theta, h @ A @ h], rtol=1e-9)
    assert taught == 1


def test_what_has_no_answer_is_refused():
    with pytest.raises(ValueError, match="singular"):
        fits.explained(np.zeros((1, 9, 8)), 2)
    with pytest.raises(ValueError, match="models must be"):
        fits.explained(np.zeros((1, 8, 8)), 2)
