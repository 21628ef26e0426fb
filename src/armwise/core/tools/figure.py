"""A matplotlib figure that notebooks display without pyplot."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import figure


class Figure(figure.Figure):
    """A figure made without pyplot, which would keep every figure in memory; it renders itself in a notebook."""

    def _repr_png_(self, **options: Any) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=150, bbox_inches="tight", **options)
        return buffer.getvalue()
