"""The numbers of an experiment from its journals: units in order, each metric's values once they are settled."""

from __future__ import annotations

import collections
import contextlib
import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.offline.experiments.analysis import ExperimentAnalysis
from armwise.offline.experiments.early import EarlyLooks
from armwise.service.experiments.definition import Definition
from armwise.service.journal.events import Decision, Reward, Row, decided
from armwise.service.journal.journal import Journal
from armwise.service.log.export_journal import played_arm

if TYPE_CHECKING:
    from armwise.service.engine.engine import Engine
    from armwise.service.engine.interface import ServedEngine

MAX_PIECE = 1000  # events that are read at once
SETTLING = 1000  # milliseconds until all events of a time can be read; those of several databases are then in order
Place = tuple[int, int]  # a journal, and the number of an event in it


class _Unit(NamedTuple):
    id: str
    place: Place
    time: int
    deadline: int
    arm: int
    p: tuple[float, ...]


class _Windowed:
    """The units of a metric with a window: they wait for one age after the other, then for the end of the window."""

    def __init__(self, looks: EarlyLooks) -> None:
        self.looks = looks
        self.ages = [round(1000.0 * age) for age in looks.ages]
        self.queues: list[collections.deque[_Unit]] = [collections.deque() for _ in range(len(self.ages) + 1)]
        self.rewards: dict[Place, list[tuple[int, float]]] = {}  # of waiting units: when, and how much

    def take(self, unit: _Unit) -> None:
        """Take in a unit that was exposed."""
        self.queues[0].append(unit)

    @property
    def n(self) -> int:
        """The number of units that wait."""
        return sum(map(len, self.queues))

    @property
    def first(self) -> _Unit | None:
        """The unit that was exposed first, of those that wait."""
        return next((queue[0] for queue in reversed(self.queues) if queue), None)

    def grow(self, now: int, worth: Callable[[list[float]], float]) -> None:
        """Let units that have reached an age be in its numbers, with what they had brought by then."""
        for k, age in enumerate(self.ages):
            queue, old = self.queues[k], []
            while queue and queue[0].time + age < now:
                old.append(queue.popleft())
            if not old:
                continue
            self.queues[k + 1] += old
            values = [
                worth([value for when, value in self.rewards.get(unit.place, ()) if when - unit.time <= age])
                for unit in old
            ]
            self.looks.add(k, *_columns(old), np.array(values))

    def closed(self, now: int, most: int) -> list[_Unit]:
        """The next units whose windows are over, which still wait."""
        return list(itertools.takewhile(lambda unit: unit.deadline < now, itertools.islice(self.queues[-1], most)))

    def drop(self, n: int) -> None:
        """Let the next units wait no longer."""
        for _ in range(n):
            self.rewards.pop(self.queues[-1].popleft().place, None)


class OutcomeReader:
    """Folds the journals into an ``ExperimentAnalysis``; reads on from where it was.

    A metric with a window takes units in order of exposure, each when its window is over; one without takes them in
    the order of their first outcomes. Events of several databases are taken in the order of their time: what the
    shares of a unit rest on comes before it.
    """

    def __init__(self, engine: ServedEngine, name: str, definition: Definition) -> None:
        self._engine, self.definition = engine, definition
        self.analysis = ExperimentAnalysis(
            definition.arms, definition.measured, risk=definition.risk, planned=definition.planned,
            start=definition.start,
        )  # fmt: skip
        self._metrics = {app: metric for metric, app in definition.applications(name).items()}
        self._goal = name
        self._rates = {metric.name for metric in definition.measured if metric.kind == "rate"}
        self._windowed = {
            app: _Windowed(self.analysis.early[metric])
            for app, metric in self._metrics.items()
            if metric in self.analysis.early
        }
        self.further: dict[str, int] = {}  # outcomes by metric, without a window, of units that had one
        self._open: dict[str, dict[Place, _Unit]] = {app: {} for app in self._metrics if app not in self._windowed}
        self._shares: dict[str, tuple[float, ...]] = {}  # of units whose other metrics' decisions follow
        self._seqs: dict[Engine, int] = {}  # how far each journal was read
        self._now, self._lock = 0, engine.system.lock()
        self.exposed_at: list[int] = []  # milliseconds of the first and the last exposure

    def read(self) -> ExperimentAnalysis:
        """Take in all that is in the journals by now."""
        with self._lock, contextlib.ExitStack() as stack:
            engines = list(self._engine.each)
            journals = [_opened(stack, engine) for engine in engines]
            self._now = min(journal.now(self._engine.now()) for journal in journals)
            # before the events: a reward that is not read yet came after it
            until = math.inf if len(journals) == 1 else self._now - SETTLING
            parts = [self._rows(part, engine, journal) for part, (engine, journal) in enumerate(zip(engines, journals))]
            ordered = itertools.takewhile(
                lambda each: each[1].time < until, heapq.merge(*parts, key=lambda each: each[1].time)
            )
            while rows := list(itertools.islice(ordered, MAX_PIECE)):
                self._take(rows)
                for part, row in rows:
                    self._seqs[engines[part]] = row.seq
                self._grow(journals, rows[-1][1].time)
            self._grow(journals, int(min(self._now, until)))
            return self.analysis

    def _rows(self, part: int, engine: Engine, journal: Journal) -> Iterator[tuple[int, Row]]:
        seq = self._seqs.get(engine, 0)
        while True:
            with journal.consistent_reads():  # events, and arms that are stored apart
                rows = journal.after(seq, MAX_PIECE)
            if not rows:
                return
            yield from ((part, row) for row in rows)
            seq = rows[-1].seq

    def _grow(self, journals: list[Journal], now: int) -> None:
        """Let units be as old as they are now, when all events until then were read."""
        for app, windowed in self._windowed.items():
            windowed.grow(now - SETTLING, _once if self._metrics[app] in self._rates else math.fsum)
            self._settle(journals, app, now)

    @property
    def waiting(self) -> dict[str, int]:
        """Units whose outcome is not settled yet, by metric."""
        return {
            metric: self._windowed[app].n if app in self._windowed else len(self._open[app])
            for app, metric in self._metrics.items()
        }

    @property
    def closes(self) -> float | None:
        """Seconds until the first window of the goal is over; None where none is open."""
        first = self._windowed[self._goal].first if self._goal in self._windowed else None
        return None if first is None else max(0.0, (first.deadline - self._now) / 1000.0)

    def _take(self, rows: list[tuple[int, Row]]) -> None:
        arms, shares = [], []
        told: dict[str, list[tuple[_Unit, float]]] = {app: [] for app in self._open}
        for part, row in rows:
            if row.app not in self._metrics:
                continue
            if row.is_a(Decision):
                unit = self._unit(part, row)
                if unit is None:  # retention dropped its assignment, whose window was shorter
                    continue
                if row.app == self._goal:
                    arms.append(unit.arm)
                    shares.append(unit.p)
                    self.exposed_at = [*self.exposed_at[:1], row.time]
                if row.app in self._open:
                    self._open[row.app][unit.place] = unit
                else:
                    self._windowed[row.app].take(unit)
            elif row.is_a(Reward) and isinstance(event := row.event, Reward) and not event.late:
                place, metric = (part, event.decision), self._metrics[row.app]
                value = self.definition.reward(metric, event.value)
                if row.app in self._windowed:
                    self._windowed[row.app].rewards.setdefault(place, []).append((row.time, value))
                elif (found := self._open[row.app].pop(place, None)) is not None:
                    told[row.app].append((found, value))
                else:
                    self.further[metric] = self.further.get(metric, 0) + 1
        if arms:
            self.analysis.add_units(np.array(arms), np.array(shares))
        for app, pairs in told.items():
            self._add(app, [unit for unit, _ in pairs], [value for _, value in pairs])

    def _unit(self, part: int, row: Row) -> _Unit | None:
        decision = decided(row)
        if row.app == self._goal:
            self._shares[row.id] = tuple(decision.p)
            if len(self._shares) > 10_000:  # the others' follow in the same commit
                del self._shares[next(iter(self._shares))]
        shares = self._shares.get(row.id)
        if shares is None:
            return None
        arm = self.definition.arms.index(played_arm(decision))
        return _Unit(row.id, (part, row.seq), row.time, row.time + decision.window, arm, shares)

    def _settle(self, journals: list[Journal], app: str, now: int) -> None:
        while some := self._windowed[app].closed(now, 2 * MAX_PIECE):
            stand: dict[Place, float] = {}  # by the decision: an erased unit may have come again, with its id
            for part, journal in enumerate(journals):
                asked = [(app, unit.id) for unit in some if unit.place[0] == part]
                for status in journal.statuses(asked) if asked else ():
                    stand[part, status.seq] = status.outcome
            self._windowed[app].drop(len(some))  # only now: a journal that cannot be read loses no unit
            there = [unit for unit in some if unit.place in stand]  # others were erased
            self._add(app, there, [self.definition.reward(self._metrics[app], stand[unit.place]) for unit in there])

    def _add(self, app: str, units: list[_Unit], values: list[float]) -> None:
        if units:
            self.analysis.add_outcomes(self._metrics[app], *_columns(units), np.array(values))

    def rate(self) -> float:
        """Units per second so far; NaN within the first hour."""
        span = (self.exposed_at[-1] - self.exposed_at[0]) / 1000.0 if len(self.exposed_at) == 2 else 0.0
        return float(self.analysis.mismatch.counts.sum()) / span if span >= 3600.0 else math.nan


def _opened(stack: contextlib.ExitStack, engine: Engine) -> Journal:
    journal = engine.open_journal()
    stack.callback(journal.connection.close)
    return journal


def _once(values: list[float]) -> float:
    return max(values, default=0.0)


def _columns(units: list[_Unit]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([unit.arm for unit in units]), np.array([unit.p for unit in units])
