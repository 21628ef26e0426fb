"""Experiment: an A/B test that may be looked at and stopped at any time, and go on as a bandit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from armwise.core.arguments import short
from armwise.offline.experiments.verdict import ExperimentVerdict
from armwise.service.decider.backend import forked, read_clock
from armwise.service.decider.client import Client
from armwise.service.decider.remote_experiment import RemoteExperiment
from armwise.service.engine.engine import Engine
from armwise.service.experiments.assignment import Assignment, OutcomeReceipt
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import HostedExperiment, create, definitions
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.log.retain import Erased
from armwise.service.server.config import open_store

_open: dict[str, tuple[Engine, list[object]]] = {}  # engines of this process by folder, with their users
_opening = threading.Lock()


def _forget_after_fork() -> None:
    """A forked child has none of the parent's engines: their threads are not there."""
    global _opening
    _open.clear()
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


def _engine(storage: str | None, clock: Callable[[], float] | None, user: object) -> tuple[Engine, str]:
    """The engine over a folder, which all experiments of this process share."""
    key = f"memory {id(user)}" if storage is None else storage if "://" in storage else os.path.abspath(storage)
    with _opening:
        if key not in _open:
            engine = Engine(SQLite.temporary() if storage is None else open_store(storage), {}, clock=clock, adopt=True)
            try:
                engine.start()
            except RuntimeError as error:
                raise RuntimeError(f"{storage}: {error}") from None
            _open[key] = engine, []
        engine, users = _open[key]
        users.append(user)
        return engine, key


def _release(key: str, user: object) -> None:
    with _opening:
        engine, users = _open[key]
        users[:] = [each for each in users if each is not user]
        if not users:
            del _open[key]
            engine.stop()


@contextlib.contextmanager
def hosted_experiments(storage: str) -> Iterator[dict[str, HostedExperiment]]:
    """All experiments of a folder that no service has open, by name."""
    user = object()
    engine, key = _engine(storage, None, user)
    try:
        yield {name: HostedExperiment(engine, name) for name in sorted(definitions(engine))}
    finally:
        _release(key, user)


def _listed(name: str, what: str, given: Any) -> Iterable[Any]:
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise ValueError(f"{name} must be a list of {what}, got {short(given)}")
    return given


class Experiment:
    """Assign units to arms, take their outcomes, and read the verdict as often as you like.

    ``arms`` are names, control first; ``metrics`` names, dictionaries or ``offline.Metric``, the first that is no
    guardrail the goal; without any, the goal is what the first outcome is called. A dictionary of arms gives each the
    value that the experiment answers with as a feature flag.
    ``storage`` is a folder, or a PostgreSQL URL, with the decision service's journal (None: a temporary one), or a
    ``Client`` of a running service. All experiments of a process on one folder share it. What an experiment was made of
    stays; ``ramp``, ``split``, ``force``, ``mode``, ``learn`` and ``stop`` change it, with a line in its log.

    ``split`` are the arms' shares (equal unless said), ``mode`` "split", "adaptive" (shares move towards better arms,
    none below ``least``) or "bandit". ``holdout`` is a share of all units that gets control in this and every later
    experiment of the journal. ``eligible`` names values of the context, ``forced`` arms of testers. With
    ``exposure=True`` a unit counts once ``expose`` says so. ``risk``, ``planned`` and ``start`` are those of
    ``offline.ExperimentAnalysis``.

    >>> test = Experiment("colour", arms=["control", "blue"], metrics={"name": "buy", "window": None})
    >>> arm = test.assign("user-17", {"device": "phone"})
    >>> arm == test.assign("user-17"), test.outcome("user-17", 1.0).status, test.outcome("user-18", 1.0).status
    (True, 'taken', 'not in the experiment')
    >>> test.verdict().action
    'go on'
    >>> test.close()
    """

    def __init__(
        self, name: str, arms: Sequence[str] | Mapping[str, Any], metrics: Any = "outcome", *,
        storage: str | os.PathLike[str] | Client | None = None, split: Any = None, mode: str = "split",
        least: float | None = None, ramp: float = 1.0, holdout: float = 0.0, eligible: Mapping[str, Any] | None = None,
        forced: Mapping[str, str] | None = None, exposure: bool = False, risk: float = 0.05, planned: float = 10_000,
        start: int = 500, clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(name, str):
            raise ValueError(f"name must be a text, got {short(name)}")
        if storage is not None and not isinstance(storage, (str, os.PathLike, Client)):
            raise ValueError(f"storage must be a folder, a PostgreSQL URL or a Client, got {short(storage)}")
        if isinstance(storage, (str, os.PathLike)) and os.path.isfile(storage) and not str(storage).endswith(".db"):
            raise ValueError(f"storage must be a folder, but {os.fspath(storage)!r} is a file")
        definition = Definition.read(
            arms, metrics, split=split, risk=risk, planned=planned, start=start, ramp=ramp, holdout=holdout,
            exposure=exposure, eligible=eligible, forced=forced, mode=mode, least=least,
        )  # fmt: skip
        clock = read_clock(clock)
        self.name, self._arms, self._closed, self._key = name, definition.arms, False, ""
        self._process = os.getpid()
        self._made: HostedExperiment | RemoteExperiment
        if isinstance(storage, Client):
            remote = self._made = RemoteExperiment(storage, name)
            remote.create(definition.asked())
            return
        engine, self._key = _engine(None if storage is None else os.fspath(storage), clock, self)
        try:
            self._made = create(engine, name, definition)
        except BaseException:
            _release(self._key, self)
            raise

    @property
    def _hosted(self) -> HostedExperiment | RemoteExperiment:
        if self._closed:
            raise ValueError("this Experiment is closed: make it again, with the same name and storage")
        if self._forked:
            raise RuntimeError(forked("Experiment", self._process))
        return self._made

    @property
    def _forked(self) -> bool:
        """Whether this process was forked after the folder was opened; a client makes connections of its own."""
        return bool(self._key) and os.getpid() != self._process

    def __repr__(self) -> str:
        return f"<Experiment {self.name!r}: {', '.join(self._arms)}>"

    # ------------------------------------------------------------------ units

    def assign(self, unit: str, context: Any = None) -> Assignment:
        """Return the unit's arm: always the same one, across changes of shares, processes and contexts.

        >>> with Experiment("colour", ["control", "blue"], forced={"tester": "blue"}) as test:
        ...     test.assign("tester").reason
        'forced'
        """
        return self._hosted.assign([(unit, context)])[0]

    def assign_many(self, units: Iterable[Any]) -> list[Assignment]:
        """A batch: units, or pairs of unit and context; few commits.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     len(test.assign_many(["u1", ("u2", {"device": "phone"})]))
        2
        """
        pairs = []
        for unit in _listed("units", "units", units):
            pair = unit if isinstance(unit, tuple) else (unit, None)
            if len(pair) != 2:
                raise ValueError(f"units must be units, or pairs of unit and context, got {short(unit)}")
            pairs.append(pair)
        return self._hosted.assign(pairs)

    def expose(self, unit: str) -> bool:
        """Record that the unit saw its arm: it counts from now on. Return False if it is not in the experiment.

        >>> with Experiment("colour", ["control", "blue"], exposure=True) as test:
        ...     _ = test.assign("u1"); test.expose("u1"), test.expose("u2")
        (True, False)
        """
        return self._hosted.expose([unit])[0]

    def outcome(
        self, unit: str, value: float = 1.0, metric: str | None = None, *, id: str | None = None
    ) -> OutcomeReceipt:
        """Record an outcome of a unit; with an ``id`` it counts once, however often it is delivered.

        >>> with Experiment("colour", ["control", "blue"], {"name": "spent", "kind": "amount"}) as test:
        ...     _ = test.assign("u1")
        ...     test.outcome("u1", 9.5, id="order 7").status, test.outcome("u1", 9.5, id="order 7").status
        ('taken', 'repeated')
        """
        return self._hosted.outcome([(unit, value, metric, id)])[0]

    def outcome_many(self, outcomes: Iterable[Sequence[Any]]) -> list[OutcomeReceipt]:
        """A batch of outcomes, in few commits: (unit, value), and if wanted metric and id.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     _ = test.assign_many(["u1", "u2"])
        ...     [receipt.status for receipt in test.outcome_many([("u1", 1.0), ("u3", 1.0)])]
        ['taken', 'not in the experiment']
        """
        read = []
        for outcome in _listed("outcomes", "(unit, value)", outcomes):
            if not isinstance(outcome, (tuple, list)) or not 2 <= len(outcome) <= 4:
                raise ValueError(f"outcomes must be (unit, value), and if wanted metric and id, got {short(outcome)}")
            read.append((*outcome, *[None] * (4 - len(outcome))))
        return self._hosted.outcome([(unit, value, metric, id) for unit, value, metric, id in read])

    def erase(self, unit: str) -> Erased:
        """Delete a unit's assignment and outcomes from the journal.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     _ = test.assign("u1"); test.erase("u1").found["decisions"]
        1
        """
        return self._hosted.erase(unit)

    # ------------------------------------------------------------------ the verdict, and what is made of it

    def verdict(self) -> ExperimentVerdict:
        """Return numbers, intervals and whether to stop: valid at any time, however often it is read.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.verdict().sentence
        "go on: no unit's outcome is known yet"
        """
        return self._hosted.verdict()

    def stop(self, arm: str | None = None, *, by: str = "", why: str = "") -> str:
        """Give this arm from now on (None: the verdict's, else control); return it.

        The holdout, and who is not eligible, stay on control.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.stop("blue", by="ann", why="enough"), test.assign("anybody")
        ('blue', 'blue')
        """
        return self._hosted.stop(arm, by, why)

    def learn(self, *, by: str = "", why: str = "") -> None:
        """Go on as a bandit, warm-started from all units so far; new units get the arm that suits their context.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.learn(); test.settings["mode"]
        'bandit'
        """
        self._hosted.mode("bandit", by, why)

    def mode(self, mode: str, *, by: str = "", why: str = "") -> None:
        """Assign new units by "split", "adaptive" or "bandit"; a test that was stopped goes on.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.mode("adaptive"); test.settings["mode"]
        'adaptive'
        """
        self._hosted.mode(mode, by, why)

    def ramp(self, share: float, *, by: str = "", why: str = "") -> None:
        """Let this share of the eligible units take part; the others get control, and are not counted.

        >>> with Experiment("colour", ["control", "blue"], ramp=0.0) as test:
        ...     before = test.assign("u1").reason; test.ramp(1.0); before, test.assign("u1").reason
        ('outside the ramp', 'assigned')
        """
        self._hosted.ramp(share, by, why)

    def split(self, split: Any, *, by: str = "", why: str = "") -> None:
        """Assign new units with other shares; those that were assigned keep their arms.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.split({"control": 0.9, "blue": 0.1}); test.assign("u1").probability in (0.9, 0.1)
        True
        """
        self._hosted.split(split, by, why)

    def force(self, unit: str, arm: str | None, *, by: str = "", why: str = "") -> None:
        """Give a tester an arm, outside the numbers; None: no longer.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.force("tester", "blue"); test.assign("tester")
        'blue'
        """
        self._hosted.force(unit, arm, by, why)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the definition, the state, and the log of who changed what and why.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.settings["state"], [line["what"] for line in test.settings["log"]]
        ('running', ['created'])
        """
        return self._hosted.to_dict()

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write a self-contained HTML page to ``path``: verdict, intervals over time, arms, log.

        >>> with Experiment("colour", ["control", "blue"]) as test:
        ...     test.report()[:15]
        '<!doctype html>'
        """
        text = self._hosted.report()
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    async def aassign(self, unit: str, context: Any = None) -> Assignment:
        """``assign`` for asyncio, in a thread.

        >>> asyncio.iscoroutinefunction(Experiment.aassign)
        True
        """
        return await asyncio.to_thread(self.assign, unit, context)

    async def aexpose(self, unit: str) -> bool:
        """``expose`` for asyncio, in a thread.

        >>> asyncio.iscoroutinefunction(Experiment.aexpose)
        True
        """
        return await asyncio.to_thread(self.expose, unit)

    async def averdict(self) -> ExperimentVerdict:
        """``verdict`` for asyncio, in a thread.

        >>> asyncio.iscoroutinefunction(Experiment.averdict)
        True
        """
        return await asyncio.to_thread(self.verdict)

    async def aoutcome(
        self, unit: str, value: float = 1.0, metric: str | None = None, *, id: str | None = None
    ) -> OutcomeReceipt:
        """``outcome`` for asyncio, in a thread.

        >>> asyncio.iscoroutinefunction(Experiment.aoutcome)
        True
        """
        return await asyncio.to_thread(self.outcome, unit, value, metric, id=id)

    def close(self) -> None:
        """Close the folder once no other experiment of this process uses it; acknowledged data is kept.

        >>> Experiment("colour", ["control", "blue"]).close()
        """
        if not self._closed:
            self._closed = True
            if self._key and not self._forked:
                _release(self._key, self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
