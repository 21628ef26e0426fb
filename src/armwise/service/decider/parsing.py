"""Parse and check the arguments of ``Decider`` and ``Client``."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from armwise.features.encoding.from_python import read_context, read_named_arms
from armwise.offline.logs.log import Log
from armwise.offline.logs.slate_log import SlateLog
from armwise.service.decider.decided import Decided, Ranked
from armwise.service.engine.requests.ranking import DEFAULT_SLOTS, read_ranking
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import MARK, SlotsRequest
from armwise.service.journal.events import MAX_MAGNITUDE, Decision
from armwise.service.journal.writes import canonical


def read_request(request: Any, encoded: Callable[[Any], Any] | None = None) -> ParsedRequest:
    """Parse one request of a batch; ``encoded`` transforms its context first, if given."""
    if not isinstance(request, Mapping):
        raise ValueError(f"a request must be a dictionary with context, arms and id, got {request!r:.60}")
    if strange := set(request) - {"context", "arms", "id"}:
        raise ValueError(f"a request has context, arms and id, got {sorted(map(str, strange))[0]!r}")
    id = read_id(request.get("id"))
    context = request.get("context")
    text, tokens = read_context(context if encoded is None else encoded(context))
    return ParsedRequest(text, tokens, read_named_arms(request.get("arms", ())), id)


def read_requests(requests: Any, encoded: Callable[[Any], Any] | None = None) -> list[ParsedRequest]:
    """Parse a batch of requests; an id may repeat with the same content."""
    asked = [read_request(each, encoded) for each in rows("requests", requests, "a list of dictionaries")]
    named: dict[str, ParsedRequest] = {}
    for each in asked:
        if each.id is not None:
            before = named.setdefault(each.id, each)
            if before is not each and _content(before) != _content(each):
                raise ValueError(f"requests: {each.id!r} is asked for twice, with other content")
    return asked


def read_rankings(requests: Any, encoded: Callable[[Any], Any] | None = None) -> list[SlotsRequest]:
    """Parse a batch of lists to fill."""
    found = []
    for request in rows("requests", requests, "a list of dictionaries"):
        if not isinstance(request, Mapping):
            raise ValueError(f"a request must be a dictionary with context, arms and k, got {request!r:.60}")
        if strange := set(request) - {"context", "arms", "k", "id", "pinned", "at_most"}:
            raise ValueError(
                f"a request has context, arms, k, id, pinned and at_most, got {sorted(map(str, strange))[0]!r}"
            )
        context, id = request.get("context"), read_id(request.get("id"))
        text, _ = read_context(context if encoded is None else encoded(context))
        arms = read_named_arms(request.get("arms", ()))
        k = request.get("k", DEFAULT_SLOTS)
        found.append(read_ranking(text, arms, k, id, request.get("pinned"), request.get("at_most")))
    ids = [asked.id for asked in found if asked.id is not None]
    if len(set(ids)) < len(ids):
        raise ValueError("requests: an id is asked for twice")
    return found


def read_list_id(id: Any, cost: Any) -> str:
    """Check the id of a list, which takes no cost."""
    name = id.id if isinstance(id, Ranked) else id
    if not isinstance(name, str):
        raise ValueError(f"id must be a list's id, or the list itself, got {name!r:.60}")
    if cost is not None:
        raise ValueError("cost must be left out: it is a decision's, and a list is several")
    return name


def _content(asked: ParsedRequest) -> bytes:
    return canonical(Decision(msgspec.Raw(asked.context), asked.arms.raws, [], 0, 0, 1, 0.0))


def read_id(id: Any) -> str | None:
    """Check the requested id of a decision, if any."""
    if id is not None and not isinstance(id, str):
        raise ValueError(f"id must be text, got {id!r:.60}")
    return id


def read_pairs(rewards: Any) -> list[tuple[str, float, Any]]:
    """Parse rewards of several decisions, each with its cost or None."""
    wanted, found = "pairs of an id and a reward", []
    for i, row in enumerate(rows("rewards", rewards, wanted)):
        if not isinstance(row, (tuple, list)) or len(row) not in (2, 3):
            raise ValueError(f"rewards must be {wanted}, got {row!r:.60} at position {i}")
        found.append((*read_reward(row[0], row[1]), row[2] if len(row) == 3 else None))
    return found


def rows(what: str, given: Any, wanted: str, length: int | None = None) -> list[Any]:
    """Return a list of rows of the given length, or raise ValueError that names the argument."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise ValueError(f"{what} must be {wanted}, got {type(given).__name__} {given!r:.60}")
    found = list(given)
    for i, row in enumerate(found if length is not None else ()):
        if not isinstance(row, (tuple, list)) or len(row) != length:
            raise ValueError(f"{what} must be {wanted}, got {row!r:.60} at position {i}")
    return found


def read_decision(decision: Any) -> tuple[bytes, list[bytes]]:
    """Return the context and the arms of an answered decision."""
    if isinstance(decision, Ranked):
        raise ValueError("decision must be one slot of a list: explain(ranked[0]) is of the first")
    if not isinstance(decision, Decided) or not decision.offered:
        raise ValueError(f"decision must be what decide answered, got {type(decision).__name__} {decision!r:.60}")
    return decision.context, decision.arms


def rewards_slots(value: Any) -> bool:
    """Whether a reward is one of a list: by arm, by slot, or a value per slot."""
    return isinstance(value, (Mapping, list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def read_reward(id: Any, value: Any) -> tuple[str, float]:
    """Return a reward and the id of its decision."""
    name = id.id if isinstance(id, Decided) else id
    if not isinstance(name, str):
        raise ValueError(f"id must be a decision's id, or the decision itself, got {name!r:.60}")
    if type(value) is float and -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:
        return name, value
    try:
        number = float("" if isinstance(value, (str, bytes)) else value)
    except (TypeError, ValueError):
        raise ValueError(f"reward must be a number, got {value!r:.60}") from None
    if number != number:
        raise ValueError("reward must be a number, got NaN")
    if not -MAX_MAGNITUDE <= number <= MAX_MAGNITUDE:
        raise ValueError(f"reward must be a number of at most {MAX_MAGNITUDE:g} in magnitude, got {number}")
    return name, number


def read_cost(cost: Any) -> float | list[float]:
    """Check the cost that a caller of ``Client`` gives: one number or one per resource."""
    try:
        values = np.asarray(cost, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"cost must be a number, or a list with one number per resource, got {type(cost).__name__} {cost!r:.60}"
        ) from None
    if not (np.abs(values) <= MAX_MAGNITUDE).all():
        raise ValueError(f"cost must be finite numbers of at most {MAX_MAGNITUDE:g} in size, got {cost!r:.60}")
    found: float | list[float] = values.tolist()
    return found


class _Named(msgspec.Struct):
    EventId: str = ""


def read_log(lines: Iterable[bytes], horizon: float | None = None) -> Log | SlateLog:
    """Lines of dsjson as a log, which reads them from a file whenever it is asked for rows; of lists alone, a SlateLog.

    Where there are decisions and lists, the slots of lists are decisions among the others.
    """
    folder = tempfile.TemporaryDirectory(prefix="armwise-")
    path = Path(folder.name) / "log.dsjson"
    try:
        with path.open("wb") as file:
            lists, name = True, msgspec.json.Decoder(_Named)
            for line in lines:
                file.write(line + b"\n")
                lists = lists and MARK in name.decode(line).EventId
        if lists and path.stat().st_size:
            slates = SlateLog.from_dsjson(path, horizon=horizon)
            folder.cleanup()
            return slates
        log = Log.from_dsjson(path, horizon=horizon) if path.stat().st_size else Log.from_dsjson(path)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(log, folder.cleanup)
    return log
