"""Arms that come and go: each policy is judged on the rows that offered it, with bounds for the others.

The rule: a policy's probability of arms that a row did not offer goes, in proportion, to those that it did. Where it
has none on offer nothing says what it would have done: these rows are left out, their share is told, and so is what
the value over all rows may be, if rewards lie in their range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.offline.evaluation.targets import Target
from armwise.offline.logs.log import Log
from armwise.offline.results import answers
from armwise.offline.results.estimates import Evaluation

Mask = NDArray[np.bool_]


def offered(log: Log, policies: Mapping[str, Any]) -> dict[str, Mask] | None:
    """Return per policy the rows in which it has an arm on offer; None if that is every row for all."""
    if not (isinstance(log, Log) and log.offers_vary):  # anything but a log is refused with the other settings
        return None
    targets = {name: Target(policy, log) for name, policy in policies.items()}
    contexts = any(target.needs_contexts for target in targets.values())
    found: dict[str, list[Mask]] = {name: [] for name in targets}
    for rows in log.batches(contexts=contexts):
        for name, target in targets.items():
            found[name].append(target.offered(rows))
    masks = {name: np.concatenate(parts) if parts else np.ones(0, np.bool_) for name, parts in found.items()}
    return None if all(mask.all() for mask in masks.values()) else masks


def rows_of(values: Any, which: Mask) -> Any:
    """An argument of ``evaluate`` for the rows on offer: one value per row is cut to ``which``, others stay whole."""
    if hasattr(values, "iloc"):
        return values.iloc[np.flatnonzero(which)] if len(values) == len(which) else values
    if isinstance(values, (list, tuple, np.ndarray)) and len(values) == len(which):
        return np.asarray(values)[which]
    return values


def restricted(log: Log, which: Mask, name: str) -> Log:
    """Restrict a log to the rows in which a policy was on offer."""
    if not which.any():
        raise ValueError(f"policy {name or 'given'}: none of its arms was on offer in any of the {len(which):,} rows")
    part = log.take(which)
    if not which.all():
        part._trimmed = dict(log._trimmed) | {"in which it was not on offer": int((~which).sum())}
    return part


def remark(which: Mask, judged: Evaluation) -> str:
    """Return a remark: the rows on which a policy was judged, and bounds for the others."""
    n, share = len(which), float(which.mean())
    said = f"it was on offer in {int(which.sum()):,} of {n:,} rows ({share:.0%}), and is judged on these"
    best, ends = answers.headline(judged), judged.reward_range
    if ends is None:
        return f"{said}; of the others nothing is known"
    low, high = (share * end + (1.0 - share) * edge for end, edge in zip((best.low, best.high), ends))
    return f"{said}; over all rows its value lies between {low:.4g} and {high:.4g}, if rewards lie in {list(ends)}"
