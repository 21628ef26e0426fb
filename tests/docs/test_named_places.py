"""Every path and every test that a page names exists: a move that forgets a page is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name

ROOMS = ("", "src", "src/armwise", "src/armwise/service")
TOPS = {path.name for room in ROOMS for path in (ROOT / room).iterdir() if path.is_dir()}
TESTS = {
    found for path in (ROOT / "tests").rglob("*.py")
    for found in (path.stem, *re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text("utf-8"), re.M))
}  # fmt: skip
MADE_UP = {"src/armwise/agents/arms/softmax.py", "docs/algorithms/Softmax.md"}  # add-an-agent.md makes them


def exists(place: str) -> bool:
    return place in MADE_UP or any((ROOT / room / place).exists() for room in ROOMS)


def named_places(text: str) -> list[str]:
    """Paths between backquotes that begin with a folder of the repository, without what follows ``::``."""
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]*?)(?:::\w+)?`", text)
    return [path for path in paths if path.split("/")[0] in TOPS - {"armwise"}]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    places = named_places(page.read_text("utf-8"))
    missing = [place for place in places if not exists(place) and not exists(re.sub(r"\.\w+$", ".py", place))]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"(?:`|::)(test_\w+)", page.read_text("utf-8"))
    assert not [each for each in named if each not in TESTS | {"test_size"}]  # scikit-learn's


def test_a_place_that_is_gone_would_be_noticed() -> None:
    assert named_places("see `journal/nowhere.py` and `tests/docs/test_pages.py::test_it`") == [
        "journal/nowhere.py", "tests/docs/test_pages.py",
    ]  # fmt: skip
    assert exists("tests/docs/test_pages.py") and not exists("journal/nowhere.py")
    assert "test_every_variant_gives_the_same_bytes" in TESTS and "test_nothing_of_the_kind" not in TESTS
