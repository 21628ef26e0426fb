"""Files as people have them: what is wrong is said once, at its line, with the remedy; what can be read is read."""

# mypy: disable-error-code="assignment, operator, union-attr"

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.offline import Log, LogError, WeakLogWarning, compare, evaluate, replay
from armwise.offline.logs.formats.lines import Lines


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


def test_a_reward_outside_its_range_is_at_its_line_or_at_its_row_where_rows_are_left_out(write, capsys):
    rows = ["0,a,0,0.5"] * 20 + ["0,a,0,x", "", "0,b,7,0.5"]
    path = write("\n".join(["x,arm,reward,probability", *rows]) + "\n")
    asked = ("evaluate", path, "--policy", "arm:b", "--reward-range", "0,1", "--skip-bad-rows")
    assert "row 20: the reward is 7.0, outside reward_range" in run(capsys, *asked)[2]
    path = write(Path(path).read_text().replace("0.5\n0,a,0,x\n", "0.5\n"))
    assert "line 23: the reward is 7.0, outside reward_range" in run(capsys, *asked[:-1])[2]


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
    assert "column 'reward' holds 'high', 'low', expected numbers: is it the right column? (yes and no" in said
    assert (
        "line 2: probability is '50 percent' in column 'probability', expected a number (also lines 4, 6, 8 and 16"
        in said
    )
    code, _, err = run(capsys, "evaluate", path)
    assert code == 2 and len(err.splitlines()) == 4 and err.splitlines()[-1].endswith("give --skip-bad-rows")
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
    assert code == 2 and "--decimal ," in err and "--skip-bad-rows" not in err
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
        assert f"income (numbers, and 'unknown' in {unknown.mean():.1%} of the rows)" in log.columns_used


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


# ---------------------------------------------------------------------- duplicate rows


@pytest.mark.parametrize("known", [True, False])
def test_copies_of_rows_are_found(known):
    frame = trial(500, income=np.random.default_rng(1).normal(size=500))
    thrice = pd.concat([frame] * 3, ignore_index=True)
    asked = {} if known else {"probabilities": None}
    log = Log.from_pandas(thrice, **asked)
    assert log.copies.startswith("1,000 of 1,500 rows are copies of other rows in every column: remove them")
    assert not Log.from_pandas(frame, **asked).copies
    if known:
        with pytest.warns(WeakLogWarning, match="1,000 of 1,500 rows are copies"):
            found = evaluate(log, aw.Constant(1), "dr")
        assert found.cautions[0].startswith("1,000 of 1,500 rows are copies")
        with pytest.warns(WeakLogWarning, match="1,000 of 1,500 rows are copies"):
            evaluate(Log(arms=log.arms, rewards=log.rewards, contexts=log.contexts, probabilities=0.5), aw.Constant(1))


def test_copies_are_found_among_rows_that_chance_makes_equal_too():
    # Few ages and rewards: rows repeat by chance, but a file joined three times has each of them 3, 6, 9 times.
    frame = trial(1000)
    for thrice in (frame.loc[np.repeat(frame.index, 3)], pd.concat([frame] * 3, ignore_index=True)):
        assert Log.from_pandas(thrice).copies.startswith("2,000 of 3,000 rows are copies of other rows in every column")


def test_rows_that_are_equal_by_chance_are_no_copies():
    # 60 ages, two arms, few rewards: most rows equal another. A failure would be a false alarm on every such log.
    for seed in range(20):
        log = Log.from_pandas(trial(1000, seed=seed))
        assert not log.copies and not Log.from_pandas(trial(1000, seed=seed), probabilities=None).copies
        greedy = trial(1000, seed=seed)
        often = np.random.default_rng(seed).random(1000) < np.where(greedy.age > 50, 0.95, 0.05)
        greedy["arm"] = np.where(often, "b", "a")
        greedy["probability"] = np.where(often == (greedy.age > 50), 0.95, 0.05)
        assert not Log.from_pandas(greedy).copies


# ---------------------------------------------------------------------- the plan, the answer, the warnings


def test_the_plan_comes_first_then_the_answer_then_the_table(tmp_path, capsys):
    frame = trial(4000).drop(columns="probability")
    frame["converted"] = np.where(frame.reward > 0, "yes", "no")
    frame.to_csv(tmp_path / "trial.csv", index=False)
    words = [tmp_path / "trial.csv", "--probability", "1/2"]
    code, out, _ = run(capsys, "compare", *words, "--first", "b", "--second", "a", "--report", tmp_path / "page.html")
    assert code == 0
    parts = out.split("\n\n")
    assert [part.split("\n")[0].split()[0] for part in parts] == ["Plan", "Answer", "dr", "WARNING"]
    plan = parts[0]
    for said in ("randomised trial: a was drawn with probability 0.5, b with 0.5", "arm: arm", "contexts: age",
                 "left out as outcomes: converted", "4,000 used, none left out", "dr, doubly robust"):  # fmt: skip
        assert said in plan
    answer = " ".join(parts[1].split())
    assert re.match(r"Answer Always b earns 0\.1\d+ \(\d+%\) more per decision than always a, 95% interval", answer)
    assert "more than chance explains" in answer
    page = (tmp_path / "page.html").read_text()
    assert page.index("randomised trial") < page.index("more than chance explains") < page.index("<table>")
    code, out, _ = run(capsys, "compare", *words, "--first", "b", "--second", "a", "--json")
    found = json.loads(out)
    assert found["plan"]["design"].startswith("randomised trial") and "more than chance" in found["answer"]


def test_the_design_that_is_found():
    rng = np.random.default_rng(7)
    frame = trial(4000)
    assert design(frame).startswith("randomised trial: a was drawn with probability 0.5")
    often = 1 / (1 + np.exp(-(frame.age - 50) / 20))
    arms = rng.random(4000) < often
    known = frame.assign(arm=np.where(arms, "b", "a"), probability=np.where(arms, often, 1 - often))
    assert design(known).startswith("known probabilities: they differ from row to row")
    often = np.linspace(0.5, 0.95, 4000)
    arms = rng.random(4000) < often
    learnt = frame.assign(arm=np.where(arms, "b", "a"), probability=np.where(arms, often, 1 - often))
    assert design(learnt).startswith("agent's log: the probabilities of the arms are known, and move")
    filled = aw.offline.PropensityModel().fill(Log.from_pandas(frame, probabilities=None))
    assert evaluate(filled, aw.Constant(1), "dr").plan.design.startswith(
        "estimated: the log does not say how its arms were drawn, so a logistic model of the arms estimates"
    )
    again = aw.offline.PropensityModel().fill(Log.from_pandas(frame))  # they are in the log, and were not wanted
    assert evaluate(again, aw.Constant(1), "dr").plan.design.startswith(
        "estimated: the log's own probabilities are left aside, as asked, so a logistic model of the arms estimates"
    )
    assert evaluate(Log.from_pandas(frame, probabilities=None), aw.Constant(1), "dm").plan.design.startswith("unknown")


def design(frame):
    return evaluate(Log.from_pandas(frame), aw.Constant(1), "dr").plan.design


def test_the_answer_says_what_the_log_cannot_say():
    log = Log.from_pandas(trial(12))
    with pytest.warns(WeakLogWarning):
        found = evaluate(log, {"a": aw.Constant(0), "b": aw.Constant(1)}, "dr", baseline="logged")
    assert found.answer.startswith("This log cannot say what any of the 2 policies would have earned: too few rows")
    with pytest.warns(WeakLogWarning):
        assert compare(log, aw.Constant(0), aw.Constant(1)).answer.startswith("This log cannot tell")
    even = trial(2000)
    even["reward"] = (np.random.default_rng(9).random(2000) < 0.3) * 1
    answer = compare(Log.from_pandas(even), aw.Constant(0), aw.Constant(1)).answer
    assert answer.startswith("This log does not tell whether always a or always b earns more: the difference is")


def test_the_best_of_several_is_named_with_its_rivals():
    found = evaluate(Log.from_pandas(trial(4000)), {"a": aw.Constant(0), "b": aw.Constant(1)}, baseline="logged")
    assert found.answer.startswith("Of 2 policies, b would have earned most: 0.")
    assert "more than what the log itself earned, which chance does not explain" in found.answer
    assert found.answer.endswith("Its interval lies above those of all others.")
    narrow = evaluate(Log.from_pandas(trial(200, seed=3)), {"a": aw.Constant(0), "b": aw.Constant(1)}, "dr", warn=False)
    assert "By these intervals" in narrow.answer


def test_warnings_are_one_block_of_distinct_sentences(tmp_path, capsys):
    # Five regions of which four have few rows, two policies: eight segments say the same.
    frame = trial(600)
    frame["region"] = np.where(np.arange(600) < 60, np.array(list("nsew"))[np.arange(600) % 4], "centre")
    frame.to_csv(tmp_path / "log.csv", index=False)
    words = ["evaluate", tmp_path / "log.csv", "--contexts", "age", "--by", "region"]
    code, out, err = run(capsys, *words)
    assert code == 0
    block = out.partition("WARNING\n")[2].splitlines()
    few = [line for line in block if "too few rows answer the question" in line]
    assert len(few) == 1 and "(also " in few[0] and few[0].endswith("Collect more rows before you decide.")
    assert err == "" and "WARNING" not in out.partition("WARNING\n")[0]
    assert run(capsys, *words, "--json")[0] == 0


def test_the_most_important_warning_is_first():
    log = Log(arms=np.r_[np.zeros(2000, int), 1, 1], rewards=np.r_[np.zeros(2000), 1.0, 1.0],
              probabilities=np.r_[np.full(2000, 0.999), 0.001, 0.001], n_arms=2)  # fmt: skip
    found = evaluate(log, aw.Constant(1), "ips", warn=False)
    assert len(found.cautions) > 2 and found.cautions[0].startswith("this log cannot answer the question")
    assert all(text.count(". ") >= 1 or ": " in text for text in found.cautions)


def test_explain_shows_more(tmp_path, capsys):
    trial().to_csv(tmp_path / "log.csv", index=False)
    words = ["evaluate", tmp_path / "log.csv", "--policy", "b"]
    short, long = run(capsys, *words)[1], run(capsys, *words, "--explain")[1]
    assert "Explained" not in short and "effective sample size: " in long and "snips: self-normalised IPS" in long


# ---------------------------------------------------------------------- before the work, and rows left out


def test_a_picture_of_no_known_kind_is_refused_before_the_log_is_read(capsys):
    for name in ("out.xyz", "out"):
        code, _, err = run(capsys, "evaluate", "nothing.csv", "--plot", name)
        assert code == 2 and f"--plot {name}: not the name of a picture" in err and ".png" in err


def test_a_log_of_two_rows_is_refused(write, capsys):
    path = write("arm,reward,probability\na,1,0.5\nb,0,0.5\n")
    for words in (["evaluate", path], ["compare", path, "--first", "a", "--second", "b"],
                  ["replay", path, "--agent", "ucb1"]):  # fmt: skip
        code, out, err = run(capsys, *words)
        assert code == 2 and out == "" and "has 2 rows, too few for an estimate" in err


def test_bad_rows_are_left_out_when_it_is_asked_for_and_counted(tmp_path, capsys):
    frame = trial(1000).astype({"reward": float})
    frame.loc[3:9, "reward"] = np.nan
    frame.loc[20:21, "arm"] = None
    frame.loc[30, "probability"] = 7.0
    for name, write in (("log.csv", frame.to_csv), ("log.parquet", frame.to_parquet)):
        write(tmp_path / name, index=False)
        code, _, err = run(capsys, "evaluate", tmp_path / name)
        assert code == 2 and "10 problems" in err and "--skip-bad-rows" in err
        code, out, _ = run(capsys, "evaluate", tmp_path / name, "--skip-bad-rows", "--policy", "b", "--by", "age")
        assert code == 0
        left = "7 without a usable reward, 2 without a usable arm, 1 without a usable probability"
        assert f"990 used; left out: {left}" in " ".join(out.split())
    good = frame.drop(index=[*range(3, 10), 20, 21, 30])
    expected = evaluate(Log.from_pandas(good), aw.Constant(1), "dr")["dr"].value
    assert evaluate(Log.from_pandas(frame, skip=True), aw.Constant(1), "dr")["dr"].value == pytest.approx(expected)


# ---------------------------------------------------------------------- from a CSV file to a right sentence


def test_one_messy_file_from_csv_to_a_right_sentence(tmp_path, capsys):
    # Semicolons and decimal commas, rewards of yes and no, probabilities in percent, a twin of the reward, an age with
    # words, a name of two columns, rows without an outcome. Offer b is worth 0.15 more for everybody.
    rng = np.random.default_rng(11)
    n = 6000
    age, arms = rng.integers(18, 80, n), (rng.random(n) < 0.3) * 1
    bought = rng.random(n) < 0.1 + 0.004 * (age - 18) + 0.15 * arms
    shown = np.where(rng.random(n) < 0.05, "unknown", age.astype(str))
    frame = pd.DataFrame({
        "customer": [f"c{i:05d}" for i in range(n)], "age (years)": shown, "basket": np.round(rng.gamma(2, 20, n), 2),
        "offer": np.array(["a", "b"])[arms], "bought?": np.where(bought, "yes", "no"),
        "p": np.where(arms == 1, "30%", "70%"), "state": np.where(bought, "closed", "open"), "note": "", "Note": "x",
    })  # fmt: skip
    frame.loc[rng.random(n) < 0.01, "bought?"] = None
    text = frame.to_csv(index=False, sep=";", decimal=",").replace(";Note\n", ";note\n", 1)
    (tmp_path / "export.csv").write_text(text)
    words = [tmp_path / "export.csv", "--arm", "offer", "--reward", "bought?", "--probability", "p", "--decimal", ",",
             "--skip-bad-rows"]  # fmt: skip
    code, out, err = run(capsys, "compare", *words, "--first", "b", "--second", "a")
    assert code == 0, err
    said = " ".join(out.split())
    for line in ("reward: bought? (yes = 1, no = 0)", "p (70% = 0.7, 30% = 0.3)", "left out as outcomes: state",
                 "contexts: age (years) (numbers, and 'unknown' in", "customer (more than 1,000 different strings)",
                 "note (the name of two columns)", "without a usable reward"):  # fmt: skip
        assert line in said, line
    answer = re.search(
        r"Always b earns (\S+) \(\d+%\) more per decision than always a, 95% interval (\S+) to (\S+):", said
    )
    assert answer is not None and float(answer[2]) < 0.15 < float(answer[3])
    assert float(answer[3]) - float(answer[2]) < 0.06


def test_the_open_bandit_sample_from_csv_to_a_right_sentence(tmp_path, capsys):
    # The value of BTS from the uniform log: 0.0042 clicks per decision is what BTS earned on its own log.
    data = Path(__file__).parents[2] / "data" / "open_bandit"
    log = pd.read_parquet(data / "all_random.parquet")
    policy = pd.read_parquet(data / "all_bts_policy.parquet").set_index("item_id").sort_index()
    shares = policy[["p_pos1", "p_pos2", "p_pos3"]].to_numpy()[:, log.position.to_numpy() - 1].T
    log.to_csv(tmp_path / "log.csv", index=False)
    np.save(tmp_path / "bts.npy", shares / shares.sum(axis=1, keepdims=True))
    columns = ["--arm", "item_id", "--reward", "click", "--probability", "propensity_score"]
    policy = ["--policy", f"bts={tmp_path / 'bts.npy'}", "--baseline", "logged"]
    code, out, _ = run(capsys, "evaluate", tmp_path / "log.csv", *columns, *policy)
    said = " ".join(out.split())
    assert code == 0 and "randomised trial: each of the 80 arms was drawn with probability 0.0125" in said
    answer = re.search(r"bts would have earned (\S+) per decision \(95% interval (\S+) to ([\d.]+)\)", said)
    assert answer is not None and float(answer[2]) < 0.0042 < float(answer[3])
    assert abs(float(answer[1]) - 0.0042) < 0.001
    assert "more than what the log itself earned, which may be chance." in said


def test_drift_is_drawn_and_told_from_chance(tmp_path, capsys):
    # The value of arm b moves from 0.2 to 0.6, that of arm a stays: one is named, the other is not. Over 40 logs
    # without drift there is no alarm (each has one chance in 10,000).
    rng = np.random.default_rng(13)
    frame = trial(4000)
    moving = np.where(frame.arm == "b", np.linspace(0.2, 0.6, 4000), 0.2)
    frame["reward"] = (rng.random(4000) < moving) * 1
    frame.to_csv(tmp_path / "log.csv", index=False)
    found = Log.from_csv(tmp_path / "log.csv").drift(parts=10)
    assert found.verdict == "b does not earn the same in all parts of the log"
    by_hand = frame[:400][frame.arm[:400] == "b"].reward.mean()
    assert found.values[0, found.arms.index("b")] == pytest.approx(by_hand)
    assert not any(Log.from_pandas(trial(1000, seed=seed)).drift().verdict for seed in range(40))
    picture = tmp_path / "drift.png"
    assert run(capsys, "evaluate", tmp_path / "log.csv", "--policy", "b", "--drift", picture)[0] == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert run(capsys, "evaluate", "nothing.csv", "--drift", "out.xyz")[2].startswith(
        "armwise evaluate: error: --drift"
    )


def test_a_ragged_line_is_left_out_where_such_rows_are_and_lines_keep_their_numbers(tmp_path, capsys):
    # The error said to give --skip-bad-rows, which did not help.
    lines = ["arm,reward,p,age", *(f"{'ab'[i % 2]},{i % 3},0.5,{20 + i % 40}" for i in range(200))]
    lines.insert(50, "a,1,0.5")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    words = ["evaluate", tmp_path / "log.csv", "--probability", "p", "--contexts", "age", "--reward", "reward"]
    code, out, err = run(capsys, *words)
    assert code == 2 and "line 51: 3 cells, expected 4" in err and "--skip-bad-rows" in err
    code, out, err = run(capsys, *words, "--skip-bad-rows")
    assert code == 0 and "1 row was left out (with more or fewer cells than the header)" in out
    assert "200 used; left out: 1 with more or fewer cells than the header" in out
    code, _, err = run(capsys, *words[:-1], "arm", "--skip-bad-rows")
    assert code == 2 and "--skip-bad-rows" not in err  # it was given
    # the row with number 98 stands in line 101: after the header and the ragged line
    assert Lines([str(tmp_path / "log.csv")], ",", skip=True).place(98) == "line 101"


def test_an_answer_names_no_winner_where_every_policy_may_be_one():
    rng = np.random.default_rng(3)
    log = Log(arms=rng.integers(0, 4, 800), rewards=rng.random(800) < 0.02, probabilities=0.25, n_arms=4)
    found = evaluate(log, {str(a): np.eye(4)[a] for a in range(4)}, "snips", baseline="logged", warn=False)
    assert found.answer.startswith("This log does not tell which of 4 policies earns most: ")
    assert "highest value" in found.answer and "would have earned most" not in found.answer


def test_one_end_of_each_interval_makes_no_rivals():
    # Upper ends are infinite, and the control that was beaten by far was named as "may be as good".
    rng = np.random.default_rng(3)
    arms = rng.integers(0, 2, 3000)
    log = Log(arms=arms, rewards=rng.random(3000) < 0.3 + 0.03 * arms, probabilities=0.5, n_arms=2)
    policies = {"control": [1.0, 0.0], "new": [0.0, 1.0]}
    for options in ({"one_sided": "lower"}, {"level": 0.8, "baseline": "control"}):
        found = evaluate(log, policies, "snips", warn=False, **options)
        assert "may be as good" not in found.answer and "above those of all" not in found.answer


def test_the_row_that_carries_most_is_named_by_its_line(tmp_path, capsys):
    # Rows were counted from 0; an editor counts from 1, and the header is a line of its own.
    rng = np.random.default_rng(0)
    arms, p = rng.integers(0, 2, 200), np.full(200, 0.5)
    arms[40], p[40] = 1, 0.001
    lines = [f"{a},{r},{q:g}" for a, r, q in zip(arms, rng.integers(0, 2, 200), p, strict=True)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["arm,reward,probability", *lines[:20], "", *lines[20:]]) + "\n")
    main(["evaluate", str(path), "--policy", "arm:1", "--explain"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "of all weight (line 43, weight 1,000.0)" in shown and "1,000.00 (line 43)" in shown
    log = Log.from_csv(path)
    assert "(row 0, weight" in evaluate(log.take(slice(40, 160)), [0.0, 1.0], "ips", warn=False).verdict
