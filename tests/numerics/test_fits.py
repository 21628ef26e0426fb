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
    found = fits.explained(model.factor(1), model.theta[1])  # a corner of a padded array
    np.testing.assert_allclose(found, [theta @ A @ theta, np.trace(np.linalg.inv(A))], rtol=1e-10)


def test_what_has_no_answer_is_refused():
    with pytest.raises(ValueError, match="singular"):
        fits.explained(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))
    with pytest.raises(ValueError, match="a row and a column per entry"):
        fits.explained(np.eye(3), np.ones(2))
