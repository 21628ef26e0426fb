"""Mixture boundaries by number."""

import math

from armwise.offline.experiments.mixtures import (
    best_rho,
    gamma_bound,
    log_gamma_mixture,
    log_normal_mixture,
    normal_bound,
)


def test_the_parameter_of_the_narrowest_boundary():
    assert round(best_rho(100.0, 0.025), 1) == 12.6


def test_the_mixture_passes_its_limit_above_the_bound():
    assert log_gamma_mixture(34.0, 100.0, 12.6) > math.log(1 / 0.025)


def test_the_gamma_bound_by_number():
    assert round(float(gamma_bound(100.0, 0.025, best_rho(100.0, 0.025))), 1) == 33.5


def test_the_normal_mixture_by_number():
    assert round(float(log_normal_mixture(29.5, 100.0, best_rho(100.0, 0.025))), 2) == 3.46


def test_the_normal_bound_by_number():
    assert round(float(normal_bound(100.0, 0.025, best_rho(100.0, 0.025))), 1) == 30.4
