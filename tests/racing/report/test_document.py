"""``armwise survey``: slopes with intervals, and a document that says what was seen."""

# mypy: disable-error-code="operator, union-attr"

import json
import re

import numpy as np
import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.racing.report import document
from armwise.racing.report.chapters import CHAPTERS, unbiased
from armwise.racing.results.matching_bound import bound
from armwise.racing.results.result import Result
from armwise.racing.results.slopes import Slope, slope
from armwise.racing.run.heat import Heat, Run
from armwise.theory.hypotheses import ORDER_ONLY


def made_up(horizon, power, noise, rng, seeds=20):
    """A result whose regret is T^power, give or take."""
    heat = Heat(aw.environments.Switching(n_arms=2), {"A": aw.UCB1(2)}, horizon, recorded=(horizon,))
    finals = horizon**power * (1 + noise * rng.standard_normal(seeds))
    runs = [Run("A", s, regret=finals[s : s + 1]) for s in range(seeds)]
    return Result(heat, list(range(seeds)), runs)


def test_the_interval_covers_the_true_slope():
    """Of 200 intervals at 95 %, fewer than 180 that cover (an event of chance 0.001) would mean a wrong error."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        results = [made_up(T, 0.5, 0.2, rng) for T in (1000, 2000, 4000, 8000)]
        found = slope(results, "A")
        covered += found.low <= 0.5 <= found.high
    assert 180 <= covered < 200


def test_what_has_no_slope_says_so():
    rng = np.random.default_rng(1)
    results = [made_up(T, 0.5, 0.0, rng) for T in (100, 200)]
    assert slope(results, "A").value == pytest.approx(0.5)
    for run in results[0].runs:
        run.regret = -run.regret
    assert "regret is not positive" in slope(results, "A")
    assert "fewer than three seeds" in slope([made_up(T, 0.5, 0.1, rng, seeds=2) for T in (100, 200)], "A")


def test_a_slope_that_does_not_exclude_one_is_called_that():
    unsure, sure = Slope(0.97, 0.9, 1.04, (100, 800), 20), Slope(0.5, 0.4, 0.6, (100, 800), 20)
    assert (
        "1 is not excluded up to T = 800; a longer race" in document.ChapterRow("A", 1.0, 0.1, 0.5, "", unsure).verdict
    )
    assert "above T until T = 5,000" in document.ChapterRow("A", 1.0, 0.1, 0.5, "", unsure, vacuous_until=5_000).verdict
    assert document.ChapterRow("A", 1.0, 0.1, 1.0, "", unsure).verdict == "the bound itself is of order T"
    assert document.ChapterRow("A", 1.0, 0.1, 0.5, "", sure).verdict == "below 1"


def test_section_two_in_numbers():
    found = unbiased(seeds=30)
    assert abs(found.weighted - found.truth) < 4 * found.weighted_error
    assert abs(found.plain - found.truth) > 10 * found.plain_error


def test_the_document_walks_through_every_chapter(tmp_path, capsys, monkeypatch):
    few = [chapter for chapter in CHAPTERS if chapter.section in ("4.1.1", "5.1") or chapter.heat == "tabular"]
    monkeypatch.setattr(document, "CHAPTERS", few)
    assert main(["survey", "--out", str(tmp_path), "--seeds", "3", "--scale", "0.005", "--workers", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    page, tex = (tmp_path / "survey.html").read_text(), (tmp_path / "survey.tex").read_text()
    for chapter in few:
        assert chapter.title in page.replace("&#x27;", "'") and f"{chapter.section}. " in tex
    for row in answer["rows"]:
        assert row["agent"] in page
        if re.match(r"[0-9.-]+ \(", row["measured"]):
            assert row["measured"] in page and row["measured"] in tex
    assert "Errata met here" in page and r"\section*{2. Unbiased" in tex
    assert tex.count(r"\begin{") == tex.count(r"\end{")
    assert len(list((tmp_path / "figures").glob("*.pdf"))) == 3
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page)


def test_every_section_with_a_rate_has_a_chapter():
    sections = {chapter.section for chapter in CHAPTERS}
    assert {"3", "4.1.1", "4.1.2", "4.1.3", "4.1.4", "4.1.5", "4.2.1", "4.2.2", "4.3.1", "4.3.2", "4.3.3", "5.1",
            "5.3"} <= sections  # fmt: skip


def test_every_rate_of_the_survey_is_measured():
    """Each agent of the survey whose rate is proved stands in some chapter in the setting of its theorem."""
    measured = set()
    for chapter in CHAPTERS:
        heat = chapter.at(0.01)
        assert heat.agents
        for name, agent in heat.agents.items():
            found = bound(agent, heat.world, heat.horizon, heat.letters.get(name))
            if not isinstance(found, str) or found == ORDER_ONLY:
                measured.add(type(agent).__name__)
    rows = {row.agent: row for row in aw.table().rows if row.section[:1].isdigit()}
    unproved = {name for name, row in rows.items() if re.match("none proved|no bound known", row.regret)}
    assert unproved == {"LinREL", "LogisticThompson", "KernelUCB"}
    assert set(rows) - measured == unproved | {"Advised"}  # which has the rate of the agent within


@pytest.mark.parametrize(
    ("words", "message"), [("--seeds 2", "--seeds must be at least 3"), ("--scale 0", "--scale must be")]
)
def test_bad_options_are_one_line(words, message, capsys):
    assert main(["survey", *words.split()]) == 2
    assert message in capsys.readouterr().err
