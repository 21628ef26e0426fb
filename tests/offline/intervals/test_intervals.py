"""Coverage of the intervals on logs with known truth; a failure means an interval that does not keep its promise."""

# mypy: disable-error-code="arg-type, index, var-annotated"

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

from armwise.offline import ConfidenceSequence, Log, WeakLogWarning, compare, confidence_sequence, evaluate
from armwise.offline.intervals.intervals import (
    Blocks,
    Clusters,
    Moments,
    bernstein,
    bernstein_p,
    block_size,
    bootstrap,
    bootstrap_p,
    freedom,
    normal,
    normal_p,
    p_value_of,
    skewed_interval,
    skewness_of,
)
from tests.offline.worlds import D, draw_arms, expected, logging, make, target, truth

RUNS, N = 1000, 2000
NAMES = ["ips", "snips", "dr", "sndr"]


@pytest.fixture(scope="module")
def value():
    return truth()


def coverage(interval, value, runs=RUNS, **options):
    hits = dict.fromkeys(NAMES, 0)
    for seed in range(runs):
        log, pi = make(N, seed)
        result = evaluate(log, pi, NAMES, interval=interval, warn=False, **options)
        for name in NAMES:
            hits[name] += result[name].low <= value <= result[name].high
    return {name: n / runs for name, n in hits.items()}


def test_normal_intervals_cover(value):
    # 1,000 runs: the share has a standard error of 0.7 %, so 93 to 97.5 % is where a right 95 % interval lies.
    for name, share in coverage("normal", value).items():
        assert 0.93 <= share <= 0.975, (name, share)


def test_bernstein_intervals_cover(value):
    # It hardly ever misses, where 300 logs tell a bound that is too narrow as well as 1,000 do.
    for name, share in coverage("bernstein", value, runs=300).items():
        assert share >= 0.98, (name, share)


def test_bootstrap_intervals_cover(value):
    # All runs share the resampled row numbers: one product of matrices instead of 1,000 bootstraps.
    columns = {name: [] for name in ("wr", "w")}
    for seed in range(RUNS):
        log, pi = make(N, seed)
        w = pi[np.arange(N), log.arms] / log.probabilities
        columns["wr"].append(w * log.rewards)
        columns["w"].append(w)
    blocks = Blocks(2 * RUNS)
    blocks.add(np.column_stack(columns["wr"] + columns["w"]))
    ips = [lambda m, i=i: m[..., i] for i in range(RUNS)]
    snips = [lambda m, i=i: m[..., i] / m[..., RUNS + i] for i in range(RUNS)]
    found = np.array(bootstrap(blocks, [*ips, *snips], resamples=1000, seed=1))
    for name, ends in (("ips", found[:RUNS]), ("snips", found[RUNS:])):
        share = np.mean((ends[:, 0] <= value) & (value <= ends[:, 1]))
        assert 0.93 <= share <= 0.975, (name, share)


def test_evaluate_bootstraps_with_the_same_function():
    log, pi = make(N, seed=5)
    w = pi[np.arange(N), log.arms] / log.probabilities
    blocks = Blocks(2)
    blocks.add(np.column_stack([w * log.rewards, w]))
    [ends] = bootstrap(blocks, [lambda m: m[..., 0] / m[..., 1]], resamples=300, seed=0)
    found = evaluate(log, pi, "snips", interval="bootstrap", resamples=300)["snips"]
    # Then farther from the value by what u effective rows leave open: Student's quantile, the leverage 1/u of a row.
    u = w.sum() ** 2 / (w @ w)
    wider = stats.t.ppf(0.975, u - 1) / stats.norm.ppf(0.975) * u / (u - 1)
    low, high = (found.value + wider * (end - found.value) for end in ends)
    assert 1.001 < wider < 1.01
    usual = evaluate(log, pi, "snips", interval="normal")["snips"]  # and never inside the normal interval
    assert (found.low, found.high) == pytest.approx((min(low, usual.low), max(high, usual.high)), rel=1e-12)


def test_the_bootstrap_normalises_inside_each_resample():
    # Against the definition: draw row numbers, take the ratio of the sums over them.
    log, pi = make(200, seed=6)
    w = pi[np.arange(200), log.arms] / log.probabilities
    rng = np.random.default_rng(3)
    drawn = []
    for _ in range(4000):
        rows = rng.integers(0, 200, 200)
        drawn.append((w * log.rewards)[rows].sum() / w[rows].sum())
    found = evaluate(log, pi, "snips", interval="bootstrap", resamples=4000)["snips"]
    usual, ends = evaluate(log, pi, "snips", interval="normal")["snips"], np.quantile(drawn, [0.025, 0.975])
    ends = min(ends[0], usual.low), max(ends[1], usual.high)
    np.testing.assert_allclose([found.low, found.high], ends, atol=0.01)


@pytest.mark.parametrize("kind", ["weights", "bounded"])
def test_the_confidence_sequence_covers_at_every_row_at_once(kind, value):
    # 500 runs, looked at after each of 2,000 rows: one row outside makes the whole run a failure.
    runs, rng = 500, np.random.default_rng(7)
    if kind == "bounded":
        rewards = (rng.random((runs, N)) < 0.1).astype(float)
        low, high = confidence_sequence(rewards)
        value = 0.1
    else:
        x = rng.normal(size=(runs, N, D))
        p, pi = logging(x), target(x)
        arms = draw_arms(p, rng)[..., None]
        rewards = (rng.random((runs, N)) < np.take_along_axis(expected(x), arms, 2)[..., 0]).astype(float)
        weights = (np.take_along_axis(pi, arms, 2) / np.take_along_axis(p, arms, 2))[..., 0]
        low, high = confidence_sequence(rewards, weights, max_weight=20.0)
    inside = ((low <= value) & (value <= high)).all(axis=1)
    assert inside.mean() >= 0.95
    # And it is worth having: at the end the interval is no wider than six standard errors to each side.
    scores = rewards if kind == "bounded" else rewards * weights
    assert np.median(high[:, -1] - low[:, -1]) < 12 * scores.std() / np.sqrt(N)


def test_a_sequence_fed_in_pieces_is_the_sequence_fed_at_once():
    rng = np.random.default_rng(8)
    values, weights = rng.random(500) * 3 - 1, rng.exponential(size=500)
    whole = ConfidenceSequence(0.9, low=-1, high=2, max_weight=5.0)
    ends = whole.update(values, weights)
    pieces = ConfidenceSequence(0.9, low=-1, high=2, max_weight=5.0)
    for i in range(0, 500, 50):
        pieces.update(values[i : i + 50], weights[i : i + 50])
    assert (pieces.low, pieces.high, pieces.n) == (whole.low, whole.high, 500)
    assert ends[0][-1] == whole.low
    assert ends[1][-1] == whole.high
    assert np.all(np.diff(ends[0]) >= 0)
    assert np.all(np.diff(ends[1]) <= 0)


def test_the_lower_bound_equals_its_formula():
    x = np.random.default_rng(9).exponential(size=60)
    log, scale, lam_x, lams, penalty, best = np.log(2 / 0.05), 4.0, 0.0, 0.0, 0.0, 0.0
    for t in range(1, 61):
        past = x[: t - 1]
        means = [min(1.0, (0.5 + x[:i].sum()) / (i + 1)) for i in range(t)]
        deviations = sum((past[i] - means[i + 1]) ** 2 for i in range(t - 1))
        variance = (scale * scale + deviations) / (t - 1 + scale)
        lam = min(0.5, np.sqrt(2 * log / (variance * t * np.log(1 + t))))
        lams, lam_x = lams + lam, lam_x + lam * x[t - 1]
        penalty += (-np.log(1 - lam) - lam) * (x[t - 1] - means[-1]) ** 2
        best = max(best, (lam_x - log - penalty) / lams)
    sequence = ConfidenceSequence(max_weight=scale)
    sequence.update(np.ones(60), x)
    assert sequence.low == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_a_sequence_refuses_what_it_cannot_use():
    sequence = ConfidenceSequence()
    for values, weights in [([1.5], None), ([np.nan], None), ([0.5], [-1.0]), ([0.5], [1.0, 2.0])]:
        with pytest.raises(ValueError, match="must be"):
            sequence.update(values, weights)
    assert sequence.n == 0
    with pytest.raises(ValueError, match="low < high"):
        ConfidenceSequence(low=1.0, high=0.0)


def test_moments_do_not_lose_digits():
    rng = np.random.default_rng(10)
    columns = 1e8 + rng.normal(size=(10_000, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    moments = Moments(2)
    for part in np.array_split(columns, 7):
        moments.add(part)
    np.testing.assert_allclose(moments.mean, columns.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(moments.covariance, np.cov(columns, rowvar=False), rtol=1e-6)


def test_blocks_keep_all_sums_and_the_spread_of_the_bootstrap():
    rng = np.random.default_rng(11)
    columns = rng.exponential(size=(50_000, 1))
    few, all_rows = Blocks(1, limit=1024), Blocks(1, limit=65_536)
    for part in np.array_split(columns, 13):
        few.add(part)
        all_rows.add(part)
    assert len(few.sums) <= 1024 < len(all_rows.sums)
    assert few.counts.sum() == 50_000
    np.testing.assert_allclose(few.sums.sum(), columns.sum())
    widths = [np.diff(bootstrap(b, [lambda m: m[..., 0]], resamples=500)[0])[0] for b in (few, all_rows)]
    assert widths[0] == pytest.approx(widths[1], rel=0.15)


def test_formulas():
    from scipy.stats import norm

    low, high = normal(0.3, 0.04, 50, 0.9)
    assert high - 0.3 == pytest.approx(norm.ppf(0.95) * 0.2 / np.sqrt(50))
    low, high = bernstein(0.3, 0.04, 50, 0.9, spread=2.0)
    log = np.log(2 / 0.05)  # Maurer & Pontil, Theorem 4, with 0.05 for each side
    assert high - 0.3 == pytest.approx(np.sqrt(2 * 0.04 * log / 50) + 7 * 2.0 * log / (3 * 49))
    assert 0.3 - low == pytest.approx(high - 0.3)


def test_large_rewards_give_numbers_or_say_that_they_cannot():
    # Warnings are errors here: the squares of 1e140 are numbers, those of 1e149 / 1e-7 are not.
    log = Log(arms=[0, 1] * 50, rewards=[1e140, 3e140] * 50, probabilities=[0.5] * 100, n_arms=2)
    found = evaluate(log, [0.5, 0.5], ["ips", "snips"])
    for name in found:
        assert found[name].value == pytest.approx(2e140)
        assert found[name].std_error == pytest.approx(1e139 * np.sqrt(100 / 99))
    huge = Log(arms=[0, 1] * 50, rewards=[1e149, 0] * 50, probabilities=[1e-7, 1 - 1e-7] * 50, n_arms=2)
    with pytest.warns(WeakLogWarning, match="undefined: the squares of these rewards are too large"):
        said = evaluate(huge, [0.5, 0.5], ["ips", "snips"])
    assert said["ips"].to_dict()["high"] is None
    with pytest.warns(WeakLogWarning, match="too large"):
        compare(huge, [0.5, 0.5], [0.4, 0.6], "snips")
    for column, value in (("rewards", 1e200), ("rewards", np.inf), ("probabilities", 1e-200)):
        columns = {"arms": [0, 1], "rewards": [0.0, 1.0], "probabilities": [0.5, 0.5], "n_arms": 2}
        columns[column][1] = value
        with pytest.raises(ValueError, match=rf"row 1: .* is {re.escape(str(value))}, expected"):
            Log(**columns)


def test_a_huge_mean_is_no_spread():
    moments = Moments(1)
    for _ in range(2):
        moments.add(np.full((8, 1), 2.0**540))  # its square is no number
    assert moments.mean == [2.0**540]
    assert moments.covariance == [[0.0]]


def test_merged_moments_are_those_of_all_rows():
    one, other = Moments(1), Moments(1)
    one.add(np.array([[1.0], [2.0]]))
    other.add(np.array([[6.0]]))
    one.merge(other)
    assert one.mean == pytest.approx([3.0])
    np.testing.assert_allclose(one.covariance, [[7.0]], rtol=1e-7)


def test_neighbours_are_merged_past_the_limit():
    blocks = Blocks(1, limit=4)
    blocks.add(np.arange(10.0)[:, None])
    assert blocks.sums[:, 0].tolist() == [6.0, 22.0, 17.0]
    assert blocks.counts.tolist() == [4.0, 4.0, 2.0]


def test_merged_blocks_are_those_of_one_pass():
    one, later = Blocks(1, limit=4), Blocks(1, limit=4)
    one.add(np.arange(4.0)[:, None])
    later.add(np.arange(4.0, 10.0)[:, None])
    one.merge(later)
    assert one.sums[:, 0].tolist() == [6.0, 22.0, 17.0]
    assert one.counts.tolist() == [4.0, 4.0, 2.0]


def test_blocks_double_when_rows_pass_the_limit():
    assert block_size(16_384) == 1
    assert block_size(16_385) == 2
    assert block_size(10_000_000) == 1024


def test_rows_of_a_cluster_add_up():
    clusters = Clusters(1)
    clusters.add(np.array([[1.0], [3.0], [5.0]]), np.array(["ann", "bob", "ann"]))
    assert clusters.sums[:, 0].tolist() == [6.0, 3.0]
    assert clusters.counts.tolist() == [2.0, 1.0]
    assert clusters.n == 2


def test_merged_clusters_add_up():
    one, later = Clusters(1), Clusters(1)
    one.add(np.array([[1.0], [3.0]]), np.array(["ann", "bob"]))
    later.add(np.array([[5.0]]), np.array(["ann"]))
    one.merge(later)
    assert one.sums[:, 0].tolist() == [6.0, 3.0]
    assert one.counts.tolist() == [2.0, 1.0]


def test_unequal_clusters_are_fewer():
    clusters = Clusters(1)
    clusters.add(np.ones((6, 1)), np.array(list("aaaabc")))
    assert round(clusters.effective(clusters.counts), 1) == 1.3


def test_the_skewness_of_a_sum_by_hand():
    assert round(skewness_of(np.array([2.0, -1.0, -1.0])), 3) == 0.408


def test_many_equal_rows_are_as_many_degrees_of_freedom():
    assert round(freedom(np.random.default_rng(1).normal(size=100_000)), -4) == 100000.0
    assert freedom(np.array([3.0, -1.0, -1.0, -1.0])) == pytest.approx(6.0)  # 2 / ((81 + 3) / 144 - 1 / 4)


def test_the_normal_interval_by_hand():
    low, high = normal(0.5, 0.25, n=100)
    assert round(float(low), 3) == 0.402
    assert round(float(high), 3) == 0.598


def test_a_skewed_interval_is_longer_above():
    low, high = skewed_interval(0.05, (np.repeat([0.0, 1.0], [95, 5]) - 0.05) / 100)
    assert round(low, 2) == 0.01
    assert round(high, 2) == 0.14


def test_the_p_value_is_where_the_interval_ends_at_0():
    assert round(p_value_of(lambda level: normal(0.1, 1.0, 400, level)), 4) == 0.0455


def test_the_normal_p_value_is_that_of_its_interval():
    assert round(normal_p(0.1, 1.0, 400), 4) == 0.0455


def test_the_bernstein_p_value_is_where_its_interval_ends():
    low, _ = bernstein(0.1, 0.25, n=1000, level=1 - bernstein_p(0.1, 0.25, 1000, 1.0), spread=1.0)
    assert low == pytest.approx(0.0, abs=1e-6)


def test_the_bootstrap_p_value_of_no_difference():
    blocks = Blocks(1)
    blocks.add(np.tile([[-1.0], [1.0]], (500, 1)))
    assert bootstrap_p(blocks, lambda means: means[..., 0]) > 0.5


def test_the_bernstein_interval_by_number():
    low, high = bernstein(0.5, 0.25, n=1000, spread=1.0)
    assert round(float(low), 3) == 0.443
    assert round(float(high), 3) == 0.557


def test_the_bootstrap_interval_of_a_mean():
    blocks = Blocks(1)
    blocks.add(np.tile([[0.0], [1.0]], (500, 1)))
    [(low, high)] = bootstrap(blocks, [lambda means: means[..., 0]])
    assert 0.46 < low < 0.48 and 0.52 < high < 0.54
