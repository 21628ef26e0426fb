"""Means of bounded rewards, arm by arm, between bounds that hold at every moment at once (beta mixture)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from armwise.core import saving


class BoundedMeans(saving.Saved):
    """Bounds on the expected rewards of arms, for rewards in [0, 1]: all hold at every moment, with chance 1 - delta.

    For X in [0, 1] with mean m, (q / m)^X ((1 - q) / (1 - m))^(1 - X) is convex in X, so its expectation is at most
    1 for every q; mixed over q by Beta(1/2, 1/2) the product over the rewards is a supermartingale at the true mean,
    which passes 1 / delta with probability at most delta (Ville). What it has passed is not the mean.
    """

    _learnt = ("_n", "_sum", "low", "high")

    def __init__(self, n_arms: int, delta: float) -> None:
        self.n_arms, self.delta = n_arms, delta
        self._n, self._sum = np.zeros(n_arms), np.zeros(n_arms)
        self.low, self.high = np.zeros(n_arms), np.ones(n_arms)

    def add(self, arm: int, reward: float) -> None:
        """One more reward of an arm."""
        self._n[arm] += 1.0
        self._sum[arm] += reward
        n, total = float(self._n[arm]), float(self._sum[arm])
        lost = n - total
        limit = math.log(self.n_arms / self.delta) - _log_beta(0.5 + total, 0.5 + lost) + _log_beta(0.5, 0.5)

        def passed(mean: float) -> bool:
            fits = (total * math.log(mean) if total else 0.0) + (lost * math.log1p(-mean) if lost else 0.0)
            return -fits > limit

        centre = min(max(total / n, 1e-9), 1.0 - 1e-9)
        # Every moment's bounds hold, so the tightest so far do: they never widen. What has not passed there has not
        # further inside.
        low, high = float(self.low[arm]), float(self.high[arm])
        if low == 0.0 or passed(low):
            self.low[arm] = max(low, _edge(passed, 0.0, centre))
        if high == 1.0 or passed(high):
            self.high[arm] = min(high, _edge(passed, 1.0, centre))


def _edge(passed: Callable[[float], bool], outside: float, inside: float) -> float:
    """The last point outside at which the mixture has passed, between a point that cannot be and one that may."""
    if not passed(outside + (1e-12 if outside == 0.0 else -1e-12)):
        return outside
    for _ in range(40):
        middle = 0.5 * (outside + inside)
        outside, inside = (middle, inside) if passed(middle) else (outside, middle)
    return outside


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
