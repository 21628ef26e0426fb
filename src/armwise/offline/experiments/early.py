"""A metric while its windows are open: values within fixed ages of the units, a cohort by age."""

from __future__ import annotations

from typing import Any

from armwise.offline.experiments.lifts import LiftSequence
from armwise.offline.experiments.metric import Metric

STEPS = (1024, 256, 64, 16, 4)  # the ages are the window divided by these
MIN_AGE = 1.0  # seconds


class EarlyLooks:
    """The lifts of one metric within each of some ages, which are fixed before the first outcome.

    A unit is in the numbers of an age once it is that old, whatever came: never because something came. The ages share
    ``alpha``, the risk of each side of each arm's lift, so that all of their intervals hold at once, at all times.
    """

    def __init__(
        self, metric: Metric, n_arms: int, *, alpha: float, planned: float, start: int, shape: tuple[int, ...] = ()
    ) -> None:
        window = metric.window or 0.0
        self.ages = tuple(window / step for step in STEPS if window / step >= MIN_AGE)
        self.lifts = [
            LiftSequence(
                n_arms, alpha=alpha / len(self.ages), cap=metric.limit, planned=planned, variance=metric.variance,
                start=start, shape=shape,
            )
            for _ in self.ages
        ]  # fmt: skip

    def add(self, k: int, arms: Any, shares: Any, values: Any) -> None:
        """Take in what units had brought when they were as old as the age number ``k``, in order of exposure."""
        self.lifts[k].update(arms, shares, values)

    def reached(self, exposed: float) -> int | None:
        """The greatest age that half of the exposed units have reached, else the least age; None: no unit has one."""
        counts = [float(lifts.n) for lifts in self.lifts]
        old = [k for k, n in enumerate(counts) if n >= 0.5 * exposed]
        return None if not any(counts) else old[-1] if old else 0
