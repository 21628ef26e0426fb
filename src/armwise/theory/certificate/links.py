"""Links of generalised linear rewards, E[r | x] = mean(x . theta), and how steep they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from armwise.core.agent import Floats


@dataclass(frozen=True)
class Link:
    """An increasing ``mean`` with its derivative ``slope``, within ``low`` > 0 and ``high`` wherever x . theta is."""

    mean: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 < self.low <= self.high < np.inf:
            raise ValueError(f"a link needs 0 < low <= high, got {self.low} and {self.high}")


def _slope(u: Floats) -> Floats:
    p = expit(u)
    return np.asarray(p * (1.0 - p))


# Of log-odds; low is not used, because its likelihood is self-concordant: |slope'| <= slope.
LOGISTIC = Link(expit, _slope, low=1e-300, high=0.25)
