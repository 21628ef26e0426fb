"""Theorems that ask for constants which few worlds state; the others are tested where races look bounds up."""

import armwise as aw
from armwise.theory.hypotheses import corral, lagrange, lincbwk


def test_a_first_rate_that_is_too_large_is_named():
    refused = corral(aw.Corral([aw.UCB1(2), aw.UCB1(2)], horizon=100), {"span": 1.0, "d_star": 1.0}, T=100)
    assert refused == "its bound needs eta below 0.00226 for a base of regret 10, and eta is 0.141"


def test_budgets_of_practical_constants_have_no_bound():
    world = {"rate": 0.5, "null_arm": 0}
    refused = lagrange(aw.LagrangeCB(aw.SquareCB(3, n_arms=2), 100, 50.0), world, T=100)
    assert "LagrangeCB.theoretical" in refused
    assert "LinCBwK.theoretical" in lincbwk(aw.LinCBwK(3, 100, 50.0), world, T=100)
