"""A progress bar over the rows of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from armwise.offline.log import Log


@contextmanager
def bar(log: Log, passes: int, show: bool) -> Iterator[Callable[[int], object]]:
    """A function that is told how many rows are done; it draws a bar on a terminal if asked to."""
    if not show:
        yield lambda rows: None
        return
    from tqdm import tqdm

    known = log._source is None or log._source.n_rows is not None
    with tqdm(total=len(log) * passes if known else None, unit=" rows", unit_scale=True, leave=False) as drawn:
        yield drawn.update
