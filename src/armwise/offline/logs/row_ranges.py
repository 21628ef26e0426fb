"""Ranges of rows in data that is opened in pieces: the pieces that hold them, and the rows of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def pieces(data: Any) -> list[tuple[Any, int]]:
    """The parts of a dataset that can be opened apart, with rows: row groups of Parquet, other files whole."""
    found: list[tuple[Any, int]] = []
    for file in data.get_fragments():
        if hasattr(file, "split_by_row_group"):
            found += [(group, int(group.row_groups[0].num_rows)) for group in file.split_by_row_group()]
        else:
            found.append((file, int(file.count_rows())))
    return found


def overlapping(found: list[tuple[Any, int]], first: int, last: int) -> Iterator[tuple[Any, int, int]]:
    """The pieces that hold rows from first up to last: each with where its own begin and end."""
    start = 0
    for piece, n in found:
        begin, end = max(first - start, 0), min(last - start, n)
        if begin < end:
            yield piece, begin, end
        start += n


def within(batches: Any, skip: int, end: int) -> Iterator[Any]:
    """The rows from ``skip`` up to ``end`` of these batches."""
    start = 0
    for batch in batches:
        begin, stop = max(skip - start, 0), min(end - start, batch.num_rows)
        start += batch.num_rows
        if begin < stop:
            yield batch.slice(begin, stop - begin)
        if start >= end:
            return
