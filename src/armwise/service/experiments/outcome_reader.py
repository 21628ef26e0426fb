"""The numbers of an experiment from the journal: units in order, each metric's values once they are settled."""

from __future__ import annotations

import collections
import math
import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.offline.experiments.analysis import ExperimentAnalysis
from armwise.service.experiments.definition import Definition
from armwise.service.journal.events import Decision, Reward, Row, decided
from armwise.service.log.export import played

if TYPE_CHECKING:
    from armwise.service.engine.engine import Engine
    from armwise.service.journal.journal import Journal


class _Unit(NamedTuple):
    id: str
    deadline: int
    arm: int
    p: tuple[float, ...]


class OutcomeReader:
    """Folds the journal into an ``ExperimentAnalysis``; reads on from where it was.

    A metric with a window takes units in order of exposure, each when its window is over; one without takes them in
    the order of their first outcomes.
    """

    def __init__(self, engine: Engine, name: str, definition: Definition) -> None:
        self._engine, self._definition = engine, definition
        self.analysis = ExperimentAnalysis(
            definition.arms, definition.measured, risk=definition.risk, planned=definition.planned,
            start=definition.start,
        )  # fmt: skip
        self._metrics = {app: metric for metric, app in definition.applications(name).items()}
        self._goal = name
        promised = {metric.name for metric in definition.measured if metric.window is None}
        self._promised = {app for app, metric in self._metrics.items() if metric in promised}
        self._waiting: dict[str, collections.deque[_Unit]] = {app: collections.deque() for app in self._metrics}
        self._open: dict[str, dict[int, _Unit]] = {app: {} for app in self._promised}
        self._shares: dict[str, tuple[float, ...]] = {}  # of units whose other metrics' decisions follow
        self._seq, self._lock = 0, threading.Lock()
        self.exposed_at: list[int] = []  # milliseconds of the first and the last exposure

    def read(self) -> ExperimentAnalysis:
        """Take in all that is in the journal by now."""
        with self._lock:
            journal = self._engine.open_journal()
            try:
                while rows := journal.after(self._seq, 1000):
                    self._take(rows)
                    self._seq = rows[-1].seq
                now = journal.now(self._engine.now())
                for app in self._metrics:
                    if app not in self._promised:
                        self._settle(journal, app, now)
            finally:
                journal.connection.close()
            return self.analysis

    @property
    def waiting(self) -> dict[str, int]:
        """Units whose outcome is not settled yet, by metric."""
        return {
            metric: len(self._open[app]) if app in self._promised else len(self._waiting[app])
            for app, metric in self._metrics.items()
        }

    def _take(self, rows: list[Row]) -> None:
        arms, shares = [], []
        told: dict[str, list[tuple[_Unit, float]]] = {app: [] for app in self._promised}
        for row in rows:
            if row.app not in self._metrics:
                continue
            if row.is_a(Decision):
                unit = self._unit(row)
                if unit is None:  # retention dropped its assignment, whose window was shorter
                    continue
                if row.app == self._goal:
                    arms.append(unit.arm)
                    shares.append(unit.p)
                    self.exposed_at = [*self.exposed_at[:1], row.time]
                if row.app in self._promised:
                    self._open[row.app][row.seq] = unit
                else:
                    self._waiting[row.app].append(unit)
            elif row.app in self._promised and row.is_a(Reward) and isinstance(event := row.event, Reward):
                found = self._open[row.app].pop(event.decision, None)
                if found is not None and not event.late:
                    told[row.app].append((found, event.value))
        if arms:
            self.analysis.add_units(np.array(arms), np.array(shares))
        for app, pairs in told.items():
            self._add(app, [unit for unit, _ in pairs], [value for _, value in pairs])

    def _unit(self, row: Row) -> _Unit | None:
        decision = decided(row)
        if row.app == self._goal:
            self._shares[row.id] = tuple(decision.p)
            if len(self._shares) > 10_000:  # the others' follow in the same commit
                del self._shares[next(iter(self._shares))]
        shares = self._shares.get(row.id)
        arm = self._definition.arms.index(played(decision))
        return None if shares is None else _Unit(row.id, row.time + decision.window, arm, shares)

    def _settle(self, journal: Journal, app: str, now: int) -> None:
        waiting = self._waiting[app]
        while waiting and waiting[0].deadline < now:
            some: list[_Unit] = []
            while waiting and waiting[0].deadline < now and len(some) < 2000:
                some.append(waiting.popleft())
            stand = {status.id: status.outcome for status in journal.statuses([(app, unit.id) for unit in some])}
            there = [unit for unit in some if unit.id in stand]  # others were erased
            self._add(app, there, [stand[unit.id] for unit in there])

    def _add(self, app: str, units: list[_Unit], values: list[float]) -> None:
        if units:
            arms, shares = np.array([unit.arm for unit in units]), np.array([unit.p for unit in units])
            self.analysis.add_outcomes(self._metrics[app], arms, shares, np.array(values))

    def rate(self) -> float:
        """Units per second so far; NaN within the first hour."""
        span = (self.exposed_at[-1] - self.exposed_at[0]) / 1000.0 if len(self.exposed_at) == 2 else 0.0
        return float(self.analysis.mismatch.counts.sum()) / span if span >= 3600.0 else math.nan
