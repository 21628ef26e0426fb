"""What the web page shows, kept up to date from the journal while somebody looks: the newest decisions and no more."""

from __future__ import annotations

import collections
import math
import threading
import time
from typing import Any

import msgspec
import numpy as np

from armwise.features.arms import read_arm
from armwise.serve.engine.application import rivals
from armwise.serve.engine.engine import Engine
from armwise.serve.journal.append import Journal
from armwise.serve.journal.events import EARLIEST, Creation, Decision, Row
from armwise.serve.log.judge import Distribution, Rounds, as_log, followed, missed
from armwise.serve.model.model import Model

BACK = 20_000  # events that are read when the first one looks
ROUNDS = 5_000  # settled decisions that other policies are judged on
SHOWN = 12  # decisions in the list
POINTS = 120  # of the curve
TUNED = 500  # rewards for which the confidence sequence is narrowest


def radius(n: float, low: float, high: float, delta: float = 0.05) -> float:
    """How far the mean of n rewards in [low, high] may be from what was expected of them, at any time.

    The two-sided normal mixture (Robbins 1970; Howard, Ramdas, McAuliffe, Sekhon 2021), at its narrowest around
    ``TUNED`` rewards. It holds for all n at once, and also where the expectation changes, as it does when a service
    learns; so, unlike a sequence for one fixed mean, it is never narrowed by what held before.

    >>> [round(radius(n, 0.0, 1.0), 3) for n in (10, 100, 1000, 100_000)]
    [1.058, 0.168, 0.048, 0.006]
    """
    rho = TUNED / (2.0 * math.log(1.0 / delta) + math.log(1.0 + 2.0 * math.log(1.0 / delta)))
    return (high - low) / 2.0 * math.sqrt((n + rho) * math.log((n + rho) / (rho * delta**2))) / n


class Judged:
    """One policy beside the one that decides: its answer in every settled round."""

    def __init__(self, name: str, model: Model | None) -> None:
        self.name, self._model = name, model
        self._table: list[Distribution] = []

    def follow(self, rounds: Rounds) -> list[Distribution]:
        """Its answers in the next rounds; a model learns from them as it goes."""
        if self._model is not None:
            return followed(self._model, rounds)
        if self.name == "at random":
            return [[1.0 / len(d.p)] * len(d.p) for _, d, _ in rounds]
        return [[1.0] + [0.0] * (len(d.p) - 1) for _, d, _ in rounds]

    def add(self, answers: list[Distribution]) -> None:
        """Keep the newest answers."""
        self._table = (self._table + answers)[-ROUNDS:]

    def earned(self, rounds: Rounds) -> dict[str, Any]:
        """What it would have earned a decision, by inverse propensities, with what speaks against trusting that."""
        answered = [i for i, answer in enumerate(self._table) if not isinstance(answer, str)]
        said = missed(self._table)
        if not answered:
            return {"name": self.name, "warning": said, "value": None, "low": None, "high": None, "ess": 0.0}
        from armwise.offline import evaluate  # slow to import, and the first decision does not need it

        try:
            log, targets = as_log([rounds[i] for i in answered], [self._table[i] for i in answered])
            found = evaluate(log, targets, estimators=["ips"], warn=False)
        except ValueError as error:  # a row that cannot be evaluated, such as a reward no square of which is a number
            return {"name": self.name, "warning": str(error), "value": None, "low": None, "high": None, "ess": 0.0}
        ips = found["ips"]
        numbers = {"value": ips.value, "low": ips.low, "high": ips.high, "ess": ips.ess}
        plain = {key: float(value) if np.isfinite(value) else None for key, value in numbers.items()}
        return {"name": self.name, "warning": "; ".join(filter(None, [said, found.verdict])), **plain}


class Watch:
    """The newest decisions of one application, and what they say.

    >>> from armwise.serve.journal.events import Creation
    >>> from armwise.serve.journal.sqlite import SQLite
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
        self._lock = threading.Lock()
        self._journal: Journal = engine.open_journal()
        self._begin()

    def _begin(self) -> None:
        """Know nothing yet; of a log that was deleted, nothing is ever read."""
        self._forgotten = self._engine.forgotten(self._app)
        self._seq = max(self._forgotten, self._journal.last()[0] - BACK)
        self._waiting: dict[int, tuple[Row, Decision]] = {}  # decisions without their lesson yet
        self._recent: collections.deque[dict[str, Any]] = collections.deque(maxlen=SHOWN)
        self._listed: dict[int, dict[str, Any]] = {}
        self._arms: collections.deque[str] = collections.deque(maxlen=2000)
        self._rounds: Rounds = []
        self._fresh: Rounds = []
        self._curve: list[list[float]] = []
        self._n, self._sum = 0, 0.0
        model = self._engine.model(self._app)
        self._settings = model.settings
        bounds = model.settings.rule == EARLIEST and model.rewards  # a sum may lie beyond
        self._range = list(bounds or [0.0, 1.0])
        made = self._engine.configured(self._app)[1] or Creation()
        built = rivals(msgspec.structs.replace(made, settings=model.settings))
        self._judged = [Judged("at random", None), Judged("always the first", None)]
        self._judged += [Judged(name, model) for name, model in built.items()]
        self._policies: list[dict[str, Any]] = []
        self._judged_at = self._looked_at = 0.0
        self._answer: dict[str, Any] = {}

    def look(self) -> dict[str, Any]:
        """Everything that the page shows; read anew at most about once a second, for however many look."""
        with self._lock:
            now = time.monotonic()
            settings = self._engine.model(self._app).settings
            if settings.forgotten > self._forgotten or settings.policies != self._settings.policies:
                self._begin()
            if not self._answer or now - self._looked_at > 0.8:
                self._read()
                if self._fresh and (now - self._judged_at > 5.0 or not self._policies):
                    self._judge()
                    self._judged_at = time.monotonic()
                self._answer, self._looked_at = self._told(), time.monotonic()
            return self._answer

    def close(self) -> None:
        """Let go of the journal."""
        with self._lock:
            self._journal.connection.close()

    def _read(self) -> None:
        settled: list[float] = []
        times: list[int] = []
        while rows := self._journal.after(self._seq):
            self._seq = rows[-1].seq
            for row in rows:
                if row.app == self._app:
                    self._take(row, settled, times)
            while len(self._waiting) > BACK:
                del self._waiting[next(iter(self._waiting))]
        if settled:
            self._add(settled, times)

    def _take(self, row: Row, settled: list[float], times: list[int]) -> None:
        if isinstance(decision := row.event, Decision):
            arm = read_arm(bytes(decision.arms[decision.arm])).id
            shown = {"id": row.id.replace("\x1f", " "), "time": row.time, "arm": arm, "p": decision.p[decision.arm],
                     "reward": None, "deferred": decision.deferred}  # fmt: skip
            self._waiting[row.seq] = row, decision
            self._recent.append(shown)
            self._listed[row.seq] = shown
            while len(self._listed) > 4 * SHOWN:
                del self._listed[next(iter(self._listed))]
            self._arms.append(arm)
            return
        lesson = row.lesson
        if lesson is not None and lesson[0] in self._waiting:
            begun, decision = self._waiting.pop(lesson[0])
            if lesson[0] in self._listed:
                self._listed[lesson[0]]["reward"] = lesson[1]
            self._fresh.append((begun, decision, lesson[1]))
            settled.append(lesson[1])
            times.append(row.time)

    def _add(self, settled: list[float], times: list[int]) -> None:
        self._range = [min(self._range[0], *settled), max(self._range[1], *settled)]
        for value, moment in zip(settled, times):
            self._n += 1
            self._sum += value
            self._curve.append([moment, self._sum / self._n, self._n])
        if len(self._curve) > 2 * POINTS:  # thin the past out, keep both ends
            keep = np.unique(np.linspace(0, len(self._curve) - 1, POINTS).astype(int))
            self._curve = [self._curve[i] for i in keep]

    def _band(self, mean: float, n: float) -> list[float]:
        """The mean and where it may lie, within the range of rewards."""
        room = radius(n, *self._range)
        return [mean, max(mean - room, self._range[0]), min(mean + room, self._range[1])]

    def _judge(self) -> None:
        answers = [judged.follow(self._fresh) for judged in self._judged]
        for judged, some in zip(self._judged, answers, strict=True):  # all or none, so that they stay in step
            judged.add(some)
        self._rounds = (self._rounds + self._fresh)[-ROUNDS:]
        self._fresh = []
        self._policies = [judged.earned(self._rounds) for judged in self._judged]

    def _told(self) -> dict[str, Any]:
        engine, model = self._engine, self._engine.model(self._app)
        counts = collections.Counter(self._arms).most_common()
        shares = [{"arm": arm, "share": n / len(self._arms)} for arm, n in counts[:8]]
        if len(counts) > 8:
            rest = sum(n for _, n in counts[8:])
            shares.append({"arm": f"{len(counts) - 8} others", "share": rest / len(self._arms)})
        mean, low, high = self._band(self._sum / self._n, self._n) if self._n else (None, *self._range)
        return {
            "application": self._app,
            "health": {
                "writes": engine.writer.healthy, "learns": engine.learning, "leader": engine.leader,
                "lag": max(0, self._seq - engine.learner.published), "version": model.version,
                "lessons": model.lessons, "refused": model.refused, "agent": repr(model.agent),
            },
            "decisions": list(self._recent)[::-1],
            "rewards": {
                "n": self._n, "mean": mean, "low": low, "high": high, "range": self._range,
                "curve": [[moment, *self._band(value, n)] for moment, value, n in self._curve],
            },
            "shares": shares,
            "policies": self._policies,
            "judged": len(self._rounds),
        }  # fmt: skip
