"""Representatives: as many as there are labellings, each with its own labelling."""

# mypy: disable-error-code="arg-type, assignment, operator"

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from armwise.core import saving
from armwise.policies import PlanarSeparators, SampledLinear, Stumps, distributions
from armwise.policies.planar import above, orientation


def labellings(found, contexts):
    return [tuple(row) for row in found.votes(contexts).T]


def stump_labellings(contexts, n_arms):
    """Every stump tried: thresholds below, between and above all values of every feature."""
    found = set()
    for j in range(contexts.shape[1]):
        values = np.unique(contexts[:, j])
        for threshold in [values[0] - 1, *values]:
            for low, high in itertools.product(range(n_arms), repeat=2):
                found.add(tuple(np.where(contexts[:, j] > threshold, high, low)))
    return found


def separable(points, sides):
    """Whether a line separates: a feasible linear programme y (w . x + b) >= 1."""
    y = np.where(sides, 1.0, -1.0)
    rows = -y[:, None] * np.column_stack([points, np.ones(len(points))])
    return linprog(np.zeros(3), A_ub=rows, b_ub=-np.ones(len(points)), bounds=(None, None)).status == 0


@pytest.mark.parametrize("n_arms", [2, 3])
@pytest.mark.parametrize("dim", [1, 2, 4])
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_stumps_have_one_representative_for_each_labelling(n_arms, dim, decimals):
    contexts = np.random.default_rng(dim).normal(size=(30, dim)).round(decimals)  # 0: many equal values
    found = Stumps(dim).representatives(contexts, n_arms)
    rows = labellings(found, contexts)
    assert len(set(rows)) == len(rows) == len(found)
    assert set(rows) == stump_labellings(contexts, n_arms)
    assert len(found) <= Stumps(dim).most(30, n_arms)


@pytest.mark.parametrize(("n", "n_arms"), [(1, 2), (50, 2), (50, 3), (700, 2)])
def test_stumps_on_one_feature_number_the_combinatorial_count(n, n_arms):
    found = Stumps(1).representatives(np.random.default_rng(1).normal(size=(n, 1)), n_arms)
    assert len(found) == n_arms * (n_arms - 1) * (n - 1) + n_arms == Stumps(1).most(n, n_arms)


def test_a_threshold_between_neighbouring_floats_still_splits_them():
    contexts = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    rows = labellings(Stumps(1).representatives(contexts, 2), contexts)
    assert sorted(rows) == [(0, 0), (0, 1), (1, 0), (1, 1)]


POINTS = {
    "general": np.random.default_rng(1).normal(size=(8, 2)),
    "grid": np.array([[i, j] for i in range(3) for j in range(3)], dtype=float),
    "tenths": np.array([[i, j] for i in range(3) for j in range(3)]) * 0.1 + 0.1,  # collinear up to rounding only
    "line": np.array([[i, 2.0 * i] for i in (3, 1, 4, 15, 9, 2)]),
    "vertical": np.array([[1.0, i] for i in (3, 1, 4, 15)] + [[0.0, 2.0]]),
    "repeated": np.repeat(np.random.default_rng(2).normal(size=(4, 2)), 2, axis=0),
    "two": np.array([[0.0, 0.0], [1.0, 1.0]]),
    "one": np.array([[0.5, 0.5]]),
}


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
def test_planar_separators_are_exactly_the_separable_labellings(points):
    if points is POINTS["tenths"]:  # a programme with tolerances cannot judge them; distinctness can be
        rows = labellings(PlanarSeparators().representatives(points, 2), points)
        assert len(set(rows)) == len(rows)
        return
    distinct = np.unique(points, axis=0)
    expected = {s for s in itertools.product((0, 1), repeat=len(distinct)) if separable(distinct, np.array(s))}
    rows = labellings(PlanarSeparators().representatives(points, 2), distinct)
    assert len(set(rows)) == len(rows)
    assert set(rows) == expected


@pytest.mark.parametrize(("n", "n_arms"), [(10, 2), (60, 2), (25, 4)])
def test_planar_separators_in_general_position_number_the_combinatorial_count(n, n_arms):
    """Cover 1965: n points in general position have n^2 - n + 2 linear dichotomies, two of them constant."""
    points = np.random.default_rng(n).normal(size=(n, 2))
    found = PlanarSeparators().representatives(points, n_arms)
    rows = labellings(found, points)
    assert len(set(rows)) == len(rows) == len(found)
    assert len(found) == n_arms * (n_arms - 1) // 2 * (n * n - n) + n_arms == PlanarSeparators().most(n, n_arms)


def test_orientation_is_exact_where_floating_point_is_not():
    """Kettner et al.'s example: a diagonal that rounding makes ragged; fractions decide."""
    from fractions import Fraction

    rng = np.random.default_rng(3)
    p = 0.5 + rng.integers(0, 256, size=(3000, 2)) * 2.0**-53
    q, x = np.array([12.0, 12.0]), np.array([24.0, 24.0])
    signs = orientation(p, q, x)
    exact = [(12 - Fraction(a)) * (24 - Fraction(b)) - (12 - Fraction(b)) * (24 - Fraction(a)) for a, b in p.tolist()]
    assert signs.tolist() == [(e > 0) - (e < 0) for e in exact]
    naive = np.sign((q[0] - p[:, 0]) * (x[1] - p[:, 1]) - (q[1] - p[:, 1]) * (x[0] - p[:, 0]))
    assert (naive != signs).any()


def test_above_orders_the_points_of_the_line_itself():
    for p, q in [((0, 0), (1, 2)), ((0, 0), (-1, 0.5)), ((1, 1), (1, 3)), ((1, 1), (1, -3))]:
        p, q = np.array(p, float), np.array(q, float)
        along = np.array([p - (q - p), p, q, q + (q - p)])
        assert above(p, q, along).tolist() == [True, True, False, False]


def test_vc_dimension_of_stumps():
    """A set is shattered if every labelling is found: search small sets for the largest (Gey 2018 for the formula)."""
    assert [Stumps(d).dimension(2) for d in (1, 2, 3, 4, 5)] == [2, 3, 4, 4, 5]
    orders = list(itertools.permutations(range(4)))
    for d, shattered in ((2, False), (3, True)):
        counts = (
            len(Stumps(d).representatives(np.column_stack([np.arange(4.0), *map(np.array, more)]).astype(float), 2))
            for more in itertools.combinations(orders, d - 1)
        )
        assert (max(counts) == 16) is shattered


def test_sampled_linear_are_distinct_members_with_the_constants():
    rng = np.random.default_rng(4)
    contexts = rng.normal(size=(40, 3)) * [1.0, 10.0, 0.0] + [0.0, 5.0, 2.0]
    found = SampledLinear(3, n_samples=500).representatives(contexts, 3, rng)
    rows = labellings(found, contexts)
    assert len(set(rows)) == len(rows) == len(found) <= 503
    assert {(a,) * 40 for a in range(3)} <= set(rows)
    assert len(found) > 300


@pytest.mark.parametrize("kind", [Stumps(2), PlanarSeparators(), SampledLinear(2, 50)], ids=lambda k: type(k).__name__)
def test_a_representative_by_itself_answers_as_in_the_set(kind):
    rng = np.random.default_rng(5)
    found = kind.representatives(rng.normal(size=(12, 2)), 3, rng)
    fresh = rng.normal(size=(20, 2))
    votes = found.votes(fresh)
    for i in range(len(found)):
        assert np.array_equal(distributions(found[i], fresh, 3).argmax(axis=1), votes[:, i])
    again = saving.loads(saving.dumps(found))
    assert np.array_equal(again.votes(fresh), votes)
    assert np.array_equal(saving.loads(saving.dumps(found[3])).many(fresh), votes[:, 3])
    if not isinstance(kind, SampledLinear):
        with pytest.raises(IndexError):
            found[len(found)]
