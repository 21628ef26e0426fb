"""Read logged decisions for a warm start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import msgspec

from armwise.features.encoding.from_python import read_named_arms, to_json
from armwise.service.journal.events import Decision, Lessons


def read_lessons(log: Any) -> Lessons:
    """A log, several that follow each other (as ``fit_log`` takes them), or rows with context, arms, arm, probability
    and reward.
    """
    rows = log
    if hasattr(log, "decisions"):
        rows = log.decisions()
    elif isinstance(log, (list, tuple)) and log and all(hasattr(each, "decisions") for each in log):
        rows = chain.from_iterable(each.decisions() for each in log)
    if not isinstance(rows, Iterable) or isinstance(rows, (str, bytes, Mapping)):
        raise ValueError(f"log must be an offline.Log, or rows with context, arms, arm, probability and reward, "
                         f"got {type(log).__name__}")  # fmt: skip
    found = Lessons([], [])
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"log, row {i}: expected a dictionary, got {type(row).__name__} {row!r:.60}")
        try:
            decision, reward = _lesson(row)
        except ValueError as error:
            raise ValueError(f"log, row {i}: {error}") from None
        found.decisions.append(decision)
        found.rewards.append(reward)
    return found


def _lesson(row: Mapping[str, Any]) -> tuple[Decision, float]:
    for name in ("arms", "arm", "probability", "reward"):
        if name not in row:
            raise ValueError(f"{name} is missing; expected context, arms, arm, probability, reward")
    arms = read_named_arms(row["arms"])
    if row["arm"] not in arms.ids:
        raise ValueError(f"arm {row['arm']!r} is not one of its arms {list(arms.ids)}")
    p, arm = _number("probability", row["probability"]), arms.ids.index(row["arm"])
    if not 0.0 < p <= 1.0:
        raise ValueError(f"probability must lie in (0, 1], got {p}")
    rest = (1.0 - p) / max(1, len(arms.ids) - 1)
    chances = [p if k == arm else rest for k in range(len(arms.ids))]
    context = msgspec.Raw(to_json("context", row.get("context")))
    return Decision(context, list(arms.raws), chances, arm, 0, 1, 0.0), _number("reward", row["reward"])


def _number(name: str, value: Any) -> float:
    try:
        number = float("" if isinstance(value, (str, bytes)) else value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r:.60}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number
