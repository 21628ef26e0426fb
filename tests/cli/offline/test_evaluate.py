"""``armwise evaluate`` and ``armwise replay``: thin, loud about bad logs, one line about bad input."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.offline import evaluate, replay
from tests.offline.worlds import K, make


@pytest.fixture
def files(tmp_path):
    log, pi = make(1200, seed=1)
    frame = pd.DataFrame(log.contexts, columns=["x0", "x1", "x2"])
    frame = frame.assign(item=log.arms, click=log.rewards, p=log.probabilities, want=pi.argmax(axis=1))
    for a in range(K):
        frame[f"pi_{a}"] = pi[:, a]
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    log.to_dsjson(tmp_path / "log.dsjson")
    np.save(tmp_path / "pi.npy", pi)
    return tmp_path, log, pi


COLUMNS = ["--contexts", "x0,x1,x2", "--arm", "item", "--reward", "click", "--probability", "p"]


def run(capsys, *words):
    code = main([str(w) for w in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_trial_is_answered_from_its_own_words(tmp_path, capsys):
    # As a new user types it: an arm by its name alone; a column that is not there is answered with the option.
    rng = np.random.default_rng(8)
    arms = rng.integers(0, 3, 3000)
    names = np.array(["Mens E-Mail", "No E-Mail", "Womens E-Mail"])[arms]
    spend = np.round(rng.exponential(20, 3000) * (rng.random(3000) < np.array([0.3, 0.1, 0.2])[arms]), 2)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 3000), "treatment": names, "spend": spend})
    frame.assign(conversion=(spend > 0) * 1).to_csv(tmp_path / "trial.csv", index=False)
    trial = [tmp_path / "trial.csv", "--arm", "treatment", "--reward", "spend", "--probability", "1/3"]
    code, out, err = run(capsys, "compare", *trial, "--first", "Mens E-Mail", "--second", "arm:No E-Mail")
    assert code == 0 and "better: first" in out and "left out as outcomes: conversion" in out and err == ""
    code, out, _ = run(capsys, "evaluate", *trial, "--policy", "Womens E-Mail")
    assert code == 0 and "contexts: age\n" in out and "left out as outcomes: conversion\n" in out
    code, out, _ = run(capsys, "evaluate", *trial)  # without a policy: each arm, and what the log earned
    assert code == 0 and out.count("lift over what the log earned") == 3 and "arm:No E-Mail" in out
    code, _, err = run(capsys, "compare", *trial)
    assert code == 2 and "--first 'arm:Mens E-Mail' --second 'arm:No E-Mail'" in err
    code, _, err = run(capsys, "compare", *trial, "--first", "Mens", "--second", "No E-Mail")
    assert code == 2 and "the arms are Mens E-Mail, No E-Mail, Womens E-Mail" in err
    code, _, err = run(capsys, "evaluate", tmp_path / "trial.csv", "--policy", "Mens E-Mail")
    assert code == 2 and "there is no column 'arm'" in err and "--arm" in err


def test_evaluate_prints_what_the_function_returns(files, capsys):
    folder, log, pi = files
    expected = evaluate(log, pi, ["ips", "snips", "dm", "dr"])
    for file in ("log.parquet", "log.csv"):
        for policy in (folder / "pi.npy", "columns:pi_{arm}"):
            code, out, err = run(capsys, "evaluate", folder / file, *COLUMNS, "--policy", policy, "--json")
            assert (code, err) == (0, "")
            found = json.loads(out)["estimates"]
            for name in expected:
                assert found[name]["value"] == pytest.approx(expected[name].value, rel=1e-9)
    code, out, _ = run(capsys, "evaluate", folder / "log.parquet", *COLUMNS, "--policy", folder / "pi.npy")
    assert code == 0
    table = expected.table().partition("\nintervals:")[0]
    assert out.startswith("Plan\n") and f"\n\n{table}\n" in out
    for line in ("columns   arm: item", "reward: click", "probability: p", "contexts: x0, x1, x2"):
        assert f"  {line}\n" in out


def test_every_kind_of_policy(files, capsys):
    folder, log, pi = files
    agent = aw.LinUCB(dim=3, n_arms=K, alpha=0.1, seed=1)
    agent.learn(log.contexts[0], aw.Choice(1, 0.5), 1.0)
    agent.save(folder / "agent.aw")
    for policy, same in [("uniform", aw.Uniform(K)), ("arm:2", aw.Constant(2)), ("column:want", pi.argmax(axis=1)),
                         (folder / "agent.aw", agent)]:  # fmt: skip
        words = ["evaluate", folder / "log.parquet", *COLUMNS, "--policy", policy, "--estimators", "ips", "--json"]
        code, out, _ = run(capsys, *words)
        assert code == 0
        assert json.loads(out)["estimates"]["ips"]["value"] == pytest.approx(evaluate(log, same, "ips")["ips"].value)
    code, out, _ = run(
        capsys, "evaluate", folder / "log.dsjson", "--policy", "uniform", "--estimators", "ips", "--json"
    )
    assert json.loads(out)["estimates"]["ips"]["value"] == pytest.approx(
        evaluate(log, aw.Uniform(K), "ips")["ips"].value
    )


def test_options_reach_the_function(files, capsys):
    folder, _, _ = files
    words = ["evaluate", folder / "log.parquet", *COLUMNS, "--policy", "uniform"]
    code, out, _ = run(capsys, *words, "--estimators", "dr,switch-dr", "--reward-model", "logistic", "--interval",
                       "bootstrap", "--level", "0.9", "--clip", "0.1", "--plot", folder / "a.png", "--report",
                       folder / "a.html", "--json")  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert found["interval"] == "bootstrap"
    assert found["level"] == 0.9
    assert found["diagnostics"]["clipped"] > 0
    assert set(found["estimates"]) == {"dr", "switch-dr"}
    assert (folder / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert "<table>" in (folder / "a.html").read_text()
    hidden = ["--contexts", "x0,x1,x2", "--arm", "item", "--reward", "click", "--probability", "p"]
    frame = pd.read_parquet(folder / "log.parquet").drop(columns="p")
    frame.to_parquet(folder / "hidden.parquet")
    code, _, err = run(capsys, "evaluate", folder / "hidden.parquet", *hidden[:6], "--policy", "uniform")
    assert code == 2
    assert "PropensityModel" in err
    code, out, _ = run(capsys, "evaluate", folder / "hidden.parquet", *hidden[:6], "--policy", "uniform",
                       "--estimate-probabilities", "--estimators", "ips")  # fmt: skip
    assert code == 0
    assert "ips" in out


def test_the_verdict_is_once_in_the_text_or_in_json_and_on_stderr(tmp_path, capsys):
    arms = np.zeros(5000, int)
    arms[7] = 1
    frame = pd.DataFrame({"arm": arms, "reward": 1.0, "probability": np.where(arms == 1, 0.0002, 0.9998)})
    frame.to_csv(tmp_path / "log.csv", index=False)
    for extra in ([], ["--json"]):
        code, out, err = run(
            capsys, "evaluate", tmp_path / "log.csv", "--policy", "arm:1", "--estimators", "ips", *extra
        )
        assert code == 0
        assert "cannot answer the question: effective sample size 1 of 5,000" in out
        lines = err.splitlines()  # one for each finding, and none twice
        assert all(line.startswith("armwise: warning: ") for line in lines)
        assert len(set(lines)) == len(lines) == (3 if extra else 0)
        block = [line for line in out.splitlines() if line.startswith("  ") and line[2:4] in ("1.", "2.", "3.")]
        assert extra or (out.count("WARNING") == 1 and len(block) == 3)


def test_replay_prints_what_the_function_returns(files, capsys):
    folder, log, _ = files
    words = ["replay", folder / "log.parquet", *COLUMNS, "--agent", "lin-ucb", "--set", "alpha=0.2", "--json"]
    code, out, _ = run(capsys, *words, "--horizon", "30", "--save", folder / "learnt.aw")
    found = json.loads(out)
    agent = aw.LinUCB(dim=3, n_arms=K, alpha=0.2, seed=0)
    expected = replay(log, agent, horizon=30)
    assert code == 0
    assert found["value"] == expected.value
    assert found["matched"] == 30
    assert aw.load(folder / "learnt.aw").t == 31
    code, out, _ = run(capsys, "replay", folder / "log.parquet", *COLUMNS, "--agent", folder / "learnt.aw")
    assert code == 0
    assert "rows matched" in out
    code, out, _ = run(capsys, "replay", folder / "log.csv", *COLUMNS, "--agent", "ucb1", "--horizon", "20")
    assert code == 0
    assert "20 of" in out
    page = [folder / "page.html", "--plot", folder / "curve.png"]
    code, out, _ = run(capsys, "replay", folder / "log.csv", *COLUMNS, "--agent", "ucb1", "--runs", "5", "--report",
                       *page)  # fmt: skip
    assert code == 0 and "from 5 resampled logs" in out and "contexts: x0, x1, x2" in out
    assert "contexts: x0, x1, x2" in (folder / "page.html").read_text() and (folder / "curve.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "nothing.parquet", "--policy", "uniform"], "there is no file"),
        (["evaluate", "{log}", "--policy", "unifrm"], "cannot read policy"),
        (["evaluate", "{log}", "--policy", "arm:9"], "the arms are 0, 1, 2, 3"),
        (["evaluate", "{log}", "--policy", "columns:pi"], "must hold {arm}"),
        (["evaluate", "{log}", "--policy", "other.npy"], "there is no file"),
        (["evaluate", "{log}", "--policy", "uniform", "--estimators", "ipps"], "did you mean 'ips'"),
        (["evaluate", "{log}", "--policy", "uniform", "--clip", "7"], "clip must be"),
        (["evaluate", "{log}", "--policy", "uniform", "--reward-range", "zero"], "--reward-range must be two numbers"),
        (["evaluate", "{log}", "--policy", "uniform", "--reward", "clik"], "did you mean 'click'"),
        (["evaluate", "pyproject.toml", "--format", "parquet"], "cannot read pyproject.toml as parquet: "),
        (["compare", "{log}"], "--first 'arm:0' --second 'arm:1'"),
        (["compare", "{log}", "--first", "arm:0", "--second", "arm:9"], "--second arm:9: the arms are 0, 1, 2, 3"),
        (["evaluate", "{log}", "--report", "nowhere/x.html"], "--report nowhere/x.html: there is no folder 'nowhere'"),
        (["replay", "{log}", "--agent", "linucb", "--plot", "."], "--plot .: this is a folder, expected a file"),
        (["replay", "{log}", "--agent", "linucv"], "did you mean LinUCB"),
        (["replay", "{log}", "--agent", "linucb", "--set", "alhpa=1"], "expected NAME=VALUE"),
        (["replay", "{log}", "--agent", "exp4"], "also needs n_experts"),
    ],
)
def test_bad_input_is_one_clear_line(files, capsys, words, message):
    folder, _, _ = files
    words = [w.replace("{log}", str(folder / "log.parquet")) for w in words]
    given = COLUMNS if "--reward" not in words else [*COLUMNS[:4], *COLUMNS[6:]]
    code, out, err = run(capsys, *words, *given)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_help_has_an_example(capsys):
    for command in ("evaluate", "replay"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert f"armwise {command} log.parquet" in out
