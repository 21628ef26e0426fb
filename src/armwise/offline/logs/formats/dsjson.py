"""Vowpal Wabbit's decision logs (dsjson): one JSON object a line, read and written; and our service's own log, read.

Features are flattened with their namespaces: a number ``{"User": {"age": 30}}`` becomes the feature ``User.age``, a
string ``{"User": {"geo": "UK"}}`` the indicator ``User.geo=UK``, a list of numbers one feature a place; keys that begin
with an underscore are VW's own. Shared features make the contexts (n, d), those of the actions the arm features
(n, K, d); absent ones are 0. A row's arm is the position of its action; rows with fewer actions offer fewer arms.
The tags (``_tag``) of
actions are the arms' names, wherever they stand, if every action has one.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.logs.cohorts import WHOLE, Cohort, Record, before_unknown, broken_promise, cohort_of, late_rewards
from armwise.offline.logs.formats import service_log
from armwise.offline.logs.rows import Ints, LogBlock, LogError

if TYPE_CHECKING:
    from armwise.offline.logs.log import Log

_SLOTS = (
    "decisions of several slots: read the file with armwise.offline.SlateLog.from_dsjson, and judge a policy with "
    "armwise.offline.evaluate_slates"
)
MAX_UNITED = 500  # different arms of a log that are told apart by their names; above, by their places
_MAX_NUMBERS = 20_000_000  # numbers in a block of arm features


class Events:
    """The rows of a log of events, a line each; the first pass finds the features, so that blocks of rows can follow.

    ``features=False`` reads only arms, probabilities and rewards. ``skip`` passes over lines that are not decisions
    with an outcome (they are errors otherwise, each with its line number). Events marked ``_skipLearn`` are left out
    of both: they were never activated. Of our own logs decisions are taken by age: those at least ``horizon`` seconds
    old, each with what it earned within them (see ``cohorts``).
    """

    in_memory = False
    logged_by = "an agent"

    def __init__(
        self, path: Any, *, features: bool = True, skip: bool = False, max_features: int = 10_000,
        horizon: float | None = None,
    ) -> None:  # fmt: skip
        self._path, self._features, self._skip = Path(path), features, skip
        self.rows_left_out: dict[str, int] = {}  # why, and how many; known after a pass
        self.cohort, self._late, self._silent = self._by_age(horizon)  # None of logs that are not ours
        self.remarks: list[str] = self._remarks()
        self.shared_names: dict[str, int] = {}
        self.arm_feature_names: dict[str, int] = {}
        self.n_arms, self.has_probabilities = 1, True
        self._has_support = True  # whether every event has the probabilities of all its actions
        self.n_rows: int | None
        n_rows = 0
        tags: list[Any] | None = []
        union: dict[str, int] | None = {}
        fewest = 1 << 60
        costs: list[list[float]] = []
        problems: list[str] = []
        slots: list[int] = []  # lines of several slots
        for number, event, wrong in self._events():
            if wrong == _SLOTS:
                slots.append(number)
                continue
            if wrong:
                problems.append(f"line {number}: {wrong}")
                continue
            n_rows += 1
            self.n_arms = max(self.n_arms, len(event["c"]["_multi"]))
            tags = _agreed(tags, event["c"]["_multi"])
            union, fewest = _united(union, event["c"]["_multi"]), min(fewest, len(event["c"]["_multi"]))
            costs.append(_cost(event))
            self.has_probabilities = self.has_probabilities and _probability(event) is not None
            self._has_support = self._has_support and _distribution(event) is not None
            if features:
                for name in flatten(event["c"]):
                    self.shared_names.setdefault(name, len(self.shared_names))
                for action in event["c"]["_multi"]:
                    for name in flatten(action):
                        self.arm_feature_names.setdefault(name, len(self.arm_feature_names))
                if len(self.shared_names) + len(self.arm_feature_names) > max_features:
                    raise ValueError(
                        f"{path} has more than {max_features:,} different features: read it with features=False, or "
                        "give max_features="
                    )
        if slots:  # the same of every such line
            problems.append(f"{len(slots):,} of {len(slots) + n_rows + len(problems):,} lines (the first is line "
                            f"{slots[0]}) are {_SLOTS}")  # fmt: skip
        if problems:
            raise LogError(problems)
        self.n_rows = n_rows
        self.arm_names = _names(tags)
        self._places: dict[str, int] | None = None  # of arms by name, where they change places from row to row
        if tags is None and union:
            self._places, self.arm_names, self.n_arms = union, list(union), len(union)
        self.offers_vary = n_rows > 0 and fewest < self.n_arms
        table = _table(costs)
        self.costs = None if np.isnan(table).all() else table  # NaN where nobody said what a decision cost

    def decisions(self) -> Iterator[dict[str, Any]]:
        """Every row with the names it was logged with: context, arms, arm, probability, reward, and cost if known."""
        for _, event, _ in self._events():
            yield _named(event)

    def positions(self, tag: str) -> Ints:
        """The index of the action with this tag in each row, for logs in which arms change places; -1: missing."""
        tags = ([a.get("_tag") for a in event["c"]["_multi"] if isinstance(a, dict)] for _, event, _ in self._events())
        return np.array([row.index(tag) if tag in row else -1 for row in tags], np.int64)

    def _lines(self) -> Iterator[tuple[int, Any, str]]:
        """(line number, its content, its fault)."""
        opener: Any = gzip.open if self._path.suffix == ".gz" else open
        with opener(self._path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    try:
                        yield number, json.loads(line), ""
                    except ValueError as error:
                        yield number, {}, f"not JSON: {error}"

    def _by_age(self, horizon: float | None) -> tuple[Cohort | None, int, int]:
        """The decisions of our own log that are judged, how many were rewarded late, and of how many no outcome came
        though it was promised."""
        found = [each for _, event, unread in self._read() if not unread and (each := _record(event)) is not None]
        if not found:
            if horizon is not None:
                raise ValueError("horizon is for the logs of armwise, which say how old each decision is")
            return None, 0, 0
        if all(each.window < WHOLE for each in found):
            chosen = cohort_of(found, horizon)
        elif not (chosen := before_unknown([r.age for r in found], [r.known for r in found])).rows.any():
            raise ValueError(f"{self._path} does not say how old its decisions are, and to leave out those without a "
                             "reward would select by outcome: export it again")  # fmt: skip
        late = sum(r.late(chosen.horizon) for r, kept in zip(found, chosen.rows) if kept)
        return chosen, late, sum(each.silent for each in found)

    def _remarks(self) -> list[str]:
        if self.cohort is None:
            return []
        aged = self.cohort.left_out or self.cohort.horizon < WHOLE or self._late
        said = [f"judged by age: {self.cohort}" if aged else "", late_rewards(self._late), broken_promise(self._silent)]
        return [each for each in said if each]

    def _read(self) -> Iterator[tuple[int, Any, str]]:
        """(line number, event in the terms of dsjson, the line's fault)."""
        for number, line, unread in self._lines():
            if isinstance(line, dict) and service_log.is_service_log(line):
                try:
                    line = service_log.as_event(line)
                except (TypeError, AttributeError) as error:
                    line, unread = None, unread or f"not a decision of the service: {error}"
            yield number, line, unread

    def _events(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        """(line number, event, its fault); lines to be left out are left out."""
        left_out: Counter[str] = Counter()
        judged = iter(()) if self.cohort is None else iter(self.cohort.rows)
        for number, event, unread in self._read():
            if self.cohort is not None and not unread and (found := _record(event)) is not None:
                if not next(judged):
                    left_out["younger than the horizon"] += 1
                    continue
                event = event | {"_label_cost": 0.0 - found.worth(self.cohort.horizon), "_skipLearn": False}
            if isinstance(event, dict) and (event.get("_skipLearn") is True or event.get("active") is False):
                left_out["never shown (_skipLearn)"] += 1
                continue
            wrong = unread or _wrong(event)
            if wrong and self._skip:
                left_out["that are no decisions with an outcome"] += 1
            else:
                yield number, event, wrong
        self.rows_left_out = dict(left_out)

    def batches(self, size: int, contexts: bool) -> Iterator[LogBlock]:
        wanted = contexts and self._features
        if wanted:
            size = max(1, min(size, _MAX_NUMBERS // (self.n_arms * max(1, len(self.arm_feature_names)))))
        start, events = 0, []
        for _, event, _wrong_or_empty in self._events():
            events.append(event)
            if len(events) == size:
                yield self._rows(events, start, wanted)
                start, events = start + size, []
        if events:
            yield self._rows(events, start, wanted)

    def _places_of(self, event: dict[str, Any]) -> list[int]:
        """Which arm of the log each action of an event is."""
        actions = event["c"]["_multi"]
        if self._places is None:
            return list(range(len(actions)))
        return [self._places[action["_tag"]] for action in actions]

    def _rows(self, events: list[dict[str, Any]], start: int, features: bool) -> LogBlock:
        n = len(events)
        places = [self._places_of(event) for event in events]
        available = np.zeros((n, self.n_arms), np.bool_)
        for i, here in enumerate(places):
            available[i, here] = True
        shared = np.zeros((n, len(self.shared_names))) if features and self.shared_names else None
        own = np.zeros((n, self.n_arms, len(self.arm_feature_names))) if features and self.arm_feature_names else None
        for i, event in enumerate(events):
            if shared is not None:
                for name, value in flatten(event["c"]).items():
                    shared[i, self.shared_names[name]] = value
            if own is not None:
                for arm, action in zip(places[i], event["c"]["_multi"]):
                    for name, value in flatten(action).items():
                        own[i, arm, self.arm_feature_names[name]] = value
        support = np.zeros((n, self.n_arms), np.bool_) if self._has_support else None
        if support is not None:
            for i, event in enumerate(events):
                for arm, p in _distribution(event) or ():
                    support[i, places[i][arm]] = p > 0.0
        times = [event.get("Timestamp") for event in events]
        return LogBlock(
            arms=np.array([here[_arm(event)] for event, here in zip(events, places)], np.int64),
            rewards=np.array([0.0 - float(event["_label_cost"]) for event in events]),
            n_arms=self.n_arms, contexts=shared, arm_features=own,
            probabilities=np.array([_probability(e) for e in events], np.float64) if self.has_probabilities else None,
            available=None if available.all() else available, support=support,
            timestamps=np.array(times, dtype=object) if any(times) else None, start=start,
        )  # fmt: skip


class EventTable(Events):
    """A log from a table that the decision service wrote, in batches as Arrow has them, read again in each pass."""

    def __init__(
        self, batches: Callable[[list[str]], Iterator[Any]], names: Sequence[str], horizon: float | None = None
    ) -> None:
        self._batches, self._names = batches, names
        super().__init__("the table", horizon=horizon)

    def _lines(self) -> Iterator[tuple[int, Any, str]]:
        return service_log.table_lines(self._batches, self._names)


def _record(event: Any) -> Record | None:
    """The fields of a decision in a log of ours that judges need; None for any other line."""
    if not isinstance(event, dict) or "active" not in event:  # a name that VW does not have
        return None
    try:
        return service_log.record(event)
    except (KeyError, TypeError, AttributeError, OverflowError, ValueError):  # faults are reported where it is read
        return None


def _cost(event: dict[str, Any]) -> list[float]:
    """The cost of a decision, per resource, where all its outcomes within the window tell it; otherwise nothing."""
    outcomes = [o for o in event.get("o") or () if isinstance(o, dict) and not o.get("late")]
    costs = [o["cost"] for o in outcomes if o.get("cost") is not None]
    rows = [cost if isinstance(cost, list) else [cost] for cost in costs]
    if len({len(row) for row in rows}) != 1 or not all(_is_number(number) for row in rows for number in row):
        return []
    return [float(sum(numbers)) for numbers in zip(*rows)]


def _table(costs: list[list[float]]) -> Floats:
    """(n,) or, in several resources, (n, m); a row in fewer resources than others is not known."""
    m = max(map(len, costs), default=0)
    table = np.array([row if len(row) == m else [np.nan] * m for row in costs]).reshape(len(costs), m)
    return table[:, 0] if m == 1 else table


def _named(event: dict[str, Any]) -> dict[str, Any]:
    """One event in the application's words: a context of names, arms with ids and features."""
    arms, arm, cost = named_arms(event["c"]["_multi"]), _arm(event), _cost(event)
    return {
        "context": named_context(event["c"]), "arms": arms, "arm": arms[arm]["id"], "probability": _probability(event),
        "reward": 0.0 - float(event["_label_cost"]),
    } | ({} if not cost else {"cost": cost[0] if len(cost) == 1 else cost})  # fmt: skip


def named_context(context: dict[str, Any]) -> Any:
    """The features that an event's actions share, by name."""
    own = {name: value for name, value in context.items() if not name.startswith("_")}
    for whole in ("shared", "context"):  # as our service writes it: the context as it came
        if set(own) == {whole} and isinstance(own[whole], dict):
            return own[whole]
    return own


def named_arms(actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The actions of an event as arms with ids and features."""
    arms = []
    for i, action in enumerate(actions):
        features = {name: value for name, value in action.items() if not name.startswith("_")}
        for written in ("f", "features"):
            if isinstance(features.get(written), dict) and set(features) <= {"i", "id", written}:
                features = features[written]
        arms.append({"id": str(action.get("_tag") or i), "features": features})
    return arms


def _agreed(tags: list[Any] | None, actions: Sequence[Any]) -> list[Any] | None:
    """The tag of each position, as long as every row says the same; None from where one does not."""
    found = [action.get("_tag") if isinstance(action, dict) else None for action in actions]
    if tags is None or any(a != b for a, b in zip(tags, found)):
        return None
    return found if len(found) > len(tags) else tags


def _united(union: dict[str, int] | None, actions: Sequence[Any]) -> dict[str, int] | None:
    """The place of each tag of all rows, as long as every action has one of its own and there are not too many."""
    found = [action.get("_tag") if isinstance(action, dict) else None for action in actions]
    if union is None or len(set(found)) < len(found) or not all(isinstance(tag, str) for tag in found):
        return None
    for tag in map(str, found):
        union.setdefault(tag, len(union))
    return union if len(union) <= MAX_UNITED else None


def _names(tags: list[Any] | None) -> list[str] | None:
    """Tags as the arms' names: strings, all different, and more than the arms' numbers."""
    if not tags or not all(isinstance(tag, str) for tag in tags) or len(set(tags)) < len(tags):
        return None
    return None if tags == [str(i) for i in range(len(tags))] else tags


def _wrong(event: Any) -> str:
    """Why this is not a decision with an outcome; empty if it is one."""
    if not isinstance(event, dict) or not isinstance(event.get("c"), dict) or "_multi" not in event["c"]:
        return "not a decision: expected an object with 'c' and its '_multi'"
    if not isinstance(event["c"]["_multi"], list) or not event["c"]["_multi"]:
        return "'_multi' must list at least one action"
    if "_outcomes" in event:
        return _SLOTS
    if not _is_number(event.get("_label_cost")):
        return "no '_label_cost', the negative of the reward"
    if event.get("pdrop"):
        return f"pdrop is {event['pdrop']}: events were dropped when it was logged, so a mean over the rest is biased"
    arm = _arm(event)
    if not 0 <= arm < len(event["c"]["_multi"]):
        return f"the chosen action is number {arm + 1}, but there are {len(event['c']['_multi'])}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _arm(event: dict[str, Any]) -> int:
    """The chosen action, from 0; -1 if the event does not say."""
    if isinstance(event.get("_labelIndex"), int):
        return int(event["_labelIndex"])
    if isinstance(event.get("_label_Action"), int):
        return int(event["_label_Action"]) - 1
    actions = event.get("a")
    return int(actions[0]) - 1 if isinstance(actions, list) and actions else -1


def _probability(event: dict[str, Any]) -> float | None:
    value = event.get("_label_probability")
    if value is None and isinstance(event.get("p"), list) and event["p"]:
        value = event["p"][0]  # aligned to "a", which has the chosen action first
    return float(value) if value is not None and _is_number(value) else None


def _distribution(event: dict[str, Any]) -> list[tuple[int, float]] | None:
    """The probability of every action, as (action from 0, probability) pairs; None if the event does not say."""
    actions, p, n = event.get("a"), event.get("p"), len(event["c"]["_multi"])
    if not (isinstance(actions, list) and isinstance(p, list) and len(actions) == len(p) == n):
        return None
    if not all(_is_number(each) for each in p) or set(actions) != set(range(1, n + 1)):
        return None
    return [(action - 1, float(each)) for action, each in zip(actions, p, strict=True)]


def flatten(features: Any, prefix: str = "") -> dict[str, float]:
    """VW's JSON features as a flat dictionary of numbers."""
    found: dict[str, float] = {}
    for key, value in features.items():
        if key.startswith("_"):
            continue
        name = f"{prefix}{key}"
        if isinstance(value, bool):
            found |= {name: 1.0} if value else {}
        elif _is_number(value):
            found[name] = float(value)
        elif isinstance(value, str):
            found[f"{name}={value}"] = 1.0
        elif isinstance(value, dict):
            found |= flatten(value, f"{name}.")
        elif isinstance(value, list):
            for i, item in enumerate(value):
                found |= flatten(item if isinstance(item, dict) else {str(i): item}, f"{name}.")
    return found


def line(
    *, event_id: str, arm: int, reward: float, probabilities: Sequence[float], context: dict[str, Any],
    actions: Sequence[dict[str, Any]], timestamp: str | None = None, cost: float | list[float] | None = None,
) -> str:  # fmt: skip
    """One event as VW reads it. The labels come first: VW ignores without a word those that follow the features.

    ``probabilities`` has one number an action; ``actions`` their features, ``_tag`` (the id) among them.
    """
    order = [arm, *(a for a in range(len(actions)) if a != arm)]
    event: dict[str, Any] = {
        "_label_cost": 0.0 - float(reward),
        "_label_probability": float(probabilities[arm]),
        "_label_Action": arm + 1,
        "_labelIndex": arm,
        "o": [{"v": float(reward), "EventId": event_id} | ({} if cost is None else {"cost": cost})],
    }
    if timestamp is not None:
        event["Timestamp"] = timestamp
    event |= {
        "Version": "1",
        "EventId": event_id,
        "a": [a + 1 for a in order],
        "c": {**context, "_multi": list(actions)},
        "p": [float(probabilities[a]) for a in order],
        "VWState": {"m": "N/A"},
    }
    return json.dumps(event, allow_nan=False)


def write(log: Log, path: Any) -> None:
    """One line a row. The log knows only the chosen arm's probability: the rest is shared out evenly in ``p``."""
    if not log.has_probabilities:
        raise ValueError("the log has no probabilities, and VW drops a label without one: estimate them first")
    opener: Any = gzip.open if Path(path).suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        for rows in log.batches():
            for i in range(len(rows)):
                cost = None if log.costs is None else log.costs[rows.start + i].tolist()
                if np.isnan(np.asarray(cost, np.float64)).any():  # of a log that says it of some rows only
                    cost = None
                file.write(_row_line(rows, i, log.arm_names, cost) + "\n")


def _row_line(rows: LogBlock, i: int, names: list[Any] | None, cost: float | list[float] | None) -> str:
    offered = np.arange(rows.n_arms) if rows.available is None else np.flatnonzero(rows.available[i])
    arm = int(np.searchsorted(offered, rows.arms[i]))
    p = float(rows.probabilities[i])  # type: ignore[index]
    others = (1.0 - p) / max(len(offered) - 1, 1)
    context: dict[str, Any] = {}
    if rows.contexts is not None and rows.contexts.ndim == 2:
        context["x"] = {f"x{j}": float(v) for j, v in enumerate(rows.contexts[i])}
    elif rows.contexts is not None and rows.contexts.ndim == 1:
        context["x"] = {"key": str(rows.contexts[i])}
    own = rows.contexts[i] if rows.contexts is not None and rows.contexts.ndim == 3 else _own(rows, i)
    actions: list[dict[str, Any]] = []
    for a in offered:
        action: dict[str, Any] = {"_tag": str(a if names is None else names[a])}
        action["arm"] = {f"a{a}": 1} if own is None else {f"f{j}": float(v) for j, v in enumerate(own[a])}
        actions.append(action)
    time = None if rows.timestamps is None else str(rows.timestamps[i])
    return line(event_id=f"row-{rows.start + i}", arm=arm, reward=float(rows.rewards[i]),
                probabilities=[p if a == arm else others for a in range(len(offered))], context=context,
                actions=actions, timestamp=time, cost=cost)  # fmt: skip


def _own(rows: LogBlock, i: int) -> Any:
    if rows.arm_features is None:
        return None
    return rows.arm_features if rows.arm_features.ndim == 2 else rows.arm_features[i]
