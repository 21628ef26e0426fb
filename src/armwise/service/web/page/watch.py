"""The numbers of the live page, updated from the journals while a reader is connected.

Memory and CPU time are bounded for any application. A few numbers are kept per decision
(``log.earnings``); the compared policies read decisions again from the journal, as many as ``MAX_WORK`` seconds
per look allow; the oldest are skipped if there are more.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any

import msgspec
import numpy as np

from armwise.features.encoding.arms import read_arm
from armwise.offline.logs.cohorts import WHOLE, broken_promise, duration
from armwise.service.engine.application import rivals
from armwise.service.engine.interface import ServedEngine
from armwise.service.engine.rollout import versions
from armwise.service.journal.errors import Unavailable, Unknown
from armwise.service.journal.events import EARLIEST, Creation, Decision, Row
from armwise.service.log.earnings import MAX_DECISIONS, Earnings, Interval, Judgement
from armwise.service.model.drawing.encoded import offered
from armwise.service.model.versions import by_role
from armwise.service.web.page.feed import Feed, Source
from armwise.service.web.page.rivals import Rival, over, shown

MAX_SHOWN = 12  # decisions listed
MAX_RECENT = 500  # judged decisions in the current rate
MAX_QUEUED = 2_000  # decisions queued for the compared policies
MAX_EXPECTED = 10  # newest decisions for which the model's expectations are shown
MAX_WORK = 0.3  # seconds of CPU time per look, for reading and again for judging


class Watch:
    """The statistics of one application's newest decisions."""

    def __init__(self, engine: ServedEngine, app: str) -> None:
        self._engine, self._app = engine, app
        self._lock, self._closed = engine.system.lock(), False
        self._feed = Feed(engine, app)
        self._begin()

    def _begin(self) -> None:
        """Start with empty statistics."""
        model = self._engine.model(self._app)
        self._settings = model.settings
        self._recent: collections.deque[tuple[Source, dict[str, Any]]] = collections.deque(maxlen=MAX_SHOWN)
        self._earnings, self._read_until = Earnings(), 0
        bounds = model.settings.rule == EARLIEST and model.rewards  # a sum of rewards may exceed the range
        self._range = list(bounds or [0.0, 1.0])
        self._begin_rivals(0.0)
        self._looked_at = 0.0
        self._answer: dict[str, Any] = {}

    def _begin_rivals(self, horizon: float) -> None:
        """Start the compared policies on rewards within a horizon."""
        settings = self._engine.model(self._app).settings
        creation = self._feed.sources[0].engine.configured(self._app)[1] or Creation()
        built = rivals(msgspec.structs.replace(creation, settings=settings))
        self._rivals, self._judged_within = [Rival(name, each) for name, each in built.items()], horizon
        self._to_judge: collections.deque[tuple[Source, int, float]] = collections.deque(maxlen=MAX_QUEUED)
        self._given: set[tuple[int, int]] = set()  # decisions seen or queued
        self._worth: dict[tuple[int, int], float] = {}  # of judged decisions, as of the last look
        self._skipped = 0

    def look(self) -> dict[str, Any]:
        """Return all data of the page; recomputed at most about once a second for all readers."""
        with self._lock:
            self._keep_up()
            if not self._answer or self._engine.system.monotonic() - self._looked_at > 0.8:
                judgement = self._judgement()
                self._give(judgement)
                self._judge(self._engine.system.thread_time() + MAX_WORK)
                self._answer, self._looked_at = self._shown(judgement), self._engine.system.monotonic()
            return self._answer

    def versions(self) -> list[dict[str, Any]]:
        """Return the versions of the model, each with its uplift over the leading one."""
        with self._lock:
            self._keep_up()
            return self._versions(self._judgement())

    def _keep_up(self) -> None:
        if self._closed:
            raise Unavailable("the page was closed: load it again")
        policies = self._engine.model(self._app).settings.policies
        if self._feed.forgotten or policies != self._settings.policies:
            self._feed = Feed(self._engine, self._app)
            self._begin()

    def close(self) -> None:
        """End it: its readers are told to load the page again."""
        with self._lock:
            self._closed = True

    # ------------------------------------------------------------------ reading

    def _judgement(self) -> Judgement:
        """Return the rewards per decision as of now, or as of the time up to which events were read."""
        self._feed.look()
        now = self._engine.now()
        for source, row in self._feed.rows(self._engine.system.thread_time() + MAX_WORK):
            self._read_until = row.time
            with contextlib.suppress(ValueError):  # damage is reported elsewhere
                self._take(source, row)
        behind = any(source.unread for source in self._feed.sources)
        return self._earnings.judge(min(now, self._read_until) if behind else now, self._range)

    def _take(self, source: Source, row: Row) -> None:
        shown: dict[str, Any] = {}
        if isinstance(decision := row.event, Decision):
            if decision.among and len(self._engine.started) > 1:  # event numbers are per journal: qualify them
                known = source.engine.learner.served.get(self._app)
                roles = {} if known is None else {name: role for role, name in by_role(known, True).items()}
                decision.among = {roles.get(name, name): share for name, share in decision.among.items()}
            shown = {"seq": row.seq, "id": row.id.replace("\x1f", " "), "time": row.time,
                     "arm": read_arm(bytes(decision.arms[decision.arm])).id, "p": decision.p[decision.arm],
                     "deferred": decision.deferred}  # fmt: skip
        self._earnings.take(id(source), row)
        if shown:
            self._recent.append((source, shown))

    def _give(self, judgement: Judgement) -> None:
        """Queue newly judged decisions for the compared policies; start again if the horizon has grown."""
        if not self._rivals:
            return
        horizon = judgement.cohort.horizon
        if horizon > 2.0 * self._judged_within:
            self._begin_rivals(horizon)
        sources = {id(source): source for source in self._feed.sources}
        if len(self._given) > 4 * MAX_DECISIONS:
            self._given = {key for key in self._given if self._earnings.remembers(*key)}
        self._worth = {(journal, seq): value for journal, seq, value in judgement.judged()}
        for (journal, seq), value in self._worth.items():
            if (journal, seq) in self._given or journal not in sources:
                continue
            self._given.add((journal, seq))
            self._skipped += len(self._to_judge) == MAX_QUEUED
            self._to_judge.append((sources[journal], seq, value))

    def _judge(self, until: float) -> None:
        """Evaluate the compared policies on queued decisions, in order, within the time limit."""
        while self._rivals and self._to_judge and self._engine.system.thread_time() < until:
            source, seq, reward = self._to_judge.popleft()
            if source not in self._feed.sources:  # not readable now
                self._skipped += 1
                continue
            if (decision := _decision(source, seq)) is not None:
                for rival in self._rivals:
                    rival.follow((id(source), seq), decision, reward)

    # ------------------------------------------------------------------ what is shown

    def _shown(self, judgement: Judgement) -> dict[str, Any]:
        engine, model = self._engine, self._engine.model(self._app)
        sources, ends, mean = self._feed.sources, judgement.ends, judgement.mean()
        lately, rate = judgement.lately(MAX_RECENT)
        late, moved = judgement.late
        delays, cohort = judgement.delays(), judgement.cohort
        random, first = judgement.at_random(), judgement.the_first()
        policies = [_live(mean)] if mean.n else []
        if mean.n:
            policies += [shown("at random", random, judgement.values, ends)]
            policies += [shown("always the first arm", first, judgement.values, ends)]
        policies += [each for rival in self._rivals if (each := rival.shown(self._worth, ends))["n"] or each["warning"]]
        return {
            "application": self._app,
            "health": {
                "writes": engine.writer.healthy, "learns": engine.learning, "leader": engine.leader,
                "lag": sum(max(0, each.seq - each.engine.learner.published) for each in sources),
                "version": model.version, "databases": len(engine.started), "read": len(sources),
                "lessons": model.lessons, "refused": model.refused, "agent": repr(model.agent),
                "unread": sum(each.unread for each in sources),
            },
            "uplift": {
                "random": over(judgement.over(random), random), "first": over(judgement.over(first), first),
            },
            "drift": self._drift(),
            "versions": self._versions(judgement),
            "decisions": [
                each | {"reward": self._earnings.so_far(id(source), each["seq"], judgement.now)}
                for source, each in reversed(self._recent)
            ],
            "cohort": {
                "horizon": None if cohort.horizon == WHOLE else cohort.horizon, "said": str(cohort),
                "within": "the whole window" if cohort.horizon == WHOLE else duration(cohort.horizon),
                "n": mean.n, "left_out": cohort.left_out, "late": late, "moved": moved,
                "silent": judgement.silent, "broken": broken_promise(judgement.silent),
            },
            "rewards": {
                "n": mean.n, "mean": mean.value, "range": ends, "low": mean.low, "high": mean.high,
                "window": {"n": lately, "mean": rate}, "curve": judgement.over_time(),
            },
            "open": judgement.open(),
            "delays": {
                "points": delays.points(), "oldest": delays.oldest, "window": model.settings.window,
                "enough": delays.enough, "recommended": delays.window, "late": late, "learn": model.learns,
            },
            "arms": self._arms(judgement, self._engine.system.thread_time() + MAX_WORK / 2),
            "positions": judgement.positions(),
            "policies": policies,
            "waiting": len(self._to_judge), "skipped": self._skipped,
        }  # fmt: skip

    def _versions(self, judgement: Judgement) -> list[dict[str, Any]]:
        leader, several = self._engine.model(self._app), len(self._engine.started) > 1
        roles = {name: role for role, name in by_role(leader, True).items()} if several else {}
        found = versions(self._engine, self._app)
        for each in found[1:]:
            since = 0 if several else max(each["since"], leader.since)
            names = [roles.get(name, name) for name in (each["name"], leader.name)]
            uplift, each["unanswered"], judged = judgement.version(names[0], names[1], since)
            horizon = None if judged.horizon == WHOLE else judged.horizon
            each["uplift"] = uplift._asdict() | {"level": 0.95, "horizon": horizon}
        return found

    def _arms(self, judgement: Judgement, until: float) -> list[dict[str, Any]]:
        """Return the arms, each with the model's mean expected reward over the newest decisions that offered it."""
        expected: dict[str, list[float]] = {}
        model = self._engine.model(self._app)
        for source, each in list(self._recent)[-MAX_EXPECTED:]:
            if self._engine.system.thread_time() > until or source not in self._feed.sources:
                break
            decision = _decision(source, each["seq"])
            if decision is None:
                continue
            with contextlib.suppress(ValueError, ArithmeticError, NotImplementedError):  # the agent has no estimates
                arms = offered(decision)
                means, _ = model.estimate(bytes(decision.context), arms)
                for arm, value in zip(arms.ids, np.asarray(means, np.float64).tolist()):
                    expected.setdefault(arm, []).append(value)
        rows = judgement.arms()
        for row in rows:
            now = expected.get(row["arm"], [])
            row["expected"] = sum(now) / len(now) if now else None
        return rows

    def _drift(self) -> dict[str, Any]:
        model, alarms = self._engine.model(self._app), []
        for source in self._feed.sources:  # event numbers are per journal
            own = source.engine.learner.served.get(self._app, model)
            for seq, kept in own.drift.alarms[-3:]:
                moment = None
                with contextlib.suppress(Unknown, ValueError):
                    moment = source.row(int(seq)).time
                alarms.append({"event": int(seq), "time": moment, "kept": kept})
        alarms = sorted(alarms, key=lambda alarm: alarm["time"] or 0)[-3:]
        return {"setting": model.settings.drift, "evidence": model.drift.evidence, "alarms": alarms}


def _decision(source: Source, seq: int) -> Decision | None:
    try:
        event = source.row(seq).event
    except (Unknown, ValueError):  # compacted meanwhile, or damaged
        return None
    return event if isinstance(event, Decision) else None


def _live(mean: Interval) -> dict[str, Any]:
    few = f"too few decisions answer the question: {mean.n}" if mean.n < 30 else ""
    return {"name": "live", "value": mean.value, "uplift": 0.0, "low": 0.0, "high": 0.0, "n": mean.n,
            "ess": float(mean.n), "warning": few}  # fmt: skip
