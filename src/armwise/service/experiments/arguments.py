"""Arguments of callers: units, outcomes, ids, and the author and reason of a change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.core.arguments import short
from armwise.features.encoding.arms import check_id


def read_unit(unit: Any) -> str:
    """The name of a unit."""
    if not isinstance(unit, str) or not unit:
        raise ValueError(f"unit must be a text that is not empty, got {short(unit)}")
    return str(_encodable("unit", unit))


def _encodable(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be a text that UTF-8 can hold, got {short(text)}") from None
    return text


def read_value(value: Any) -> float:
    """The value of an outcome: any finite number, or whether something happened."""
    number = isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))
    if not number or not math.isfinite(value):
        raise ValueError(f"value must be a finite number, got {short(value)}")
    return float(value)


def read_outcome_id(id: Any) -> str | None:
    """The id under which an outcome counts once; None where it has none."""
    if id is None:
        return None
    if not isinstance(id, (str, int, np.integer)):
        raise ValueError(f"id must be a text, got {short(id)}")
    return check_id("the id of an outcome", str(id))


def read_metric_name(metric: Any) -> str | None:
    """The name of a metric; None is the goal."""
    if metric is not None and not isinstance(metric, str):
        raise ValueError(f"metric must be a name, got {short(metric)}")
    return metric


def read_said(by: Any, why: Any) -> tuple[str, str]:
    """Check the author and the reason of a change."""
    for name, text in (("by", by), ("why", why)):
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a text, got {short(text)}")
        _encodable(name, text)
    return by, why
