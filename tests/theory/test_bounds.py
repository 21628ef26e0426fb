"""Every bound: worked out by hand where the logarithms are whole numbers, growing in T as its agent's row says."""

# mypy: disable-error-code="arg-type, operator"

import inspect
import itertools
import math

import numpy as np
import pytest

from armwise.theory import bounds
from armwise.theory.algorithm_table import agents

e = math.e
BOUNDS = {
    name: function
    for name, function in inspect.getmembers(bounds, inspect.isfunction)
    if function.__module__ == "armwise.theory.bounds" and not name.startswith("_")
}

# Letters chosen so that each logarithm is 1 or 2 (or 10,000's), and what the formula then gives with pencil and paper.
BY_HAND = {
    "exp3": ({"T": 100, "K": e}, 26.3 * math.sqrt(e)),
    "per_context": ({"T": 100, "C": 4, "K": e}, 52.6 * math.sqrt(e)),
    "policy_arms": ({"T": 100, "N": e}, 26.3 * math.sqrt(e)),
    "ucb1": ({"T": e, "K": 4}, 2 * math.sqrt(e * (9 + math.pi**2 / 3))),
    "beta_thompson": ({"T": 200, "K": e}, 10 * math.sqrt(e)),
    "epsilon_greedy": ({"T": e, "K": 0.5, "epsilon": 0.5}, e / 2 + 4 * math.sqrt(2 * e) + 4 + 2),
    "explore": ({"T": 100, "epsilon": 0.1, "bound": bounds.exp3, "K": e}, 10 + 26.3 * math.sqrt(e)),
    "doubling": ({"T": 7, "bound": bounds.exp3, "K": e}, 2.63 * math.sqrt(e) * (1 + math.sqrt(2) + 2)),
    "linucb": (
        {"T": 4 * (e - 1), "d": 2, "R": 1.0, "S": math.sqrt(2), "L": 1.0, "lam": 2.0, "delta": 1 / e},
        2 * (2 + 2) * 4 * math.sqrt(e - 1),
    ),
    "sup_linucb": (
        {"T": 2 * (e - 1), "d": 2, "K": 1, "delta": 4 * (e - 1) / e**2},
        2 * math.sqrt(2 * (e - 1)) + 8 * 2 * 4 * math.sqrt(e - 1),
    ),
    "sup_linrel": (
        {"T": 2 * (e - 1), "d": 2, "K": 1, "delta": 4 * (e - 1) / e**2},
        2 * math.sqrt(2 * (e - 1)) + 16 * math.sqrt(24 * (e - 1)),
    ),
    "lin_thompson": (  # ln T = 1, ln(T/delta) = 2, ln(T^3/delta) = 4; g = 32 + 9; p is the first of its two forms
        {"T": e, "d": 4, "R": 1.0, "epsilon": 0.375, "delta": 1 / e},
        (math.sqrt(512) * 4 + 1 + 4)
        * (4 * e * math.sqrt(math.pi * e**0.375))
        * (15 * 2 * math.sqrt(e) + math.pi**2 / 3 + 6 * math.sqrt(2 * e * (1 + math.log(2)))),
    ),
    "cofine_ucb": (
        {"T": 2 * (e - 1), "d": 2, "L": 1, "U": 3, "lam": 1, "lam_coarse": 9, "alpha": 1, "alpha_coarse": 2},
        2 * 3 * math.sqrt(8 * (e - 1)),
    ),
    "spectral_ucb": ({"T": 50, "d": 2, "R": 1, "C": 1, "lam": 50 / (e - 1), "delta": 1 / e}, (16 + 8) * 10),
    "policy_elimination": ({"T": 10, "K": 2, "N": 1, "delta": 400 / e**2}, 17 * math.sqrt(80)),
    "randomized_ucb": ({"T": e, "K": 1, "N": 1, "delta": 1 / e, "c": 3}, 3 * (math.sqrt(2 * e) + 1)),
    "iltcb": (
        {"T": 0.5, "K": 2, "N": e**2 / 8, "delta": 2},
        (4 * math.sqrt(2) * 95.1 + 401) * (16 + math.sqrt(32)),
    ),
    "gp_ucb": (
        {"T": 2, "K": 1, "gamma_T": 2, "sigma": (e - 1) ** -0.5, "delta": 4 * math.pi**2 / (6 * e)},
        8.0,
    ),
    "gp_ucb_agnostic": (
        {"T": 2, "B": 1, "gamma_T": 1, "sigma": (e - 1) ** -0.5, "delta": 2 / e},
        math.sqrt(16 * 302),
    ),
    "sup_kernel_ucb": (
        {"T": e, "N": 1, "d_tilde": e, "gamma": 1, "delta": 2 / e, "kappa": e - 1},
        2 * math.sqrt(e) + 16 * e * math.sqrt(2 * (e - 1)),
    ),
    "ridge_regression": ({"T": 2 * (e - 1), "d": 2, "lam": 1.0, "S": 1.0, "L": 1.0}, 9.0),
    "lagrange_regression": ({"T": 2 * (e - 1), "K": 1, "d": 2, "rate": 0.5}, 2 * (1 + 4) * 3),
    "lagrange": (
        {"T": 2 * (e - 1), "K": 1, "d": 2, "rate": 1.0, "delta": 4 / e},
        math.sqrt(2 * (e - 1)) * (4 * math.sqrt(2 * 2 * 3) + 8 * 2 + 1 + 3 * math.sqrt(2)),
    ),
    "lincbwk": (
        {"T": 2 * (e - 1), "d": 2, "rate": 1.0, "R": 1.0, "delta": 4 / e, "m": e - 1},
        2 * BOUNDS["linucb"](2 * (e - 1), 2, 1.0, 1.0, 1.0, 1.0, 4 / e / e)
        + math.sqrt(2 * (e - 1)) * (2 + 3 * math.sqrt(2)),
    ),
    "squarecb": ({"T": 2 * (e - 1), "K": 2, "d": 2, "delta": 2 / e}, (4 * 3 + 8) * 2 * math.sqrt(e - 1)),
    "d3rb": ({"T": 1, "M": 2, "d_star": 1, "delta": 2 / e}, 10 * math.sqrt(2) + 42),
    "ed2rb": ({"T": 1, "M": 2, "d_star": 1, "delta": 2 / e}, 8 * math.sqrt(2) + 26),
    "corral": (  # ln T = 1, R = 1; the largest price is at rho = 4 M = 8, from where the growing rates bring more back
        {"T": e, "M": 2, "d_star": e**-0.5, "eta": 0.01},
        2
        + 100
        + 0.005 * math.exp(1 / math.log(2)) * e / (1 - 1 / e) ** 2
        + 8
        - 100 * (1 - 1 / e) * math.exp(-1 / math.log(2)) * (4 * (1 - 1 / e) ** 2 - 1 - math.log(4 * (1 - 1 / e) ** 2)),
    ),
    "exp4": ({"T": 100, "K": 4, "N": e}, 52.6),
    "exp4p": ({"T": 100, "K": 4, "N": 1, "delta": 1 / e}, 120),
    "ve": ({"T": 1, "d": 1, "delta": 2 / e}, 18),
}
ORDINARY = {
    "K": 5, "C": 4, "N": 20, "d": 4, "R": 0.5, "S": 1.0, "L": 1.0, "U": 1.0, "lam": 1.0, "lam_coarse": 1.0,
    "alpha": 1.0, "alpha_coarse": 0.5, "epsilon": 0.1, "delta": 0.05, "bound": bounds.exp3,
    "gamma_T": 5.0, "sigma": 0.1, "B": 1.0, "d_tilde": 5.0, "gamma": 1.0, "rate": 0.5,
    "M": 3, "d_star": 2.0,
}  # fmt: skip


def ordinary(function, T):
    """The bound at T in ordinary letters, those with a default left out."""
    letters = inspect.signature(function).parameters.values()
    needed = {p.name for p in letters if p.default is p.empty and p.kind is not p.VAR_KEYWORD} - {"T"}
    more = {"K": 5} if "bound" in needed else {}
    return function(T=T, **{name: ORDINARY[name] for name in needed}, **more)


@pytest.mark.parametrize("name", sorted({*BOUNDS} - {"epoch_greedy"}))  # that one is a sum over epochs: below
def test_a_bound_is_what_the_formula_gives_by_hand(name):
    letters, expected = BY_HAND[name]
    assert BOUNDS[name](**letters) == pytest.approx(expected, rel=1e-12)


def test_ucb1_with_gaps_takes_the_smaller_of_its_two_bounds():
    assert bounds.ucb1(T=e**10, K=2, gaps=[0.0, 0.5]) == pytest.approx(160 + (1 + math.pi**2 / 3) / 2)
    assert bounds.ucb1(T=e, K=2, gaps=[0.0, 1e-6]) == bounds.ucb1(T=e, K=2)


def test_linucb_with_one_model_an_arm_has_their_dimensions_and_splits_delta():
    letters = {"d": 3, "R": 0.2, "S": 1.0, "L": 1.0, "lam": 1.0}
    T, K, delta = 5_000, 4, 0.1
    alpha = 0.2 * math.sqrt(3 * math.log1p(T / 3) + 2 * math.log(K / delta)) + 1
    expected = 2 * alpha * math.sqrt(2 * T * K * 3 * math.log1p(T / (K * 3)))
    assert bounds.linucb(T=T, delta=delta, models=K, **letters) == pytest.approx(expected)


def test_epoch_greedy_with_another_schedule_is_another_sum():
    letters = {"T": 5_000, "K": 2, "N": 10, "delta": 0.1}
    complexity = 2 * math.log(100)
    by_hand = bounds.epoch_greedy(**letters, schedule=lambda epoch: math.floor(4 * math.sqrt(epoch / complexity)))
    assert by_hand == bounds.epoch_greedy(**letters, c=4.0) != bounds.epoch_greedy(**letters)


def test_epoch_greedy_sums_over_its_epochs():
    T, K, N, delta = 5_000, 2, 10, 0.1
    epochs = np.arange(1, T + 1)
    greedy = np.floor(np.sqrt(epochs / (K * math.log(N / delta))))
    last = int(np.searchsorted(np.cumsum(1 + greedy), T)) + 1
    A = math.log(2 * N * last / delta)
    epochs, greedy = epochs[:last], greedy[:last]
    # Bernstein: the root of l x^2 / 2 = A K (1 + x / 3), the deviation of an average of variance K and range K
    deviation = (A * K / 3 + np.sqrt((A * K / 3) ** 2 + 2 * A * K * epochs)) / epochs
    expected = last + (greedy * np.minimum(1, 2 * deviation)).sum()
    assert bounds.epoch_greedy(T=T, K=K, N=N, delta=delta) == pytest.approx(expected)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_has_a_doctest_and_grows_with_T(name):
    assert ">>> " in BOUNDS[name].__doc__
    values = [ordinary(BOUNDS[name], T) for T in (10, 11, 100, 1_000, 10_000, 100_000)]
    assert all(0 < low <= high for low, high in itertools.pairwise(values))


@pytest.mark.parametrize("name", sorted(n for n, agent in agents().items() if agent.theory.regret_bound))
def test_a_bound_grows_in_T_as_its_row_says(name):
    """The slope between two large T on log-log axes is the row's exponent, up to logarithms, which add at most 0.12."""
    theory = agents()[name].theory
    large = {"EpochGreedy": (10**5, 10**7), "Doubling": (2**30 - 1, 2**40 - 1)}.get(name, (10**14, 10**16))
    low, high = (ordinary(theory.regret_bound, T) for T in large)
    slope = math.log(high / low) / math.log(large[1] / large[0])
    more = ORDINARY["epsilon"] / 2 if name == "LinThompson" else 0.0  # T^((1 + epsilon) / 2), epsilon as one likes
    assert theory.exponent - 0.01 <= slope <= theory.exponent + more + 0.12
