"""Logs from everything that people have, checked row by row, in memory and streamed."""

# mypy: disable-error-code="func-returns-value, index, operator, union-attr"

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armwise as aw
from armwise.offline import Log, LogError, evaluate
from tests.offline.worlds import K, make


@pytest.fixture
def frame():
    log, _ = make(300, seed=1)
    data = {f"x{j}": log.contexts[:, j] for j in range(3)}
    return pd.DataFrame(data | {"arm": log.arms, "reward": log.rewards, "probability": log.probabilities})


@pytest.fixture
def logs(frame, tmp_path):
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    return {
        "pandas": Log.from_pandas(frame, n_arms=K),
        "polars": Log.from_polars(pl.from_pandas(frame), n_arms=K),
        "arrow": Log.from_arrow(pa.Table.from_pandas(frame), n_arms=K),
        "parquet": Log.from_parquet(tmp_path / "log.parquet", n_arms=K),
        "csv": Log.from_csv(tmp_path / "log.csv", n_arms=K),
        "obp": Log.from_obp({"n_actions": K, "context": frame[["x0", "x1", "x2"]].to_numpy(), "action": frame.arm,
                             "reward": frame.reward, "pscore": frame.probability, "position": None,
                             "expected_reward": None}),
    }  # fmt: skip


def test_the_same_rows_from_every_source(logs, frame):
    for name, log in logs.items():
        assert (len(log), log.n_arms) == (300, K), name
        np.testing.assert_allclose(log.contexts, frame[["x0", "x1", "x2"]].to_numpy(), rtol=1e-12)
        np.testing.assert_array_equal(log.arms, frame.arm)
        np.testing.assert_array_equal(log.rewards, frame.reward)
        np.testing.assert_allclose(log.probabilities, frame.probability, rtol=1e-12)


def test_streamed_and_in_memory_give_the_same_results(logs):
    policy = aw.Linear(np.random.default_rng(2).normal(size=(K, 3)))
    for name in ("parquet", "csv"):
        log = logs[name]
        assert log.streamed
        result = evaluate(log, policy, ["ips", "snips", "dm", "dr"], interval="bootstrap", resamples=50)
        assert log.streamed  # nothing made it load the file
        again = evaluate(logs["pandas"], policy, ["ips", "snips", "dm", "dr"], interval="bootstrap", resamples=50)
        for estimator in result:
            assert result[estimator].value == pytest.approx(again[estimator].value, rel=1e-9), (name, estimator)
            assert result[estimator].low == pytest.approx(again[estimator].low, rel=1e-9)


@pytest.mark.parametrize("size", [1, 7, 64, 300, 1000])
def test_the_batch_size_changes_nothing(monkeypatch, logs, size):
    from armwise.offline.evaluation import settings

    policy = aw.Linear(np.random.default_rng(3).normal(size=(K, 3)))
    names = ["ips", "snips", "dr", "sndr", "dros"]
    plain = evaluate(logs["pandas"], policy, names, interval="sequence")
    monkeypatch.setattr(settings, "BATCH", size)
    for source in ("pandas", "parquet"):
        result = evaluate(logs[source], policy, names, interval="sequence")
        for name in names:
            assert result[name].value == pytest.approx(plain[name].value, rel=1e-10)
            assert result[name].low == pytest.approx(plain[name].low, rel=1e-10)
            assert result[name].std_error == pytest.approx(plain[name].std_error, rel=1e-8)
        assert result.diagnostics.largest == plain.diagnostics.largest


def test_several_files_are_one_log(frame, tmp_path):
    for i in range(3):
        frame.iloc[100 * i : 100 * (i + 1)].to_parquet(tmp_path / f"part-{i}.parquet")
    for path in (tmp_path, str(tmp_path / "part-*.parquet"), [tmp_path / f"part-{i}.parquet" for i in range(3)]):
        log = Log.from_parquet(path)
        assert len(log) == 300
        np.testing.assert_array_equal(log.arms, frame.arm)


def test_only_the_columns_that_are_needed_are_read(frame, tmp_path, monkeypatch):
    frame.to_parquet(tmp_path / "log.parquet")
    log = Log.from_parquet(tmp_path / "log.parquet", n_arms=K)
    read = []
    original = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches",
                        lambda self, **kw: read.append(set(kw["columns"])) or original(self, **kw))  # fmt: skip
    evaluate(log, aw.Uniform(K), ["ips", "snips"])
    assert read == [{"arm", "reward", "probability"}]


def test_names_categories_times_and_features_of_arms(tmp_path):
    frame = pd.DataFrame({
        "when": pd.date_range("2026-01-01", periods=4), "city": ["Rome", "Oslo", "Rome", "Bonn"], "age": [1.0, 2, 3, 4],
        "item": ["b", "a", "b", "c"], "click": [1, 0, 0, 1], "p": [0.5] * 4,
        "price_a": [1.0, 2, 3, 4], "price_b": [5.0, 6, 7, 8], "price_c": [9.0, 10, 11, 12],
        "has_a": [True, True, False, True], "has_b": [True] * 4, "has_c": [False, True, True, True],
    })  # fmt: skip
    frame.to_parquet(tmp_path / "log.parquet")
    options = {"arms": "item", "rewards": "click", "probabilities": "p", "timestamps": "when",
               "arm_features": "price_{arm}", "available": "has_{arm}"}  # fmt: skip
    for log in (Log.from_pandas(frame, **options), Log.from_parquet(tmp_path / "log.parquet", **options)):
        assert log.arm_names == ["a", "b", "c"]
        assert log.arms.tolist() == [1, 0, 1, 2]
        assert log.contexts.tolist() == [
            [0, 0, 1, 1.0],
            [0, 1, 0, 2.0],
            [0, 0, 1, 3.0],
            [1, 0, 0, 4.0],
        ]  # Bonn, Oslo, Rome
        assert log.arm_features.shape == (4, 3, 1)
        assert log.arm_features[1, :, 0].tolist() == [2, 6, 10]
        assert log.available.tolist() == [[True, True, False], [True] * 3, [False, True, True], [True] * 3]
        assert len(log.timestamps) == 4


def test_lists_as_contexts(tmp_path):
    rows = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]]
    table = pa.table({"features": rows, "shared": [[1.0, 2.0], [3.0, 4.0]], "arm": [1, 2], "reward": [0.0, 1.0]})
    pq.write_table(table, tmp_path / "log.parquet")
    for log in (
        Log.from_arrow(table, contexts="features"),
        Log.from_parquet(tmp_path / "log.parquet", contexts="features"),
    ):
        assert log.n_arms == 3
        assert log.contexts.shape == (2, 3, 2)
        assert log.available.tolist() == [[True, True, False], [True, True, True]]
        assert log.contexts[1, 2].tolist() == [9.0, 10.0]
    assert Log.from_arrow(table, contexts="shared", n_arms=3).contexts.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    fixed = table.set_column(1, "shared", pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2)))
    assert Log.from_arrow(fixed, contexts="shared", n_arms=3).contexts.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_all_problems_are_reported_with_their_rows(tmp_path):
    x = np.zeros((6, 2))
    x[4, 1] = np.inf
    with pytest.raises(LogError) as caught:
        Log(contexts=x, arms=[0, 1, 9, -1, 0, 0.5], rewards=[0, np.nan, 0, np.inf, 0, 0],
            probabilities=[1, 0.5, 0, 2, np.nan, 1], n_arms=2)  # fmt: skip
    found = "\n".join(caught.value.problems)
    for text in ("row 1: reward is nan", "row 2: arm is 9", "row 2: probability is 0.0", "row 3: arm is -1",
                 "row 3: reward is inf", "row 3: probability is 2.0", "row 4: probability is nan", "row 4: contexts",
                 "row 5: arm is 0.5"):  # fmt: skip
        assert text in found
    assert len(caught.value.problems) == 9


def test_a_bad_file_names_all_its_rows_at_any_distance(tmp_path):
    n = 200_000
    frame = pd.DataFrame({"arm": np.zeros(n, int), "reward": np.zeros(n), "probability": np.full(n, 0.5)})
    frame.loc[[17, 150_000], "reward"] = np.nan
    frame.loc[199_999, "probability"] = 3.0
    frame.to_parquet(tmp_path / "log.parquet")
    log = Log.from_parquet(tmp_path / "log.parquet", n_arms=2)
    with pytest.raises(LogError) as caught:
        log.validate()
    assert [p.split(":")[0] for p in caught.value.problems] == ["row 17", "row 150000", "row 199999"]
    with pytest.raises(LogError, match="row 17"):
        evaluate(log, aw.Uniform(2), "ips")


def test_many_problems_are_counted_not_printed():
    with pytest.raises(LogError, match=r"500 problems[\s\S]*and 480 more"):
        Log(arms=np.arange(7, 507), rewards=np.zeros(500), n_arms=2)
    with pytest.raises(LogError, match=r"500 problems:\n  row 0: arm is 7.*\(also rows 1, 2, 3 and 496 more\)$"):
        Log(arms=np.full(500, 7), rewards=np.zeros(500), n_arms=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arms": [0, 1], "rewards": [1.0]}, "rewards has 1 rows, but arms has 2"),
        ({"arms": [0], "rewards": ["good"]}, "rewards must be numbers"),
        ({"arms": [0]}, "rewards must be given"),
        ({"arms": [0], "rewards": [1], "contexts": np.zeros((2, 2))}, "contexts has 2 rows"),
        ({"arms": [0], "rewards": [1], "arm_features": np.zeros((3, 2)), "n_arms": 2}, "arm_features must have shape"),
        ({"arms": [0], "rewards": [1], "available": [[True]], "n_arms": 2}, "available must have shape"),
        ({"arms": [1], "rewards": [1], "available": [[True, False]]}, "row 0: arm 1 is not among the available"),
        ({"arms": [0, 0], "rewards": [1, 1], "contexts": [np.ones((1, 2)), np.ones((2, 3))]}, "same number"),
    ],
)
def test_wrong_shapes_are_refused(arguments, message):
    with pytest.raises(LogError, match=message):
        Log(**arguments)


def test_columns_that_are_not_there(frame, tmp_path):
    with pytest.raises(ValueError, match="did you mean 'reward'"):
        Log.from_pandas(frame, rewards="rewards")
    with pytest.raises(ValueError, match="no column 'q'"):
        Log.from_pandas(frame, probabilities="q")
    with pytest.raises(ValueError, match="must hold"):
        Log.from_pandas(frame, arm_features="price")
    with pytest.raises(FileNotFoundError, match="no file"):
        Log.from_parquet(tmp_path / "nothing.parquet")
    with pytest.raises(LogError, match=r"row 2: arm is 'z'"):
        Log.from_pandas(pd.DataFrame({"arm": ["a", "b", "z"], "reward": [0, 0, 0]}), arm_names=["a", "b"])
    with pytest.raises(LogError, match=r"row 1: reward is 'high'"):
        Log.from_pandas(pd.DataFrame({"arm": [0, 1], "reward": [1, "high"]}), contexts=[])
    many = pd.DataFrame({"arm": [0] * 2000, "reward": 0.0, "user": [f"u{i}" for i in range(2000)]})
    with pytest.raises(ValueError, match="'user' has more than 1,000 different strings"):
        Log.from_pandas(many, contexts=["user"])
    with pytest.raises(LogError, match="column 'user' holds 'u0', 'u1', 'u10', expected numbers: is it the right"):
        _ = Log.from_pandas(many, rewards="user", contexts=[]).rows


def test_identifiers_and_times_that_nobody_named_are_left_out_and_said_to_be(tmp_path):
    # As in the Open Bandit files: nobody should have to list forty columns because one of them is a time.
    n = 2000
    frame = pd.DataFrame({"arm": [0, 1] * (n // 2), "reward": 0.0, "user": [f"u{i}" for i in range(n)], "age": 30.0,
                          "when": pd.date_range("2024-01-01", periods=n, freq="min")})  # fmt: skip
    frame.to_parquet(tmp_path / "log.parquet")
    for log in (Log.from_pandas(frame), Log.from_parquet(tmp_path / "log.parquet")):
        assert log.contexts.shape == (n, 1)
        said = "contexts: age; left out: when (times), user (more than 1,000 different strings)"
        assert said in log.columns_used
    with pytest.raises(ValueError, match="'when' holds datetime64"):
        _ = Log.from_pandas(frame, contexts=["when"]).rows


def test_missing_values_are_problems_not_zeros(tmp_path):
    (tmp_path / "log.csv").write_text("x,arm,reward,probability\n1,0,1,0.5\n,1,,0.5\n3,,0,\n")
    with pytest.raises(LogError) as caught:
        Log.from_csv(tmp_path / "log.csv", n_arms=2).validate()
    found = "\n".join(caught.value.problems)
    for text in ("line 3: contexts", "line 3: reward", "line 4: arm", "line 4: probability"):
        assert text in found


def test_without_probabilities_or_contexts():
    log = Log.from_pandas(pd.DataFrame({"arm": [0, 1], "reward": [0.0, 1.0]}))
    assert log.contexts is None
    assert log.probabilities is None
    assert not log.has_probabilities
    assert "2 rows, 2 arms, in memory" in repr(log)
