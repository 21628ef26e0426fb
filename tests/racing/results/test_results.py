"""Results fit for a paper: paired differences, tables, metrics of one's own, files, several worlds."""

# mypy: disable-error-code="arg-type, dict-item"

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.racing import Result, Results, variants
from armwise.racing.results.certificates import certify
from armwise.racing.results.paired import PairedDifference, holm
from armwise.racing.run.heat import Heat

WORLD = aw.environments.Linear(n_arms=4, dim=3)


def agents(world=WORLD):
    dim = world.width("features")
    return {"narrow": aw.LinUCB(dim, alpha=0.1), "wide": aw.LinUCB(dim, alpha=3.0), "UCB1": aw.UCB1(world.n_arms)}


@pytest.fixture(scope="module")
def result():
    return aw.race(agents(), WORLD, horizon=400, seeds=8, keep=["agents", "arms"],
                   metrics={"arm 0": lambda played: played.arms == 0})  # fmt: skip


def test_differences_are_paired_by_seed(result):
    table = result.differences()
    final = {name: result.regret(name)[:, -1] for name in result.agents}
    for row in table.to_dict("records"):
        apart = final[row["agent"]] - final[row["other"]]
        assert row["difference"] == pytest.approx(apart.mean())
        assert row["std_error"] == pytest.approx(apart.std(ddof=1) / np.sqrt(8))
        assert row["low"] < row["difference"] < row["high"]
        both = final[row["agent"]].var(ddof=1) + final[row["other"]].var(ddof=1)
        assert row["unpaired_std_error"] == pytest.approx(np.sqrt(both / 8))
    assert len(table) == 3
    assert table["adjusted_p"].to_numpy() == pytest.approx(holm(table["p"].tolist()))
    assert (table["adjusted_p"] >= table["p"]).all()
    assert set(result.differences("narrow")["agent"]) == {"wide", "UCB1"}
    with pytest.raises(ValueError, match="against must be an agent that finished a run"):
        result.differences("LinUCB")


def test_p_values_are_scipys(result):
    from scipy.stats import ttest_rel

    first = result.differences().iloc[0]
    expected = ttest_rel(result.regret(first["agent"])[:, -1], result.regret(first["other"])[:, -1]).pvalue
    assert first["p"] == pytest.approx(expected, rel=1e-9)


def test_wins_count_significant_differences_once(result):
    wins = result.wins()
    assert wins.loc["narrow", "UCB1"] == 1 and wins.loc["UCB1", "narrow"] == 0
    assert (np.diag(wins) == 0).all()
    assert (wins.to_numpy() + wins.to_numpy().T <= 1).all()


def test_a_failed_seed_is_left_out_of_a_pair():
    """Differences of the seeds that both finished; the others would compare different worlds."""
    result = aw.race({"A": aw.UCB1(4), "B": aw.Exp3(4)}, WORLD, horizon=50, seeds=4)
    result.runs[1].error = "stopped"
    row = result.differences().iloc[0]
    mine = {run.seed: run.regret[-1] for run in result.runs_of("A")}
    theirs = {run.seed: run.regret[-1] for run in result.runs_of("B")}
    assert row["seeds"] == 3
    assert row["difference"] == pytest.approx(np.mean([mine[s] - theirs[s] for s in mine]))


def test_metrics_callbacks_final_agents_and_arms(result):
    for name in result.agents:
        for i, seed in enumerate(result.seeds):
            arms = result.arms(name, seed)
            assert result.metric("arm 0", name)[i] == pytest.approx(np.cumsum(arms == 0)[result.rounds - 1])
    assert result.final("wide", seed=3).t == 401
    assert result.final("wide", seed=3).alpha == 3.0
    assert "arm 0" in result.curves().columns
    calls = []

    def note(played):
        calls.append((played.seed, len(played.arms)))

    aw.race([aw.UCB1(4)], WORLD, horizon=100, seeds=2, callbacks=[note])
    assert calls == [(0, 100), (1, 100)]
    with pytest.raises(ValueError, match=r"metric must be one that the race was given \(arm 0\), got 'arm 9'"):
        result.metric("arm 9", "wide")
    plain = aw.race([aw.UCB1(4)], WORLD, horizon=50, seeds=2)
    with pytest.raises(ValueError, match="keep=\\['agents'\\]"):
        plain.final("UCB1")
    with pytest.raises(ValueError, match="keep=\\['arms'\\]"):
        plain.arms("UCB1", seed=1)


def test_a_metric_that_does_not_fit_is_a_failed_run_with_its_name():
    with pytest.raises(aw.racing.RaceError, match=r"metrics\['mean'\] must give one number per round: 50 of them"):
        aw.race([aw.UCB1(4)], WORLD, horizon=50, seeds=1, metrics={"mean": lambda played: played.rewards.mean()})


def test_chosen_rounds_are_the_ones_recorded():
    chosen = aw.race([aw.UCB1(4)], WORLD, horizon=300, seeds=2, rounds=[300, 7, 100])
    dense = aw.race([aw.UCB1(4)], WORLD, horizon=300, seeds=2, rounds=range(1, 301))
    assert chosen.rounds.tolist() == [7, 100, 300]
    assert chosen.regret("UCB1") == pytest.approx(dense.regret("UCB1")[:, [6, 99, 299]])
    with pytest.raises(ValueError, match=r"rounds must lie in 1, ..., horizon = 300, got 301"):
        aw.race([aw.UCB1(4)], WORLD, horizon=300, seeds=2, rounds=[301])


def test_time_is_a_curve_that_ends_at_the_total(result):
    for name in result.agents:
        seconds = result.seconds(name)
        assert (np.diff(seconds, axis=1) >= 0).all()
        assert seconds[:, -1] == pytest.approx([run.seconds for run in result.runs_of(name)])


def test_quantiles_at_every_round(result):
    table = result.quantiles((0.25, 1.0))
    wide = table[table["agent"] == "wide"]
    assert wide["q1"].to_numpy() == pytest.approx(result.regret("wide").max(axis=0))
    assert (wide["q0.25"] <= wide["q1"]).all()


def test_save_load_and_merge_give_the_same_numbers(result, tmp_path):
    result.save(tmp_path / "race.aw")
    again = Result.load(tmp_path / "race.aw")
    assert again.curves().equals(result.curves())
    assert again.final("wide", 3).t == 401
    assert repr(again.agents) == repr(result.agents) and repr(again.world) == repr(result.world)
    assert again.bound("narrow")[1] == result.bound("narrow")[1]
    halves = [aw.race(agents(), WORLD, horizon=100, seeds=seeds) for seeds in ([0, 1], [2, 3])]
    whole = aw.race(agents(), WORLD, horizon=100, seeds=4)
    merged = halves[0].merge(halves[1])
    assert merged.seeds == whole.seeds
    for name in whole.agents:
        assert merged.regret(name) == pytest.approx(whole.regret(name))
    other = aw.race({"Exp3": aw.Exp3(4)}, WORLD, horizon=100, seeds=4)
    assert list(whole.merge(other).agents) == ["narrow", "wide", "UCB1", "Exp3"]
    with pytest.raises(ValueError, match="only runs of one horizon can be merged, got 100 and 400"):
        whole.merge(result)
    with pytest.raises(ValueError, match=r"'UCB1' is .* rename one"):
        whole.merge(aw.race({"UCB1": aw.Exp3(4)}, WORLD, horizon=100, seeds=1))
    stale = aw.race(agents(), WORLD, horizon=100, seeds=1)
    stale.runs[0].regret = stale.runs[0].regret + 1
    with pytest.raises(ValueError, match="has two different runs"):
        whole.merge(stale)


def test_what_cannot_be_saved_is_asked_for(tmp_path):
    class Local(aw.UCB1):
        pass

    result = aw.race({"mine": Local(4)}, WORLD, horizon=50, seeds=1)
    result.save(tmp_path / "race.aw")
    with pytest.raises(ValueError, match=r"pass it, agents=\{'mine': ...\}"):
        Result.load(tmp_path / "race.aw")
    again = Result.load(tmp_path / "race.aw", agents={"mine": Local(4)})
    assert again.regret("mine") == pytest.approx(result.regret("mine"))


def test_a_checkpoint_keeps_metrics_and_final_agents(tmp_path):
    def once():
        return aw.race([aw.UCB1(4)], WORLD, horizon=60, seeds=2, keep=["agents"], checkpoint=tmp_path,
                       metrics={"paid": lambda played: played.rewards})  # fmt: skip

    first, second = once(), once()
    assert second.metric("paid", "UCB1") == pytest.approx(first.reward("UCB1"))
    assert second.final("UCB1", 1).t == 61


def test_several_worlds_in_one_call():
    worlds = variants(aw.environments.Linear, dim=[3, 5], n_arms=4)
    results = aw.race(agents, worlds, horizon=200, seeds=6)
    assert isinstance(results, Results)
    assert list(results) == ["Linear dim=3", "Linear dim=5"]
    alone = aw.race(agents(worlds["Linear dim=5"]), worlds["Linear dim=5"], horizon=200, seeds=6)
    assert results["Linear dim=5"].regret("wide") == pytest.approx(alone.regret("wide"))
    assert results.table()["world"].nunique() == 2
    assert results.wins().loc["narrow", "UCB1"] == 2
    assert set(results.curves()["world"]) == set(worlds)
    assert list(aw.race([aw.UCB1(4)], [WORLD, WORLD], horizon=20, seeds=1)) == ["Linear", "Linear 2"]
    with pytest.raises(ValueError, match=r"world\['x'\] must be an environment, got int 3"):
        aw.race([aw.UCB1(4)], {"x": 3}, horizon=20)


def test_results_save_load_merge(tmp_path):
    one = aw.race([aw.UCB1(4)], {"a": WORLD}, horizon=20, seeds=[0])
    two = aw.race([aw.UCB1(4)], {"a": WORLD, "b": WORLD}, horizon=20, seeds=[1])
    both = one.merge(two)
    both.save(tmp_path / "all.aw")
    again = Results.load(tmp_path / "all.aw")
    assert list(again) == ["a", "b"] and again["a"].seeds == [0, 1]
    with pytest.raises(ValueError, match=r"holds 2 worlds: use Results.load"):
        Result.load(tmp_path / "all.aw")


def test_tables_for_a_paper_escape_names_and_mark_what_ties(result):
    text = result.to_latex(label="tab:race")
    assert text.count(r"\begin{tabular}{lr}") == 1 and r"\label{tab:race}" in text
    narrow = next(line for line in text.splitlines() if line.startswith("narrow"))
    wide = next(line for line in text.splitlines() if line.startswith("UCB1"))
    assert r"\textbf" in narrow and r"\textbf" not in wide
    odd = aw.race({"50%_a&b": aw.UCB1(4)}, WORLD, horizon=20, seeds=2)
    assert r"50\%\_a\&b" in odd.to_latex()
    lines = result.to_markdown().splitlines()
    assert lines[0] == "| agent | Linear |" and len([line for line in lines if line.startswith("|")]) == 5


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_figures_in_the_width_of_a_column(result, tmp_path, suffix):
    path = tmp_path / f"figure.{suffix}"
    figure = result.plot(path, width="column")
    assert figure.get_size_inches()[0] == 3.25
    start = path.read_bytes()[:200]
    assert {"pdf": b"%PDF", "svg": b"<svg", "png": b"PNG"}[suffix] in start or b"<?xml" in start
    with pytest.raises(ValueError, match="width must be inches, 'column' or 'page', got 'wide'"):
        result.plot(width="wide")


def test_curves_survive_json(result):
    """What a report embeds: numbers only, no NaN."""
    assert "NaN" not in json.dumps(result.curves()["regret"].tolist())


def test_merge_looks_at_the_data_and_not_at_its_shape():
    """Two sets of the same shape print alike; merged, their mean would be of neither."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    worlds = [aw.environments.Classification(X, y) for y in (np.arange(40) % 2, np.arange(40) < 20)]
    worlds[1].classes = worlds[0].classes
    first, second = (aw.race([aw.UCB1(2)], world, horizon=20, seeds=[seed]) for seed, world in enumerate(worlds))
    with pytest.raises(ValueError, match="has different data in the two results"):
        first.merge(second)
    with pytest.raises(ValueError, match="only another Result can be merged, got int 3"):
        first.merge(3)
    agents = [aw.LinUCB(3, n_arms=2, prior_mean=mean) for mean in ([0.0] * 3, [1.0] * 3)]
    both = [aw.race([agent], worlds[0], horizon=20, seeds=[seed]) for seed, agent in enumerate(agents)]
    with pytest.raises(ValueError, match=r"'LinUCB' is .* rename one"):
        both[0].merge(both[1])


def test_a_name_that_did_not_race_is_refused_and_one_seed_is_one():
    result = aw.race({"a|b": aw.UCB1(4)}, WORLD, horizon=20, seeds=1, name="x|y")
    for ask in (result.regret, result.reward, result.seconds, result.certificate):
        with pytest.raises(ValueError, match=r"the agents of this race are a\|b, got 'UCB1'"):
            ask("UCB1")
    with pytest.raises(ValueError, match=r"delta must be a number in \(0, 1\), got int 2"):
        result.certificate("a|b", delta=2)
    assert "1 seed;" in str(result) and "1 seed)" in repr(result) and "over 1 seed." in result.to_markdown()
    assert result.to_markdown().startswith(r"| agent | x\|y |")


def test_a_saved_race_is_read_in_a_new_process(tmp_path):
    aw.race([aw.UCB1(4)], WORLD, horizon=20, seeds=1).save(tmp_path / "race.aw")
    code = "import sys, armwise as aw; print(aw.racing.Result.load(sys.argv[1]).seeds)"
    environment = os.environ | {"PYTHONPATH": str(Path(aw.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "race.aw")], capture_output=True, text=True,
                          env=environment)  # fmt: skip
    assert done.stdout == "[0]\n", done.stderr


def test_without_a_recorded_run_there_is_no_certificate():
    heat = Heat(aw.environments.Switching(n_arms=3), {"Exp3": aw.Exp3(n_arms=3)}, horizon=100)
    assert certify(heat, None, 0.05) == "no run was recorded"


def test_the_interval_of_a_difference_is_students():
    difference = PairedDifference("A", "B", mean=-2.0, std_error=0.5, unpaired_std_error=1.0, seeds=11, p_value=0)
    assert difference.interval() == pytest.approx((-3.114069, -0.885931))
