"""What the web page shows, kept up to date from the journals while somebody looks: numbers, and no decisions.

Memory and work are bounded whatever the applications are like. Of a decision that waits for its reward a few numbers
are remembered; the policies to compare with read theirs again from the journal, as many as ``WORK`` seconds allow per
look, and the oldest are left out where there are more.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from typing import Any

import msgspec

from armwise.features.encoding.arms import read_arm
from armwise.service.engine.application import rivals
from armwise.service.engine.engine import Engine
from armwise.service.engine.roster import versions
from armwise.service.errors import Unavailable, Unknown
from armwise.service.journal.events import EARLIEST, Creation, Decision, Row
from armwise.service.web.page.feed import Feed, Source
from armwise.service.web.page.rivals import Rival, Tally, at_random, made, the_first
from armwise.service.web.page.series import Series, radius

SHOWN = 12  # decisions in the list
WINDOW = 500  # settled decisions of the windowed rate
JUDGED = 2_000  # settled decisions that wait for the policies to compare with
WORK = 0.3  # seconds of processor time for reading, and again for judging, per look


class Watch:
    """The newest decisions of one application, and what they say.

    >>> from armwise.service.journal.sqlite import SQLite
    >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
    >>> engine.start()
    >>> _ = engine.decide("shop", b"{}", [b'"a"'], id="e1")
    >>> watch = Watch(engine, "shop")
    >>> [shown["arm"] for shown in watch.look()["decisions"]]
    ['a']
    >>> watch.close(); engine.stop()
    """

    def __init__(self, engine: Engine, app: str) -> None:
        self._engine, self._app = engine, app
        self._lock, self._closed = threading.Lock(), False
        self._feed = Feed(engine, app)
        self._begin()

    def _begin(self) -> None:
        """Know nothing yet."""
        model = self._engine.model(self._app)
        self._settings = model.settings
        self._recent: collections.deque[tuple[Source, dict[str, Any]]] = collections.deque(maxlen=SHOWN)
        self._arms: collections.deque[str] = collections.deque(maxlen=2000)
        self._series = Series()
        self._window: collections.deque[float] = collections.deque(maxlen=WINDOW)
        bounds = model.settings.rule == EARLIEST and model.rewards  # a sum may lie beyond
        self._range = list(bounds or [0.0, 1.0])
        self._random, self._first = Tally("at random", self._range), Tally("always the first arm", self._range)
        creation = self._feed.sources[0].engine.configured(self._app)[1] or Creation()
        built = rivals(msgspec.structs.replace(creation, settings=model.settings))
        self._rivals = [Rival(name, each, self._range) for name, each in built.items()]
        self._to_judge: collections.deque[tuple[Source, int, float]] = collections.deque(maxlen=JUDGED)
        self._skipped = 0
        self._looked_at = 0.0
        self._answer: dict[str, Any] = {}

    def look(self) -> dict[str, Any]:
        """Everything that the page shows; read anew at most about once a second, for however many look."""
        with self._lock:
            if self._closed:
                raise Unavailable("the page's session with the journal was closed: load the page again")
            policies = self._engine.model(self._app).settings.policies
            if self._feed.forgotten or policies != self._settings.policies:
                self._feed.close()
                self._feed = Feed(self._engine, self._app)
                self._begin()
            if not self._answer or time.monotonic() - self._looked_at > 0.8:
                self._feed.look()
                self._read(time.thread_time() + WORK)
                self._judge(time.thread_time() + WORK)
                self._answer, self._looked_at = self._shown(), time.monotonic()
            return self._answer

    def close(self) -> None:
        """Let go of the journals."""
        with self._lock:
            self._closed = True
            self._feed.close()

    # ------------------------------------------------------------------ reading

    def _read(self, until: float) -> None:
        for source, row in self._feed.rows(until):
            with contextlib.suppress(ValueError):  # what is damaged is said elsewhere
                self._take(source, row)

    def _take(self, source: Source, row: Row) -> None:
        if isinstance(decision := row.event, Decision):
            arm = read_arm(bytes(decision.arms[decision.arm])).id
            source.waiting[row.seq] = made(row.time, decision)
            shown = {"seq": row.seq, "id": row.id.replace("\x1f", " "), "time": row.time, "arm": arm,
                     "p": decision.p[decision.arm], "reward": None, "deferred": decision.deferred}  # fmt: skip
            self._recent.append((source, shown))
            self._arms.append(arm)
            return
        lesson = row.lesson
        if lesson is None or (it := source.waiting.pop(lesson[0], None)) is None:
            return
        seq, reward = lesson
        for of, shown in self._recent:
            if of is source and shown["seq"] == seq:
                shown["reward"] = reward
        self._range = [min(self._range[0], reward), max(self._range[1], reward)]
        self._series.add(row.time, reward)
        self._window.append(reward)
        self._random.add(at_random(it), reward)
        self._first.add(the_first(it), reward)
        if self._rivals:
            self._skipped += len(self._to_judge) == JUDGED
            self._to_judge.append((source, seq, reward))

    def _judge(self, until: float) -> None:
        """Let the policies to compare with take settled decisions in, in order, as long as there is time."""
        while self._rivals and self._to_judge and time.thread_time() < until:
            source, seq, reward = self._to_judge.popleft()
            if source not in self._feed.sources:  # it cannot be read now
                self._skipped += 1
                continue
            try:
                decision = source.journal.row(seq).event
            except (Unknown, ValueError):  # compacted away meanwhile, or damaged
                continue
            if isinstance(decision, Decision):
                for rival in self._rivals:
                    rival.follow(decision, reward)

    # ------------------------------------------------------------------ what is shown

    def _shown(self) -> dict[str, Any]:
        engine, model = self._engine, self._engine.model(self._app)
        series, (low, high) = self._series, self._range
        room = radius(series.n, low, high) if series.n else high - low
        window = list(self._window)
        policies = [self._live()] if series.n else []
        sources = self._feed.sources
        policies += [tally.shown(series.mean) for tally in self._tallies() if tally.uplift.n or tally.unanswered]
        return {
            "application": self._app,
            "health": {
                "writes": engine.writer.healthy, "learns": engine.learning, "leader": engine.leader,
                "lag": sum(max(0, each.seq - each.engine.learner.published) for each in sources),
                "version": model.version, "databases": len(engine.started), "read": len(sources),
                "lessons": model.lessons, "refused": model.refused, "agent": repr(model.agent),
                "unread": sum(each.unread for each in sources),
            },
            "uplift": {"random": _over(self._random), "first": _over(self._first)},
            "drift": self._drift(),
            "versions": versions(engine, self._app),
            "decisions": [shown for _, shown in self._recent][::-1],
            "rewards": {
                "n": series.n, "mean": series.mean if series.n else None, "range": [low, high],
                "low": max(series.mean - room, low) if series.n else low,
                "high": min(series.mean + room, high) if series.n else high,
                "window": {"n": len(window), "mean": sum(window) / len(window) if window else None},
                "curve": series.points(low, high),
            },
            "shares": self._shares(),
            "policies": policies,
            "waiting": len(self._to_judge), "skipped": self._skipped,
        }  # fmt: skip

    def _tallies(self) -> list[Tally]:
        return [self._random, self._first, *(rival.tally for rival in self._rivals)]

    def _live(self) -> dict[str, Any]:
        n = self._series.n
        few = f"too few decisions answer the question: {n}" if n < 30 else ""
        return {"name": "live", "value": self._series.mean, "uplift": 0.0, "low": 0.0, "high": 0.0, "n": n,
                "ess": float(n), "warning": few}  # fmt: skip

    def _drift(self) -> dict[str, Any]:
        model, alarms = self._engine.model(self._app), []
        for source in self._feed.sources:  # each counts its own events
            own = source.engine.learner.served.get(self._app, model)
            for seq, kept in own.drift.alarms[-3:]:
                moment = None
                with contextlib.suppress(Unknown, ValueError):
                    moment = source.journal.row(int(seq)).time
                alarms.append({"event": int(seq), "time": moment, "kept": kept})
        alarms = sorted(alarms, key=lambda alarm: alarm["time"] or 0)[-3:]
        return {"setting": model.settings.drift, "evidence": model.drift.evidence, "alarms": alarms}

    def _shares(self) -> list[dict[str, Any]]:
        counts = collections.Counter(self._arms).most_common()
        shares = [{"arm": arm, "share": n / len(self._arms)} for arm, n in counts[:8]]
        if len(counts) > 8:
            rest = sum(n for _, n in counts[8:])
            shares.append({"arm": f"{len(counts) - 8} others", "share": rest / len(self._arms)})
        return shares


def _over(tally: Tally) -> dict[str, Any]:
    """What the live policy earns more than another, from what the other earns more than it."""
    value, low, high = tally.uplift.interval()
    return {"value": -value, "low": -high, "high": -low, "n": tally.uplift.n}
