"""The log of ``armwise serve``, from JSON lines or Parquet, converted to dsjson."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from armwise.core.tools.extras import needs
from armwise.offline.logs.cohorts import CLOSED, OPEN, RULES, STATUSES, Record

ROWS = 1000  # rows of a table read at a time
_NEEDED = ("context", "arms", "index", "probability", "reward")
_TERMS = ("status", "age", "window", "default", "rule", "learn", "active")
_ASKED = (*_NEEDED, "id", "offered", "probabilities", "time", "outcomes", *_TERMS)


def is_service_log(names: Collection[str]) -> bool:
    """Return whether these are the fields of a line, or the columns of a table, that the service wrote."""
    return all(name in names for name in _NEEDED)


def as_usual(mapping: dict[str, Any], *more: Any) -> bool:
    """Return whether nothing is asked of a table but its usual columns."""
    usual = {"arms": "arm", "rewards": "reward", "probabilities": "probability"}
    return all(value == usual.get(name) for name, value in mapping.items()) and all(value is None for value in more)


def as_event(line: dict[str, Any]) -> dict[str, Any]:
    """One decision of the service as dsjson has it."""
    arms = [{"id": arm} if isinstance(arm, str) else arm for arm in line["arms"][: line.get("offered")]]
    actions: list[dict[str, Any]] = [
        {"_tag": arm.get("id"), "id": arm.get("id"), "features": arm.get("features", {})} for arm in arms
    ]
    outcomes = line.get("outcomes")
    if outcomes is not None and not (isinstance(outcomes, list) and all(isinstance(each, dict) for each in outcomes)):
        raise TypeError(f"outcomes must be a list of objects, got {outcomes!r:.80}")
    return (
        {
            "_label_cost": None if line["reward"] is None else -line["reward"],
            "_label_probability": line["probability"],
            "_labelIndex": line["index"],
            "a": list(range(1, len(actions) + 1)),
            "p": line.get("probabilities"),
            "Timestamp": line.get("time"),
            "o": outcomes,
            "c": {"context": line["context"], "_multi": actions},
        }
        | {name: line[name] for name in _TERMS if name in line}
        | {"active": line.get("active", True)}
    )


def record(event: dict[str, Any]) -> Record | None:
    """The fields of a decision in a log of ours that judges need; None for other lines and decisions never shown.

    Logs before 0.2.0 do not say how long a window is: decisions with a reward are closed, the others open.
    """
    if event.get("active") is False or not isinstance(event.get("Timestamp"), str):
        return None
    made = datetime.datetime.fromisoformat(event["Timestamp"])
    if "status" not in event:
        cost = event.get("_label_cost")
        status, rewards = (OPEN, []) if cost is None else (CLOSED, [(0.0, 0.0 - float(cost))])
        return Record(-made.timestamp(), math.inf, 0.0, "earliest", status, False, rewards, len(rewards))
    if event.get("o") is None:
        raise ValueError("outcomes is missing: what came of a decision, and when")
    age, window, default = (float(event[name]) for name in ("age", "window", "default"))
    rewards, late = [], 0
    for each in event["o"]:
        came = each.get("Timestamp") or each.get("time")
        moment = came if isinstance(came, datetime.datetime) else datetime.datetime.fromisoformat(came)
        after = (moment - made).total_seconds()
        rewards.append((after, float(each["v"] if "v" in each else each["value"])))
        late += bool(each.get("late", after > window))
    rule, status = event["rule"], event["status"]
    if rule not in RULES or status not in STATUSES:
        raise ValueError(f"rule and status must be of {', '.join((*RULES, *STATUSES))}, got {rule!r} and {status!r}")
    promised, in_time = event.get("learn") == "arrival", len(rewards) - late
    return Record(age, window, default, rule, status, promised, rewards, in_time)


def columns(path: str) -> list[str]:
    """The names of a Parquet file's columns."""
    with needs("offline"):
        import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)


def parquet_batches(paths: Sequence[str], wanted: list[str]) -> Iterator[Any]:
    """The rows of Parquet files, as Arrow has them."""
    with needs("offline"):
        import pyarrow.parquet as pq

    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            known = [name for name in wanted if name in file.schema_arrow.names]
            yield from file.iter_batches(batch_size=ROWS, columns=known)


def table_lines(
    batches: Callable[[list[str]], Iterator[Any]], names: Collection[str] = _ASKED
) -> Iterator[tuple[int, Any, str]]:
    """The rows of a table as the JSON lines have them: number from 1, line, its fault."""
    number = 0
    for batch in batches([name for name in _ASKED if name in names]):
        try:
            lines = batch.to_pylist()
        except OverflowError as error:  # such as a time of the year 292,000,000
            raise ValueError(f"the rows from {number + 1} on have a value beyond its type's range: {error}") from None
        for line in lines:
            number += 1
            yield number, *_decoded(line)


def without_open(block: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of the service's log that are read as any table is; ValueError where a decision has no reward yet."""
    if any(value is None or value != value for value in block.get("reward", np.empty(0)).tolist()):
        raise ValueError(
            "the log of armwise has open decisions, without a reward yet, and to leave them out selects by outcome: "
            "read the export as it is (JSON lines, Parquet, or a frame of it, and none of its columns by another "
            "name), which takes decisions by age; or give the rows whose age is above their window"
        )
    return block


def _decoded(line: dict[str, Any]) -> tuple[Any, str]:
    try:
        context, arms = json.loads(line["context"]), [json.loads(arm) for arm in line["arms"]]
    except (ValueError, TypeError) as error:
        return {}, f"context and arms must be JSON, as the service writes them: {error}"
    time: Any = line.get("time")
    if hasattr(time, "isoformat"):
        time = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return line | {"context": context, "arms": arms, "time": time}, ""
