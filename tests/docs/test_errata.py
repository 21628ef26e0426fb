"""The page of errata names every agent whose row has one."""

from pathlib import Path

from armwise.theory.algorithm_table import agents

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"


def test_every_erratum_of_an_agent_is_on_the_page():
    page = PAGE.read_text()
    missing = [name for name, agent in agents().items() if agent.theory.erratum and f"`{name}`" not in page]
    assert missing == []


def test_the_page_names_no_agent_that_does_not_exist():
    named = {line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    names = {name.strip(" `") for cell in named for name in cell.split(",")}
    assert names <= set(agents())
    assert len(names) > 6
