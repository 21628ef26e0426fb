"""The table is the survey's, and every agent is in it."""

# mypy: disable-error-code="arg-type"

import json

import pytest

import armwise as aw
from armwise.theory.algorithm_table import agents, rankers

# The survey's Table 2: high probability, infinite policies, needs T, adversarial.
SURVEY = {
    "Reduce to MAB": "no no yes yes",
    "EXP4": "no no yes yes",
    "EXP4.P": "yes no yes yes",
    "LinUCB": "yes yes yes no",
    "SupLinUCB": "yes yes yes no",
    "SupLinREL": "yes yes yes no",
    "GP-UCB": "yes yes yes no",
    "KernelUCB": "yes yes yes no",
    "Epoch-Greedy": "yes yes no no",
    "Randomized UCB": "yes yes no no",
    "ILOVETOCONBANDITS": "yes yes no no",
    "Thompson Sampling with Linear Regression": "yes yes no no",
}


# The agents that are each row of the survey's Table 2, the one that its bound is about first.
SURVEY_ROWS = {
    "Reduce to MAB": ("PerContext", "PolicyArms"),
    "EXP4": ("Exp4",),
    "EXP4.P": ("Exp4P",),
    "LinUCB": ("LinUCB",),
    "SupLinUCB": ("SupLinUCB",),
    "SupLinREL": ("SupLinREL",),
    "GP-UCB": ("GPUCB", "CGPUCB"),
    "KernelUCB": ("SupKernelUCB", "KernelUCB"),
    "Epoch-Greedy": ("EpochGreedy",),
    "Randomized UCB": ("RandomizedUCB",),
    "ILOVETOCONBANDITS": ("ILoveToConBandits",),
    "Thompson Sampling with Linear Regression": ("LinThompson",),
}


def test_every_agent_says_how_it_is_made():
    """Without ``call`` in its theory row, advice, pages and benchmarks would fail on an empty line of Python."""
    assert [name for name, cls in [*agents().items(), *rankers().items()] if not cls.theory.call] == [], (
        "add call= to Theory(...)"
    )


@pytest.mark.parametrize("row", SURVEY)
def test_the_survey_s_rows_are_the_agents_own(row):
    rows = {each.agent: each for each in aw.table().rows if each.survey_row == row}
    assert set(rows) == set(SURVEY_ROWS[row])
    first = rows[SURVEY_ROWS[row][0]]
    flags = (first.high_probability, first.infinite_policies, first.needs_horizon, first.adversarial)
    assert " ".join("yes" if flag else "no" for flag in flags) == SURVEY[row]
    assert first.bound


def test_every_public_agent_has_a_row_and_every_row_says_what_it_competes_with():
    public = {
        name
        for name in aw.__all__
        if isinstance(thing := getattr(aw, name), type)
        and issubclass(thing, (aw.Agent, aw.Ranker))
        and hasattr(thing, "theory")
    }
    rows = {row.agent: row for row in aw.table().rows}
    assert set(rows) == public == set(agents()) | set(rankers())
    assert {name for name, row in rows.items() if row.section == "rankings"} == set(rankers())
    for row in rows.values():
        assert row.comparator
        assert row.assumes
        assert row.reference
        assert row.section


def test_every_format_has_every_agent():
    names = [*agents(), *rankers()]
    for format in ("text", "markdown", "latex", "json"):
        printed = aw.table(format)
        assert all(name in printed for name in names)
        assert repr(printed) == str(printed)
    assert [row["agent"] for row in json.loads(aw.table("json"))] == names
    assert all(line.count("|") - line.count("\\|") == 8 for line in aw.table("markdown").splitlines())
    latex = aw.table("latex")
    assert latex.count("{") == latex.count("}")
    assert all(line.count(" & ") == 6 for line in latex.splitlines() if line.endswith("\\\\"))


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="format must be one of 'text'"):
        aw.table("pdf")
