"""Sample-ratio mismatch: whether units arrive in the arms as often as their shares say, tested after every unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.core.agent import Floats

MISMATCH_RISK = 0.01  # of an alarm, ever, where units are drawn as the shares say
WEIGHT = 2000.0  # units that the stated shares count for in the prediction of the next unit's arm

CAUSES = (
    "units of one arm lost before they were counted: crashes, redirects, slow pages, filters for robots",
    "an arm that changes whether a unit is seen again, and units counted when they are seen",
    "units counted in the analysis, but not assigned by the experiment, or the other way round",
    "shares changed outside the experiment, or caches that serve one arm to all",
)

CAUSES_OF_MISSING = (
    "outcomes of one arm that are lost: a page of it that does not report, an error, a filter",
    "outcomes that come later from one arm than from another: the alarm ends when they are there",
    "zeros that are not reported, where an arm brings more: window=None promises every unit's outcome",
)


class MismatchTest:
    """The sequential multinomial test of Lindon and Malek (2022).

    Its evidence is a likelihood ratio: predictions of each unit's arm from the counts so far over its known chances. It
    exceeds 1 / ``risk`` at some time with a chance of at most ``risk`` if the chances are right, whatever they are.
    """

    def __init__(self, n_arms: int, *, risk: float = MISMATCH_RISK, shape: tuple[int, ...] = ()) -> None:
        self.n_arms, self.risk = n_arms, risk
        self.counts, self.expected = np.zeros((n_arms, *shape)), np.zeros((n_arms, *shape))
        self.evidence, self.most = np.zeros(shape), np.zeros(shape)  # logarithms, now and the most so far
        self.alarm = np.zeros(shape)  # units when the alarm was raised; 0: it was not

    def update(self, arms: Any, shares: Any) -> None:
        """Take in units in their order: the arm of each, and its chance of every arm."""
        arms, p = np.asarray(arms, dtype=np.int64), np.asarray(shares, float)
        n = arms.shape[-1]
        if n == 0:
            return
        p = np.broadcast_to(p, (*arms.shape, self.n_arms))
        seen = self.counts.sum(axis=0)
        base = WEIGHT / self.n_arms
        drawn, total, mine = np.zeros(arms.shape), np.zeros(arms.shape), np.zeros(arms.shape)
        for a in range(self.n_arms):
            here, chance = arms == a, p[..., a]
            count = np.cumsum(here, axis=-1) - here + self.counts[a][..., None]
            expected = np.cumsum(chance, axis=-1) - chance + self.expected[a][..., None]
            tilted = chance * (base + count) / (base + expected)
            total += tilted
            mine += here * tilted
            drawn += here * chance
            self.counts[a] = count[..., -1] + here[..., -1]
            self.expected[a] = expected[..., -1] + chance[..., -1]
        path = np.cumsum(np.log(mine / total) - np.log(drawn), axis=-1) + self.evidence[..., None]
        crossed = path >= math.log(1.0 / self.risk)
        first = seen + np.argmax(crossed, axis=-1) + 1
        self.alarm = np.where((self.alarm == 0) & crossed.any(axis=-1), first, self.alarm)
        self.evidence = path[..., -1]
        self.most = np.maximum(self.most, path.max(axis=-1))

    @property
    def p_value(self) -> Floats:
        """The chance of evidence as strong as the strongest so far, at any time, if the shares are right."""
        found: Floats = np.minimum(1.0, np.exp(-self.most))
        return found

    @property
    def p_now(self) -> Floats:
        """The same of the evidence as it is now: what comes later can take it back."""
        found: Floats = np.minimum(1.0, np.exp(-self.evidence))
        return found
