"""SLOPE: choose among estimators ordered from low bias to low variance (Su et al. 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import Floats


def slope(values: Any, widths: Any) -> int:
    """The last candidate whose interval [v - 2 c, v + 2 c] still meets those of all candidates before it (Lepski).

    The candidates go from low bias to high; a width that grows again is taken as no better than the one before.
    """
    v: Floats = np.asarray(values, np.float64)
    c = np.minimum.accumulate(np.asarray(widths, np.float64))
    if not len(v) or v.shape != c.shape:
        raise ValueError(f"values and widths must have one number for each candidate, got {v.shape} and {c.shape}")
    low, high = np.maximum.accumulate(v - 2 * c), np.minimum.accumulate(v + 2 * c)
    meet = low <= high + 1e-15
    return len(v) - 1 if meet.all() else max(int(np.argmin(meet)) - 1, 0)
