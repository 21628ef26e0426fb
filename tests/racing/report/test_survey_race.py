"""The survey as a race: every row of the table runs, on a world that fits it, below its bound."""

import html

import pytest

from armwise.racing import race_all
from armwise.racing.report.report import write_report
from armwise.racing.report.survey_race import survey_heats

TABLE = ["PerContext", "PolicyArms", "Exp4", "Exp4P", "LinUCB", "SupLinUCB", "SupLinREL", "GPUCB", "SupKernelUCB",
         "EpochGreedy", "RandomizedUCB", "ILoveToConBandits", "LinThompson"]  # fmt: skip
BEYOND = ["Exp3", "UCB1", "BetaThompson", "EpsilonGreedy", "LinREL", "CoFineUCB", "LogisticThompson", "SpectralUCB",
          "CGPUCB", "KernelUCB", "PolicyElimination", "VE", "Doubling", "Explore", "SquareCB", "RegCB",
          "OnlineCover"]  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return race_all(survey_heats(scale=0.05), seeds=1)


def test_every_agent_of_the_survey_races(results):
    entered = {type(agent).__name__ for result in results for agent in result.agents.values()}
    assert set(TABLE + BEYOND) <= entered
    assert not [line for result in results for line in result.failures]


@pytest.mark.parametrize("row", [row for row in TABLE if row != "RandomizedUCB"])  # whose paper has no constant
def test_every_row_of_the_table_has_its_bound_and_stays_below_it(results, row):
    shown = []
    for result in results:
        for name, agent in result.agents.items():
            curve, _ = result.bound(name)
            if type(agent).__name__ == row and curve is not None:
                shown.append(name)
                assert result.regret(name)[:, -1].max() <= curve(result.horizon)
    assert shown, f"{row} is drawn without a bound"


def test_a_bound_above_the_trivial_one_is_vacuous_and_never_ticked(results):
    seen = {"vacuous": 0, "below": 0, "none": 0, "above": 0}
    for result in results:
        for name in result.finishers:
            curve, reason = result.bound(name)
            verdict, words = result.verdict(name)
            seen[verdict] += 1
            if curve is None:
                assert verdict == "none" and words == reason
            elif curve(result.horizon) >= result.horizon * result.world.span:
                assert verdict == "vacuous" and words.startswith("vacuous until T = ")
            else:
                assert verdict == "below"
    assert seen["above"] == 0 and min(seen["vacuous"], seen["below"], seen["none"]) > 3


def test_the_page_says_of_every_bound_what_it_is_worth(results, tmp_path):
    shown = [result for result in results if result.label in ("Adversarial rewards", "A function of bounded norm")]
    page = write_report(shown, tmp_path / "report.html").read_text()
    verdicts = [result.verdict(name) for result in shown for name in result.finishers]
    for verdict, words in verdicts:
        assert verdict == "below" or html.escape(words) in page
    kinds = [verdict for verdict, _ in verdicts]
    assert {"vacuous", "below", "none"} <= set(kinds)
    assert page.count("✓ holds") == kinds.count("below")


def test_slopes_are_drawn_only_where_a_rate_is_proved(results):
    for result in results:
        proved = [name for name in result.finishers if result.bound(name)[0] is not None]
        figure = result.plot(kind="loglog")
        thin = [line for line in figure.axes[0].get_lines() if line.get_linewidth() == 0.8]
        assert len(thin) <= len(proved)
        assert any("proved slope" in text.get_text() for text in figure.legends[0].get_texts()) == bool(thin)


def test_the_first_world_shows_the_textbook_s_claim(results):
    """A deterministic rule loses nearly every round to one who knows it; a random agent does not."""
    first = results[0]
    T, K = first.horizon, first.world.n_arms
    assert first.regret("UCB1")[:, -1].min() > 0.7 * T * (K - 1) / K
    assert first.regret("Exp3.theoretical")[:, -1].max() < min(0.2 * T, first.bound("Exp3.theoretical")[0](T))
    assert "deterministic agent loses" in first.heat.about


def test_practical_and_theoretical_stand_beside_each_other_where_they_differ(results):
    names = {name for result in results for name in result.agents}
    assert {"LinUCB", "LinUCB.theoretical", "LinThompson", "LinThompson.theoretical"} <= names
    for result in results:
        for name in result.agents:
            if f"{name}.theoretical" in result.agents:
                assert repr(result.agents[name]) != repr(result.agents[f"{name}.theoretical"])
                assert result.bound(name)[0] is None
