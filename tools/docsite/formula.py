"""Formulas as inline SVG, drawn by matplotlib's mathtext: no script runs in the reader's browser."""

from __future__ import annotations

import html
import io
import re
import zlib
from functools import cache

import matplotlib
from matplotlib.figure import Figure

_POINTS_PER_EM = 12.0


@cache
def svg(tex: str) -> str:
    """One formula; its TeX is the label for those who cannot see it. Raises ValueError on what mathtext cannot draw.

    >>> svg(r"\\alpha^2").startswith("<svg")
    True
    """
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "mathtext.fontset": "cm", "svg.hashsalt": tex}):
        figure = Figure(figsize=(0.01, 0.01))
        figure.text(0, 0, f"${tex}$", fontsize=_POINTS_PER_EM)
        figure.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.03,
                       metadata={"Date": None})  # fmt: skip
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL)
    width, height = (float(re.search(rf'<svg[^>]* {side}="([\d.]+)pt"', text)[1]) for side in ("width", "height"))  # type: ignore[index]
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
    size = f'style="width:{width / _POINTS_PER_EM * 1.05:.2f}em;height:{height / _POINTS_PER_EM * 1.05:.2f}em;min-width:{width / _POINTS_PER_EM * 0.8:.2f}em"'
    text = text.replace("<svg", f'<svg role="img" aria-label="{html.escape(tex)}" fill="currentColor" {size}', 1)
    text = re.sub(r'<g id="(figure|patch|text|axes)[^"]*"', "<g", text)
    text = _own_ids(text, f"f{zlib.crc32(tex.encode()):x}")
    return re.sub(r"\s*\n\s*", " ", text).strip()


def _own_ids(text: str, prefix: str) -> str:
    """Glyphs are named alike in every formula; on a page the names must differ."""
    for name in set(re.findall(r'id="([^"]+)"', text)):
        text = text.replace(f'id="{name}"', f'id="{prefix}-{name}"').replace(f'"#{name}"', f'"#{prefix}-{name}"')
    return text


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
