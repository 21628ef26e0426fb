"""An experiment on an engine: units are decisions, outcomes are their rewards, one application for each metric."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from armwise.core.arguments import short
from armwise.core.seeds import stream
from armwise.features.encoding.arms import check_id
from armwise.features.encoding.from_python import read_context
from armwise.offline.experiments.metric import Metric, read_split
from armwise.offline.experiments.verdict import ExperimentVerdict
from armwise.service.engine.engine import Engine
from armwise.service.engine.interface import ServedEngine
from armwise.service.experiments.arguments import (
    read_metric_name,
    read_outcome_id,
    read_said,
    read_unit,
    read_value,
)
from armwise.service.experiments.assignment import Assignment, OutcomeReceipt, Reason
from armwise.service.experiments.definition import (
    ASSIGNED,
    KEY,
    YEAR,
    Definition,
    LogLine,
    read_forced,
    read_mode,
    read_ramp,
)
from armwise.service.experiments.outcome_reader import OutcomeReader
from armwise.service.journal.errors import Conflict, Unavailable, Unknown
from armwise.service.journal.events import (
    ALERT,
    ARRIVAL,
    DEFAULT_AGENT,
    EARLIEST,
    MAX,
    MIN,
    OFF,
    SUM,
    Change,
    Creation,
    Decision,
    Reward,
    Settings,
    decided,
)
from armwise.service.journal.writes import Write, Written
from armwise.service.log.export_journal import played_arm
from armwise.service.log.retain import Erased, Retention, merge
from armwise.service.log.subjects import DECISION

MAX_BATCH = 1000  # units in one commit
MAX_REMEMBERED = 100_000  # assignments in memory
MAX_TRIES = 50  # writes that meet those of others
MIN_UNITS = 50  # units of each arm, before which an adaptive split is an equal one
MIN_GROWTH = 1.05  # growth of the settled units after which an adaptive split is computed anew
OUTSIDE = "outcomes that came to this process of units outside the experiment (never assigned, or not counted)"
TESTER = "the hash of the tester's name, in the journal's earlier changes of the experiment"
HOLDOUT = "\x1fholdout"  # the name under which units are hashed for the holdout: of no application
_SMALL = {"dim": 4, "interactions": False}  # features of applications whose model nobody asks


_creating: weakref.WeakKeyDictionary[ServedEngine, Any] = weakref.WeakKeyDictionary()  # locks
_finding = threading.Lock()


def create(engine: ServedEngine, name: str, definition: Definition) -> HostedExperiment:
    """Make the experiment, or find it as it was made: ValueError if it was made of other arms or metrics."""
    check_id("the experiment's name", name)
    if "/" in name:
        raise ValueError(f"name must have no '/', got {name!r}")
    for metric, app in (definition.applications(name) | {ASSIGNED: f"{name}/{ASSIGNED}"}).items():
        check_id(f"the experiment's name with {'/' + metric[:40]!r}", app)
    with _finding:
        lock = _creating.setdefault(engine, engine.system.lock())
    with lock:  # whoever comes second finds what the first one made
        return _create(engine, name, definition)


def _create(engine: ServedEngine, name: str, definition: Definition) -> HostedExperiment:
    if name in engine.models or name in engine.creations:
        found = HostedExperiment(engine, name)
        before = found.definition
        for what in ("arms", "metrics", "exposure", "values"):
            if getattr(before, what) != getattr(definition, what) and not (what == "metrics" and definition.unnamed):
                raise ValueError(
                    f"{what}: experiment {name!r} was made with {short(getattr(before, what))}, and now comes "
                    f"{short(getattr(definition, what))}: give the new experiment another name"
                )
        return found
    holdout = max([definition.holdout, *(each.holdout for each in definitions(engine).values())])
    forced = {_unit_id(engine, unit): arm for unit, arm in definition.forced.items()}
    created = LogLine(engine.now(), "created")
    definition = msgspec.structs.replace(definition, holdout=holdout, forced=forced, log=(created,))
    made = {}
    for metric in definition.measured:
        app = definition.applications(name)[metric.name]
        goal = app == name
        extra = {KEY: definition.plain()} if goal else {KEY: {"of": name}}
        made[app] = Creation(
            dict(DEFAULT_AGENT), {} if goal else dict(_SMALL),
            settings=msgspec.structs.replace(_settings(metric, goal), extra=extra, by_request=True),
        )  # fmt: skip
    settings = Settings(window=YEAR, extra={KEY: {"of": name}}, by_request=True, drift=OFF)
    made[f"{name}/{ASSIGNED}"] = Creation(dict(DEFAULT_AGENT), dict(_SMALL), settings=settings)
    engine.apply(made, only=False)
    return HostedExperiment(engine, name)


def _settings(metric: Metric, goal: bool) -> Settings:
    if metric.window is None:
        return Settings(window=YEAR, rule=EARLIEST, learn=ARRIVAL, drift=OFF)
    happened = MIN if goal and metric.direction == "down" else MAX  # see ``Definition.reward``
    return Settings(window=metric.window, rule=happened if metric.kind == "rate" else SUM, drift=OFF)


def definitions(engine: ServedEngine) -> dict[str, Definition]:
    """The experiments of a journal, by name."""
    found = {}
    for app, model in engine.models.items():
        if "arms" in model.settings.extra.get(KEY, {}):
            found[app] = msgspec.convert(model.settings.extra[KEY], Definition)
    return found


def is_held_out(engine: ServedEngine, unit: str) -> bool:
    """Return whether the unit is in the holdout of the journal's experiments."""
    share = max((each.holdout for each in definitions(engine).values()), default=0.0)
    return _in_holdout(engine, _unit_id(engine, unit), share)


class HostedExperiment:
    """One experiment of an engine; any thread may call, and any process that shares the journal."""

    def __init__(self, engine: ServedEngine, name: str) -> None:
        self.engine, self.name = engine, name
        self._uncounted = f"{name}/{ASSIGNED}"
        self._read: tuple[Any, Definition] | None = None
        self._known: dict[str, tuple[str, float, bool]] = {}  # arm, its probability, and whether the unit counts
        self._lock = threading.Lock()
        self._reader: OutcomeReader | None = None
        self._outside = 0  # outcomes of units that are not in the experiment, which came to this process
        self._moving: tuple[float, tuple[float, ...]] = (0.0, ())  # units when an adaptive split was computed, and it
        if KEY not in engine.model(name).settings.extra or "arms" not in engine.model(name).settings.extra[KEY]:
            raise Unknown(f"no experiment is called {name!r}: it is an application")

    @property
    def definition(self) -> Definition:
        """The current definition."""
        extra = self.engine.model(self.name).settings.extra[KEY]
        if self._read is None or self._read[0] is not extra:
            self._read = extra, msgspec.convert(extra, Definition)
        return self._read[1]

    # ------------------------------------------------------------------ units

    def unit_id(self, unit: str) -> str:
        """The id of a unit's decisions: a hash keyed with the journal's secret, so that the journal names nobody."""
        return _unit_id(self.engine, unit)

    def assign(self, units: Sequence[tuple[str, Any]], count: bool | None = None) -> list[Assignment]:
        """The arms of units, each with its context; new ones are assigned, in one commit per ``MAX_BATCH``.

        ``count``: whether they count from now on, or once they are exposed (None: as the experiment was made)."""
        found: list[Assignment] = []
        for start in range(0, len(units), MAX_BATCH):
            found += self._assign(
                units[start : start + MAX_BATCH], not self.definition.exposure if count is None else count
            )
        return found

    def _assign(self, units: Sequence[tuple[str, Any]], count: bool) -> list[Assignment]:
        made = self.definition
        read = [(read_unit(unit), *read_context(context)) for unit, context in units]
        ids = {unit: self.unit_id(unit) for unit, _, _ in read}
        if not made.stopped or made.eligible:
            self._remember(list(ids.values()))
        answers: dict[str, Assignment] = {}
        new: dict[str, tuple[bytes, Any]] = {}
        for unit, context, tokens in read:
            settled = self._settled(made, unit, ids[unit], context)
            if settled is not None:
                answers[unit] = settled
            else:
                new.setdefault(unit, (context, tokens))
        if count:
            self._count([ids[unit] for unit, answer in answers.items() if answer.counted])
        if new:
            self._assign_new(made, ids, new, answers, count)
        return [answers[unit] for unit, _, _ in read]

    def _settled(self, made: Definition, unit: str, id: str, context: bytes) -> Assignment | None:
        """The arm of a unit that is not to be drawn, or was before; None for a new one."""
        if id in made.forced and not made.stopped:
            return Assignment(made.forced[id], unit, "forced")
        if (known := self._known.get(id)) is not None:
            if made.stopped:
                return Assignment(made.stopped, unit, "stopped")
            return Assignment(known[0], unit, "assigned", known[1])
        reason: Reason
        if _in_holdout(self.engine, id, made.holdout):
            reason = "holdout"
        elif made.eligible and not made.admits(_names(context)):
            reason = "not eligible"
        elif made.stopped:
            return Assignment(made.stopped, unit, "stopped")
        elif self.engine.uniform(f"{self.name}\x1framp", id) >= made.ramp:
            reason = "outside the ramp"
        else:
            return None
        return Assignment(made.control, unit, reason)

    def prepare(self, unit: str, context: bytes, tokens: Any) -> Assignment | Write:
        """The arm of a unit that has one, or the write that assigns one; the unit counts once it is exposed."""
        made, id = self.definition, self.unit_id(read_unit(unit))
        if not made.stopped or made.eligible:
            self._remember([id])
        settled = self._settled(made, unit, id, context)
        return settled or self._prepare(context, tokens, id, _arms(made), self._shares(made))

    def prepared(self, unit: str, written: Written) -> Assignment:
        """The assignment that ``prepare`` made, once it is journaled."""
        decision = decided(written.row)
        arm, p = played_arm(decision), decision.p[decision.arm]
        self._keep(written.row.id, arm, p, False)
        return Assignment(arm, unit, "assigned", p)

    def _prepare(self, context: bytes, tokens: Any, id: str, arms: Sequence[bytes], shares: tuple[float, ...]) -> Write:
        """The assignment of a unit that counts once it is exposed."""
        shares = shares or self._asked(context, arms, id, tokens)
        return self.engine.prepare(self._uncounted, context, arms, id=id, tokens=tokens, split=shares)

    def _shares(self, made: Definition) -> tuple[float, ...]:
        """The shares of new units; none where a bandit has each unit's."""
        return () if made.mode == "bandit" else self._split(made)

    def _assign_new(
        self, made: Definition, ids: Mapping[str, str], new: Mapping[str, tuple[bytes, Any]],
        answers: dict[str, Assignment], count: bool,
    ) -> None:  # fmt: skip
        """Journal new units in one commit; another process may be quicker with some of them."""
        split, arms = self._shares(made), _arms(made)
        left = dict(new)
        for _ in range(MAX_TRIES):
            groups: dict[str, list[Write]] = {}  # by the database of their units
            firsts: dict[str, tuple[str, int]] = {}
            for unit, (context, tokens) in left.items():
                if not count:
                    writes = [self._prepare(context, tokens, ids[unit], arms, split)]
                else:
                    write = self.engine.prepare(self.name, context, arms, id=ids[unit], tokens=tokens, split=split)
                    writes = [write, *self._of_metrics(made, write)]
                group = groups.setdefault(writes[0].home, [])
                firsts[unit] = writes[0].home, len(group)
                group += writes
            written: dict[str, list[Written]] = {}
            for home, group in groups.items():
                try:
                    written[home] = self.engine.writer.write(group)
                except Conflict:  # a unit came to another process, with another context
                    self._remember([ids[unit] for unit in left if firsts[unit][0] == home])
            for unit, (home, place) in firsts.items():
                if home in written:
                    decision = decided(written[home][place].row)
                    self._keep(ids[unit], played_arm(decision), decision.p[decision.arm], count)
                if (known := self._known.get(ids[unit])) is not None:
                    answers[unit] = Assignment(known[0], unit, "assigned", known[1])
                    del left[unit]
            if not left:
                return
        raise Unavailable("other processes assign the same units: try again")

    def _asked(self, context: bytes, arms: Sequence[bytes], id: str, tokens: Any) -> tuple[float, ...]:
        """The bandit's probabilities of the arms now."""
        made: Any = self.engine.prepare(self.name, context, arms, id=id, tokens=tokens).event
        return tuple(made.p)

    def _of_metrics(self, made: Definition, first: Write) -> list[Write]:
        """The decisions that take the outcomes of the other metrics."""
        event: Any = first.event
        arm = msgspec.json.encode(made.arms[event.arm])
        others = [app for app in made.applications(self.name).values() if app != self.name]
        return [self.engine.prepare(app, b"{}", [arm], id=first.id, split=(1.0,)) for app in others]

    def _remember(self, ids: Sequence[str]) -> None:
        """Look for units that the journal has, and that are not in memory."""
        new = [id for id in dict.fromkeys(ids) if id not in self._known]
        for id, (decision, counts) in self._assigned(new).items():
            self._keep(id, played_arm(decision), decision.p[decision.arm], counts)

    def _assigned(self, ids: Sequence[str]) -> dict[str, tuple[Decision, bool]]:
        """The decisions that have these ids, from the journals that may have them, and whether the units count."""
        found: dict[str, tuple[Decision, bool]] = {}
        for keeper, some in self._keepers(ids).items():
            with keeper.reading as journal, journal.consistent_reads():
                asked = [(app, id) for app in (self._uncounted, self.name) for id in some]
                seqs: dict[str, tuple[int, bool]] = {}
                for status in sorted(journal.statuses(asked), key=lambda status: status.app == self.name):
                    seqs[status.id] = status.seq, status.app == self.name  # the one that counts, if there are two
                rows = journal.rows([seq for seq, _ in seqs.values()])
            found.update({id: (decided(rows[seq]), counts) for id, (seq, counts) in seqs.items()})
        return found

    def _keepers(self, ids: Sequence[str]) -> dict[Engine, list[str]]:
        """Ids by the journals that may have them."""
        found: dict[Engine, list[str]] = {}
        for id in ids:
            for keeper in self.engine.keepers(id):
                found.setdefault(keeper, []).append(id)
        return found

    def _keep(self, id: str, arm: str, p: float, counts: bool) -> None:
        with self._lock:
            self._known[id] = sys.intern(arm), p, counts
            while len(self._known) > MAX_REMEMBERED:
                del self._known[next(iter(self._known))]

    def expose(self, units: Sequence[str]) -> list[bool]:
        """Say that units saw their arms: from here on they count; whether each is in the experiment."""
        if not self.definition.exposure:
            raise ValueError(
                f"experiment {self.name!r} counts units when they are assigned: make it with exposure=True"
            )
        return self.count(units)

    def count(self, units: Sequence[str]) -> list[bool]:
        """Let units that were assigned count from here on; whether each is in the experiment."""
        ids = [self.unit_id(read_unit(unit)) for unit in units]
        there = self._count(ids)
        return [id in there for id in ids]

    def _count(self, ids: Sequence[str]) -> set[str]:
        """Let units that were assigned count from here on; the ids of those that are in the experiment."""
        counted = {id for id in ids if (known := self._known.get(id)) is not None and known[2]}
        left = [id for id in dict.fromkeys(ids) if id not in counted]
        for _ in range(MAX_TRIES):
            assigned = self._assigned(left)
            try:
                self._expose(assigned)
            except Conflict:  # a unit came to another process, which counts it already
                continue
            return counted | set(assigned)
        raise Unavailable("other processes assign the same units: try again")

    def _expose(self, assigned: Mapping[str, tuple[Decision, bool]]) -> None:
        made = self.definition
        groups: dict[str, list[Write]] = {}
        for id, (decision, counts) in assigned.items():
            if not counts and not made.stopped:
                arms = [bytes(arm) for arm in decision.arms]
                write = self.engine.prepare(self.name, bytes(decision.context), arms, id=id, split=decision.p)
                event: Any = write.event
                event.arm, write.seen = decision.arm, None  # as it was assigned
                event.drawn_by = self._uncounted
                groups.setdefault(write.home, []).extend([write, *self._of_metrics(made, write)])
        for group in groups.values():
            self.engine.writer.write(group)
        for id, (decision, counts) in assigned.items():
            self._keep(id, played_arm(decision), decision.p[decision.arm], counts or not made.stopped)

    def outcome(self, outcomes: Sequence[tuple[str, float, str | None, str | None]]) -> list[OutcomeReceipt]:
        """Take in outcomes, ``MAX_BATCH`` per commit: unit, value, metric (None: the goal), and an id to count once."""
        found: list[OutcomeReceipt] = []
        for start in range(0, len(outcomes), MAX_BATCH):
            found += self._outcome(outcomes[start : start + MAX_BATCH])
        return found

    def _outcome(self, outcomes: Sequence[tuple[str, float, str | None, str | None]]) -> list[OutcomeReceipt]:
        made = self.definition
        apps, goal = made.applications(self.name), made.goal.name
        read, called = [], ""  # what outcomes call the goal of an experiment that was made without metrics
        contents: dict[tuple[str, str], tuple[str, float]] = {}  # by metric and id
        for unit, told, metric, given in outcomes:
            name, value, key = read_metric_name(metric), read_value(told), read_outcome_id(given)
            name = goal if name is None else name
            self.check_outcome(name, value)
            if made.unnamed and name != goal:
                if called not in ("", name):
                    raise ValueError(f"metric must be one of {[called]}, got {short(name)}")
                called, name = name, goal
            unit = read_unit(unit)
            if key is not None and contents.setdefault((name, key), (unit, value)) != (unit, value):
                raise ValueError(f"outcomes: the id {key!r} is there twice, with other content")
            request = "" if key is None else f"outcome {key}"
            read.append(
                (
                    unit,
                    name,
                    self.engine.prepare_reward(apps[name], self.unit_id(unit), made.reward(name, value), request),
                )
            )
        groups: dict[tuple[Engine, ...], list[Write]] = {}  # by the journals that may have the unit
        there: set[tuple[str, str]] = set()
        for _, _, write in read:
            groups.setdefault(tuple(self.engine.keepers(write.id)), []).append(write)
        for keepers, group in groups.items():
            for keeper in keepers:
                with keeper.reading as journal:
                    there |= {(s.app, s.id) for s in journal.statuses([(write.app, write.id) for write in group])}
                    journal.connection.wait_until_durable()
        statuses: dict[int, Any] = {}
        for keepers, group in groups.items():
            known = [write for write in group if (write.app, write.id) in there]
            try:
                written = self._write_outcomes(known, whole=len(keepers) == 1)
            except Conflict as error:
                said = str(error)
                for unit in [unit for unit, _, write in read if write.id == error.id]:
                    said = said.replace(f"decision {error.id}", f"unit {unit!r}")
                raise ValueError(said) from None
            for write, each in written:
                late = isinstance(event := each.row.event, Reward) and event.late
                statuses[id(write)] = "repeated" if each.again or each.repeated else "late" if late else "taken"
        missing: Any = "not in the experiment"
        with self._lock:
            self._outside += len(read) - len(statuses)
        if called and statuses:
            self.change(f"outcomes are called {called}", lambda before: _name_goal(before, called))
        return [OutcomeReceipt(unit, called or name, statuses.get(id(write), missing)) for unit, name, write in read]

    def _write_outcomes(self, writes: Sequence[Write], whole: bool) -> list[tuple[Write, Written]]:
        """Write outcomes of units that were found; left out are those of a unit that was erased since.

        ``whole``: all are written, or none.
        """
        while writes:
            try:
                return list(zip(writes, self.engine.writer.write(writes), strict=True))
            except Unknown as error:
                if not (whole and error.id):
                    raise
                writes = [write for write in writes if write.id != error.id]
        return []

    def check_outcome(self, metric: str, value: float) -> None:
        """ValueError unless the experiment has this metric, and it takes this value."""
        made = self.definition
        found = [each for each in made.measured if each.name == metric]
        if not found and made.unnamed and metric != ASSIGNED:
            found = [Metric(metric)]
        if not found:
            raise ValueError(f"metric must be one of {self.definition.metric_names}, got {short(metric)}")
        if found[0].kind == "rate" and not (isinstance(value, (int, float)) and 0.0 <= value <= 1.0):
            raise ValueError(f"value of {metric!r}, a rate, must lie in [0, 1], got {short(value)}")

    def erase(self, unit: str, retentions: Sequence[Retention] = ()) -> Erased:
        """Delete a unit's assignment and outcomes; what they added to the numbers goes with the next start."""
        id, made = self.unit_id(read_unit(unit)), self.definition
        is_tester = id in made.forced
        if is_tester:
            self.force(unit, None)
        apps = [*made.applications(self.name).values(), self._uncounted]
        retentions = retentions or [Retention(engine) for engine in self.engine.each]
        with self._lock:
            self._known.pop(id, None)
        found = merge([retention.erase(app, DECISION, id) for retention in retentions for app in apps])
        with self._lock:
            self._known.pop(id, None)
        return msgspec.structs.replace(found, elsewhere=[*found.elsewhere, TESTER]) if is_tester else found

    # ------------------------------------------------------------------ the verdict, and what is made of it

    @property
    def reader(self) -> OutcomeReader:
        """The numbers, as far as they were read."""
        with self._lock:
            if self._reader is None or self._reader.definition.metrics != self.definition.metrics:
                self._reader = OutcomeReader(self.engine, self.name, self.definition)
            return self._reader

    def verdict(self) -> ExperimentVerdict:
        """The verdict on the numbers now."""
        reader, made = self.reader, self.definition
        analysis = reader.read()
        notes = []
        if made.stopped:
            notes.append(f"stopped: all get {made.stopped} but the holdout, and who is not eligible")
        if made.mode != "split":
            what = "moves towards better arms" if made.mode == "adaptive" else "is a bandit's"
            notes.append(f"the split {what}: the chances that each unit had are in the numbers")
        waiting = ", ".join(f"{n:,} for {metric}" for metric, n in reader.waiting.items() if n)
        if waiting:
            notes.append(f"units whose outcome is not settled yet: {waiting}")
        for metric, n in reader.further.items():
            notes.append(f"outcomes of {metric} that do not count, as their units had one (the first counts where a "
                         f"metric has no window): {n:,}")  # fmt: skip
        if self._outside:
            notes.append(f"{OUTSIDE}: {self._outside:,}")
        return analysis.verdict(notes, reader.closes)

    def _split(self, made: Definition) -> tuple[float, ...]:
        """The shares in force."""
        if made.mode == "split":
            return made.split
        reader, K = self.reader, len(made.arms)
        lost: tuple[type[Exception], ...] = (Unavailable, *self.engine.store.errors)
        try:
            lifts = reader.read().lifts[made.goal.name]
        except lost:  # of several databases: the others go on with the shares of before, which are journaled
            if not self._moving[1]:
                raise
            return self._moving[1]
        n = float(lifts.n)
        if not self._moving[1] or n > MIN_GROWTH * self._moving[0]:
            split = np.full(K, 1.0 / K)
            if np.all(lifts.units >= MIN_UNITS):
                drawn = stream(int(n), f"split of {self.name}").standard_normal((4000, K))
                drawn = lifts.means + np.maximum(lifts.standard_errors, 1e-12) * drawn
                best = drawn.argmax(axis=1) if made.goal.direction == "up" else drawn.argmin(axis=1)
                split = made.least + (1.0 - K * made.least) * np.bincount(best, minlength=K) / len(drawn)
            self._moving = n, tuple(split.tolist())
        return self._moving[1]

    def check_change(self, arm: str | None, mode: Any, ramp: Any, split: Any, force: Mapping[str, str | None]) -> None:
        """ValueError if one of several changes is none: then none is to be made."""
        arms = self.definition.arms
        if arm is not None:
            self._check_arm(arm)
        for value, read in ((mode, read_mode), (ramp, read_ramp)):
            if value is not None:
                read(value)
        if split is not None:
            read_split(split, arms)
        read_forced({unit: each for unit, each in force.items() if each is not None}, arms)
        for unit in force:
            read_unit(unit)

    def _check_arm(self, arm: str) -> None:
        if arm not in self.definition.arms:
            raise ValueError(f"arm must be one of {list(self.definition.arms)}, got {short(arm)}")

    def change(self, what: str, edit: Callable[[Definition], dict[str, Any]], by: str = "", why: str = "") -> None:
        """Change settings from now on, with a line in the decision log.

        ``edit`` gives what changes of the definition as it is: anew, where somebody else changed it meanwhile.
        """
        by, why = read_said(by, why)
        for _ in range(MAX_TRIES):
            before = self.definition
            line = LogLine(self.engine.now(), what, by, why)
            made = msgspec.structs.replace(before, **edit(before), log=(*before.log, line))
            extra = self.engine.model(self.name).settings.extra | {KEY: made.plain()}
            drift = ALERT if made.mode == "bandit" and not made.stopped else OFF
            try:
                change = Change(extra=extra, drift=drift)
                self.engine.configure(self.name, change, f"experiment change {len(before.log)}")
            except Conflict:  # there is a change of this number, which is not learnt here yet
                self.engine.wait_learnt()
                continue
            self._moving = 0.0, ()
            return
        raise Unavailable("others change the experiment at the same time: try again")

    def stop(self, arm: str | None = None, by: str = "", why: str = "") -> str:
        """Give one arm to all but the holdout and who is not eligible: one that is named, the verdict's, or control."""
        made = self.definition
        if arm is None:
            verdict = self.verdict()
            better = verdict.arm is not None and "harms" not in verdict.sentence
            arm = verdict.arm if better and verdict.arm is not None else made.control
            why = verdict.sentence if why == "" else why
        self._check_arm(arm)
        self.change(f"stopped with {arm}", lambda _: {"stopped": arm}, by, why)
        return arm

    def mode(self, mode: str, by: str = "", why: str = "") -> None:
        """Switch between a fixed split, one that moves towards better arms, and a bandit."""
        changes = {"mode": read_mode(mode), "stopped": ""}
        self.change(f"mode {mode}", lambda _: changes, by, why)

    def ramp(self, share: float, by: str = "", why: str = "") -> None:
        """Let this share of the eligible units take part; those that do already stay."""
        changes = {"ramp": read_ramp(share)}
        self.change(f"ramp {share:g}", lambda _: changes, by, why)

    def split(self, split: Any, by: str = "", why: str = "") -> None:
        """Assign new units with these shares."""
        shares = tuple(read_split(split, self.definition.arms).tolist())
        said = ", ".join(f"{arm} {share:g}" for arm, share in zip(self.definition.arms, shares, strict=True))
        self.change(f"split {said}", lambda _: {"split": shares}, by, why)

    def force(self, unit: str, arm: str | None, by: str = "", why: str = "") -> None:
        """Give a tester this arm, outside the numbers; None: no longer."""
        id = self.unit_id(read_unit(unit))
        if arm is not None:
            read_forced({unit: arm}, self.definition.arms)  # an error names the unit, not its hash

        def forced(made: Definition) -> dict[str, Any]:
            others = {tester: each for tester, each in made.forced.items() if tester != id}
            return {"forced": others if arm is None else read_forced(others | {id: arm}, made.arms)}

        self.change("a tester is forced no longer" if arm is None else f"forced a tester to {arm}", forced, by, why)

    def report(self) -> str:
        """The page: verdict, intervals over time, arms, log."""
        from armwise.service.experiments.report import report_html

        return report_html(self)

    def report_data(self) -> dict[str, Any]:
        """Everything that the page shows, for JSON."""
        from armwise.service.experiments.report import report_data

        return report_data(self)

    def to_dict(self) -> dict[str, Any]:
        """Settings and state, for JSON."""
        made = self.definition
        found: dict[str, Any] = {"name": self.name, "mode": made.mode, "log": []} | msgspec.to_builtins(made)
        found["state"] = made.state
        return found


def _name_goal(made: Definition, metric: str) -> dict[str, Any]:
    """The change that names the goal of an experiment that was made without metrics."""
    if not made.unnamed and made.goal.name != metric:
        raise ValueError(f"metric must be one of {made.metric_names}, got {short(metric)}")
    return {"metrics": (Metric(metric).to_dict(),)}


def _arms(made: Definition) -> list[bytes]:
    return [msgspec.json.encode(arm) for arm in made.arms]


def _unit_id(engine: ServedEngine, unit: str) -> str:
    return engine.pseudonym(f"unit\0{unit}")


def _in_holdout(engine: ServedEngine, id: str, share: float) -> bool:
    return share > 0.0 and engine.uniform(HOLDOUT, id) < share


def _names(context: bytes) -> Mapping[str, Any]:
    read = msgspec.json.decode(context)
    return read if isinstance(read, dict) else {}
