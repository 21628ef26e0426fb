"""``armwise race``: what it writes, and one clear line for everything that can be wrong."""

import json

import numpy as np
import pandas as pd
import pytest

from armwise.cli.main import main


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["colour"] = rng.choice(["red", "blue"], 300)
    frame["y"] = np.where(X[:, 0] > 0, "yes", "no")
    frame["price"] = X[:, 1]
    frame.to_parquet("data.parquet")
    frame.to_csv("data.csv", index=False)
    return tmp_path


def test_a_file_of_the_user(table, capsys):
    words = "race --world data.parquet --label y --agents linucb,thompson --seeds 3 --workers 1"
    assert main(words.split()) == 0
    out = capsys.readouterr().out
    assert out.rstrip().endswith(str(table / "armwise-report" / "report.html"))
    assert "LinUCB" in out
    assert "LinThompson" in out
    page = (table / "armwise-report" / "report.html").read_text()
    assert "armwise race --world data.parquet --label y --agents linucb,thompson --seeds 3" in page
    curves = pd.read_parquet(table / "armwise-report" / "race.parquet")
    regret = curves[(curves.agent == "LinUCB") & (curves["round"] == 300)].regret
    assert regret.mean() < 60  # of 150 for chance: the first column says it all


def test_a_folder_of_sets(table, capsys):
    (table / "sets").mkdir()
    for name in ("first", "second"):
        pd.read_parquet("data.parquet").rename(columns={"y": "label"}).to_parquet(f"sets/{name}.parquet")
    words = "race --data sets --agents linucb,ucb --seeds 2 --workers 1 --horizon 100 --json"
    assert main(words.split()) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [(row["world"], row["agent"]) for row in rows if row["agent"] == "LinUCB"] == [
        ("first", "LinUCB"),
        ("second", "LinUCB"),
    ]
    assert main(["race", "--data", "nowhere"]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
    assert main(["race", "--data", "sets", "--world", "linear"]) == 2


def test_json_and_regression(table, capsys):
    words = "race --world data.csv --label price --regression --agents linucb --seeds 2 --workers 1 --json"
    assert main(words.split()) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["report"].endswith("report.html")
    assert answer["results"][0]["agent"] == "LinUCB"
    assert answer["failures"] == []


def test_worlds_by_name_with_parameters(table, capsys):
    words = "race --world tabular --set n_contexts=3 --set n_arms=4 --agents per-context,exp3,lin-ucb"
    assert main([*words.split(), "--horizon", "300", "--seeds", "2", "--workers", "1", "--out", "here"]) == 0
    assert "PerContext" in capsys.readouterr().out
    assert (table / "here" / "report.html").exists()


@pytest.mark.parametrize("users", ["cascade", "several clicks", "position-based"])
def test_rankers_race_on_worlds_of_lists(table, capsys, users):
    words = ["--world", "lists", "--set", f"users={users}", "--set", "n_arms=6", "--set", "n_slots=2"]
    words += ["--agents", "cascade-ucb1,position-ucb,c2ucb,slotbyslot,linucb,ucb1,toprank"]
    assert main(["race", *words, "--horizon", "40", "--seeds", "1", "--workers", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {row["agent"] for row in answer["results"]} == {
        "CascadeUCB1", "PositionUCB", "C2UCB", "SlotBySlot", "LinUCB", "UCB1", "TopRank"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--world nowhere.parquet --label y", "nowhere.parquet: no such file"),
        ("--world data.parquet", "name the column that the agents predict"),
        ("--world data.parquet --label z", "no column 'z'; it has a, b, c, colour, y, price"),
        ("--world data.parquet --label price", "label 'price': y has 300 distinct values in 300 rows"),
        ("--world data.csv --label y --agents linucv", "unknown agent 'linucv'; did you mean LinUCB"),
        ("--world lineer", "unknown world 'lineer'; did you mean Linear?"),
        ("--world linear --set n_arm=3", "Linear has no parameter 'n_arm'; did you mean n_arms?"),
        ("--world linear --set n_arms=1", "n_arms must be a whole number >= 2"),
        ("--world linear --set n_arms", "--set expects NAME=VALUE"),
        ("--world linear --horizon 0", "--horizon must be at least 1"),
        ("--world linear --horizon ten", "invalid int value"),
        ("--world linear --seeds 0", "seeds must be"),
        ("--world linear --workers 0", "workers must be"),
        ("--world linear --engine fast", "engine must be"),
        ("--world linear --label y", "--label is for files"),
        ("--label y", "--label needs --world"),
        ("--agents linucb", "--agents needs --world"),
        ("--world linear --agents exp4p --horizon 5", "horizon"),
        ("--world linear --agents cofineucb", "CoFineUCB needs subspace=..., which Linear does not give"),
        ("--world linear --agents toprank", "unknown agent 'toprank'"),
        ("--world lists --agents epochgreedy", "agent must learn without a note of its choice, as slots draw"),
        ("--world lists --set n_arms=3 --set n_slots=4", "n_slots must be at most n_arms, 3, got 4"),
        ("--wurld linear", "did you mean --world?"),
    ],
)
def test_one_clear_line_and_code_2(table, capsys, words, message):
    assert main(["race", *words.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("armwise race: error: ")
    assert message in captured.err
    assert not list(table.glob("armwise-report/*"))


def test_a_run_that_fails_is_code_1_and_said(table, capsys):
    """Exp3 refuses rewards outside [0, 1], which a Gaussian process has; LinUCB goes on."""
    words = "race --world gaussian-process --agents exp3,linucb --horizon 200 --seeds 1 --workers 1"
    assert main(words.split()) == 1
    captured = capsys.readouterr()
    assert "failed: Exp3 on GaussianProcess" in captured.err
    assert "LinUCB" in captured.out
    assert "Runs that failed" in (table / "armwise-report" / "report.html").read_text()
