"""Progress bars: on a terminal and in a notebook, and none in a pipe."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from armwise.core.extras import needs


def progress_bar(total: int | None, unit: str, *, show: bool | None = None, extra: str = "race", **options: Any) -> Any:
    """A tqdm bar, as a widget in Jupyter; ``show=None`` shows it where somebody looks, ``options`` go to tqdm.

    >>> with progress_bar(10, " rows", show=False) as bar:
    ...     bar.update(10)
    """
    notebook = in_notebook()
    with needs(extra), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets tqdm.auto says so, and writes text
        import tqdm

        if notebook:
            import tqdm.auto
    hidden = not (notebook or sys.stderr.isatty()) if show is None else not show
    make = tqdm.auto.tqdm if notebook else tqdm.tqdm
    return make(total=total, unit=unit, disable=hidden, **options)


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel.

    >>> in_notebook()
    False
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
