"""MkDocs hook: adds what follows from the code to the pages written by hand."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
FILES = "https://github.com/armwise/armwise/blob/main"
for folder in (ROOT / "tools", ROOT / "src"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from docsite import agents, formula, http_api, rankers, reference, running, tables  # noqa: E402

# Files outside docs/ that are pages of the site too: links to them work on both sides.
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
}

_NOT_MEASURED = "# Benchmarks\n\nNot measured yet on this copy: `make bench` writes this page.\n"


def on_config(config: Any) -> Any:
    """Fill the parts of the navigation that the code decides."""
    rooms = [{title: [f"algorithms/{name}.md" for name in names]} for title, names in agents.by_room().items()]
    filled = {
        "Algorithms": ["algorithms/index.md", *rooms],
        "Reference": ["reference/index.md", *(f"reference/{key}.md" for key in reference.PAGES)],
    }
    for part in config["nav"]:
        for title in part:
            part[title] = filled.get(title, part[title])
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not files of docs/."""
    made = {"algorithms/index.md": tables.algorithms_index(), "http-api.md": http_api.page(), **reference.pages()}
    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8") if (ROOT / source).is_file() else _NOT_MEASURED
        made[page] = text
    for address, text in made.items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Complete a page before it is turned into HTML."""
    address = page.file.src_uri
    name = Path(address).stem
    if address.startswith("algorithms/") and name != "index":
        markdown = f"{markdown.rstrip()}\n\n{agents.facts(name)}\n"
    if "<!-- facts -->" in markdown:
        markdown = markdown.replace("<!-- facts -->", rankers.facts(name))
    if running.runs_when_built(address):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            markdown = running.with_outputs(markdown, name)
    if address == "choose.md":
        markdown = markdown.replace("<!-- choices -->", tables.choices())
    return _DRAWING.sub(_put_aside, formula.rendered(_inside(markdown, address)))


# Drawings are put aside until a page is done: Markdown and the search index would read every stroke of them, and
# somebody who searches for a number would find the axes.
_DRAWING, _ASIDE = re.compile(r"<svg\b.*?</svg>", re.DOTALL), re.compile(r'<svg data-aside="(\d+)"></svg>')
_aside: list[str] = []


def _put_aside(found: re.Match[str]) -> str:
    _aside.append(found[0])
    return f'<svg data-aside="{len(_aside) - 1}"></svg>'


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Put the page's drawings back."""
    return _ASIDE.sub(lambda found: _aside[int(found[1])], output)


def _inside(markdown: str, address: str) -> str:
    """Links to files outside docs/, turned into links to their pages, and the other way round."""
    up = "../" * address.count("/")
    for source, page in OUTSIDE.items():
        markdown = markdown.replace(f"]({up}../{source}", f"]({up}{page}")
    if address in OUTSIDE.values():
        markdown = re.sub(r"\]\((\.\./)?docs/", "](", markdown)
        markdown = re.sub(r"\]\(([\w/]+\.(py|ipynb))\)", rf"]({FILES}/examples/\1)", markdown)
        for source, page in OUTSIDE.items():
            markdown = markdown.replace(f"]({source}", f"]({page}").replace(f"](../{source}", f"]({page}")
    return markdown
