"""The kernel of largest marginal likelihood, against the density of the rewards."""

import numpy as np
import pytest
from scipy import stats

from armwise.models.kernel_fit import fit, log_marginal_likelihood
from armwise.models.kernels import RBF


def test_the_likelihood_is_the_normal_density_of_the_rewards():
    X, r = np.random.default_rng(1).normal(size=(6, 2)), np.arange(6.0)
    kernel = RBF(length_scale=0.7)
    wanted = stats.multivariate_normal(np.zeros(6), kernel(X, X) + 0.3 * np.eye(6)).logpdf(r)
    assert log_marginal_likelihood(kernel, 0.3, X, r) == pytest.approx(wanted, rel=1e-10)


def test_a_wave_without_noise_makes_the_kernel_short_and_the_noise_small():
    X = np.linspace(0, 1, 40)[:, None]
    r = np.sin(9 * X[:, 0])
    kernel, noise = fit(RBF(length_scale=5.0), 1.0, X, r)
    assert isinstance(kernel, RBF) and kernel.length_scale < 1.0 and noise < 0.01
    assert log_marginal_likelihood(kernel, noise, X, r) > log_marginal_likelihood(RBF(length_scale=5.0), 1.0, X, r)
