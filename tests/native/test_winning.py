"""The distribution functions behind Thompson's exact probabilities, against SciPy's."""

import numpy as np
import pytest
from scipy.special import betainc, ndtr

from armwise.native import winning


def test_the_normal_distribution_function_is_scipys():
    z = np.concatenate([np.linspace(-37.5, 9.0, 4001), [0.0, -1e-300, np.inf, -np.inf]])
    np.testing.assert_allclose(winning.normal_cdf(z), ndtr(z), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("a", [0.01, 0.5, 1.0, 2.5, 15.9, 16.1, 300.0, 1e4, 1e6])
@pytest.mark.parametrize("b", [0.02, 0.5, 1.0, 7.0, 40.0, 2500.0, 1e6])
def test_the_incomplete_beta_function_is_scipys(a, b):
    """Where the mass is, and into both tails."""
    mean, deviation = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
    x = np.clip(np.concatenate([np.linspace(0.0, 1.0, 101), mean + deviation * np.linspace(-8.0, 8.0, 161)]), 0.0, 1.0)
    np.testing.assert_allclose(winning.beta_cdf(a, b, x), betainc(a, b, x), rtol=0.0, atol=1e-13)


def test_chances_of_many_arms_add_up_and_order_as_the_posteriors_do():
    successes, failures = np.arange(1.0, 21.0), np.arange(20.0, 0.0, -1.0)
    p = winning.beta(successes, failures)
    assert p.sum() == pytest.approx(1.0, abs=1e-12) and np.all(np.diff(p) >= 0.0) and p[-1] > 3 * p[-4]
    certain = winning.beta(np.array([1e8, 2e8]), np.array([1e8, 1e8]))  # 1/2 and 2/3, both known to four digits
    assert certain[0] <= 1e-11 < 0.5 < certain[1]


@pytest.mark.parametrize("K", [3, 8])
def test_one_rule_of_quadrature_for_the_factor_and_the_pieces(K):
    """Arms that share a factor with equal loadings win as if they were independent: the factor decides nothing."""
    means, own = np.linspace(-1.0, 1.0, K), np.linspace(0.2, 0.9, K)
    nearly = np.full(K, 0.8)
    nearly[0] += 1e-6  # not equal any more: integrated over the factor
    apart, shared, factor = (
        winning.gaussian(means, np.diag(own) + more) for more in (0.0, 0.7, np.outer(nearly, nearly))
    )
    assert apart is not None and shared is not None and factor is not None
    np.testing.assert_allclose(shared, apart, rtol=1e-10)
    np.testing.assert_allclose(factor, apart, atol=1e-6)
