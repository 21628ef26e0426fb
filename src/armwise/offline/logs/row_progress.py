"""A progress bar over the rows of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from armwise.core.tools.progress import progress_bar
from armwise.offline.logs.log import Log


@contextmanager
def bar(log: Log, passes: int, show: bool) -> Iterator[Callable[[int], object]]:
    """A function that is told how many rows are done; it draws a bar, on a terminal or in a notebook, if asked to."""
    if not show:
        yield lambda rows: None
        return
    total = len(log) * passes if log.counted else None
    with progress_bar(total, " rows", show=True, extra="offline", unit_scale=True, leave=False) as drawn:
        yield drawn.update
