"""The convex problems of PolicyElimination and RandomizedUCB: constraints by brute force, optima by another solver."""

# mypy: disable-error-code="call-overload"

import functools

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

from armwise.agents.oracle.cutting_planes import LeastGap
from armwise.agents.oracle.variance import Sample, spread, violation

INSTANCES = [(5, 2, 10), (40, 3, 60), (120, 5, 150), (500, 10, 120)]


def instance(N, K, J, seed, agree=0.0):
    rng = np.random.default_rng(seed)
    table = rng.integers(K, size=(J, N))
    table = np.where(rng.random((J, N)) < agree, table[:, :1], table).astype(np.uint8)
    gaps = rng.random(N) * rng.choice([0.1, 0.5])
    return Sample(table, rng.integers(1, 4, size=J).astype(float), K), gaps - gaps.min()


def naive_variances(sample, P, mu):
    W = np.stack([((sample.table == a) * P).sum(axis=1) for a in range(sample.n_arms)], axis=1)
    W = (1 - sample.n_arms * mu) * W + mu
    return (sample.shares[:, None] / np.take_along_axis(W, sample.table.astype(int), axis=1)).sum(axis=0)


@functools.cache
def mixtures(N):
    """3,000 distributions over N policies, most of each on a few of them."""
    return np.random.default_rng(0).dirichlet(np.full(N, 0.05), size=3000)


@pytest.mark.parametrize(("N", "K", "J"), INSTANCES)
@pytest.mark.parametrize("share", [0.4, 0.05, 0.001])
def test_spread_keeps_every_variance_low(N, K, J, share):
    sample, _ = instance(N, K, J, seed=N)
    mu = share / K
    P, largest = spread(sample, mu, np.full(N, 1 / N))
    v = naive_variances(sample, P, mu)
    assert P.min() >= 0
    assert abs(P.sum() - 1) < 1e-12
    assert largest == pytest.approx(v.max(), abs=1e-9)
    assert v.max() <= 2 * K + 1e-6


def test_spread_from_a_start_that_is_far_off():
    sample, _ = instance(300, 5, 80, seed=1)
    start = np.full(300, 1e-6 / 299)
    start[0] = 1 - 1e-6
    P, _ = spread(sample, 1e-4, start)
    assert naive_variances(sample, P, 1e-4).max() <= 10


@pytest.mark.parametrize("seed", range(20))
def test_separation_is_exact(seed):
    rng = np.random.default_rng(seed)
    N, flat, c = int(rng.integers(1, 30)), rng.uniform(1, 4), rng.choice([0.0, rng.uniform(0.1, 50)])
    gaps, v = rng.random(N) * rng.random(), rng.uniform(0, 6, N)
    gaps -= gaps.min()
    exact = violation(gaps, v, flat, c)
    # A two-point Q on a fine grid reaches the hull; random Q in any number of policies never goes beyond.
    i, j = (index.ravel() for index in np.meshgrid(np.arange(N), np.arange(N)))
    shares = np.linspace(0, 1, 2001)[:, None]
    x, y = gaps[i] + shares * (gaps[j] - gaps[i]), v[i] + shares * (v[j] - v[i])
    grid = (y - np.maximum(flat, c * x**2)).max()
    Q = rng.dirichlet(np.full(N, 0.3), size=2000)
    sampled = (Q @ v - np.maximum(flat, c * (Q @ gaps) ** 2)).max()
    assert sampled <= exact + 1e-9
    assert grid <= exact + 1e-9
    assert grid == pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize(("N", "K", "J"), INSTANCES)
@pytest.mark.parametrize("agree", [0.0, 0.7])
@pytest.mark.parametrize("c", [0.0, 0.05, 2000.0])
def test_no_policy_and_no_sampled_mixture_breaks_its_constraint(N, K, J, agree, c):
    sample, gaps = instance(N, K, J, seed=N + K, agree=agree)
    mu = 0.04 / K
    P = LeastGap(sample, gaps, mu, c).solve().P
    v = naive_variances(sample, P, mu)
    limits = np.maximum(4 * K, c * gaps**2)
    assert np.all(v <= limits + 1e-6)
    Q = mixtures(N)
    assert np.all(Q @ v <= np.maximum(4 * K, c * (Q @ gaps) ** 2) + 1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("c", [0.05, 300.0])
def test_the_objective_is_the_least(seed, c):
    K, N, mu = 3, 12, 0.01
    sample, gaps = instance(N, K, 15, seed=seed)
    found = LeastGap(sample, gaps, mu, c, tolerance=1e-6).solve()
    x0 = np.sqrt(4 * K / c)

    def slack(y):
        P, z = y[:N], y[N]
        return 4 * K + z * (gaps / x0 - 1) - naive_variances(sample, np.clip(P, 0, None), mu)

    start = np.append(np.full(N, 1 / N), 0.0)
    simplex = LinearConstraint(np.append(np.ones(N), 0.0), 1.0, 1.0)
    other = minimize(
        lambda y: gaps @ y[:N], start, method="SLSQP", bounds=[(0, 1)] * N + [(0, 4 * K)],
        constraints=[simplex, NonlinearConstraint(slack, 0, np.inf)], options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    assert slack(other.x).min() > -1e-6  # what the other solver found is worth comparing with
    assert found.P @ gaps == pytest.approx(other.fun, abs=2e-5)
    assert found.lower <= other.fun + 1e-6
    assert violation(gaps, naive_variances(sample, found.P, mu), 4 * K, c) <= 1e-9


def test_all_mixtures_hold_exactly_if_one_line_separates():
    """The step from "for every Q" to one more variable z, on random points with v >= 1 and a policy of gap 0."""
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(500):
        K, N, c = 2, 6, rng.uniform(5, 100)
        gaps, x0 = np.append(0.0, rng.random(N - 1)), np.sqrt(4 * K / c)
        v = np.minimum(rng.uniform(1, 10, N), np.maximum(4 * K, c * gaps**2) * rng.uniform(0.8, 1.02))
        tilt, room = gaps / x0 - 1, 4 * K - v
        highest = min(room[tilt < 0] / -tilt[tilt < 0])
        lowest = max([0.0, *(-room[tilt > 0] / tilt[tilt > 0])])
        separates = bool(lowest <= highest and np.all(room[tilt == 0] >= 0))
        assert separates == (violation(gaps, v, 4 * K, c) <= 0)
        outcomes.add(separates)
    assert outcomes == {True, False}


def test_a_leader_that_satisfies_the_constraints_plays_alone():
    sample, gaps = instance(30, 3, 20, seed=0)
    P = LeastGap(sample, gaps, mu=1 / 12, c=1.0).solve().P
    assert P[gaps.argmin()] == 1.0
