"""Arms have names: of columns, of identifiers, of what a policy answers."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest

import armwise as aw
from armwise.offline import Log, LogError, evaluate


@pytest.fixture
def trial():
    rng = np.random.default_rng(1)
    arms = rng.choice(["Mens", "No", "Womens"], 3000)
    rewards = (arms == "Mens") * 2.0 + (arms == "Womens") * 1.0 + rng.random(3000)
    return Log(arms=arms, rewards=rewards, probabilities=1 / 3)


@pytest.mark.parametrize("module", [pandas, polars], ids=["pandas", "polars"])
def test_the_columns_of_a_table_of_probabilities_go_by_name(trial, module):
    shuffled = module.DataFrame({"Womens": np.full(3000, 0.2), "No": np.zeros(3000), "Mens": np.full(3000, 0.8)})
    by_place = np.tile([0.8, 0.0, 0.2], (3000, 1))
    assert trial.arm_names == ["Mens", "No", "Womens"]
    assert evaluate(trial, shuffled, "ips")["ips"].value == evaluate(trial, by_place, "ips")["ips"].value
    with pytest.raises(ValueError, match="columns Womens, No, Men, expected one for each arm of the log"):
        evaluate(trial, module.DataFrame({"Womens": np.ones(3000), "No": np.zeros(3000), "Men": np.zeros(3000)}))


def test_a_table_without_names_goes_by_place(trial):
    table = np.tile([0.8, 0.0, 0.2], (3000, 1))
    assert evaluate(trial, pandas.DataFrame(table), "ips")["ips"].value == evaluate(trial, table, "ips")["ips"].value


def test_policies_may_answer_names(trial):
    expected = evaluate(trial, aw.Constant(2), "ips")["ips"].value
    assert evaluate(trial, lambda x: "Womens", "ips")["ips"].value == expected
    assert evaluate(trial, ["Womens"] * 3000, "ips")["ips"].value == expected
    with pytest.raises(ValueError, match="answered 'Woman', expected one of Mens, No, Womens"):
        evaluate(trial, lambda x: "Woman", "ips")
    with pytest.raises(ValueError, match="row 1: the arm is 'Woman'"):
        evaluate(trial, ["Womens", "Woman"] * 1500, "ips")


def ids(n=600):
    rng = np.random.default_rng(2)
    names = np.array([300_000_017, 299_999_991, 300_000_402])
    arms = names[rng.integers(0, 3, n)]
    return arms, (arms == 300_000_017) * 0.5 + 0.5 * rng.random(n)


def test_integer_ids_are_categories():
    # Before, 600 rows with ids around 3e8 made 3e8 arms: 45 s to load, and the evaluation never ended.
    arms, rewards = ids()
    log = Log(arms=arms, rewards=rewards, probabilities=np.full(len(arms), 1 / 3))
    assert log.n_arms == 3
    assert log.arm_names == [299_999_991, 300_000_017, 300_000_402]
    assert evaluate(log, aw.Constant(1), "snips")["snips"].value == pytest.approx(0.75, abs=0.05)
    assert Log(arms=[0, 2, 1, 4], rewards=np.zeros(4)).n_arms == 5  # places with a gap stay places
    assert Log(arms=[0, 2, 1, 4], rewards=np.zeros(4)).arm_names is None


def test_integer_ids_of_files_and_frames_are_categories(tmp_path):
    arms, rewards = ids()
    frame = pandas.DataFrame({"arm": arms, "reward": rewards, "probability": 1 / 3, "x": 0.5})
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    for log in (
        Log.from_pandas(frame, contexts=["x"]),
        Log.from_parquet(tmp_path / "log.parquet", contexts=["x"]),
        Log.from_csv(tmp_path / "log.csv", contexts=["x"]),
    ):
        assert log.arm_names == [299_999_991, 300_000_017, 300_000_402]
        assert np.array_equal(np.asarray(log.arm_names)[log.arms], arms)


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(LogError, match="row 1: arm is 'c', expected one of"):
        Log(arms=["a", "c"], rewards=[0, 1], arm_names=["a", "b"])
    with pytest.raises(LogError, match="arm_names has 3 names, but there are 2 arms"):
        Log(arms=[0, 1], rewards=[0, 1], arm_names=["a", "b", "c"], n_arms=2)
