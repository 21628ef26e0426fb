"""Thresholds and characteristic times beside their definitions, solved by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import zeta

from armwise.theory import stopping


def kl(x, y):
    return sum(p * math.log(p / q) for p, q in ((x, y), (1 - x, 1 - y)) if p > 0)


@pytest.mark.parametrize("x", [0.0, 0.3, 1.0, 3.0, 10.0, 50.0])
def test_the_cost_of_a_mixture_is_the_least_of_its_definition(x):
    """h~_z(y) is the least w (y - ln ln w) over 1 < w <= z (Kaufmann, Koolen 2021, (15)): a wrong branch is larger."""
    h = lambda u: u - math.log(u)  # noqa: E731
    y = 0.5 * (brentq(lambda u: h(u) - 1.0 - x, 1.0, 1e6) + math.log(2 * zeta(2)))
    w = np.linspace(1.0 + 1e-9, 1.5, 2_000_001)
    assert stopping.mixture_cost(x) == pytest.approx(2.0 * (w * (y - np.log(np.log(w)))).min(), rel=1e-5)


@pytest.mark.parametrize("x", [0.0, 1.0, 5.0, 30.0])
def test_the_gaussian_cost_is_the_least_of_its_definition(x):
    def cost(lam):
        g = 2 * lam - 2 * lam * math.log(4 * lam) + math.log(zeta(2 * lam)) - 0.5 * math.log1p(-lam)
        return (g + x) / lam

    best = minimize_scalar(cost, bounds=(0.5 + 1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12})
    assert stopping.gaussian_cost(x) == pytest.approx(best.fun, rel=1e-6)


@pytest.mark.parametrize("mean", [0.0, 1e-6, 0.02, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("level", [1e-6, 0.01, 0.7, 20.0])
def test_confidence_ends_are_where_the_divergence_is_the_level(mean, level):
    low, high = stopping.confidence_ends(mean, level, None)
    assert 0.0 <= low <= mean <= high <= 1.0
    for end in (low, high):
        if end not in (0.0, 1.0) and 1e-14 < end < 1 - 1e-14:
            assert kl(mean, end) == pytest.approx(level, rel=1e-4)


@pytest.mark.parametrize("noise", [None, 0.7])
def test_optimal_shares_maximise_the_least_evidence(noise):
    """Against a general optimiser over the simplex: shares that are not the best give a larger T*."""
    rng = np.random.default_rng(1)
    for K in (2, 3, 5):
        mu = np.sort(rng.uniform(0.05, 0.95, K))[::-1]

        def least(w, mu=mu):
            gains = []
            for a in range(1, len(mu)):
                x = (w[0] * mu[0] + w[a] * mu[a]) / (w[0] + w[a])
                gains.append(w[0] * stopping.divergence(mu[0], x, noise) + w[a] * stopping.divergence(mu[a], x, noise))
            return min(gains)

        def lost(z):
            w = np.exp(z - z.max())
            return -least(w / w.sum())

        found = min(minimize(lost, rng.normal(size=K), method="Nelder-Mead",
                             options={"maxiter": 20000, "maxfev": 20000, "xatol": 1e-10, "fatol": 1e-14}).fun
                    for _ in range(4))  # fmt: skip
        time, shares = stopping.optimal_shares(mu, noise)
        assert least(shares) == pytest.approx(1.0 / time, rel=1e-8)
        assert 1.0 / time == pytest.approx(-found, rel=1e-3)
        assert 1.0 / time >= -found * (1 - 1e-9)


def test_published_problems_have_their_characteristic_times():
    """Garivier and Kaufmann's two problems: kl(.1, .9) T* is 1,740 and 574."""
    assert round(stopping.least_stopping_time([0.5, 0.45, 0.43, 0.4], 0.1)) == 1740
    assert round(stopping.least_stopping_time([0.3, 0.21, 0.2, 0.19, 0.18], 0.1)) == 574


@pytest.mark.parametrize(
    "means", [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0], [0.3, 0.3, 0.1]]
)
def test_extreme_means_have_shares(means):
    time, shares = stopping.optimal_shares(means)
    assert shares.sum() == pytest.approx(1.0)
    assert (time == math.inf) == (means.count(max(means)) > 1)


def test_the_gaussian_divergence_is_by_its_noise():
    assert stopping.divergence(1.0, 3.0, 2.0) == pytest.approx(0.5)


def test_the_divergence_from_a_certain_click_is_infinite():
    assert round(stopping.bernoulli_divergence(0.5, 0.25), 4) == 0.1438
    assert stopping.bernoulli_divergence(0.5, 1.0) == np.inf


def test_a_proved_threshold_is_above_the_heuristic():
    proved, heuristic = stopping.Threshold(2, 0.05, None, "proved"), stopping.Threshold(2, 0.05, None, "heuristic")
    assert round(proved.between(100.0, 100.0), 1) == 30.4
    assert round(heuristic.between(100.0, 100.0), 1) == 4.8


def test_the_least_time_of_amounts():
    assert round(stopping.least_stopping_time([1.0, 0.5], 0.05, noise=1.0)) == 85
