"""The log of ``armwise serve``, as JSON lines or Parquet, in the terms of dsjson: both read the same."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from armwise.core.extras import needs

_NEEDED = ("context", "arms", "index", "probability", "reward")
_ASKED = (*_NEEDED, "id", "offered", "probabilities", "time", "outcomes")


def is_log(names: Collection[str]) -> bool:
    """Whether these are the fields of a line, or the columns of a table, that the service wrote.

    >>> is_log({"context", "arms", "arm", "index", "probability", "reward"}), is_log(["arm", "reward"])
    (True, False)
    """
    return all(name in names for name in _NEEDED)


def as_usual(mapping: dict[str, Any], *more: Any) -> bool:
    """Whether nothing is asked of a table but its usual columns.

    >>> as_usual({"arms": "arm"}, None), as_usual({"arms": "index"}, None), as_usual({}, 5)
    (True, False, False)
    """
    usual = {"arms": "arm", "rewards": "reward", "probabilities": "probability"}
    return all(value == usual.get(name) for name, value in mapping.items()) and all(value is None for value in more)


def as_event(line: dict[str, Any]) -> dict[str, Any]:
    """One decision of the service as dsjson has it.

    >>> as_event({"context": {}, "arms": ["a"], "index": 0, "probability": 1.0, "reward": 0.5})["_label_cost"]
    -0.5
    """
    if line["reward"] is None:  # its window is still open, or it was never shown
        return {"_skipLearn": True}
    arms = [{"id": arm} if isinstance(arm, str) else arm for arm in line["arms"][: line.get("offered")]]
    actions: list[dict[str, Any]] = [
        {"_tag": arm.get("id"), "id": arm.get("id"), "features": arm.get("features", {})} for arm in arms
    ]
    return {
        "_label_cost": -line["reward"],
        "_label_probability": line["probability"],
        "_labelIndex": line["index"],
        "a": list(range(1, len(actions) + 1)),
        "p": line.get("probabilities"),
        "Timestamp": line.get("time"),
        "o": line.get("outcomes"),
        "c": {"context": line["context"], "_multi": actions},
    }


def parquet_lines(paths: Sequence[str]) -> Iterator[tuple[int, Any, str]]:
    """The rows of Parquet files as the JSON lines have them: number from 1, line, what is wrong with it."""
    with needs("offline"):
        import pyarrow.parquet as pq

    number = 0
    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            wanted = [name for name in _ASKED if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=1000, columns=wanted):
                for line in batch.to_pylist():
                    number += 1
                    yield number, *_decoded(line)


def _decoded(line: dict[str, Any]) -> tuple[Any, str]:
    try:
        context, arms = json.loads(line["context"]), [json.loads(arm) for arm in line["arms"]]
    except (ValueError, TypeError) as error:
        return {}, f"context and arms must be JSON, as the service writes them: {error}"
    time: Any = line.get("time")
    if hasattr(time, "isoformat"):
        time = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return line | {"context": context, "arms": arms, "time": time}, ""
