"""The bounds of rankers by hand, and the worlds that they refuse."""

import math

import pytest

import armwise as aw
from armwise.theory import ranking_bounds
from armwise.theory.ranking_hypotheses import cascade_ucb1, toprank


def test_the_bounds_are_what_the_formulas_give_by_hand():
    gaps = [0.1, 0.2]
    by_hand = (12 / 0.1 + 12 / 0.2) * math.log(1000) + math.pi**2 / 3 * 5
    assert ranking_bounds.cascade_ucb1(T=1000, L=5, gaps=gaps) == pytest.approx(by_hand)
    grown = 3 * math.log(1 + 100 * 2 / (3 * 4))
    alpha = 0.5 * math.sqrt(grown + 2 * math.log(20)) + 2
    by_hand = 2 * alpha * math.sqrt(2 * 100 * 2 * grown)
    assert ranking_bounds.list_linucb(T=100, k=2, d=3, R=0.5, S=1, L=1, lam=4, delta=0.05) == pytest.approx(by_hand)
    c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
    by_hand = 0.01 * 100 * 2 * 25 + 10 + math.sqrt(4 * 8 * 5 * 100 * math.log(c * 10 / 0.01))
    assert ranking_bounds.toprank(T=100, k=2, L=5, delta=0.01) == pytest.approx(by_hand)


def test_a_bound_is_refused_with_its_reason():
    linear = {"model": "cascade", "k": 2, "R": 0.5, "S": 1.0, "L": 1.0, "linear": True}
    ellipsoid = aw.Ellipsoid(0.5, 1.0, 0.05)
    refuse = aw.CascadeLinUCB.theory.hypotheses
    assert refuse is not None and isinstance(refuse(aw.CascadeLinUCB(3, ellipsoid, 2.0), linear, 100), dict)
    assert "alpha is None" in refuse(aw.CascadeLinUCB(3), linear, 100)
    assert "lam >= k L^2" in refuse(aw.CascadeLinUCB(3, ellipsoid, 1.0), linear, 100)
    assert "semi-bandit" in refuse(aw.C2UCB(3, ellipsoid, 2.0), linear, 100)
    assert "diversity" in refuse(aw.C2UCB(3, ellipsoid, 2.0, diversity=1.0), linear | {"model": "semi-bandit"}, 100)
    assert "linear" in refuse(aw.CascadeLinUCB(3, ellipsoid, 2.0), {"model": "cascade"}, 100)


def test_a_cascade_without_contexts_states_its_gaps():
    world = {"model": "cascade", "K": 3, "gaps": [0.1]}
    assert cascade_ucb1(aw.CascadeUCB1(3), world, T=100) == {"L": 3, "gaps": [0.1]}


def test_a_horizon_that_is_too_short_is_named():
    world = {"model": "cascade", "K": 4, "k": 2, "gaps": [0.1]}
    assert toprank(aw.TopRank(4, horizon=10), world, T=100) == "it is made for 10 rounds, and these are 100"
