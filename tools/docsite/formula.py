"""Formulas as inline SVG, drawn by matplotlib's mathtext: no script runs in the reader's browser."""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

import matplotlib
import numpy as np
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

_POINTS = 12.0
_MARGIN = 2.2  # points on every side
_LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
_STEPS = 100  # whole numbers in a path are shorter than points


@cache
def svg(tex: str) -> str:
    """One formula; its TeX is the label for those who cannot see it. Raises ValueError on what mathtext cannot draw.

    >>> svg(r"\\alpha^2").startswith("<svg")
    True
    """
    with matplotlib.rc_context({"mathtext.fontset": "cm"}):
        drawn = TextPath((0.0, 0.0), f"${tex}$", size=_POINTS)
    codes, places = np.asarray(drawn.codes), np.asarray(drawn.vertices)
    ends = places[codes != Path.CLOSEPOLY]  # a curve lies among the points that bend it
    box = Bbox([ends.min(axis=0), ends.max(axis=0)]).padded(_MARGIN)
    width, height = 1.05 * box.width / _POINTS, 1.05 * box.height / _POINTS
    style = f"width:{width:.2f}em;height:{height:.2f}em;min-width:{0.8 * width:.2f}em"
    return (
        f'<svg role="img" aria-label="{html.escape(tex.replace(chr(92) + ",", " "))}" fill="currentColor" '
        f'style="{style}" viewBox="0 0 {_STEPS * box.width:.0f} {_STEPS * box.height:.0f}">'
        f'<path d="{_outline(codes, places - [box.x0, box.y1])}"/></svg>'
    )


def _outline(codes: NDArray[Any], places: NDArray[Any]) -> str:
    """A path in SVG's words, in hundredths of a point from its upper left corner; a letter holds until the next."""
    words, last = [], None
    for code, (x, y) in zip(codes.tolist(), (places * [_STEPS, -_STEPS]).round().astype(int).tolist()):
        if code == Path.CLOSEPOLY:
            words.append("Z")
        else:
            words.append(f"{x} {y}" if code == last != Path.MOVETO else f"{_LETTERS[code]}{x} {y}")
        last = code
    return " ".join(words)


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
