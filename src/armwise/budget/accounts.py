"""What the agents under a budget share: amounts per resource, checked, and costs that are never negative."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.agent import Floats
from armwise.arguments import as_floats

# Sums of many costs round: an account that must not be overdrawn stays this share of it below.
ROUNDING = 1e-12


class BudgetSpent(ValueError):
    """The rest of a budget covers none of the arms: nothing was decided, and nothing has changed.

    >>> raise BudgetSpent("the budget 1.0 does not cover another decision")
    Traceback (most recent call last):
    ...
    armwise.budget.accounts.BudgetSpent: the budget 1.0 does not cover another decision
    """


def amounts(name: str, value: Any) -> tuple[float, ...]:
    """One positive amount per resource: a number is one resource.

    >>> amounts("budget", 3), amounts("budget", [1.0, 2.0])
    ((3.0,), (1.0, 2.0))
    """
    vector = np.atleast_1d(as_floats(name, value))
    if vector.ndim != 1 or not vector.size or not (np.isfinite(vector).all() and (vector > 0).all()):
        raise ValueError(f"{name} must be a finite number > 0, or one per resource, got {value!r:.80}")
    return tuple(vector.tolist())


def plain(values: tuple[float, ...]) -> float | list[float]:
    """As a parameter is kept: one number as itself.

    >>> plain((3.0,)), plain((1.0, 2.0))
    (3.0, [1.0, 2.0])
    """
    return values[0] if len(values) == 1 else list(values)


def refuse_negative(name: str, values: Floats | tuple[float, ...]) -> None:
    """A ValueError for a cost below zero: what a budget pays does not come back.

    >>> refuse_negative("cost", (0.5, -1.0))
    Traceback (most recent call last):
    ...
    ValueError: cost must not be negative, got -1.0
    """
    lowest = float(np.min(values))
    if lowest < 0.0:
        raise ValueError(f"{name} must not be negative, got {lowest}")
