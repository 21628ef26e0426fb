"""How much more one policy earns per decision than another, with an interval that is valid at any time.

Two policies are judged on the same log by inverse propensities, w_i = pi_i(arm) / p(arm), where p is what the arm was
drawn with. The term of a decision with reward r in [0, 1],

    x = (w_1 - w_2) r - b_1 (w_1 - c_1) + b_2 (w_2 - c_2) - (1 - c_2),

has the uplift as its expectation whatever happened before, for any b_1, b_2 that the past decides: weights have the
mean c, the probability that a policy gives to arms which could have been drawn. Where that is 1 nothing is unknown;
else the rest counts as earning nothing for the first and everything for the second. Both b are near the mean reward,
which takes most of the variance away, and moved so far to their safe sides, 0 and 1, as keeps x above -(C + 1), however
large the weights may be; only that side matters for a lower end. The upper end is the lower end of the two policies
exchanged.

The interval is the empirical-Bernstein confidence sequence of Howard, Ramdas, McAuliffe, Sekhon (2021), Theorem 4, with
their stitched boundary (10): it holds at all times at once, for the mean uplift so far, where policies learn too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from armwise.core.saving import Saved

C = 4.0  # rewards' ranges that one decision may speak against an uplift
ETA, POWER, ZETA = 2.0, 1.4, 3.105547  # of the stitched boundary: the epochs' ratio, h(k) = (k + 1)^s zeta(s)
K1, K2 = (ETA**0.25 + ETA**-0.25) / math.sqrt(2.0), (math.sqrt(ETA) + 1.0) / 2.0
BEGIN = 50.0  # the variance (in squared ranges) from which on the boundary is meant to be narrow


def boundary(variance: float, scale: float, delta: float) -> float:
    """What a sum of deviations, each above -scale, stays below at all times, but for a chance of ``delta``.

    >>> round(boundary(100.0, 1.0, 0.025), 1)
    42.2
    """
    v = max(variance, BEGIN)
    level = POWER * math.log(math.log(v / BEGIN) / math.log(ETA) + 1.0) + math.log(ZETA / delta)
    return math.sqrt(K1**2 * v * level + (K2 * scale * level) ** 2) + K2 * scale * level


class Weighed(NamedTuple):
    """A policy in one decision: its weight, the largest it could have been, its probability of arms with a chance.

    >>> Weighed(0.5, 2.0).covered
    1.0
    """

    weight: float
    most: float
    covered: float = 1.0


class Uplift(Saved):
    """What the first of two policies earns more than the second, decision by decision.

    ``low`` and ``high`` are the ends of the rewards; a reward beyond them moves them (and the interval then holds for
    the range so far, not for one that was known before).

    >>> uplift = Uplift()
    >>> for k in range(400):
    ...     right, wrong = Weighed(k % 2 * 2.0, 2.0), Weighed((k + 1) % 2 * 2.0, 2.0)
    ...     uplift.add(right, wrong, float(k % 2))
    >>> value, low, high = uplift.interval()
    >>> 0.5 < low < value < 1.1
    True
    """

    _learnt = ("n", "mean", "ends", "sums", "squares")

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        self.low, self.high = low, high
        self.n = 0
        self.mean = 0.5 * (low + high)  # of the rewards
        self.ends = [low, high]
        self.sums = [0.0, 0.0]  # of the terms for the lower end, and for the upper
        self.squares = [0.0, 0.0]  # of their deviations from what the past predicts

    def add(self, first: Weighed, second: Weighed, reward: float) -> None:
        """Take a decision in: the two policies, and what it earned.

        >>> uplift = Uplift()
        >>> uplift.add(Weighed(1.0, 1.0), Weighed(1.0, 1.0), 1.0); uplift.sums
        [0.0, 0.0]
        """
        low, high = self.ends = [min(self.ends[0], reward), max(self.ends[1], reward)]
        width = high - low
        gained, centre = reward - low, (self.mean - low) / width
        for side, one, two in ((0, first, second), (1, second, first)):
            b1 = min(centre, C / max(one.most, C))
            b2 = max(centre, 1.0 - C / max(two.most, C))
            known = b1 * (one.weight - one.covered) - b2 * (two.weight - two.covered) + (1.0 - two.covered)
            x = (one.weight - two.weight) * gained - width * known
            predicted = min(max(self.sums[side] / self.n, -width), width) if self.n else 0.0
            self.sums[side] += x
            self.squares[side] += (x - predicted) ** 2
        self.n += 1
        self.mean += (reward - self.mean) / (self.n + 1)  # the middle of the range counts as one

    @classmethod
    def of(cls, parts: Sequence[Uplift]) -> Uplift:
        """What several know together of the same two policies, each from decisions of its own.

        A term deviates from what its own part's past predicts, which is in the past of all: the sums stay below the
        same boundary, in whatever order the parts' decisions were settled.

        >>> one = Uplift(); one.add(Weighed(2.0, 2.0), Weighed(0.0, 2.0), 1.0)
        >>> Uplift.of([one, one]).n
        2
        """
        whole = cls(parts[0].low, parts[0].high)
        whole.n = sum(part.n for part in parts)
        whole.mean = sum(part.mean * (part.n + 1) for part in parts) / (whole.n + len(parts))
        whole.ends = [min(part.ends[0] for part in parts), max(part.ends[1] for part in parts)]
        whole.sums = [sum(part.sums[side] for part in parts) for side in (0, 1)]
        whole.squares = [sum(part.squares[side] for part in parts) for side in (0, 1)]
        return whole

    def interval(self, delta: float = 0.05) -> tuple[float, float, float]:
        """The uplift per decision so far, and the two ends that hold it at all times but for a chance of ``delta``.

        >>> Uplift().interval()
        (0.0, -1.0, 1.0)
        """
        width = self.ends[1] - self.ends[0]
        if not self.n:
            return 0.0, -width, width
        room = [width * boundary(v / width**2, C + 2.0, delta / 2.0) / self.n for v in self.squares]
        below, above = self.sums[0] / self.n, -self.sums[1] / self.n
        low, high = max(below - room[0], -width), min(above + room[1], width)
        return min(max((below + above) / 2.0, low), high), low, high
