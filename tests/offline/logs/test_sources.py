"""Every source of a log gives the same rows, and what is missing in one is said by the column's name."""

from __future__ import annotations

import json
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from pyarrow import dataset, fs

import armwise as aw
from armwise.cli.main import main
from armwise.offline import Log, LogError, evaluate
from armwise.offline.logs.sources import kind_of


@pytest.fixture
def frame():
    rng = np.random.default_rng(8)
    arms = rng.integers(0, 3, 900)
    return pd.DataFrame({
        "age": rng.normal(size=900), "channel": rng.choice(["web", "phone"], 900), "day": rng.integers(1, 4, 900),
        "arm": np.array(["a", "b", "c"])[arms], "reward": (rng.random(900) < 0.2 + 0.2 * arms).astype(float),
        "probability": 1 / 3,
    }).sort_values("day", ignore_index=True)  # fmt: skip


def same(log, frame, contexts=("age", "day")):
    assert len(log) == len(frame)
    expected = Log.from_pandas(frame, contexts=list(contexts))
    np.testing.assert_array_equal(log.arms, expected.arms)
    np.testing.assert_array_equal(log.rewards, expected.rewards)
    np.testing.assert_allclose(log.contexts, expected.contexts)
    assert log.arm_names == ["a", "b", "c"]


def sources_of(frame, folder):
    table = pa.Table.from_pandas(frame)
    for day, part in frame.groupby("day"):
        (folder / "hive" / f"day={day}").mkdir(parents=True)
        part.drop(columns="day").to_parquet(folder / "hive" / f"day={day}" / "0.parquet", index=False)
        part.to_parquet(folder / f"part-{day}.parquet", index=False)
    frame.to_csv(folder / "log.csv", index=False)
    frame.to_csv(folder / "semicolons.csv", index=False, sep=";")
    frame.to_csv(folder / "tabs.tsv", index=False, sep="\t")
    relation = duckdb.from_arrow(table)
    return {
        "hive": folder / "hive", "pattern": str(folder / "part-*.parquet"), "url": (folder / "hive").as_uri(),
        "url pattern": (folder / "part-1.parquet").as_uri().replace("part-1", "part-*"),
        "dataset": dataset.dataset(folder / "hive", partitioning="hive"), "reader": table.to_reader(50),
        "table": table, "lazy": polars.LazyFrame(table), "polars": polars.from_arrow(table),
        "duckdb": relation, "pandas": frame, "csv": folder / "log.csv", "semicolons": folder / "semicolons.csv",
        "tabs": folder / "tabs.tsv", "several": [folder / f"part-{day}.parquet" for day in (1, 2, 3)],
    }  # fmt: skip


def test_every_source_has_the_same_rows(frame, tmp_path):
    for name, source in sources_of(frame, tmp_path).items():
        log = Log.read(source, contexts=["age", "day"])
        if name in ("hive", "pattern", "url", "url pattern", "dataset", "lazy", "duckdb", "several"):
            assert log.streamed, name
        same(log, frame)


def test_a_filesystem_may_be_given(frame, tmp_path):
    frame.to_parquet(tmp_path / "log.parquet")
    inside = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    same(Log.from_parquet("log.parquet", filesystem=inside, contexts=["age", "day"]), frame)
    with pytest.raises(FileNotFoundError, match=r"there is no file 'no-\*.parquet'"):
        Log.from_parquet("no-*.parquet", filesystem=inside)


def test_a_constant_probability_is_that_of_a_randomised_trial(frame, tmp_path):
    bare = frame.drop(columns="probability")
    bare.to_csv(tmp_path / "trial.csv", index=False)
    log = Log.from_csv(tmp_path / "trial.csv", contexts=["age"], probabilities=1 / 3)
    assert log.has_probabilities and np.all(log.probabilities == 1 / 3)
    assert np.all(Log(arms=[0, 1], rewards=[0, 1], probabilities=0.5).probabilities == [0.5, 0.5])
    with pytest.raises(ValueError, match="probabilities"):
        Log.from_csv(tmp_path / "trial.csv", probabilities=1.5)


def test_what_is_missing_is_said_by_the_columns_name_with_the_remedy(frame, tmp_path):
    frame.loc[7, "age"] = np.nan
    frame.loc[9, "reward"] = np.nan
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(LogError) as caught:
        Log.from_csv(tmp_path / "log.csv", contexts=["age", "day"]).validate()
    first, second = caught.value.problems
    assert (
        first == "line 9: contexts holds NaN or infinity in column 'age': fill it, or leave the column out of contexts"
    )
    assert second.startswith("line 11: reward is missing in column 'reward'") and "fill in what it is worth" in second


class InNames:
    def many(self, contexts):
        return np.where(contexts[:, 0] > 0, "c", "a")


def test_policies_may_answer_the_names_of_arms(frame):
    log = Log.from_pandas(frame, contexts=["age"])
    by_number = evaluate(log, lambda x: 2 if x[0] > 0 else 0, "ips")["ips"]
    assert evaluate(log, lambda x: "c" if x[0] > 0 else "a", "ips")["ips"].value == by_number.value
    assert evaluate(log, InNames(), "ips")["ips"].value == by_number.value
    assert evaluate(log, np.where(frame["age"] > 0, "c", "a"), "ips")["ips"].value == by_number.value
    with pytest.raises(ValueError, match="row 0: a function answered 'd', expected one of a, b, c"):
        evaluate(log, lambda x: "d", "ips")


def test_the_command_line_takes_patterns_several_files_delimiters_and_constants(frame, tmp_path, capsys):
    sources_of(frame, tmp_path)
    common = ["--contexts", "age", "--policy", "arm:c", "--estimators", "ips", "--json", "--interval", "normal"]
    answers = []
    for log in (
        [str(tmp_path / "part-*.parquet")], [str(tmp_path / f"part-{day}.parquet") for day in (1, 2, 3)],
        [str(tmp_path / "hive")], [str(tmp_path / "semicolons.csv"), "--delimiter", ";", "--probability", "1/3"],
    ):  # fmt: skip
        assert main(["evaluate", *log, *common]) == 0
        answers.append(json.loads(capsys.readouterr().out)["estimates"]["ips"]["value"])
    np.testing.assert_allclose(answers, answers[0], rtol=1e-12)
    assert main(["evaluate", str(tmp_path / "nothing-*.parquet"), *common]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_what_is_not_a_log_is_named():
    with pytest.raises(ValueError, match="cannot read a log from int"):
        Log.read(5)
    with pytest.raises(ValueError, match="expected one character"):
        Log.from_csv(__file__, delimiter=";;")


def test_parquet_is_read_without_importing_pandas(frame, tmp_path):
    """A failure would mean that a short log waits longer for an import than for its rows."""
    frame.drop(columns="channel").assign(arm=frame.arm.map(ord)).to_parquet(tmp_path / "log.parquet")
    run = (
        "import sys; from armwise.offline import Log; "
        f"log = Log.from_parquet({str(tmp_path / 'log.parquet')!r}); rows = list(log.batches()); "
        "assert len(rows[0].arms) and 'pandas' not in sys.modules and 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", run], check=True)


def test_an_option_that_does_not_exist_is_named_with_the_one_that_does(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("treatment,spend\n1,0.5\n0,0.0\n")
    for wrong, right in (("arm", "arms"), ("reward", "rewards"), ("probability", "probabilities")):
        with pytest.raises(TypeError, match=f"there is no option '{wrong}': did you mean {right}=?"):
            Log.from_csv(path, **{wrong: "treatment"})
    with pytest.raises(TypeError, match="there is no option 'zzz': which column is what is said with contexts, arms"):
        Log.from_csv(path, zzz=1)


@pytest.mark.parametrize("arms", [[1, None, 2] * 5, ["a", None, "b"] * 5], ids=["numbers", "texts"])
def test_a_missing_arm_or_probability_is_said_by_its_column_with_the_remedy(tmp_path, arms):
    table = pd.DataFrame({"item": arms, "reward": 1.0, "p": [0.5, 0.5, float("nan")] * 5})
    table.to_parquet(tmp_path / "log.parquet")
    table.to_csv(tmp_path / "log.csv", index=False)
    nullable = table.convert_dtypes()
    columns = {"arms": "item", "probabilities": "p", "contexts": []}
    for source in (table, nullable, polars.from_pandas(table), tmp_path / "log.parquet", tmp_path / "log.csv"):
        with pytest.raises(LogError) as refused:
            Log.read(source, **columns).validate()
        first, second = refused.value.problems[:2]
        one, two = ("line 3", "line 4") if str(source).endswith(".csv") else ("row 1", "row 2")
        assert first.startswith(f"{one}: arm is ")
        assert "in column 'item', expected a whole number or a name: leave out decisions without an arm" in first
        assert second.startswith(
            f"{two}: probability is missing in column 'p', expected a number in (0, 1]: leave such"
        )


def test_a_log_without_rows_is_refused_as_such(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("arm,reward,probability\n")
    assert main(["evaluate", str(tmp_path / "log.csv"), "--policy", "arm:X"]) == 2
    assert "log.csv has no rows" in capsys.readouterr().err
    with pytest.raises(ValueError, match="expected a path, or several, got an empty list"):
        Log.read([])


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """A log of ours in which clicks were told, and their lack not: 40 decisions, every eighth clicked."""
    folder, now = tmp_path_factory.mktemp("export"), [1_700_000_000.0]
    with aw.Decider(folder / "shop", window=86400.0, seed=1, clock=lambda: now[0]) as shop:
        for k in range(40):
            now[0] += 10.0
            made = shop.decide({"hour": k % 24}, arms=["a", "b"])
            if k % 8 == 0:
                shop.reward(made, 1.0)
    path = folder / "log.parquet"
    assert main(["journal", "export", "--storage", str(folder / "shop"), "--format", "parquet",
                 "--output", str(path)]) == 0  # fmt: skip
    return path


def exported(path):
    table = pa.parquet.read_table(path)
    (path.parent / "day=1").mkdir(exist_ok=True)
    pa.parquet.write_table(table, path.parent / "day=1" / "0.parquet")
    return {
        "file": path, "url": path.as_uri(), "pandas": pd.read_parquet(path), "polars": polars.read_parquet(path),
        "lazy": polars.scan_parquet(path), "table": table, "reader": table.to_reader(7),
        "dataset": dataset.dataset(path), "duckdb": duckdb.from_parquet(str(path)),
    }  # fmt: skip


def test_our_own_log_is_judged_by_age_wherever_it_comes_from(export):
    """A frame of an export was an error about lists, or, with skip=True, a log of clicked decisions alone."""
    for name, source in exported(export).items():
        log = Log.read(source)
        assert (len(log), log.rewards.sum(), log.arm_names) == (20, 3.0, ["a", "b"]), name
        assert "20 left out as younger than" in log.remarks[0], name
    for name, source in exported(export).items():
        within = Log.read(source, horizon=300.0)
        assert len(within) == 10, name


def test_rows_of_our_log_are_never_left_out_by_outcome(export, capsys):
    frame = pd.read_parquet(export)
    assert len(Log.read(frame, skip=True)) == 20  # what is open is no bad row
    frame["hour"] = range(40)
    for mapping in ({"contexts": ["hour"], "skip": True}, {"contexts": ["hour"]}):
        with pytest.raises(ValueError, match="selects by outcome"):
            Log.read(frame, **mapping)
    assert main(["evaluate", str(export), "--skip-bad-rows", "--policy", "arm:a", "--json"]) == 0
    capsys.readouterr()
    closed = frame.assign(reward=frame["reward"].fillna(0.0), status="closed")
    assert len(Log.read(closed, contexts=["hour"])) == 40  # every outcome is there
    flat = export.parent / "flat.csv"
    frame.to_csv(flat, index=False)
    for words in ([], ["--skip-bad-rows"]):
        assert main(["evaluate", str(flat), "--policy", "arm:a", *words]) == 2
        assert "selects by outcome" in capsys.readouterr().err


def test_our_log_without_what_came_of_its_decisions_is_not_read_as_nothing_came(export):
    """Without the column outcomes every decision was worth the default reward."""
    frame = pd.read_parquet(export).drop(columns="outcomes")
    with pytest.raises(LogError):
        Log.read(frame)
    closed = frame[frame["seq"] <= 30].assign(reward=1.0, status="closed")
    assert Log.read(closed).rewards.mean() == 1.0


def test_the_format_is_in_the_name():
    assert kind_of("s3://bucket/logs/day=1/*.parquet") == "parquet"
    assert kind_of("a.csv.gz") == "csv"
    assert kind_of("events.dsjson") == "dsjson"
