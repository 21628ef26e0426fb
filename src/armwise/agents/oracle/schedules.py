"""When an oracle agent solves its problem again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from armwise.core.agent import count

# A factor by which the rewards learnt grow from one time to the next, or the times themselves
# (after the last of them, doubling), or a function m -> the m-th time.
Times = float | Sequence[int] | Callable[[int], int]


def check_times(name: str, times: Any) -> Times:
    """A schedule as ``next_time`` reads it."""
    if callable(times):
        function: Callable[[int], int] = times
        return function
    if isinstance(times, (int, float)) and not isinstance(times, bool) and math.isfinite(times) and times >= 1:
        return float(times)
    if isinstance(times, (list, tuple, np.ndarray)) and len(times):
        try:
            whole = [count(name, time) for time in times]
        except ValueError:
            whole = [1, 1]
        if all(a < b for a, b in pairwise(whole)):
            return whole
    raise ValueError(
        f"{name} must be a number >= 1, an increasing list of whole numbers >= 1, or a function, got {times!r:.80}"
    )


def next_time(times: Times, m: int, last: int) -> int:
    """The m-th time of a schedule, m = 1, 2, ..., the one before it being ``last`` (0 before the first)."""
    if callable(times):
        return max(last + 1, int(times(m)))
    if isinstance(times, (int, float)):
        return max(last + 1, math.ceil(times * last))
    return times[m - 1] if m <= len(times) else 2 * last
