"""Every example runs, and does what its first lines say."""

# mypy: disable-error-code="arg-type, call-overload, dict-item"

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.testing.checks import CHECKS, Case, D

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def beside_the_examples(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("PYTHONPATH", str(Path(aw.__file__).parents[1]))  # for the processes that examples start
    monkeypatch.chdir(tmp_path)


def final_regret(result, name):
    return result.regret(name)[:, -1].mean()


def test_a_papers_figure(capsys, tmp_path):
    import paper_figure

    source = (EXAMPLES / "paper_figure.py").read_text().split("\n# ---")[0]
    code = [line for line in source.split('"""')[2].splitlines() if line.strip()]
    assert len(code) <= 12
    results = paper_figure.main(horizon=200, seeds=3)
    assert len(results) == 3 and all(len(result.agents) == 4 for result in results.values())
    assert (tmp_path / "figure.pdf").read_bytes()[:4] == b"%PDF"
    assert r"\toprule" in capsys.readouterr().out


def test_news(capsys, tmp_path):
    import news

    result = news.main(["--rounds", "1500", "--report", "news.html"])
    assert all(
        final_regret(result, name) < 0.5 * final_regret(result, "random") for name in result.agents if name != "random"
    )
    assert "stars" in capsys.readouterr().out
    assert (tmp_path / "news.html").stat().st_size > 10_000


def test_news_reads_ratings_named_as_movielens_names_them(tmp_path):
    import pandas as pd

    import news

    frame = pd.DataFrame(dict(zip(("userId", "movieId", "rating"), news.made_up_ratings(n_users=60), strict=True)))
    frame.to_csv("ratings.csv", index=False)
    result = news.main(["--data", "ratings.csv", "--rounds", "200"])
    assert len(result.finishers) == 4


def test_dosing():
    import dosing

    share = dosing.main(["--patients", "3000", "--orders", "3"])
    assert share["LinUCB"] > share["always medium"] + 0.03
    assert share["UCB1 (no context)"] < share["always medium"] + 0.01  # without a context no agent can do better


def test_mailing(tmp_path):
    import pandas as pd

    import mailing

    found, warnings = mailing.main([])
    frame = pd.read_csv(tmp_path / "mailing.csv")
    assert found["same department"].low < mailing.truth(mailing.same_department, frame) < found["same department"].high
    assert len(warnings) == 1 and "cannot answer the question" in warnings[0]
    again, _ = mailing.main(["--csv", "mailing.csv"])
    assert again["best question"].value == found["best question"].value


def test_ab_test(capfd):
    import ab_test

    better = ab_test.main(["--visitors", "1000"])
    assert len(better) == 1000 and np.mean(better[-300:]) > 0.7  # an A/B test: 0.5, with a standard deviation of 0.03
    assert '"probability"' in capfd.readouterr().out
    client = (EXAMPLES / "ab_test.py").read_text().split("# ------")[1]
    assert len([line for line in client.splitlines()[1:] if line.strip()]) <= 10


def test_own_agent_wins_over_one_that_sees_nothing():
    import own_agent

    result = own_agent.main()
    assert final_regret(result, "Softmax") < 0.2 * final_regret(result, "Exp3")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_own_agent_passes_every_check(check):
    import own_agent

    check(Case("Softmax", lambda seed: own_agent.Softmax(D, 0.1, 0.3, seed=seed)))


def test_dask_race_gives_the_numbers_of_one_core():
    import dask_race

    there = dask_race.main(["--rounds", "300", "--seeds", "2"])
    here = aw.race(dask_race.AGENTS, dask_race.WORLD, horizon=300, seeds=2)
    for name in dask_race.AGENTS:
        np.testing.assert_array_equal(there.regret(name), here.regret(name))


def kinds(notebook):
    """What every code cell shows: text, tables, pictures."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = [[sorted(output.get("data", {"stream": ""})) for output in cell["outputs"]] for cell in cells]
    # Text that is printed may arrive in one piece or in several.
    return [[kind for i, kind in enumerate(cell) if kind != ["stream"] or cell[:i][-1:] != [kind]] for cell in shown]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path):
    """Run in a Jupyter kernel, it shows the kinds of output that are stored in it, pictures among them."""
    from docsite.notebooks import executed

    stored = kinds(json.loads(path.read_text()))
    assert kinds(executed(path)) == stored, "run: PYTHONPATH=tools python -m docsite.notebooks"
    assert ["image/png", "text/plain"] in [kind for cell in stored for kind in cell]
    assert ["text/html", "text/plain"] in [kind for cell in stored for kind in cell]


def test_the_readme_lists_every_example():
    text = (EXAMPLES / "README.md").read_text()
    listed = {p.name for p in EXAMPLES.iterdir() if p.suffix in (".py", ".ipynb") and f"]({p.name})" in text}
    assert listed == {p.name for p in EXAMPLES.iterdir() if p.suffix in (".py", ".ipynb")}


def test_no_example_hides_a_module_of_the_standard_library():
    assert not {p.stem for p in EXAMPLES.glob("*.py")} & set(sys.stdlib_module_names)


def test_router_holds_its_budget_and_answers_what_if(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES / "router"))
    import router

    router.main()
    out = capsys.readouterr().out
    assert 3.0 < float(out.split()[1]) < 4.5
    assert "always large" in out and "on the front" in out


def test_what_a_routers_own_journal_says_of_other_rules_covers_the_truth(monkeypatch, tmp_path):
    """Reward and dollars of three tables, and the LP optimum, from four journals of 250 prompts whose truth is known.

    28 intervals of 95 %: more than six misses have probability below 0.1 %.
    """
    monkeypatch.syspath_prepend(str(EXAMPLES / "router"))
    import router

    models, misses = ["small", "middle", "large"], []
    quality, dollars = np.array([[0.9, 0.9, 0.95], [0.4, 0.7, 0.9]]), np.array([0.001, 0.003, 0.010])
    tables = {"always small": [1, 0, 0], "always large": [0, 0, 1], "my table": [0.3, 0.4, 0.3]}
    best = aw.budget_optimum(quality.mean(axis=0)[None], dollars[None], 0.004).value
    for seed in range(4):
        rng = np.random.default_rng(seed)
        storage = tmp_path / "journal" if seed == 0 else None
        chooser = router.Router(models, 4.0, storage, prompts=250, explore=0.3, seed=seed)
        for i in range(250):
            decided = chooser.route(["Add two numbers", "Prove it for every group"][i % 2])
            arm = models.index(decided.arm)
            chooser.outcome(decided.id, float(rng.random() < quality[i % 2, arm]), dollars[arm] * rng.uniform(0.5, 1.5))
        found = chooser.what_if(tables)
        for name, table in tables.items():
            value, cost = found[name].value, found[name].cost
            misses.append(not value.low <= np.dot(table, quality.mean(axis=0)) <= value.high)
            misses.append(not cost.low <= np.dot(table, dollars) <= cost.high)
        only = dict(zip(models, np.eye(3), strict=True))
        mix = aw.offline.best_mixture(chooser.decider.log(), only, 0.004)
        misses.append(not mix.low <= best <= mix.high)
        chooser.close()
    assert len(misses) == 28 and sum(misses) <= 6, misses


def test_router_takes_an_embedding_and_models_that_come_and_go(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "router"))
    import router

    chooser = router.Router(["small"], dollars=5.0, embed=lambda prompt: [len(prompt) / 10.0, 1.0])
    for t in range(40):
        chooser.models = ["small"] if t < 10 else ["small", "middle", "large"] if t < 30 else ["small", "large"]
        decided = chooser.route("hello")
        assert decided.arm in chooser.models
        chooser.outcome(decided.id, 0.5, 0.001)


def spend_of(chooser, models, T, seed):
    """Dollars and quality per prompt, of four models whose answers cost from 0.03 to 15 dollars per thousand."""
    quality, dollars = np.array([0.79, 0.925, 0.93, 0.935]), np.array([0.03, 0.5, 0.9, 15.0]) / 1000.0
    rng, words, rows = (
        np.random.default_rng(seed),
        ["add", "two", "numbers", "prove", "it", "for", "every", "group", "of", "(order)", "8", "?"],
        [],
    )
    for _ in range(T):
        decided = chooser.route(" ".join(rng.choice(words, size=rng.integers(3, 40))))
        arm = models.index(decided.arm)
        good, paid = np.clip(rng.normal(quality[arm], 0.1), 0.0, 1.0), dollars[arm] * rng.lognormal(-0.32, 0.8)
        chooser.outcome(decided.id, good, paid)
        rows.append((paid, good))
    return np.mean(rows, axis=0)


def test_router_keeps_to_a_budget_that_few_answers_of_a_dear_model_would_spend(monkeypatch):
    """600 prompts for 0.18 dollars, of which 12 answers of the dearest model are all: with a price list it is held, and
    nearly the best mixture of the two cheap models is earned; without, what was tried costs no more than half as much
    again. (SquareCB as its oracle spent 2.6 times the budget.)"""
    monkeypatch.syspath_prepend(str(EXAMPLES / "router"))
    import router

    models, T = ["tiny", "small", "middle", "large"], 600
    prices = {"large": 10.0, "middle": 0.8, "small": 0.4, "tiny": 0.02}  # too low, as lists are
    for seed in range(2):
        spent, earned = spend_of(router.Router(models, 0.3, prompts=T, prices=prices, seed=seed), models, T, seed)
        best = aw.budget_optimum([[0.79, 0.925, 0.93, 0.935]], [[0.03, 0.5, 0.9, 15.0]], 1000 * spent).value
        assert spent <= 0.3e-3 and earned > best - 0.015, (seed, spent, earned, best)
        assert spend_of(router.Router(models, 0.3, prompts=T, seed=seed), models, T, seed)[0] < 1.5 * 0.3e-3


def test_router_says_what_is_wrong_with_prices(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "router"))
    import router

    models = ["small", "large"]
    for prices in ({"small": 1.0}, [1.0, 2.0], {"small": 1.0, "large": 2.0, "other": 3.0}, {}):
        with pytest.raises(ValueError, match=r"^prices must be dollars per thousand answers for each of \['small'"):
            router.Router(models, 4.0, prices=prices)
    for price in (0.0, -1.0, float("nan"), "1", True):
        with pytest.raises(ValueError, match="the price of 'large' must be"):
            router.Router(models, 4.0, prices={"small": 1.0, "large": price})
    with pytest.raises(ValueError, match="give those of a service to agent_of"):
        router.Router(models, 4.0, service="http://127.0.0.1:1", prices={"small": 1.0, "large": 2.0})
    chooser = router.Router(models, 4.0, prices={"small": 1.0, "large": 2.0})
    for offered in (["small"], ["large", "small"], ["small", "large", "new"]):
        with pytest.raises(ValueError, match="prices were given for small, large"):
            chooser.route("hello", offered)
    assert chooser.route("hello").arm in models


def test_router_says_what_is_wrong(monkeypatch):
    """Each message names the argument; a negative cost would give money back, a NaN would be no feature at all."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "router"))
    import router

    for arguments, name in (
        (([], 4.0), "models"), (("small", 4.0), "models"), ((["small"], 0), "dollars"), ((["small"], -1.0), "dollars"),
        ((["small"], "4"), "dollars"), ((["small"], float("nan")), "dollars"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{name} must be"):
            router.Router(*arguments)
    with pytest.raises(ValueError, match=r"^prompts must be"):
        router.Router(["small"], 4.0, prompts=0)
    chooser = router.Router(["small", "large"], 4.0)
    with pytest.raises(ValueError, match=r"^prompt must be a text"):
        chooser.route(None)
    decided = chooser.route("half a character: \ud800")
    for dollars in (-1.0, float("nan"), None):
        with pytest.raises(ValueError, match=r"^dollars must be"):
            chooser.outcome(decided.id, 0.5, dollars)
    with pytest.raises(ValueError, match="has an outcome yet"):
        chooser.what_if({"small": [1, 0]})
    for answer in (None, [], [float("nan")], ["x"]):
        chooser.embed = lambda prompt, answer=answer: answer
        with pytest.raises(ValueError, match=r"embed must give|embedding must be"):
            chooser.route("hello")


def test_the_service_of_the_router_s_page_has_the_router_s_agent(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "router"))
    import tomllib

    import router

    page = (EXAMPLES.parent / "docs" / "router.md").read_text()
    config = tomllib.loads(page.split("```toml\n")[1].split("```")[0])
    assert config["applications"]["router"]["agent"] == router.agent_of(4.0, 100_000)
    assert config["applications"]["dollars"]["agent"] == router.budget_of(25.0, 0.05)
