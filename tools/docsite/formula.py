"""Formulas as inline SVG, drawn by matplotlib's mathtext: no script runs in the reader's browser."""

from __future__ import annotations

import html
import io
import itertools
import re
from functools import cache

import matplotlib
from matplotlib.figure import Figure

_POINTS = 12.0
_places = itertools.count()


def svg(tex: str) -> str:
    """One formula; its TeX is the label for those who cannot see it. Raises ValueError on what mathtext cannot draw.

    >>> svg(r"\\alpha^2").startswith("<svg")
    True
    """
    text, prefix = _drawn(tex), f"f{next(_places)}"
    for name in set(re.findall(r'id="([^"]+)"', text)):  # glyphs are named alike in every formula
        text = text.replace(f'id="{name}"', f'id="{prefix}-{name}"').replace(f'"#{name}"', f'"#{prefix}-{name}"')
    return text


@cache
def _drawn(tex: str) -> str:
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "mathtext.fontset": "cm", "svg.hashsalt": tex}):
        figure = Figure(figsize=(0.01, 0.01))
        figure.text(0, 0, f"${tex}$", fontsize=_POINTS)
        figure.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.03)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    size = {side: float(value) for side, value in re.findall(r' (width|height)="([\d.]+)pt"', text)}
    width, height = 1.05 * size["width"] / _POINTS, 1.05 * size["height"] / _POINTS
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
    style = f"width:{width:.2f}em;height:{height:.2f}em;min-width:{0.8 * width:.2f}em"
    label = html.escape(tex.replace("\\,", " "))
    text = text.replace("<svg", f'<svg role="img" aria-label="{label}" fill="currentColor" style="{style}"', 1)
    text = re.sub(r'<g id="(figure|patch|text|axes)[^"]*"', "<g", text)
    return re.sub(r"\s*\n\s*", " ", text).strip()


def rendered(markdown: str) -> str:
    """A page with each ``$$...$$`` block in place of its picture; fenced code is left alone.

    >>> "<svg" in rendered("Text\\n\\n$$a_t$$\\n"), rendered("```\\n$$\\n```")
    (True, '```\\n$$\\n```')
    """
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else re.sub(r"^\$\$(.+?)\$\$$", _block, part, flags=re.MULTILINE)
                   for part in parts)  # fmt: skip


def _block(found: re.Match[str]) -> str:
    tex = found[1].strip().replace("\\frac", "\\dfrac").replace("^\\top", "^{\\mathsf{T}}")
    return f'<div class="formula">{svg(tex)}</div>'


def inline(tex: str) -> str:
    """A formula for a line of text or a cell of a table.

    >>> "inline-formula" in inline("O(T)")
    True
    """
    return f'<span class="inline-formula">{svg(tex)}</span>'
