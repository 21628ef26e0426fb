"""A log that cannot answer says so in the table, the picture, the JSON, the page, and as a Python warning."""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import armwise as aw
from armwise.offline import Log, WeakLogWarning, compare, evaluate
from tests.offline.worlds import make

DATA = Path(__file__).parents[2] / "data" / "open_bandit"
COLUMNS = {"contexts": [], "arms": "item_id", "rewards": "click", "probabilities": "propensity_score", "n_arms": 80}


def channels(result, path):
    """Everything a user may look at, as text."""
    result.report(path / "report.html")
    figure = result.plot(path / "plot.png")
    assert (path / "plot.png").stat().st_size > 5000
    drawn = [text.get_text() for text in figure.findobj(match=lambda a: hasattr(a, "get_text"))]
    return {
        "table": result.table(), "repr": repr(result), "json": json.dumps(json.loads(result.to_json())["verdict"]),
        "report": (path / "report.html").read_text(), "plot": "\n".join(drawn),
        "estimates": "\n".join(w for e in result.values() for w in e.warnings),
    }  # fmt: skip


def hopeless(n=10_000):
    """A target that plays an arm which the log played twice."""
    arms = np.zeros(n, int)
    arms[[17, 4711]] = 1
    p = np.where(arms == 1, 0.0002, 0.9998)
    return Log(arms=arms, rewards=np.ones(n), probabilities=p, n_arms=2)


def test_the_reverse_direction_of_the_open_bandit_data_warns_everywhere(tmp_path):
    log = Log.from_parquet(DATA / "all_bts.parquet", **COLUMNS)
    with pytest.warns(WeakLogWarning, match="effective sample size 340 of 10,000"):
        result = evaluate(log, aw.Uniform(80), ["ips", "snips", "dm", "dr"])
    assert result["ips"].ess == pytest.approx(340.378, abs=0.01)
    for name, text in channels(result, tmp_path).items():
        assert "effective sample size 340 of 10,000" in text, name
    assert all(result[name].warnings for name in result)


@pytest.mark.parametrize("interval", ["normal", "bootstrap", "bernstein", "sequence"])
def test_an_effective_sample_size_under_one_percent_warns_everywhere(tmp_path, interval):
    verdict = "this log cannot answer the question: effective sample size 2 of 10,000"
    with pytest.warns(WeakLogWarning, match=verdict):
        result = evaluate(hopeless(), aw.Constant(1), ["ips", "snips", "dm"], interval=interval, resamples=50)
    for name, text in channels(result, tmp_path).items():
        assert verdict in text, name
    with pytest.warns(WeakLogWarning, match="second: this log cannot answer"):
        said = compare(hopeless(), aw.Constant(0), aw.Constant(1), "ips")
    assert "cannot answer" in said.table()
    assert "cannot answer" in json.dumps(said.to_dict())


def test_a_large_log_under_one_percent_still_warns():
    n = 200_000
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 150, n)
    log = Log(arms=arms, rewards=rng.random(n), probabilities=np.full(n, 1 / 150), n_arms=150)
    with pytest.warns(WeakLogWarning, match=r"barely answers the question: effective sample size 1,3\d\d of 200,000"):
        evaluate(log, aw.Constant(3), "ips")


def test_a_target_that_never_matches(tmp_path):
    log = Log(arms=np.zeros(200, int), rewards=np.ones(200), probabilities=np.full(200, 0.5), n_arms=2)
    with pytest.warns(WeakLogWarning, match="effective sample size 0 of 200.*weights average 0"):
        result = evaluate(log, aw.Constant(1), ["ips", "snips", "sndr"])
    assert result["ips"].value == 0.0
    assert np.isnan(result["snips"].value)
    assert "undefined" in " ".join(result["snips"].warnings)
    assert json.loads(result.to_json())["estimates"]["snips"]["value"] is None
    channels(result, tmp_path)
    assert result.diagnostics.no_overlap == 1.0


def test_one_heavy_row_and_wrong_probabilities_are_named():
    rng = np.random.default_rng(1)
    arms = rng.integers(0, 2, 1000)
    p = np.full(1000, 0.5)
    p[123] = 0.001
    with pytest.warns(WeakLogWarning, match=r"one row carries \d+% of all weight \(row 123"):
        evaluate(Log(arms=arms, rewards=rng.random(1000), probabilities=p, n_arms=2), [0.5, 0.5], "ips")
    wrong = np.where(arms == 1, 0.25, 0.75)  # the arms were drawn evenly
    with pytest.warns(WeakLogWarning, match="do not match how often arms appear"):
        evaluate(Log(arms=arms, rewards=rng.random(1000), probabilities=wrong, n_arms=2), [0.5, 0.5], "ips")


def test_a_good_log_says_nothing(tmp_path):
    for seed in range(50):  # no false alarm on logs whose probabilities are right
        log, pi = make(2000, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = evaluate(log, pi, ["ips"])
        assert result.verdict == ""
        assert result["ips"].warnings == ()
    texts = channels(result, tmp_path)
    assert "WARNING" not in texts["table"] + texts["plot"]
    assert 'class="verdict"' not in texts["report"]
    calibration = result.diagnostics.calibration
    assert np.abs(calibration[:, 0] - 1).max() < 0.3
    assert np.nanmax(np.abs(calibration[:, 1])) < 5


def test_the_anchors_of_the_open_bandit_data():
    from sklearn.linear_model import LogisticRegression

    frame = pd.read_parquet(DATA / "all_random.parquet")
    items = pd.read_parquet(DATA / "all_items.parquet")
    slots = pd.read_parquet(DATA / "all_bts_policy.parquet")[["p_pos1", "p_pos2", "p_pos3"]].to_numpy()
    policy = slots[:, frame.position.to_numpy() - 1].T
    frame["position"] = frame.position.astype(str)  # a category, as the user features are
    users = [f"user_feature_{i}" for i in range(4)]
    read = Log.from_pandas(frame, **(COLUMNS | {"contexts": [*users, "position"]}))
    described = np.column_stack([items.item_feature_0, pd.get_dummies(items[[f"item_feature_{i}" for i in (1, 2, 3)]])])
    log = Log(
        read.contexts, read.arms, read.rewards, read.probabilities, n_arms=80, arm_features=described.astype(float)
    )
    result = evaluate(log, policy, ["ips", "dm", "dr"], reward_model=LogisticRegression(max_iter=1000))
    assert round(result["ips"].value, 6) == 0.004553  # obp prints six digits
    assert result["dm"].value == pytest.approx(0.003545, rel=0.1)
    assert result["dr"].value == pytest.approx(0.004727, rel=0.1)
    assert result.verdict == ""
    ridge = evaluate(log, policy, ["dm", "dr"])
    assert ridge["dr"].value == pytest.approx(0.004727, rel=0.1)


def test_arms_that_the_log_never_tries_are_counted_and_named(tmp_path):
    # Apprentice mode: the log has arm 0 with probability 1, and says nothing of arm 1.
    sure = Log(arms=np.zeros(4000, int), rewards=np.ones(4000), probabilities=np.ones(4000), n_arms=2)
    verdict = "in 50.0% of its decisions the target plays an arm that this log never tries"
    with pytest.warns(WeakLogWarning, match=verdict):
        result = evaluate(sure, aw.Uniform(2), ["ips", "snips", "dm", "dr"])
    assert result.diagnostics.unsupported == 0.5
    assert json.loads(result.to_json())["diagnostics"]["unsupported"] == 0.5
    for name, text in channels(result, tmp_path).items():
        assert verdict in text, name
    assert all(verdict in " ".join(e.warnings) for e in result.values())
    assert evaluate(sure, aw.Constant(0), ["ips", "snips"]).verdict == ""  # what it does try, it knows


def test_the_whole_distribution_says_how_much_is_missing():
    # A third of the rows never tries arm 2, though no row was drawn with probability 1.
    rng = np.random.default_rng(5)
    n = 6000
    p = np.where((np.arange(n) % 3 == 0)[:, None], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5])
    arms = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    columns = {"arms": arms, "rewards": rng.random(n), "probabilities": p[np.arange(n), arms], "n_arms": 3}
    target = np.array([0.2, 0.2, 0.6])
    with pytest.warns(WeakLogWarning, match=r"in 20\.0% of its decisions"):
        found = evaluate(Log(**columns, support=p > 0), target, "ips").diagnostics
    assert found.unsupported == pytest.approx(0.2)
    assert found.mean_weight == pytest.approx(0.8, abs=0.03)
    assert len(found.verdicts) == 1  # the weights average what the missing part leaves: nothing else is wrong
    with pytest.warns(WeakLogWarning, match="the weights average 0.798"):  # without it, only the weights tell
        assert evaluate(Log(**columns), target, "ips").diagnostics.unsupported == 0.0
    arms_only = evaluate(Log(**columns, support=p > 0), np.full(n, 2), "ips", warn=False)
    assert arms_only.diagnostics.unsupported == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match=r"row 0: arm \d is outside the support"):
        Log(**columns, support=np.zeros((n, 3), bool))
    with pytest.raises(ValueError, match="support must have shape"):
        Log(**columns, support=p[0] > 0)


def test_a_handful_of_rows_is_never_certain():
    for n in (1, 3, 29):
        log = Log(arms=np.arange(n) % 2, rewards=np.ones(n), probabilities=np.full(n, 0.5), n_arms=2)
        with pytest.warns(WeakLogWarning, match=f"too few rows answer the question: effective sample size {n} of {n}"):
            result = evaluate(log, [0.5, 0.5], ["ips", "snips"])
        assert all(e.warnings for e in result.values())
    four = Log(arms=[1] * 4, rewards=[-1.0] * 4, probabilities=[0.5] * 4, n_arms=2)
    with pytest.warns(WeakLogWarning, match="the weights average 2, not 1.*or this is chance"):
        evaluate(four, aw.Constant(1), "ips")
    same = Log(arms=[0, 1] * 20, rewards=[1] * 40, probabilities=[0.5] * 40, n_arms=2)
    with pytest.warns(WeakLogWarning, match="all 40 matching rows have the reward 1"):
        evaluate(same, [0.5, 0.5], "snips")


def test_weights_that_are_all_wrong_alike_are_noticed():
    # Their standard error is 0, which says nothing of their mean.
    log = Log(arms=[0, 1] * 30, rewards=[1, 0] * 30, probabilities=[0.25] * 60, n_arms=2)
    with pytest.warns(WeakLogWarning, match="the weights average 2, not 1"):
        evaluate(log, [0.5, 0.5], "ips")


def test_a_short_log_that_is_fine_says_nothing():
    # At 60 rows from a right log, a false alarm about the weights in more than 1 of 100 logs would be a nuisance.
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.random(60)
        p = np.where(x < 0.5, 0.3, 0.6)
        arms = (rng.random(60) < p).astype(int)
        log = Log(arms=arms, rewards=rng.random(60), probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
        alarms += bool(evaluate(log, [0.5, 0.5], ["ips", "snips"], warn=False).verdict)
    assert alarms <= 2


def test_quiet_evaluation_has_the_same_verdict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = evaluate(hopeless(), aw.Constant(1), "ips", warn=False)
    assert "cannot answer" in quiet.verdict


def test_a_log_without_exploration_is_not_called_miscalibrated():
    # An arm that other rows could not draw is rare in the log, and its probabilities are right all the same.
    arms = np.repeat([0, 1, 2], [500, 300, 200])
    log = Log(arms=arms, rewards=np.arange(1000) % 2, probabilities=np.ones(1000), n_arms=3)
    result = evaluate(log, arms, ["ips", "snips"])
    assert result.verdict == ""
    np.testing.assert_allclose(result.diagnostics.calibration[:, 0], 1.0)


def test_weights_without_a_variance_are_named():
    # The logger plays the target's arm with probability sigma(4 x). Normal IPS intervals hold the truth in 70 % of such
    # logs; before, 10 % of the logs, and a fifth of the misses, had no warning (Pareto k between 0.5 and 0.7).
    warned = []
    for run in range(100):
        rng = np.random.default_rng([run, 99])
        x = rng.normal(size=2000)
        p = 1.0 / (1.0 + np.exp(-4.0 * x))
        arms = (rng.random(2000) >= p).astype(int)
        log = Log(arms=arms, rewards=rng.random(2000), probabilities=np.where(arms == 0, p, 1 - p), n_arms=2)
        warned.append(bool(evaluate(log, aw.Constant(0), "ips", interval="normal", warn=False).verdict))
    assert np.mean(warned) >= 0.97
