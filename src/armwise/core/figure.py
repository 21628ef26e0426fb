"""A matplotlib figure that a notebook shows, whether or not pyplot was imported."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import figure


class Figure(figure.Figure):
    """Made without pyplot, which would keep every figure in memory; so it brings its own way into a notebook.

    >>> Figure(figsize=(1, 1))._repr_png_()[:4]
    b'\\x89PNG'
    """

    def _repr_png_(self, **options: Any) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=150, bbox_inches="tight", **options)
        return buffer.getvalue()
