"""Small tables as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence

Cells = Sequence[Sequence[str]]


def text_table(headings: Sequence[str], rows: Cells) -> str:
    """Format cells as text columns: the first aligned left, the others right."""
    widths = [max(len(line[i]) for line in [headings, *rows]) for i in range(len(headings))]
    lines = [
        "  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths)))
        for line in [headings, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def html_table(headings: Sequence[str], rows: Cells, *, title: str = "", note: str = "") -> str:
    """Format cells as an HTML table with a title above and a note below; escapes everything."""

    def row(tag: str, cells: Sequence[str]) -> str:
        inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    head = f"<p><b>{html.escape(title)}</b></p>" if title else ""
    foot = f"<p>{html.escape(note)}</p>" if note else ""
    body = "".join(row("td", cells) for cells in rows)
    return f"{head}<table><thead>{row('th', headings)}</thead><tbody>{body}</tbody></table>{foot}"
