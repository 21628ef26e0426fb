"""What the tests of the documentation share: the pages, and the blocks of code in them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

from docsite import running  # noqa: E402

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> list[running.Block]:
    """The fenced blocks of a page, in order."""
    return running.blocks(page.read_text(encoding="utf-8"))


def name(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()
