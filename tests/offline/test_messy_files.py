"""Files as people have them: what is wrong is said once, at its line, with the remedy; what can be read is read."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.offline import Log, LogError, WeakLogWarning, replay


@pytest.fixture
def write(tmp_path):
    def written(text, name="log.csv"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return written


def run(capsys, *words):
    code = main([str(w) for w in words])
    out, err = capsys.readouterr()
    return code, out, err


def trial(n=2000, seed=0, **columns):
    """A trial of two arms: 20 % of the rows with arm a are rewarded, 40 % of those with arm b."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, 2, n)
    frame = pd.DataFrame({"age": rng.integers(18, 80, n), "arm": np.array(["a", "b"])[arms]})
    frame["reward"] = (rng.random(n) < 0.2 + 0.2 * arms) * 1
    return frame.assign(probability=0.5, **columns)


# ---------------------------------------------------------------------- problems by line


def test_a_ragged_file_is_refused_with_every_wrong_line(write, capsys):
    path = write('x,arm,reward\n1,a,0\n2,b\n\n"3\n4",a,0\n4,b,1,7\n')
    with pytest.raises(LogError) as refused:
        Log.from_csv(path).validate()
    assert refused.value.problems == [
        "line 3: 2 cells, expected 3 as in the header",
        "line 7: 4 cells, expected 3 as in the header",
    ]
    code, _, err = run(capsys, "evaluate", path)
    assert code == 2 and "line 3: 2 cells" in err and "line 7: 4 cells" in err


def test_a_problem_of_a_csv_is_at_the_line_that_an_editor_shows(write):
    # One header line, one blank line, a cell of two lines: the editor's count, not the row's.
    path = write('note,arm,reward,probability\nx,a,0,0.5\n\n"two\nlines",b,1,1.5\ny,a,,0.5\n')
    with pytest.raises(LogError) as refused:
        Log.from_csv(path, contexts=[]).validate()
    first, second = refused.value.problems
    assert first.startswith("line 4: probability is 1.5")
    assert second.startswith("line 6: reward is missing in column 'reward'")


def test_lines_of_several_files_are_counted_in_each(write):
    one = write("arm,reward\na,0\nb,1\n", "one.csv")
    two = write("arm,reward\na,0\nb,\n", "two.csv")
    with pytest.raises(LogError, match=r"two\.csv, line 3: reward is missing"):
        Log.from_csv([one, two]).validate()


def test_a_frame_and_a_parquet_file_count_rows_from_0(tmp_path):
    frame = pd.DataFrame({"arm": ["a", "b"], "reward": [0.0, np.nan]})
    frame.to_parquet(tmp_path / "log.parquet")
    for read in (lambda: Log.from_pandas(frame), lambda: Log.from_parquet(tmp_path / "log.parquet").validate()):
        with pytest.raises(LogError, match="row 1: reward is missing"):
            read()


def test_problems_of_every_column_are_told_at_once_and_each_on_its_own_line(write, capsys):
    rows = ["a,low,50 percent,1", "b,high,0.5,2"] * 20
    path = write("arm,reward,probability,x\n" + "\n".join(rows) + "\n")
    with pytest.raises(LogError) as refused:
        Log.from_csv(path).validate()
    said = str(refused.value)
    assert said.startswith("the log has 21 problems")
    assert "column 'reward' holds 'high', 'low', expected numbers: is it the right column?" in said
    assert (
        "line 2: probability is '50 percent' in column 'probability', expected a number (also lines 4, 6, 8 and 16"
        in said
    )
    code, _, err = run(capsys, "evaluate", path)
    assert code == 2 and len(err.splitlines()) == 3
    assert err.splitlines()[0] == "armwise evaluate: error: the log has 21 problems:"


def test_equal_problems_of_many_rows_are_one_line(write):
    rows = [f"a,{'' if i % 2 else 1},{0.5 if i else 7}" for i in range(60)]
    path = write("arm,reward,probability\n" + "\n".join(rows) + "\n")
    with pytest.raises(LogError) as refused:
        Log.from_csv(path).validate()
    said = str(refused.value).splitlines()
    assert said[0] == "the log has 31 problems:" and len(said) == 3
    assert said[1].startswith("  line 2: probability is 7.0")
    assert said[2].startswith("  line 3: reward is missing") and said[2].endswith("(also lines 5, 7, 9 and 26 more)")


# ---------------------------------------------------------------------- numbers as people write them


def test_yes_and_no_are_a_reward_and_percentages_are_probabilities(write):
    path = write("arm,reward,probability\n" + "a,yes,50%\nb,No,50 %\na,TRUE,25%\nb,n,75%\n")
    log = Log.from_csv(path)
    assert log.rewards.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert log.probabilities.tolist() == [0.5, 0.5, 0.25, 0.75]
    assert log.columns_used.startswith(
        "arm: arm; reward: reward (yes = 1, TRUE = 1, No = 0, n = 0); probability: probability (75% = 0.75, 50% = 0.5"
    )


def test_decimal_commas_are_refused_with_the_option_that_reads_them(write, capsys):
    path = write("arm;reward;probability;height\n" + "a;0,5;0,5;1,75\nb;1,5;0,5;1,80\n" * 20)
    with pytest.raises(LogError) as refused:
        Log.from_csv(path).validate()
    assert "decimal=','" in str(refused.value) and "'0,5'" in str(refused.value)
    code, _, err = run(capsys, "evaluate", path)
    assert code == 2 and "--decimal ," in err
    log = Log.from_csv(path, decimal=",")
    assert log.rewards[:2].tolist() == [0.5, 1.5] and log.contexts[0, 0] == 1.75


def test_a_column_that_turns_into_decimals_late_is_read(write):
    # The type of a column is guessed from the first megabytes: whole rewards first, decimals later.
    path = write("arm,reward\n" + "a,0\nb,1\n" * 200_000 + "a,0.25\n")
    assert Log.from_csv(path, contexts=[]).rewards[-1] == 0.25


def test_words_late_in_a_column_of_numbers_are_at_their_line(write):
    path = write("x,arm,reward\n" + "1,a,0\n1,b,1\n" * 1_000_000 + "unknown,b,1\n")
    with pytest.raises(LogError, match=r"line 2,?000,?002: x is 'unknown', expected a number as in the rows before"):
        Log.from_csv(path).validate()


# ---------------------------------------------------------------------- which column is what


@pytest.mark.parametrize("twin", [
    lambda r: np.where(r > 0, "yes", "no"), lambda r: r > 0, lambda r: np.where(r > 0, 2, 1),
    lambda r: np.where(r > 0, "bought", np.where(np.arange(len(r)) % 3, "left", "looked")),
])  # fmt: skip
def test_a_twin_of_the_reward_is_no_context_however_it_is_written(twin):
    frame = trial()
    with pytest.warns(WeakLogWarning, match="converted"):
        log = Log.from_pandas(frame.assign(converted=twin(frame.reward.to_numpy())))
    assert "contexts: age; left out as outcomes: converted" in log.columns_used


def test_the_reward_in_another_unit_is_no_context():
    # Rewards that are never zero: nothing but their order says that the column is the reward again.
    frame = trial()
    frame["reward"] = np.exp(np.random.default_rng(1).normal(size=len(frame)) + 0.2 * (frame.arm == "b"))
    with pytest.warns(WeakLogWarning, match="cents"):
        log = Log.from_pandas(frame.assign(cents=(100 * frame.reward).round() + 7))
    assert "left out as outcomes: cents" in log.columns_used


def test_a_context_of_words_that_says_much_of_the_reward_stays_a_context():
    rng = np.random.default_rng(2)
    frame = trial()
    frame["plan"] = np.where(rng.random(len(frame)) < 0.2 + 0.6 * frame.reward, "gold", "basic")
    assert "contexts: age, plan" in Log.from_pandas(frame).columns_used


def test_an_agent_does_not_learn_from_a_twin_of_the_reward_without_a_warning():
    frame = trial()
    frame["converted"] = np.where(frame.reward > 0, "yes", "no")
    with pytest.warns(WeakLogWarning, match="converted=yes"):
        replay(Log.from_pandas(frame, contexts=["age", "converted"]), aw.LinUCB(dim=3, n_arms=2, seed=0), runs=0)


@pytest.mark.parametrize("name", ["p", "propensity_score", "pscore", "chance"])
def test_a_column_of_probabilities_is_no_context(name, tmp_path, capsys):
    # As a context it would tell which arm was drawn: probabilities estimated from it are all near 1.
    rng = np.random.default_rng(3)
    frame = trial().drop(columns="probability")
    often = 1 / (1 + np.exp(-(frame.age - 50) / 20))
    arms = (rng.random(len(frame)) < often) * 1
    frame["arm"], frame[name] = np.array(["a", "b"])[arms], np.where(arms, often, 1 - often)
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.warns(WeakLogWarning, match=f"{name} looks like the probabilities of the arms"):
        log = Log.from_csv(tmp_path / "log.csv")
    assert log.context_names == ["age"]
    code, _, err = run(capsys, "evaluate", tmp_path / "log.csv")
    assert code == 2 and f"--probability {name}" in err
    words = ["evaluate", tmp_path / "log.csv", "--estimate-probabilities", "--policy", "arm:a"]
    assert run(capsys, *words, "--json")[0] == 0


def test_a_context_between_0_and_1_stays_a_context():
    rng = np.random.default_rng(4)
    assert Log.from_pandas(trial(share=rng.random(2000))).context_names == ["age", "share"]


def test_numbers_with_a_few_words_stay_numbers():
    rng = np.random.default_rng(5)
    frame = trial(income=np.round(rng.normal(50, 10, 2000), 2).astype(object))
    unknown = rng.random(2000) < 0.05
    frame.loc[unknown, "income"] = "unknown"
    for written in (frame, frame.astype({"income": str})):
        log = Log.from_pandas(written)
        assert log.context_names == ["age", "income", "income=unknown"]
        np.testing.assert_array_equal(log.contexts[:, 2], unknown)
        numbers = frame.income[~unknown].astype(float)
        np.testing.assert_allclose(log.contexts[~unknown, 1], numbers)
        np.testing.assert_allclose(log.contexts[unknown, 1], numbers.mean())
        assert f"income (numbers; 'unknown' in {unknown.mean():.1%} of the rows)" in log.columns_used


def test_a_few_sizes_stay_categories():
    frame = trial(size=np.random.default_rng(6).choice(["36", "38", "40", "XL"], 2000))
    assert Log.from_pandas(frame).context_names == ["age", "size=36", "size=38", "size=40", "size=XL"]


def test_a_name_that_two_columns_have_is_said(write):
    text = "x,arm,reward,x\n" + "1,a,0,5\n2,b,1,6\n" * 10
    with pytest.warns(WeakLogWarning, match="two columns are called x"):
        log = Log.from_csv(write(text))
    assert log.columns_used.endswith("left out: x (the name of two columns)")
    with pytest.raises(ValueError, match="two columns are called 'reward': rename one of them"):
        Log.from_csv(write("x,arm,reward,reward\n1,a,0,5\n"))
    with pytest.raises(ValueError, match="two columns are called 'x': rename one of them"):
        Log.from_csv(write(text), contexts=["x"])
    twice = pd.DataFrame([[1, "a", 0.0, 5], [2, "b", 1.0, 6]], columns=["x", "arm", "reward", "x"])
    with pytest.warns(WeakLogWarning, match="two columns are called x"):
        assert Log.from_pandas(twice).context_names == []


@pytest.mark.parametrize(("asked", "meant"), [
    ("age", "age (years)"), ("Channel", "channel"), ("rewrd", "reward"), ("income", "household_income"),
])  # fmt: skip
def test_the_column_that_is_meant_is_suggested(asked, meant):
    names = ["message", "age (years)", "channel", "arm", "reward", "household_income"]
    frame = pd.DataFrame([[1, 2, 3, 4, 5, 6]], columns=names)
    with pytest.raises(ValueError, match=rf"there is no column '{asked}': did you mean '{re.escape(meant)}'\?"):
        Log.from_pandas(frame, contexts=[asked])
