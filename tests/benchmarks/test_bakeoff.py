"""The bake-off on two small sets made here: both pages, the test of wins, and a run that goes on where it stopped."""

# mypy: disable-error-code="attr-defined, comparison-overlap"

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import bakeoff, bakeoff_page, bakeoff_peers, bakeoff_vw, noisy_bakeoff, peers

ROOT = Path(__file__).parents[2]


AGENTS = ["LinUCB", "FastCB", "UCB1, blind"]


@pytest.fixture
def folder(tmp_path):
    """One set that a line separates, one of noise with a text column, and what VW made of the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    line = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(label=(X[:, 0] > 0).astype(int))
    noise = pd.DataFrame(
        {"x0": rng.choice(["red", "blue"], 80), "x1": rng.random(80), "label": rng.integers(3, size=80)}
    )
    line.to_parquet(tmp_path / "line.parquet")
    noise.to_parquet(tmp_path / "noise.parquet")
    losses = {"line": {"n": 600, "default": 0.5, "best": 0.3}, "elsewhere": {"n": 9, "best": 0.1}}
    (tmp_path / "vw_1.json").write_text(json.dumps(losses))
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys):
    def run(*agents, vw="file"):
        files = ["--rows", str(folder / "rows.json"), "--output", str(folder / "B.md"), "--workers", "1", "--vw", vw]
        monkeypatch.setattr(sys, "argv", ["bakeoff", "--data", str(folder), "--agents", *agents, *files])
        bakeoff.main()
        return capsys.readouterr().err

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    return run


def test_it_writes_both_pages_and_goes_on_where_it_stopped(folder, run):
    first = run(*AGENTS[:2])
    assert "0 rows finished before, 4 to play" in first and "4/4" in first
    assert "4 rows finished before, 2 to play" in run(*AGENTS)
    rows = {(row["set"], row["agent"]): row for row in json.loads((folder / "rows.json").read_text())}
    assert len(rows) == 6 and rows["line", "LinUCB"]["loss"] < 0.2 < 0.4 < rows["line", "UCB1, blind"]["loss"]
    text = (folder / "B.md").read_text()
    assert "| LinUCB | 2 |" in text and "(1 W, 0 L of 1)" in text and "| noise | 80 | 3 | 3 |" in text
    assert "elsewhere" not in text and "us per decision" in text
    page = (folder / "B.html").read_text()
    assert "<td>LinUCB</td>" in page and "VW best of 36" in page


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_played(folder, run):
    (folder / "empty.csv").write_text("")
    said = run("UCB1, blind")
    assert "left out: empty.csv" in said and "2/2" in said


def test_a_set_that_changed_runs_again_and_so_does_a_failed_row(folder, run):
    run("UCB1, blind")
    rows = json.loads((folder / "rows.json").read_text())
    rows[0] = {**rows[0], "error": "it broke"}
    (folder / "rows.json").write_text(json.dumps(rows))
    frame = pd.read_parquet(folder / "noise.parquet")
    frame.iloc[::-1].reset_index(drop=True).to_parquet(folder / "noise.parquet")
    assert f"{1 if rows[0]['set'] == 'noise' else 2} to play" in run("UCB1, blind")


def test_vw_runs_where_no_file_has_its_losses_and_goes_on_where_it_stopped(folder, run, monkeypatch):
    small = ("VW default", "VW SquareCB", *(f"VW {setting}" for setting in bakeoff_vw.GRID[:2]))
    monkeypatch.setattr(bakeoff_vw, "NAMES", small)
    both = {"line": {"n": 600, "default": 0.5, "default_squarecb": 0.4, "best": 0.3}}
    (folder / "vw_1.json").write_text(json.dumps(both))
    assert "0 rows finished before, 6 to play" in run("UCB1, blind", vw="auto")  # VW on one of the two sets only
    assert "6 rows finished before, 4 to play" in run("UCB1, blind", vw="run")
    assert "10 rows finished before, 0 to play" in run("UCB1, blind", vw="run")
    losses = {
        row["agent"]: row["loss"] for row in json.loads((folder / "rows.json").read_text()) if row["set"] == "line"
    }
    best = min(losses[name] for name in small[2:])
    assert 0.0 < best < 0.2 < 0.4 < losses["UCB1, blind"]  # a line: VW finds it
    text = (folder / "B.md").read_text()
    assert "| VW best of 36 | 2 |" in text and f"{best:.4f}" in text and "--epsilon" not in text


def test_the_grid_of_vw_is_six_algorithms_three_rates_and_two_encodings():
    assert len(set(bakeoff_vw.GRID)) == 36 and bakeoff_vw.BEST == "VW best of 36"
    row = {"set": "s", "n": 9, "agent": f"VW {bakeoff_vw.GRID[0]}"}
    broken = bakeoff_vw.summary([row | {"loss": 0.1}, row | {"error": "it broke"}])
    assert [each["agent"] for each in broken] == ["VW best of 36"] and "loss" not in broken[0]


def test_losses_of_another_version_of_a_set_are_refused(folder):
    with pytest.raises(SystemExit, match="line has 600 rows, and the set has 500"):
        bakeoff.vw_rows(folder, {"line": 500})


def test_an_agent_that_fails_is_named_and_the_rest_is_shown(folder, monkeypatch):
    monkeypatch.setitem(bakeoff.AGENTS, "LinUCB", lambda d, K, seed: bakeoff.aw.LinUCB(7, n_arms=K, seed=seed))
    rows = [bakeoff.play(folder / "line.parquet", name, 1) for name in AGENTS]
    text = bakeoff_page.markdown(rows, "here")
    assert "## What failed" in text and "- LinUCB on line: ValueError" in text and "| FastCB | 1 |" in text


def test_wins_need_1_96_sigma_and_means_are_geometric():
    n = 1000
    edge = 1.96 * np.sqrt(2 * 0.2 * 0.8 / n)  # about: the variance of the other moves a little with it
    assert bakeoff_page.verdict(0.2, 0.2 + 0.9 * edge, n) == 0 and bakeoff_page.verdict(0.2, 0.2 + 1.1 * edge, n) == 1
    mine = {s: {"loss": loss, "n": n} for s, loss in (("a", 0.1), ("b", 0.4), ("c", 0.2))}
    theirs = {s: {"loss": loss, "n": n} for s, loss in (("a", 0.2), ("b", 0.2), ("d", 0.2))}
    assert bakeoff_page.against(mine, theirs) == (pytest.approx(1.0), 1, 1, 2)


def test_ranks_and_the_picture():
    """Demsar 2006, table 5: with 4 agents and 14 sets the critical difference is 2.569 sqrt(4 5 / (6 14)) = 1.25."""
    rows = [{"set": str(s), "agent": a, "n": 100, "loss": 0.1 * i, "K": 2, "d": 1, "constant": 0.5}
            for s in range(14) for i, a in enumerate("ABCD", start=1)]  # fmt: skip
    ranks, width, n = bakeoff_page.mean_ranks(bakeoff_page.table(rows))
    assert ranks == {"A": 1.0, "B": 2.0, "C": 3.0, "D": 4.0} and n == 14
    assert width == pytest.approx(1.25, abs=0.01)
    assert bakeoff_page.picture(rows).count("<circle") == 4


def test_peers_that_are_not_installed_are_named_and_left_out(folder, monkeypatch, capsys):
    """Their losses were kept as missing, so that they stayed out after they had been installed."""
    results = folder / "noisy.jsonl"
    monkeypatch.setattr(bakeoff_peers, "PACKAGES", {"MABWiser": "json", "bayesianbandits": "no_such_package"})
    monkeypatch.setattr(bakeoff, "ask_peer", lambda arrays, name, seed, python, seconds: {"loss": 0.25})
    words = ["--data", str(folder), "--agents", "LinUCB", "--runs", "1", "--rounds", "100", "--results", str(results)]
    output = folder / "N.md"
    noisy_bakeoff.main([*words, "--peers-python", sys.executable, "--output", str(output)])
    assert "not installed, and not raced: bayesianbandits" in capsys.readouterr().err
    text = output.read_text()
    assert "| MABWiser LinTS, 1 small sets |" in text and "bayesianbandits was not installed here." in text
    assert "bayesianbandits" not in results.read_text() and "LinTS" in results.read_text()


def test_a_peer_that_cannot_be_built_does_not_keep_the_others_out(tmp_path, monkeypatch):
    """contextualbandits needs a compiler; one that fails ended the whole bake-off."""
    asked = []

    def run(words, check=False, **more):
        asked.append(words[-1])
        broken = "contextualbandits==0.3.30" in words
        assert not (check and broken)
        return subprocess.CompletedProcess(words, int(broken))

    monkeypatch.setattr(peers, "HOME", peers.ROOT / "no such folder")
    monkeypatch.setattr(subprocess, "run", run)
    peers.interpreter()
    assert set(peers.PACKAGES) <= set(asked)  # each alone, after all together
