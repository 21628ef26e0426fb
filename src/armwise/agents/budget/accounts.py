"""Common parts of agents under a budget: amounts per resource, checked, and costs that are never negative."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core import saving
from armwise.core.agent import Floats
from armwise.core.arguments import as_floats

_BITS = 1074  # every finite double is a whole number of 2^-1074


class ExactSums(saving.Saved):
    """Sums of amounts, one per resource, that never round, however many amounts there are and in whatever order.

    An account that must not be overdrawn cannot be a rounded sum: a thousand times 0.1 would be 100 or a little less
    or more, by the order of the additions. (The double 0.1 is above a tenth, so that a thousand of them are above 100.)
    """

    _learnt = ("units",)

    def __init__(self, size: int) -> None:
        self.size = size
        self.units = [0] * size

    def add(self, values: Any, times: int = 1) -> None:
        """Add amounts, as often as said (-1 takes them away)."""
        self.units = [mine + times * _units(value) for mine, value in zip(self.units, values)]

    def fits(self, limits: Any) -> bool:
        """Return whether every sum is at most its limit."""
        return all(mine <= _units(limit) for mine, limit in zip(self.units, limits))

    def rest(self, limits: Any) -> Floats:
        """The rest of each limit, as the largest double not above it: an amount fits if it is at most this."""
        return np.array([_below(_units(limit) - mine) for mine, limit in zip(self.units, limits)])

    @property
    def rounded(self) -> Floats:
        """The sums, each as the double nearest to it."""
        return np.array([mine / (1 << _BITS) for mine in self.units])


def _units(value: float) -> int:
    numerator, denominator = float(value).as_integer_ratio()
    return numerator << (_BITS + 1 - denominator.bit_length())


def _below(units: int) -> float:
    near = units / (1 << _BITS)  # rounded to nearest, once
    return near if _units(near) <= units else float(np.nextafter(near, -np.inf))


class BudgetSpent(ValueError):
    """The rest of a budget covers none of the arms: nothing was decided, and nothing has changed.

    >>> raise BudgetSpent("the budget 1.0 does not cover another decision")
    Traceback (most recent call last):
    ...
    armwise.agents.budget.accounts.BudgetSpent: the budget 1.0 does not cover another decision
    """


def amounts(name: str, value: Any) -> tuple[float, ...]:
    """One positive amount per resource: a number is one resource."""
    vector = np.atleast_1d(as_floats(name, value))
    if vector.ndim != 1 or not vector.size or not (np.isfinite(vector).all() and (vector > 0).all()):
        raise ValueError(f"{name} must be a finite number > 0, or one per resource, got {value!r:.80}")
    return tuple(vector.tolist())


def plain(values: tuple[float, ...]) -> float | list[float]:
    """The form in which a parameter is kept: one number as itself."""
    return values[0] if len(values) == 1 else list(values)


def refuse_negative(name: str, values: Floats | tuple[float, ...]) -> None:
    """A ValueError for a cost below zero: what a budget pays does not come back."""
    lowest = float(np.min(values))
    if lowest < 0.0:
        raise ValueError(f"{name} must not be negative, got {lowest}")


def offered(name: str, arm: int, n_arms: int) -> int:
    """The arm itself, or a ValueError where the round does not have it: no other arm may take its place."""
    if arm >= n_arms:
        raise ValueError(
            f"{name} is arm {arm}, but this round has arms 0 to {n_arms - 1}: offer it in every round, or name one "
            "that is"
        )
    return arm
