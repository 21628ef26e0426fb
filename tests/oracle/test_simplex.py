"""The simplex method against SciPy's solver, on random programs and on degenerate ones, where pivots stand still."""

import numpy as np
import pytest
from scipy.optimize import linprog

from armwise.oracle import simplex
from armwise.oracle.simplex import minimise


@pytest.mark.parametrize("standing", [20, 0, -1], ids=["as it is", "Bland's after a pivot that stood still", "Bland's"])
@pytest.mark.parametrize("kind", ["random", "degenerate", "no progress at first"])
@pytest.mark.parametrize("seed", range(15))
def test_least_value_shares_and_prices(seed, kind, standing, monkeypatch):
    """Equal to SciPy's least value; and x and the prices prove each other: both allowed, and of the same value."""
    monkeypatch.setattr(simplex, "_STANDING", standing)
    rng = np.random.default_rng([seed, len(kind)])
    m, n = rng.integers(1, [60, 40])
    A, b, c = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.7), rng.random(m), rng.normal(size=n)
    if kind == "degenerate":  # small whole numbers: ties everywhere
        A, b, c = A.round(), (2 * b).round(), c.round()
    elif kind == "no progress at first":
        b = b * (rng.random(m) < 0.3)
    A, b = np.vstack([A, np.ones(n)]), np.append(b, 1.0)
    found = minimise(c, A, b)
    assert found.least == pytest.approx(linprog(c, A, b).fun, abs=1e-9)
    assert c @ found.x == pytest.approx(found.least, abs=1e-9)
    assert -b @ found.prices == pytest.approx(found.least, abs=1e-9)
    assert min(found.x.min(), found.prices.min()) >= 0.0
    assert (A @ found.x - b).max() < 1e-9
    assert (c + A.T @ found.prices).min() > -1e-9


@pytest.mark.parametrize("standing", [20, 0, -1])
def test_a_program_whose_first_pivots_all_stand_still(standing, monkeypatch):
    """Beale's example (1955), on which the rule of the largest coefficient may go round in circles."""
    monkeypatch.setattr(simplex, "_STANDING", standing)
    A = np.array([[0.25, -8.0, -1.0, 9.0], [0.5, -12.0, -0.5, 3.0], [0.0, 0.0, 1.0, 0.0]])
    found = minimise(np.array([-0.75, 20.0, -0.5, 6.0]), A, np.array([0.0, 0.0, 1.0]))
    assert found.least == pytest.approx(-1.25)
    np.testing.assert_allclose(found.x, [1.0, 0.0, 1.0, 0.0], atol=1e-12)


def test_a_beginning_outside_is_refused():
    with pytest.raises(ValueError, match="b must be at least 0"):
        minimise(np.array([1.0]), np.array([[-1.0]]), np.array([-1.0]))


def test_what_has_no_least_value_is_said():
    with pytest.raises(RuntimeError, match="no least value"):
        minimise(np.array([-1.0]), np.array([[-1.0]]), np.array([1.0]))
