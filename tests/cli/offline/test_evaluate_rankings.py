"""``armwise evaluate`` on logs of rankings: lists of a shop, VW's CCB, what the function answers, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.offline import SlateLog, evaluate_slates

ARMS = ["red", "green", "blue"]


def log_of(n: int, seed: int = 1) -> SlateLog:
    rng = np.random.default_rng(seed)
    actions = np.array([rng.permutation(3)[:2] for _ in range(n)])
    rewards = (rng.random((n, 2)) < np.array([0.2, 0.5, 0.3])[actions] * [1.0, 0.5]).astype(float)
    p = np.tile([1 / 3, 1 / 2], (n, 1))
    offered = np.ones((n, 2, 3), bool)
    offered[np.arange(n), 1, actions[:, 0]] = False
    return SlateLog(None, actions, rewards, p, n_arms=3, arm_names=ARMS, offered=offered)


def run(capsys: Any, *words: Any) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


def test_ccb_logs_answer_as_the_function_does(tmp_path: Path, capsys: Any) -> None:
    log_of(400).to_dsjson(tmp_path / "ccb.dsjson")
    log = SlateLog.from_dsjson(tmp_path / "ccb.dsjson")
    code, out, _ = run(capsys, "evaluate", tmp_path / "ccb.dsjson", "--policy", "order:green,blue,red", "--json")
    expected = evaluate_slates(log, ["green", "blue", "red"], warn=False)
    found = json.loads(out)["estimates"]
    assert code == 0 and set(found) == set(expected) == {"sips", "rips", "cascade-dr"}
    for name in expected:
        assert found[name]["value"] == pytest.approx(expected[name].value, rel=1e-12)
    code, out, _ = run(capsys, "evaluate", tmp_path / "ccb.dsjson", "--estimators", "sips")  # uniform: as it was logged
    assert (
        code == 0 and f"the log earned {log.totals.mean():.4f} per ranking" in out and f"{log.totals.mean():.4f}" in out
    )
    both = ["--policy", "best=order:green,blue,red", "--policy", "uniform"]
    code, out, _ = run(capsys, "evaluate", tmp_path / "ccb.dsjson", *both, "--json")
    assert code == 0 and list(json.loads(out)) == ["best", "uniform"]
    code, out, _ = run(capsys, "evaluate", tmp_path / "ccb.dsjson", *both)
    tables = out.rstrip().split("\n\n")
    assert code == 0 and [table.splitlines()[0] for table in tables] == ["best", "uniform"]  # which is which
    code, _, _ = run(capsys, "evaluate", tmp_path / "ccb.dsjson", *both[:2], "--report", tmp_path / "page.html")
    assert code == 0 and "best" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", ["lists.dsjson", "lists.jsonl", "lists.parquet"])
def test_the_export_of_a_folder_of_lists_is_read(name: str, tmp_path: Path, capsys: Any) -> None:
    with aw.Decider(tmp_path / "shop", seed=1) as shop:
        for i in range(60):
            ranked = shop.rank({"hour": i % 3}, ARMS, k=2)
            shop.reward(ranked, [float(arm == "green") for arm in ranked.arms])
    form = {"dsjson": "dsjson", "jsonl": "json", "parquet": "parquet"}[name.partition(".")[2]]
    journal = ["--storage", str(tmp_path / "shop"), "--output", str(tmp_path / name), "--format", form]
    assert main(["journal", "export", *journal]) == 0
    capsys.readouterr()
    options = ["--format", "dsjson"] if form == "json" else []
    code, out, err = run(capsys, "evaluate", tmp_path / name, "--policy", "order:green,red,blue", *options)
    assert code == 0 and "the log earned" in out and "per ranking" in out, err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "order:green,pink"], "there is no arm 'pink'; the arms are red, green, blue"),
        (["--policy", "order:green"], "has no arm left"),
        (["--policy", "order:green,green,red"], "must name different arms"),
        (["--policy", "arm:green"], "expected uniform, order:A,B,..., or a .npy file"),
        (["--policy", "none.npy"], "there is no file 'none.npy'"),
        (["--estimators", "dr"], "dr"),
        (["--by", "hour"], "--by is for logs of single decisions"),
        (["--baseline", "logged"], "--baseline is for logs of single decisions"),
        (["--policy", "uniform", "--policy", "uniform"], "names 'uniform' twice"),
        (["--policy", "uniform", "--policy", "a=uniform", "--plot", "x.png"], "--plot shows one policy"),
    ],
)
def test_bad_input_is_one_line(options: list[str], said: str, tmp_path: Path, capsys: Any) -> None:
    log_of(40).to_dsjson(tmp_path / "ccb.dsjson")
    code, out, err = run(capsys, "evaluate", tmp_path / "ccb.dsjson", *options)
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1


def test_a_log_of_rankings_says_what_it_holds() -> None:
    log = log_of(1200)
    means = ", ".join(f"{mean:.3g}" for mean in log.rewards.mean(axis=0))
    assert repr(log) == f"<SlateLog of 1,200 lists of 2 slots, 3 arms, rewards by slot {means}>"
    whole = SlateLog(None, [[0, 1]] * 4, [1.0, 0.0, 0.0, 1.0], [[0.5, 1.0]] * 4, n_arms=2)
    assert repr(whole) == "<SlateLog of 4 lists of 2 slots, 2 arms, one reward per list, 0.5 on average>"
