"""What decisions earned over time, in buckets of equal width that grow coarser instead of more numerous."""

from __future__ import annotations

import math

POINTS = 160  # buckets at most
TOGETHER = 50  # rewards at least that a rate at the time is the mean of
TUNED = 500  # rewards for which the confidence sequence is narrowest


def radius(n: float, low: float, high: float, delta: float = 0.05) -> float:
    """How far the mean of n rewards in [low, high] may be from what was expected of them, at any time.

    The two-sided normal mixture (Robbins 1970; Howard, Ramdas, McAuliffe, Sekhon 2021), at its narrowest around
    ``TUNED`` rewards. It holds for all n at once, and also where the expectation changes, as it does when a service
    learns; so, unlike a sequence for one fixed mean, it is never narrowed by what held before.

    >>> [round(radius(n, 0.0, 1.0), 3) for n in (10, 100, 1000, 100_000)]
    [1.058, 0.168, 0.048, 0.006]
    """
    rho = TUNED / (2.0 * math.log(1.0 / delta) + math.log(1.0 + 2.0 * math.log(1.0 / delta)))
    return (high - low) / 2.0 * math.sqrt((n + rho) * math.log((n + rho) / (rho * delta**2))) / n


class Series:
    """Rewards by the time they were settled, in milliseconds.

    >>> series = Series()
    >>> for k in range(1000):
    ...     series.add(60_000 * k, float(k < 500))
    >>> points = series.points(0.0, 1.0)
    >>> len(points) <= POINTS, points[-1][0] == 999 * 60_000, points[-1][4], series.mean
    (True, True, 0.0, 0.5)
    """

    def __init__(self) -> None:
        self.n, self.sum = 0, 0.0
        self._width = 1000
        self._buckets: list[list[float]] = []  # place, n, sum, the last time in it; in order

    @property
    def mean(self) -> float:
        """Of all rewards.

        >>> Series().mean
        0.0
        """
        return self.sum / self.n if self.n else 0.0

    def add(self, time: int, reward: float) -> None:
        """One more, not older than the others."""
        self.n += 1
        self.sum += reward
        place = time // self._width
        if self._buckets and self._buckets[-1][0] >= place:
            last = self._buckets[-1]
            last[1], last[2], last[3] = last[1] + 1, last[2] + reward, max(last[3], time)
            return
        self._buckets.append([place, 1, reward, time])
        while len(self._buckets) > POINTS:
            self._coarsen()

    def _coarsen(self) -> None:
        self._width *= 2
        merged: list[list[float]] = []
        for place, n, total, last in self._buckets:
            if merged and merged[-1][0] == place // 2:
                merged[-1][1:] = [merged[-1][1] + n, merged[-1][2] + total, last]
            else:
                merged.append([place // 2, n, total, last])
        self._buckets = merged

    def points(self, low: float, high: float) -> list[list[float]]:
        """Per bucket: its time; the mean of all so far with the ends of its confidence sequence; the rate then; its n.

        The rate then is the mean of the bucket, together with those after it where it has too few.

        >>> Series().points(0.0, 1.0)
        []
        """
        found, n, total = [], 0.0, 0.0
        for (_, count, amount, last), rate in zip(self._buckets, self._rates()):
            n, total = n + count, total + amount
            mean, room = total / n, radius(n, low, high)
            found.append([last, mean, max(mean - room, low), min(mean + room, high), rate, count])
        return found

    def _rates(self) -> list[float]:
        rates: list[float] = []
        count = amount = 0.0
        together = 0
        for i, bucket in enumerate(self._buckets):
            count, amount, together = count + bucket[1], amount + bucket[2], together + 1
            if count >= TOGETHER or i == len(self._buckets) - 1:
                rates += [amount / count] * together
                count = amount = 0.0
                together = 0
        return rates
