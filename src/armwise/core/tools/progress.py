"""Progress bars in terminals and notebooks; none if the output is redirected."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from armwise.core.tools.extras import needs


def progress_bar(total: int | None, unit: str, *, show: bool | None = None, extra: str = "race", **options: Any) -> Any:
    """Make a tqdm bar, a widget in Jupyter; ``show=None`` shows it in terminals and notebooks; passes options on."""
    notebook = in_notebook()
    with needs(extra), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm.auto warns if ipywidgets is missing, and writes text
        import tqdm

        if notebook:
            import tqdm.auto
    hidden = not (notebook or sys.stderr.isatty()) if show is None else not show
    make = tqdm.auto.tqdm if notebook else tqdm.tqdm
    return make(total=total, unit=unit, disable=hidden, **options)


def in_notebook() -> bool:
    """Return whether this runs in a Jupyter kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
