"""Rankings from JSON lines: VW's CCB and slates (dsjson), and the multi-slot decisions of ``armwise serve``.

A CCB line has ``c._slots`` and one outcome per slot with ``_label_cost``, ``_a`` (actions from 0, the shown one first)
and ``_p``; a slates line has actions with ``_slot_id`` (``_a`` counts within the slot) and one ``_label_cost`` for the
whole. The service writes one line per slot, all with the event's id before the separator 0x1F.
"""

from __future__ import annotations

import functools
import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from armwise.offline.logs.cohorts import WHOLE, Cohort, cohort
from armwise.offline.logs.formats import service_log
from armwise.offline.logs.formats.dsjson import _is_number, flatten, named_arms, named_context
from armwise.offline.logs.rows import LogError, WeakLogWarning

_SINGLE = "a decision of a single arm"
_MARK = "\x1f"  # between the event's id and the slot's number, in the service's log


class _Ranking:
    """One line: (arm, probability, reward, arms on offer) of each slot."""

    def __init__(self, context: Any, arms: list[str], named: tuple[Any, list[Any]], total: float | None = None) -> None:
        self.context, self.arms, self.total = context, arms, total
        self.named = named  # the context and the arms as an application names them
        self.slots: list[tuple[int, float, float, list[int]]] = []


def read(path: Any, *, features: bool = True, skip: bool = False, horizon: float | None = None) -> dict[str, Any]:
    """The rankings of a file, as ``SlateLog`` takes them, and as the application named them.

    ``skip`` leaves out lines that are no ranking. Decisions of a single arm, which a service's log has beside them, are
    left out and counted in a warning. Lists of the service are taken by age, as its decisions are (see ``cohorts``),
    with each slot's reward within ``horizon``.
    """
    rankings, problems, single, remarks = [], [], 0, list[str]()
    for number, ranking in _rankings(Path(path), horizon, remarks):
        if isinstance(ranking, _Ranking):
            rankings.append(ranking)
        elif ranking is _SINGLE:
            single += 1
        elif not skip:
            problems.append(f"line {number}: {ranking}")
    if problems:
        raise LogError(problems)
    if not rankings:
        other = ": its decisions are of single arms, read it with armwise.offline.Log.from_dsjson" if single else ""
        raise LogError([f"{path} holds no ranking{other}"])
    if single:
        warnings.warn(WeakLogWarning(f"{single:,} of {single + len(rankings):,} decisions are of single arms, and left "
                                     "out (armwise.offline.Log.from_dsjson reads them)"), stacklevel=3)  # fmt: skip
    return _arrays(rankings, features) | {"remarks": remarks, "named": [ranking.named for ranking in rankings]}


def holds_rankings_alone(path: Path) -> bool:
    """Whether every decision of a file is a ranking; a table of other columns holds none."""
    if path.suffix == ".parquet" and not service_log.is_service_log(service_log.columns(str(path))):
        return False
    found = False
    for number, line in _lines(path):
        if isinstance(line, dict) and ("_outcomes" in line or _slot_event(line, number) is not None):
            found = True
        elif not (isinstance(line, dict) and line.get("_skipLearn") is True):
            return False
    return found


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    if path.suffix == ".parquet":
        rows = service_log.table_lines(functools.partial(service_log.parquet_batches, [str(path)]))
        yield from ((number, wrong or line) for number, line, wrong in rows)
        return
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except ValueError as error:
                    yield number, f"not JSON: {error}"


def _rankings(path: Path, horizon: float | None, remarks: list[str]) -> Iterator[tuple[int, _Ranking | str]]:
    """(line number, ranking, or its fault); the service's slots are gathered by event, in their order."""
    events: dict[str, list[dict[str, Any]]] = {}
    first: dict[str, int] = {}
    for number, line in _lines(path):
        slot = _slot_event(line, number)
        if slot is not None:
            event = slot["EventId"].partition(_MARK)[0]
            events.setdefault(event, []).append(slot)
            first.setdefault(event, number)
        elif not (isinstance(line, dict) and line.get("_skipLearn") is True):
            yield number, _from_vw(line)
    chosen = _by_age(events, horizon)
    if chosen is None:
        if horizon is not None and events:
            raise ValueError("horizon is for logs of armwise 0.2 and later, which say how old each decision is")
        yield from ((first[event], _from_service(lines)) for event, lines in events.items())
        return
    if chosen.left_out or chosen.horizon < WHOLE:
        remarks.append(str(chosen).replace("decisions", "lists"))
    for (event, lines), kept in zip(events.items(), chosen.rows):
        if kept:
            yield first[event], _from_service(lines, chosen.horizon)


def _by_age(events: dict[str, list[dict[str, Any]]], horizon: float | None) -> Cohort | None:
    """Which lists are judged; None where their lines do not say how old they are, or not all were shown."""
    table = []
    for lines in events.values():
        records = [service_log.record(event) if "status" in event else None for event in lines]
        slots = [each for each in records if each is not None]
        if len(slots) < len(lines):
            return None
        table.append((slots[0].age, slots[0].window, all(s.known for s in slots), all(s.promised for s in slots)))
    if not table:
        return None
    ages, windows, known, promised = zip(*table)
    return cohort(ages, windows, known, promised, horizon)


def _from_vw(line: Any) -> _Ranking | str:
    if isinstance(line, str):
        return line
    context = line.get("c") if isinstance(line, dict) else None
    outcomes = line.get("_outcomes") if isinstance(line, dict) else None
    if (
        isinstance(context, dict)
        and outcomes is None
        and "_slots" not in context
        and _is_number(line.get("_label_cost"))
    ) or (isinstance(line, dict) and service_log.is_service_log(line)):
        return _SINGLE
    if not isinstance(context, dict) or not isinstance(context.get("_multi"), list) or not isinstance(outcomes, list):
        return "not a ranking: expected an object with 'c', its '_multi' and '_slots', and '_outcomes'"
    actions, slots = context["_multi"], context.get("_slots", [])
    if len(slots) != len(outcomes):
        return f"{len(slots)} slots, but {len(outcomes)} outcomes"
    if line.get("pdrop"):
        return f"pdrop is {line['pdrop']}: events were dropped when it was logged, so a mean over the rest is biased"
    per_slot = any("_slot_id" in action for action in actions)
    total = line.get("_label_cost")
    if per_slot and not _is_number(total):
        return "a slates event without '_label_cost', the negative of the reward"
    tags = [action.get("_tag") for action in actions]
    names = [str(tag) if tag is not None else f"#{i}" for i, tag in enumerate(tags)]
    named = named_context(context), [arm | {"id": name} for arm, name in zip(named_arms(actions), names)]
    ranking = _Ranking(context, names, named, -float(total) if per_slot else None)
    shown: list[int] = []
    for k, outcome in enumerate(outcomes):
        mine = [i for i, action in enumerate(actions) if action.get("_slot_id") == k] if per_slot else None
        offered = mine if mine is not None else [i for i in slots[k].get("_inc", range(len(actions))) if i not in shown]
        slot = _slot(outcome, offered, mine, total)
        if isinstance(slot, str):
            return f"slot {k}: {slot}"
        ranking.slots.append(slot)
        shown.append(slot[0])
    return ranking


def _slot(
    outcome: Any, offered: list[int], mine: list[int] | None, total: Any
) -> tuple[int, float, float, list[int]] | str:
    actions, p = (outcome.get(key) for key in ("_a", "_p"))
    action = actions[0] if isinstance(actions, list) and actions else actions
    probability = p[0] if isinstance(p, list) and p else p
    cost = outcome.get("_label_cost", 0.0 if mine is not None else None)
    if not isinstance(action, int) or not _is_number(probability):
        return "no '_a' and '_p', the actions and their probabilities"
    if not _is_number(cost):
        return "no '_label_cost', the negative of the reward"
    if mine is not None:
        if not 0 <= action < len(mine):
            return f"action {action}, but the slot has {len(mine)}"
        return mine[action], float(probability), 0.0, offered
    return action, float(probability), 0.0 - float(cost), sorted({*offered, action})


def _slot_event(line: Any, number: int) -> dict[str, Any] | None:
    """A slot of the service's log, in either of its formats, as an event; None of any other line."""
    if not isinstance(line, dict):
        return None
    if service_log.is_service_log(line):
        line = service_log.as_event(line) | {"EventId": str(line.get("id", number))}
    event = line.get("EventId")
    return line if isinstance(event, str) and _MARK in event and "_labelIndex" in line else None


def _from_service(events: list[dict[str, Any]], horizon: float | None = None) -> _Ranking | str:
    """The slots of one list; with a horizon, each with its reward within it."""
    events = sorted(events, key=lambda event: int(event["EventId"].partition(_MARK)[2] or 0))
    records = [None if horizon is None else service_log.record(event) for event in events]
    earned = [
        found.worth(horizon) if found is not None and horizon is not None
        else None if event["_label_cost"] is None or event.get("_skipLearn") is True else 0.0 - event["_label_cost"]
        for event, found in zip(events, records)
    ]  # fmt: skip
    settled = [float(reward) for reward in earned if reward is not None]
    if len(settled) < len(events):
        return "a slot's reward is not settled yet"
    tags = [[action["_tag"] for action in event["c"]["_multi"]] for event in events]
    names = list(dict.fromkeys(name for some in tags for name in some))
    context = events[0]["c"].get("context", events[0]["c"].get("shared", {}))
    known = {arm["id"]: arm for event in events for arm in named_arms(event["c"]["_multi"])}
    context = _without_slot(context)
    ranking = _Ranking(context, names, (context, [known[name] for name in names]))
    for event, some, reward in zip(events, tags, settled, strict=True):
        offered, shown = [names.index(name) for name in some], names.index(some[event["_labelIndex"]])
        ranking.slots.append((shown, float(event["_label_probability"]), reward, offered))
    return ranking


def _without_slot(context: Any) -> Any:
    """The context of the list: a slot's decision has its position beside it."""
    parts = context if isinstance(context, list) else list(context.values()) if set(context) == {"0", "1"} else []
    whole = [part for part in parts if not (isinstance(part, dict) and set(part) == {"slot"})]
    if not parts or len(whole) == len(parts):
        return context
    return whole[0] if len(whole) == 1 else whole


def _arrays(rankings: list[_Ranking], features: bool) -> dict[str, Any]:
    names = list(dict.fromkeys(arm for ranking in rankings for arm in ranking.arms))
    place = {name: i for i, name in enumerate(names)}
    n, L, K = len(rankings), max(len(r.slots) for r in rankings), len(names)
    actions, rewards, p = np.full((n, L), -1), np.zeros((n, L)), np.ones((n, L))
    offered = np.zeros((n, L, K), bool)
    flat = [flatten(r.context) if features else {} for r in rankings]
    columns = {name: j for j, name in enumerate(dict.fromkeys(name for row in flat for name in row))}
    contexts = np.zeros((n, len(columns)))
    for i, ranking in enumerate(rankings):
        arm = [place[name] for name in ranking.arms]
        for k, (action, probability, reward, some) in enumerate(ranking.slots):
            if not 0 <= action < len(arm):
                raise LogError([f"ranking {i}, slot {k}: action {action}, but there are {len(arm)}"])
            actions[i, k], p[i, k], rewards[i, k] = arm[action], probability, reward
            offered[i, k, [arm[j] for j in some]] = True
        for name, value in flat[i].items():
            contexts[i, columns[name]] = value
    whole = all(r.total is not None for r in rankings)
    totals = np.array([r.total for r in rankings]) if whole else rewards
    return {"contexts": contexts, "actions": actions, "rewards": totals, "probabilities": p, "n_arms": K,
            "offered": offered, "arm_names": names}  # fmt: skip


def write(log: Any, path: Any) -> None:
    """Write a log of rankings as VW's CCB: the shown arm first in ``_a``, its probability first in ``_p``.

    Where the log knows the context and the arms of each row as an application named them, they are written so.
    """
    if log.rewards.ndim == 1:
        raise ValueError("log has one reward for the whole ranking, and CCB has one for each slot")
    tags = [str(tag) for tag in (log.labels(range(log.n_arms)) if log.arm_names is None else log.arm_names)]
    opener: Any = gzip.open if Path(path).suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        for i in range(len(log)):
            slots, outcomes = [], []
            shared, actions, place = _described(log, i, tags)
            for k in np.flatnonzero(log.present[i]).tolist():
                slot: dict[str, Any] = {"slot": {"position": str(k + 1)}}
                if log.offered is not None:
                    slot["_inc"] = sorted(place[arm] for arm in np.flatnonzero(log.offered[i, k]).tolist())
                slots.append(slot)
                cost, p = 0.0 - float(log.rewards[i, k]), float(log.probabilities[i, k])
                outcomes.append({"_label_cost": cost, "_a": [place[int(log.actions[i, k])]], "_p": [p]})
            file.write(json.dumps({"c": shared | {"_multi": actions, "_slots": slots}, "_outcomes": outcomes}) + "\n")


def _described(log: Any, i: int, tags: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]], dict[int, int]]:
    """The features that row i's slots share, its actions, and the index of each arm among these."""
    if log._named is None:
        shared = {f"x{j}": float(x) for j, x in enumerate(log.contexts[i])}
        return shared, [_action(tag) for tag in tags], {arm: arm for arm in range(len(tags))}
    context, arms = log._named[i]
    parts = context if isinstance(context, list) else [context]
    shared = {name: value for part in parts for name, value in part.items()}
    number = {tag: arm for arm, tag in enumerate(tags)}
    actions = [_action(arm["id"], arm.get("features")) for arm in arms]
    return shared, actions, {number[arm["id"]]: k for k, arm in enumerate(arms)}


def _action(tag: str, features: Any = None) -> dict[str, Any]:
    return {"_tag": tag, "i": {"id": tag}, "f": features or {}}
