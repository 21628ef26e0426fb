"""The reward of a decision, for every evaluation: cohorts by age, never by outcome.

An application reports clicks and is silent about their lack. So a decision is *open* (its window runs, nothing came),
*provisional* (something came, and more may) or *closed* (nothing more can come). A judge takes all decisions that are
at least as old as a horizon, clicked or not, and counts of each what came within the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from armwise.core.agent import Floats

OPEN, PROVISIONAL, CLOSED = STATUSES = ("open", "provisional", "closed")
WHOLE = math.inf  # a horizon: the whole window of each decision, and what came late
MIN_CLOSED = 300  # decisions as old as their window that are judged by it, however many newer ones there are
_COMPOSE: dict[str, Callable[[Sequence[float]], float]] = {
    "earliest": lambda values: values[0],
    "latest": lambda values: values[-1],
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "max": max,
    "min": min,
}
RULES = tuple(_COMPOSE)


class Record(NamedTuple):
    """The data of a decision that an evaluation needs; times in seconds."""

    age: float
    window: float
    default: float
    rule: str
    status: str
    promised: bool  # that every outcome is reported, zeros too
    rewards: Sequence[tuple[float, float]]  # (age of the decision when it came, value), in order
    in_time: int  # how many of the rewards, the first ones, came before the decision was closed

    @property
    def known(self) -> bool:
        """Whether its reward is final."""
        return self.status == CLOSED or (self.rule == "earliest" and bool(self.rewards))

    def worth(self, horizon: float = WHOLE) -> float:
        """Return the reward within the horizon, by the rule for several rewards; the default reward if none came."""
        reach = WHOLE if horizon >= self.window else horizon
        values = [value for age, value in self.rewards if age <= reach]
        return _COMPOSE[self.rule](values) if values else self.default

    @property
    def silent(self) -> bool:
        """Return whether an outcome was promised and never came."""
        return self.promised and self.status == CLOSED and not self.rewards

    def late(self, horizon: float = WHOLE) -> bool:
        """Return whether a reward within the horizon came after the decision was closed."""
        return any(horizon >= self.window or age <= horizon for age, _ in self.rewards[self.in_time :])


class Cohort(NamedTuple):
    """The decisions that are judged, and their horizon."""

    horizon: float  # seconds, or ``WHOLE``
    rows: np.ndarray  # (n,) of bool
    promised: bool = False  # whether they are those before the first outcome that was promised and has not come

    @property
    def left_out(self) -> int:
        """The number of decisions that are not judged."""
        return int((~self.rows).sum())

    def __str__(self) -> str:
        of = f"{int(self.rows.sum()):,} decisions"
        if self.promised:
            said, why = f"what {of} earned whose outcome was reported", "no older than the oldest one that was not"
            why += " reported (learn is 'arrival')"
        elif self.horizon == WHOLE:
            said, why = f"what {of} earned in their whole window", "younger than their window"
        else:
            within = duration(self.horizon)
            said, why = f"what {of} earned within {within}, rewarded or not", f"younger than {within}"
        return said + (f"; {self.left_out:,} left out as {why}" if self.left_out else "")


def cohort(ages: Any, windows: Any, known: Any, promised: Any, horizon: float | None = None) -> Cohort:
    """Select the decisions that are at least as old as the horizon.

    Without a horizon it is the whole window where half of the decisions, or ``MIN_CLOSED``, are that old (a burst of
    new ones does not shorten it), else the median age. Younger decisions are taken only where the outcome of every
    decision is known; or, where every outcome is promised, and none is missing of those whose window is over, those
    before the first one that has not come, if these are half of all: a promise that is not kept selects nothing.
    """
    age, window = np.asarray(ages, np.float64), np.asarray(windows, np.float64)
    sure, kept = np.asarray(known, np.bool_), np.asarray(promised, np.bool_)
    if horizon is not None:
        if not (isinstance(horizon, (int, float)) and horizon > 0.0):
            raise ValueError(f"horizon must be seconds above 0, got {horizon!r:.60}")
        found = _as_old(age, window, sure, horizon)
        if len(age) and not found.rows.any() and horizon < WHOLE:
            raise ValueError(
                f"horizon is {duration(horizon)}, but the oldest decision is {duration(float(age.max()))} old: "
                "nothing is known of so long a time yet"
            )
        return found
    whole = _as_old(age, window, sure, WHOLE)
    closed = len(age) - whole.left_out
    if not len(age) or not whole.left_out:
        return whole
    reported = before_unknown(age, sure)
    if kept.all() and 2 * int(reported.rows.sum()) >= len(age):
        return reported._replace(promised=True)
    if 2 * closed >= len(age) or closed >= MIN_CLOSED:
        return whole
    return _as_old(age, window, sure, float(np.sort(age)[len(age) // 2]))


def cohort_of(records: Sequence[Record], horizon: float | None = None) -> Cohort:
    """``cohort`` of decisions, none of which needs to be old enough."""
    kept = all(each.promised and not each.silent for each in records)
    table = np.array([(each.age, each.window, each.known) for each in records]).reshape(-1, 3)
    return cohort(table[:, 0], table[:, 1], table[:, 2] > 0.0, np.full(len(table), kept), horizon)


def _as_old(age: Floats, window: Floats, known: Any, horizon: float) -> Cohort:
    young = np.where(horizon < window, age < horizon, age <= window)  # a window is over when its last moment is
    rows = ~young | known if known.all() else ~young
    return Cohort(WHOLE if horizon >= window.max(initial=0.0) else horizon, rows)


def before_unknown(ages: Any, known: Any) -> Cohort:
    """The decisions older than the oldest one whose outcome is not known, where a log does not say more."""
    age, sure = np.asarray(ages, np.float64), np.asarray(known, np.bool_)
    return Cohort(WHOLE, age > age[~sure].max(initial=-np.inf))


def broken_promise(silent: int) -> str:
    """Return a warning if promised outcomes did not come within their window; else ""."""
    if not silent:
        return ""
    return (
        f"learn is 'arrival', which promises every outcome, zeros too, but none came of {silent:,} decisions whose "
        "window is over: use learn='close', which learns again from the start"
    )


def late_rewards(n: int) -> str:
    """Return a remark on decisions that were rewarded late; "" where there are none."""
    if not n:
        return ""
    who = "1 decision was rewarded after it was" if n == 1 else f"{n:,} decisions were rewarded after they were"
    return f"{who} closed (by the end of its window, or a final reward); that counts here, and was not learnt"


def duration(seconds: float) -> str:
    """Format a duration in a readable unit."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size or (unit == "h" and seconds >= size):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
