"""What the tests of the documentation share: the pages, and the blocks of code in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>run[^\n]*) -->\n)?^(?P<fence>`{3,})(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what the comment before it says (``run``, ``run: serve``), and where it is."""

    kind: str
    mark: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(found["kind"], found["mark"] or "", found["code"], text[: found.start("code")].count("\n"))
            for found in _FENCE.finditer(text)]  # fmt: skip


def name(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()
