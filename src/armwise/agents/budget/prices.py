"""The prices that are tried for a resource, and the search for the lowest one that holds its rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PRICES = np.concatenate([[0.0], np.geomspace(1e-4, 1e3, 141)])  # in rewards per unit of the rate


def lowest(costs: Callable[[int], float], target: float, last: float) -> int:
    """The place among ``PRICES`` of the lowest at which costs are at most ``target``; the dearest if they never are.

    ``costs`` of a place fall as prices rise. A price seldom moves far from the ``last`` one: from there on in steps
    that double, until it is enclosed, then by halves. It is asked for its own place (but the dearest, which needs none)
    and for the one before.
    """
    low, high, step = 0, len(PRICES) - 1, 1
    place = min(int(np.searchsorted(PRICES, last)), high - 1)
    while low < high:
        if costs(place) <= target:
            high, place = place, place - step
        else:
            low, place = place + 1, place + step
        step *= 2
        if not low <= place < high:
            place = (low + high) // 2
    return low
