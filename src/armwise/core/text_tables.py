"""Small tables for a terminal and for a notebook, from the same cells."""

from __future__ import annotations

import html
from collections.abc import Sequence

Cells = Sequence[Sequence[str]]


def text_table(headings: Sequence[str], rows: Cells) -> str:
    """Columns side by side: the first flush left, numbers flush right.

    >>> print(text_table(["agent", "regret"], [["LinUCB", "8.1"], ["Exp3", "120"]]))
    agent   regret
    LinUCB     8.1
    Exp3       120
    """
    widths = [max(len(line[i]) for line in [headings, *rows]) for i in range(len(headings))]
    lines = [
        "  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths)))
        for line in [headings, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def html_table(headings: Sequence[str], rows: Cells, *, title: str = "", note: str = "") -> str:
    """The same cells as HTML, with a title above and a note below; everything is escaped.

    >>> html_table(["agent"], [["<b>"]], note="2 seeds")
    '<table><thead><tr><th>agent</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table><p>2 seeds</p>'
    """

    def row(tag: str, cells: Sequence[str]) -> str:
        inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    head = f"<p><b>{html.escape(title)}</b></p>" if title else ""
    foot = f"<p>{html.escape(note)}</p>" if note else ""
    body = "".join(row("td", cells) for cells in rows)
    return f"{head}<table><thead>{row('th', headings)}</thead><tbody>{body}</tbody></table>{foot}"
