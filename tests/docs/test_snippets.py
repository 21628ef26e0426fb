"""Every Python block of the README and the docs runs, page by page, as a reader would type it.

A failure means that a page shows code that does not work. ``python`` blocks of a page share one namespace; ``py`` is
code of other libraries; ``console`` runs only where ``<!-- run -->`` stands before it;
``<!-- output -->`` stands before what the block above must print. Pages that run when the site is built (see
``docsite.running``) are run and compared there: test_site builds it.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from armwise.theory.assumption_filter import verdicts
from docsite import running
from tests.docs.pages import PAGES, ROOT, blocks, name

RUN = [
    page for page in PAGES
    if any(block.kind == "python" or block.mark == "run" for block in blocks(page))
    and not running.runs_when_built(page.relative_to(ROOT / "docs").as_posix() if page.parent != ROOT else "")
]  # fmt: skip


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_page_runs_and_prints_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    ran = list(running.run(page.read_text(encoding="utf-8"), page.stem))
    for (_, printed), (shown, _) in pairwise(ran):
        if shown.mark == "output":
            assert printed.rstrip() == shown.code.rstrip()


def test_no_page_goes_untested():
    """A page with code in a language that the runner does not know would never run."""
    known = {
        "python",
        "py",
        "pycon",
        "console",
        "text",
        "json",
        "toml",
        "bash",
        "sh",
        "yaml",
        "ini",
        "http",
        "javascript",
        "csharp",
        "java",
        "sql",
        "",
    }
    assert {block.kind for page in PAGES for block in blocks(page)} <= known
    assert len(RUN) >= 10


def test_the_call_on_every_algorithm_page_is_one_that_the_guide_tests():
    assert {verdict.agent for verdict in verdicts()} == {
        page.stem for page in PAGES if page.parent.name == "algorithms"
    }
