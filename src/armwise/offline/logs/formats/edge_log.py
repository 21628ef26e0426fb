"""Decisions of exported policies: lines of armwise's beacons, or Eppo's bandit events, with their outcomes."""

from __future__ import annotations

import copy
import datetime
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import LogError


class EdgeColumns(Protocol):
    """A map from contexts to rows of numbers: ``armwise.export.EppoColumns``, or a feature map of your own."""

    def rows(self, contexts: Iterable[Mapping[str, Any]]) -> Floats:
        """One row per context."""


class EdgeLog:
    """Decisions of exported policies, in the order of their time, each with its reward within ``horizon`` seconds.

    Decisions that are younger than the horizon at the end of the log are left out (``too_young`` counts them), rewarded
    or not; one without an outcome earned ``default``. A line that comes twice counts once, and of several outcomes of a
    decision the first. ``units`` are whom decisions were for: a unit that keeps its arm is one draw, so evaluate with
    ``cluster=log.units``. ``policies`` are the versions that decided.

    >>> lines = [
    ...     '{"kind": "decision", "id": "e1", "unit": "u", "time": 0, "context": {"hour": 9}, "arms": ["a", "b"],'
    ...     ' "arm": "b", "probability": 0.5, "policy": "3ab4"}',
    ...     '{"kind": "outcome", "id": "e1", "reward": 1.0, "time": 5}',
    ... ]
    >>> log = EdgeLog.from_beacons(lines, horizon=60, now=100)
    >>> log.rewards, log.units, log.policies
    (array([1.]), array(['u'], dtype='<U1'), array(['3ab4'], dtype='<U4'))
    """

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], outcomes: Mapping[Any, list[tuple[float, float]]], *, horizon: float,
        now: float | None, default: float,
    ) -> None:  # fmt: skip
        if not (isinstance(horizon, (int, float)) and 0.0 < horizon < math.inf):
            raise ValueError(f"horizon must be seconds above 0, got {horizon!r:.60}")
        found = sorted(rows, key=lambda row: row["time"])
        times = [time for each in outcomes.values() for time, _ in each]
        end = max([row["time"] for row in found] + times, default=0.0) if now is None else _number("now", now)
        self.decisions = [row for row in found if row["time"] + horizon <= end]
        self._names: list[str] | None = None
        self.too_young = len(found) - len(self.decisions)
        self.rewards = np.array(
            [_earned(row, outcomes.get(row["key"], []), horizon, default) for row in self.decisions], np.float64
        )
        self.contexts = [row["context"] for row in self.decisions]
        self.probabilities = np.array([row["probability"] for row in self.decisions], np.float64)
        self.units = np.array([str(row["unit"]) for row in self.decisions])
        self.policies = np.array([str(row["policy"]) for row in self.decisions])

    @classmethod
    def from_beacons(
        cls, source: Any, *, horizon: float, now: float | None = None, default: float = 0.0, skip: bool = False
    ) -> Self:
        """From the lines of ``event`` and ``outcome``: a file, several, or lines. Clients can send anything: a line
        that is no decision or outcome is an error, or left out with ``skip``.

        >>> EdgeLog.from_beacons(['{"kind": "outcome"}'], horizon=60)
        Traceback (most recent call last):
        ...
        armwise.offline.logs.rows.LogError: ...line 1: reward must be a number, got None
        """
        rows: dict[str, dict[str, Any]] = {}
        problems: list[str] = []
        outcomes: dict[Any, list[tuple[float, float]]] = {}
        for number, line in _lines(source):
            try:
                line = _object(line)
                if line.get("kind") == "outcome":
                    reward = _number("reward", line.get("reward"))
                    time = _number("time", line.get("time"))
                    outcomes.setdefault(_text("id", line.get("id")), []).append((time, reward))
                elif line.get("kind", "decision") == "decision":
                    row = _beacon(line)
                    rows.setdefault(row["key"], row)
                else:
                    raise ValueError(f"kind must be decision or outcome, got {line['kind']!r:.60}")
            except ValueError as error:
                problems.append(f"line {number}: {error}")
        if problems and not skip:
            raise LogError(problems)
        return cls(rows.values(), outcomes, horizon=horizon, now=now, default=default)

    @classmethod
    def from_eppo(
        cls, events: Any, outcomes: Any, *, actions: Iterable[str] | None = None, horizon: float,
        now: float | None = None, default: float = 0.0,
    ) -> Self:  # fmt: skip
        """From bandit events as Eppo's SDKs log them, and outcomes: objects of ``subject``, ``value``, ``timestamp``.

        An event has the action that was taken and its probability, not the others: ``actions`` are what was offered, or
        all that the events have. Each subject's first event of a bandit and a model counts, and its outcomes.

        >>> event = {"subject": "u", "banditKey": "b", "action": "red", "actionProbability": 0.5, "modelVersion": "3",
        ...          "timestamp": "2026-01-01T00:00:00Z", "subjectNumericAttributes": {"age": 3}}
        >>> paid = {"subject": "u", "value": 2.0, "timestamp": "2026-01-01T00:00:05Z"}
        >>> EdgeLog.from_eppo([event], [paid], horizon=60, now=2e9).rewards
        array([2.])
        """
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        problems: list[str] = []
        for number, event in _lines(events):
            try:
                event = _object(event)
                row = _eppo(event)
                first = rows.setdefault((row["unit"], event.get("banditKey"), row["policy"]), row)
                if row["time"] < first["time"]:
                    first.update(row)
            except ValueError as error:
                problems.append(f"event {number}: {error}")
        offered = sorted({row["arm"] for row in rows.values()}) if actions is None else list(actions)
        for row in rows.values():
            row["arms"] = offered
            if row["arm"] not in offered:
                problems.append(f"the action {row['arm']!r} of subject {row['unit']!r} is none of {offered}")
        came: dict[Any, list[tuple[float, float]]] = {}
        for number, each in _lines(outcomes):
            try:
                each = _object(each)
                value = _number("value", each.get("value"))
                time = _time("timestamp", each.get("timestamp"))
                came.setdefault(_text("subject", each.get("subject")), []).append((time, value))
            except ValueError as error:
                problems.append(f"outcome {number}: {error}")
        if problems:
            raise LogError(problems)
        return cls(rows.values(), came, horizon=horizon, now=now, default=default)

    def only(self, which: NDArray[np.bool_]) -> Self:
        """The decisions that a mask of them picks; all arms stay known.

        >>> EdgeLog.from_beacons([], horizon=1).only(np.zeros(0, bool)).too_young
        0
        """
        picked = copy.copy(self)
        picked._names = self.arm_names
        picked.decisions = [row for row, wanted in zip(self.decisions, which.tolist(), strict=True) if wanted]
        picked.contexts = [row["context"] for row in picked.decisions]
        for name in ("rewards", "probabilities", "units", "policies"):
            setattr(picked, name, getattr(self, name)[which])
        return picked

    def __len__(self) -> int:
        return len(self.decisions)

    @property
    def arm_names(self) -> list[str]:
        """The ids of all arms that were offered."""
        if self._names is None:
            self._names = sorted({_id(arm) for row in self.decisions for arm in row["arms"]})
        return self._names

    def log(self, columns: EdgeColumns) -> Log:
        """A log over the rows that ``columns`` makes of the contexts, with the probabilities that were logged.

        >>> import armwise as aw
        >>> line = '{"id": "e", "unit": "u", "time": 0, "context": {"age": 3}, "arms": ["a", "b"], "arm": "b",'
        >>> line += ' "probability": 0.5, "policy": "3ab4"}'
        >>> EdgeLog.from_beacons([line], horizon=1, now=9).log(aw.export.EppoColumns([{"age": 3}])).probabilities
        array([0.5])
        """
        names = self.arm_names
        if not names:
            raise ValueError(f"the log has no decisions as old as its horizon: {self.too_young} are younger")
        arms = np.array([names.index(row["arm"]) for row in self.decisions], np.int64)
        return Log(
            contexts=columns.rows(self.contexts), arms=arms, rewards=self.rewards, probabilities=self.probabilities,
            n_arms=len(names), arm_names=names,
        )  # fmt: skip

    def lessons(self) -> list[dict[str, Any]]:
        """Rows for ``Decider.warm_start``."""
        return [
            {"context": row["context"], "arms": [_flat(arm) for arm in row["arms"]], "arm": row["arm"],
             "probability": row["probability"], "reward": float(reward)}
            for row, reward in zip(self.decisions, self.rewards)
        ]  # fmt: skip


def _earned(row: Mapping[str, Any], came: list[tuple[float, float]], horizon: float, default: float) -> float:
    within = [each for each in came if row["time"] <= each[0] <= row["time"] + horizon]
    return min(within)[1] if within else default


def _lines(source: Any) -> Iterator[tuple[int, Any]]:
    """Lines and objects with their numbers: of a file, of several, of a frame, or as they are given."""
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        source = source.to_dict("records")
    number, files = 0, True
    for each in [source] if isinstance(source, (str, os.PathLike)) else source:
        # the first line is one of JSON where all are: then what looks like a name is a wrong line
        named = isinstance(each, os.PathLike) or (isinstance(each, str) and not each.lstrip().startswith("{"))
        files = files and named
        if files:
            with open(each, "rb") as file:  # a line that is not UTF-8 is one wrong line, not the end of all
                lines: Any = file.readlines()
        else:
            lines = [each]
        for line in lines:
            number += 1
            if not (isinstance(line, (str, bytes)) and not line.strip()):
                yield number, line


def _object(line: Any) -> dict[str, Any]:
    if isinstance(line, (str, bytes)):
        try:
            line = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not JSON: {error}") from None
    if not isinstance(line, Mapping):
        raise ValueError(f"expected an object, got {line!r:.60}")
    return dict(line)


def _beacon(line: Mapping[str, Any]) -> dict[str, Any]:
    arms, arm, id = line.get("arms"), line.get("arm"), line.get("id")
    ids = list(map(_arm_id, arms)) if isinstance(arms, list) else []
    if not isinstance(id, str) or arm not in ids:
        raise ValueError(f"a decision must have an id, arms, and one of them as arm, got {id!r:.40} and {arm!r:.40}")
    if len(set(ids)) < len(ids):
        raise ValueError(f"arms must be different, got {ids!r:.60}")
    context, unit = _whole("context", line.get("context")), line.get("unit")
    return {
        "key": id, "unit": id if unit is None else unit, "time": _number("time", line.get("time")), "context": context,
        "arms": arms, "arm": arm, "probability": _chance("probability", line.get("probability")),
        "policy": line.get("policy", ""),
    }  # fmt: skip


def _eppo(event: Mapping[str, Any]) -> dict[str, Any]:
    subject, action = event.get("subject"), event.get("action")
    if not isinstance(subject, str) or not isinstance(action, str):
        raise ValueError(f"subject and action must be texts, got {subject!r:.40} and {action!r:.40}")
    context: dict[str, Any] = {}
    for name in ("subjectNumericAttributes", "subjectCategoricalAttributes"):
        attributes = event.get(name) or {}
        if not isinstance(attributes, Mapping):
            raise ValueError(f"{name} must be an object, got {attributes!r:.60}")
        context |= attributes
    return {
        "key": subject, "unit": subject, "time": _time("timestamp", event.get("timestamp")), "context": context,
        "arm": action, "probability": _chance("actionProbability", event.get("actionProbability")),
        "policy": event.get("modelVersion", ""),
    }  # fmt: skip


def _arm_id(arm: Any) -> str:
    """The id of an arm of a beacon, which is a text, or an object with an id and features."""
    id, features = (arm.get("id"), arm.get("features", {})) if isinstance(arm, Mapping) else (arm, {})
    if not isinstance(id, str):
        raise ValueError(f"an arm must be a text, or an object with an id and features, got {arm!r:.60}")
    _whole("an arm's features", features)
    return id


def _whole(what: str, given: Any) -> Mapping[str, Any]:
    """An object, or a list of objects that are one together."""
    parts = given if isinstance(given, list) and given else [given]
    if not all(isinstance(part, Mapping) for part in parts):
        raise ValueError(f"{what} must be an object, or a list of objects, got {given!r:.60}")
    return {name: value for part in parts for name, value in part.items()}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, got {value!r:.60}")
    return value


def _id(arm: Any) -> Any:
    return arm.get("id") if isinstance(arm, Mapping) else arm


def _flat(arm: Any) -> Any:
    return {**_whole("features", arm.get("features", {})), "id": arm["id"]} if isinstance(arm, Mapping) else arm


def _number(name: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a number, got {value!r:.60}")
    return number


def _chance(name: str, value: Any) -> float:
    if not 0.0 < (number := _number(name, value)) <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r:.60}")
    return number


def _time(name: str, value: Any) -> float:
    try:
        moment = datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a time such as 2026-01-31T12:00:00Z, got {value!r:.60}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
