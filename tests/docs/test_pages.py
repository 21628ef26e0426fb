"""The README and the pages agree with the code, and links lead somewhere."""

from __future__ import annotations

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from armwise.theory.algorithm_table import agents
from tests.docs.pages import PAGES, ROOT, name

LINK = re.compile(r"\]\(([^)\s]+)\)")
ADDED_BY_THE_BUILD = (
    "reference/",
    "algorithms/index.md",
    "http-api.md",
    "benchmarks/RESULTS.md",
)  # by make docs and make bench


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page: Path):
    found = [link for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))) if "://" not in link]
    paths = {link.partition("#")[0] for link in found} - {""}
    paths = {path for path in paths if not any(part in path for part in ADDED_BY_THE_BUILD)}
    missing = [path for path in paths if not (page.parent / path).exists()]
    assert missing == []


def test_every_agent_has_a_page_with_its_three_parts():
    for agent in agents():
        text = (ROOT / "docs" / "algorithms" / f"{agent}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {agent}\n") and "\n$$" in text and "\n## When to use it\n" in text, agent


def test_every_parameter_has_words():
    from docsite.parameters import WORDS, arguments, words

    used = {(agent, parameter) for agent, cls in agents().items() for parameter in inspect.signature(cls).parameters}
    silent = [
        f"{agent}.{parameter}" for agent, parameter in sorted(used)
        if not {parameter, f"{agent}.{parameter}"} & (WORDS.keys() | arguments(agents()[agent]).keys())
    ]  # fmt: skip
    assert silent == [], "add a line under Args: in the class's docstring"
    assert all(words(*pair) for pair in used)
    known = {parameter for _, parameter in used} | {f"{agent}.{parameter}" for agent, parameter in used}
    assert set(WORDS) <= known, "words for a parameter that no agent has"


def test_the_table_of_the_readme_is_that_of_the_agents():
    from docsite.readme import README, with_agents

    text = README.read_text(encoding="utf-8")
    assert text == with_agents(text), "run: PYTHONPATH=tools python -m docsite.readme"


@pytest.mark.parametrize("module", ["docstrings", "formula", "parameters", "running", "http_api"])
def test_the_tools_do_what_their_examples_say(module: str):
    found = doctest.testmod(import_module(f"docsite.{module}"))
    assert found.attempted and not found.failed


def test_the_readme_keeps_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"make (setup|run|test|check|docs|bench)\b", text))
    assert named == {"setup", "run", "test", "check", "docs", "bench"} and named <= targets


def test_the_readme_says_which_agents_play_in_compiled_code():
    """By what the agents of the contract's cases say of themselves: a name in the wrong column is a false promise."""
    from tests.cases import CASES

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("<!-- agents -->\n")[2].partition("<!-- /agents -->")[0]
    compiled_cells, loop_cells = zip(*(line.strip("|").split("|")[1:] for line in table.splitlines()[2:]), strict=True)
    listed = named(re.sub(r"\([^)]*\)", "", " ".join(compiled_cells)))
    loops = named(" ".join(loop_cells))
    compiled = {type(agent).__name__ for case in CASES if (agent := case.make(1)).compiled}
    assert listed == compiled
    assert loops == set(agents()) - compiled


def named(text: str) -> set[str]:
    return set(re.findall(r"\b[A-Z]\w+", text)) & set(agents())


def test_the_invariants_name_tests_that_exist():
    """An invariant of the architecture page whose test is gone is a promise that nothing keeps."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paragraphs = [each for each in text.split("\n\n") if each.startswith("**Architecture Invariant:**")]
    assert len(paragraphs) > 10
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"def (test_\w+)\(", tests))
    for paragraph in paragraphs:
        kept_by = set(re.findall(r"`(test_\w+)`", paragraph))
        assert kept_by <= known, paragraph
        assert kept_by or "[tool.importlinter]" in paragraph or "armwise.testing" in paragraph, paragraph


def test_the_map_has_every_folder():
    """docs/architecture.md describes the folders that there are, each once, and no others."""
    described = re.findall(r"^\| `(\w+)/` \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "src/armwise").glob("*/__init__.py")}
    assert sorted(described) == sorted(folders)
