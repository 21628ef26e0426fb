"""The engine: decide, reward, activate, expire, snapshot, recover; free of any web framework.

Two threads work beside the callers. The *writer* commits what is submitted and only then answers. The *learner* reads
the journal in order and folds it into the models; at times it publishes a copy of each, and decisions are made from
the copies. So learning never blocks deciding, and the models are a function of the journal alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from armwise import persist
from armwise.features.arms import ArmColumns, check_id, read_arms
from armwise.features.tokens import InvalidInput, Part
from armwise.serve.engine.clock import TrustedClock
from armwise.serve.engine.counts import Counts
from armwise.serve.engine.draw import Answer, answer, drawn, uniform
from armwise.serve.engine.learner import Learner, Snapshots
from armwise.serve.engine.members import stand_alone
from armwise.serve.engine.startup import apply, await_applications, warm
from armwise.serve.engine.writer import STALL, Writer
from armwise.serve.errors import Unavailable, Unknown
from armwise.serve.journal.append import Journal, Write, Written
from armwise.serve.journal.events import (
    Activation,
    Change,
    Creation,
    Decision,
    Event,
    Expiry,
    Import,
    Lessons,
    Reward,
    Row,
    decided,
)
from armwise.serve.journal.rules import Status
from armwise.serve.journal.store import Database
from armwise.serve.model.model import Model
from armwise.serve.model.seen import Seen
from armwise.serve.model.trial import check_creation, check_import


class _Reading:
    """One reads at a time; Unavailable where the database does not answer: nobody waits for it without end."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self._lock = writer, threading.Lock()

    def __enter__(self) -> None:
        if not (self._writer.moving and self._lock.acquire(timeout=STALL)):
            raise Unavailable("the journal does not answer now: try again")

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class Engine:
    """All applications over one journal.

    >>> from armwise.serve.journal.sqlite import SQLite
    >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
    >>> engine.start()
    >>> answer = engine.decide("shop", b'{"hour": 9}', [b'"pasta"', b'"salad"'], id="e1")
    >>> engine.reward("shop", "e1", 1.0).status.n
    1
    >>> engine.stop()
    """

    def __init__(
        self,
        store: Database,
        applications: dict[str, Creation],
        *,
        clock: Callable[[], float] | None = None,
        snapshot_every: float = 30.0,
        publish_every: float = 0.1,
        adopt: bool = False,
    ) -> None:
        self.store, self.creations = store, dict(applications)
        self._clock = clock or TrustedClock()
        self.adopt = adopt  # applications that the journal has are served as it has them
        self.learner = Learner(
            store,
            self.open_journal,
            self._save,
            applications=self.creations,
            publish_every=publish_every,
            snapshot_every=snapshot_every,
        )
        self.alone = True  # False: one of several databases, whose models are merged (``shards``)
        self.merged: dict[str, Model] | None = None  # what decisions are made from then
        self.writer = Writer(self._telling_journal, self.now, self._expire)
        self.counts = Counts()
        self._open: dict[str, int] = {}
        self._counted_at = -1e9
        self._reading = _Reading(self.writer)
        self._chance: list[str] = []
        self._catalogues: dict[str, ArmColumns] = {}
        self._looking = threading.Lock()

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Recover from the journal, create what is new, and begin.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); sorted(engine.models); engine.stop()
        ['shop']
        """
        if not self.store.shared and not self.store.lead():
            holder = getattr(self.store, "holder", "")
            named = f"the process {holder}" if holder else "another process"
            raise RuntimeError(f"{named} is serving from this journal")
        self._reader = self.open_journal()
        self._reader.connection.patience = STALL
        if self.alone and self.store.shared:
            stand_alone(self._reader.connection)
        self._secret = self._reader.meta("secret")
        if self._reader.connection.tail is not None:
            self._reader.connection.tail.begin(self._reader)
        if isinstance(self._clock, TrustedClock):
            self._clock.continue_from(self._reader.last()[1] / 1000.0)
        self.recover()
        self.writer.start()
        for app, made in self._reader.made_by_request().items():
            self.creations.setdefault(app, made)
        apply(self, self.creations)
        if self.leader:
            self.learner.catch_up()
        self.learner.start()
        await_applications(self)
        warm(self)

    def stop(self) -> None:
        """Commit what was submitted, learn it, snapshot, end. What is acknowledged is kept in any case.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> Engine(SQLite.temporary(), {}).stop()
        """
        self.learner.stop()
        self.writer.stop()
        if hasattr(self, "_reader"):
            self._reader.connection.close()
            del self._reader
        self.store.close()

    def recover(self) -> None:
        """Load the newest snapshots and fold in what the journal has since.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.stop()
        """
        self.learner.recover()

    @property
    def models(self) -> dict[str, Model]:
        """The published models of the configured applications: what decisions are made from.

        >>> Engine(None, {}).models
        {}
        """
        return self.learner.served if self.merged is None else self.merged

    @property
    def broken(self) -> dict[str, str]:
        """Why applications cannot be served, by name.

        >>> Engine(None, {}).broken
        {}
        """
        return self.learner.broken

    def merge(self) -> None:
        """Serve what all databases have learnt: of one, it is served already.

        >>> Engine(None, {}).merge()
        """

    @property
    def started(self) -> Sequence[Engine]:
        """The engines that work, whichever they are.

        >>> len(Engine(None, {}).started)
        1
        """
        return (self,)

    @property
    def each(self) -> Sequence[Engine]:
        """The engines that have a journal of their own: this one.

        >>> len(Engine(None, {}).each)
        1
        """
        return (self,)

    @property
    def leader(self) -> bool:
        """Whether this process learns; of several on one journal, one does.

        >>> Engine(None, {}).leader
        False
        """
        return self.learner.leader

    # ------------------------------------------------------------------ the four requests

    def prepare(
        self, app: str, context: bytes, arms: Sequence[bytes] | ArmColumns, *, id: str | None = None,
        excluded: Sequence[str] = (), deferred: bool = False, request: str = "", by: str = "", slot: str = "",
        tokens: Part | None = None, now: int | None = None, keep: bool = False, catalogue: bytes = b"",
    ) -> Write:  # fmt: skip
        """Decide, without journaling yet: what ``submit`` of the writer must make durable before it is answered.

        ``arms`` are texts, or what ``read_arms`` made of them; ``tokens`` the context's, where they are at hand;
        ``now`` the time for its id; ``catalogue`` the hash by which the arms were named. With ``keep`` its features
        stay in memory until the learner has learnt it, which need not make them again then.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> engine.prepare("shop", b"{}", [b'"a"', b'"b"'], excluded=["a"]).event.p
        [1.0]
        >>> engine.stop()
        """
        read = arms if isinstance(arms, ArmColumns) else read_arms(arms)
        named = (check_id("the event id", id) if id is not None else self.new_id(now)) + slot
        model = self.model(app)
        decision, seen, held = drawn(model, context, read, excluded, self.uniform(app, named), tokens)
        decision.deferred, decision.by = deferred, by
        kept: Seen | None = None  # an apprentice's decision is learnt unscaled
        if not decision.apprentice:
            kept = model.kept(seen, decision.arm) or (seen if keep else None)
        return Write(app, named, decision, request, id is None, seen.stack, kept, read.ids, held, catalogue)

    def put_catalogue(self, arms: ArmColumns) -> str:
        """Store arms for requests to name; returns their hash when they are durable.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); name = engine.put_catalogue(read_arms([b'"a"', b'"b"']))
        >>> engine.catalogue(name).ids; engine.stop()
        ('a', 'b')
        """
        text, done = arms.text, []
        self.writer.run(lambda journal: done.append(journal.put_catalogue(text, self.now())))
        if not done:
            raise Unavailable("the journal cannot be written now: try again")
        return done[0].hex()

    def catalogue(self, name: str) -> ArmColumns:
        """The arms that a request names; read once, and kept while they are used.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.catalogue("00" * 16)
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no catalogue has the hash 00000000000000000000000000000000: send its arms again
        """
        with self._looking:
            arms = self._catalogues.pop(name, None)
        if arms is None:
            try:
                hash = bytes.fromhex(name)
            except ValueError:
                raise InvalidInput(f"catalogue must be a hash of 32 hexadecimal digits, got {name[:40]!r}") from None
            with self._reading:
                found = self._reader.catalogues([hash])
            if hash not in found:
                raise Unknown(f"no catalogue has the hash {name}: send its arms again")
            arms = read_arms([bytes(arm) for arm in found[hash]])
        with self._looking:
            self._catalogues[name] = arms  # the last used is the last to go
            while len(self._catalogues) > 32:
                del self._catalogues[next(iter(self._catalogues))]
        return arms

    def decide(self, app: str, context: bytes, arms: Sequence[bytes], **options: Any) -> Answer:
        """Decide and wait until it is durable; options as for ``prepare``.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> one = engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="e1")
        >>> two = engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="e1")
        >>> one.arm == two.arm, two.again
        (True, True)
        >>> engine.stop()
        """
        write = self.prepare(app, context, arms, **options)
        return answer(self.writer.write([write])[0], write)

    def reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Written:
        """Journal a reward and wait until it is durable.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> engine.reward("shop", "e1", 1.0)
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no decision has the id e1
        >>> engine.stop()
        """
        written: list[Written] = self.writer.write([self.prepare_reward(app, id, value, request, cost)])
        return written[0]

    def prepare_reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Write:
        """A reward, checked.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.prepare_reward("shop", "e1", 1).event.value; engine.stop()
        1.0
        """
        model = self.model(app)
        event = Reward(model.check_reward(value), cost=model.check_cost(cost))
        return Write(app, check_id("the event id", id), event, request)

    def activate(self, app: str, id: str, request: str = "") -> Written:
        """A deferred decision was shown.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> _ = engine.decide("shop", b"{}", [b'"a"'], id="e1", deferred=True)
        >>> engine.activate("shop", "e1").status.active
        True
        >>> engine.stop()
        """
        written: list[Written] = self.writer.write([self.prepare_activation(app, id, request)])
        return written[0]

    def prepare_activation(self, app: str, id: str, request: str = "") -> Write:
        """An activation, checked.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.prepare_activation("shop", "e1").id; engine.stop()
        'e1'
        """
        self.model(app)
        return Write(app, check_id("the event id", id), Activation(), request)

    def expire(self) -> None:
        """Close the windows that are over; the writer does it by itself several times a second.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.expire(); engine.stop()
        """
        answers: list[bool] = []
        while True:
            self.writer.run(lambda journal: answers.append(self._expire(journal)))
            if not answers or not answers.pop():  # none: it failed, which the writer's health says
                return

    def snapshot(self) -> None:
        """Store the models now, those that changed; the learner does it by itself from time to time.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.snapshot(); engine._reader.snapshot("shop")[0]; engine.stop()
        1
        """
        self.wait_learnt()
        self.learner.save()

    def configure(self, app: str, change: Change) -> None:
        """Change settings (and ``epsilon`` where the agent has one), from now on; returns when they are in force.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> engine.configure("shop", Change(window=5.0)); engine.models["shop"].settings.window
        5.0
        >>> engine.stop()
        """
        model = self.model(app)
        settings = model.settings.changed(change)
        model.check_reward(settings.default)
        model.check_settings(settings)
        epsilon = change.epsilon
        if epsilon is not msgspec.UNSET and not (hasattr(model.agent, "epsilon") and 0.0 <= epsilon <= 1.0):
            raise InvalidInput("epsilon must lie in [0, 1], for an agent that has one")
        self._journal_change(app, change)

    def apply(self, creations: dict[str, Creation], only: bool = True) -> None:
        """Serve these applications from now on, and with ``only`` no others but those made by request.

        Returns when what changed is learnt here.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.apply({"news": Creation(seed=2)}); sorted(engine.models); engine.stop()
        ['news']
        """
        last = apply(self, creations)
        for app in [app for app, made in self.creations.items() if only and not made.settings.by_request]:
            del self.creations[app]
        self.creations.update(creations)
        self.wait_learnt(last)
        self.learner.refresh()

    def retire(self, app: str) -> None:
        """Serve an application that was made by request no longer; what the journal has of it stays.

        >>> from armwise.serve.journal.events import Settings
        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {})
        >>> engine.start(); engine.apply({"news": Creation(settings=Settings(by_request=True))}); engine.retire("news")
        >>> sorted(engine.models); engine.stop()
        []
        """
        made = self.creation(app)
        self.wait_learnt(
            apply(self, {app: msgspec.structs.replace(made, settings=made.settings.changed(Change(by_request=False)))})
        )
        self.creations.pop(app, None)
        self.learner.refresh()

    def configured(self, app: str) -> tuple[int, Creation | None]:
        """What the configuration last made an application of, and the event that said so.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation(seed=3)})
        >>> engine.start(); engine.configured("shop")[1].seed; engine.stop()
        3
        """
        with self._reading:
            return self._reader.configured(app)

    def creation(self, app: str) -> Creation:
        """What an application is made of by its configuration, or by the request that made it.

        >>> Engine(None, {"shop": Creation(seed=3)}).creation("shop").seed
        3
        """
        made = self.creations.get(app) or self.configured(app)[1]
        if made is None:
            raise Unknown(f"no application is called {app!r}")
        return made

    def replace(self, app: str, model: bytes) -> None:
        """Put a model from outside (as ``export`` gave it) in place of the application's own.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> engine.replace("shop", engine.export("shop")); engine.stop()
        """
        check_import(model, self.model(app))
        self._journal_change(app, Import.of(model))

    def teach(self, app: str, lessons: Lessons, request: str = "") -> None:
        """Journal what others decided, for the application's model to learn; returns when it is learnt.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> engine.start(); engine.teach("shop", Lessons([asked], [1.0])); engine.model("shop").lessons; engine.stop()
        1
        """
        model = self.model(app)
        for reward in lessons.rewards:
            model.check_reward(reward)
        self._journal_change(app, lessons, request=request)

    def reset(self, app: str, creation: Creation | None = None) -> None:
        """Begin the application's model anew, as it was created, or from something else.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.reset("shop"); engine.models["shop"].lessons; engine.stop()
        0
        """
        self.model(app)
        if creation is not None:
            check_creation(creation)
        self._journal_change(app, msgspec.structs.replace(creation or self.creation(app), train=False), id="reset")

    def export(self, app: str) -> bytes:
        """The published model as bytes, for ``replace`` here or elsewhere.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.export("shop")[:8]; engine.stop()
        b'ARMWISE!'
        """
        alone = self.model(app).copy()
        alone.versions = {}
        return persist.dumps(alone)

    def _journal_change(self, app: str, event: Event, id: str = "", request: str = "") -> None:
        written = self.writer.write([Write(app, id, event, request)])
        self.wait_learnt(written[0].row.seq)

    # ------------------------------------------------------------------ questions

    def model(self, app: str) -> Model:
        """The published model of an application.

        >>> Engine(None, {}).model("shop")
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no application is called 'shop'
        """
        try:
            return self.models[app]
        except KeyError:
            if app not in self.creations:
                raise Unknown(f"no application is called {app!r}") from None
            reason = self.learner.broken.get(app, "it has no model yet")
            raise Unavailable(f"{app!r} cannot be served: {reason}; see the log") from None

    def forgotten(self, app: str) -> int:
        """The event up to which the application's log was deleted: nothing shows what is before.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.forgotten("shop"); engine.stop()
        0
        """
        return self.model(app).settings.forgotten

    def find(self, app: str, id: str, deleted: bool = False) -> tuple[Answer, Decision, Status]:
        """A decision as it was answered and journaled, and where it stands; with ``deleted`` even if its log was.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.find("shop", "e1")
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no decision has the id e1
        """
        first = 0 if deleted else self.forgotten(app)
        with self._reading:
            found = self._reader.statuses([(app, id)])
            if not found or found[0].seq <= first:
                raise Unknown(f"no decision has the id {id}")
            row = self._reader.row(found[0].seq)
            self._reader.connection.settle()
        return answer(Written(row)), decided(row), found[0]

    def rewards(self, app: str, id: str) -> list[Row]:
        """Every reward that a decision was given, late ones too.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.rewards("shop", "e1"); engine.stop()
        []
        """
        with self._reading:
            given = self._reader.rewards([(app, id)]).get((app, id), [])
            self._reader.connection.settle()
            return given

    def uniform(self, app: str, id: str) -> float:
        """The number in [0, 1) that an event's arm is drawn with: fixed by the journal's secret, the names alone.

        It is the first 8 bytes of BLAKE2b (keyed with the secret) of application, NUL, id, as a little-endian
        integer, shifted right by 11 and divided by 2^53.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {})
        >>> engine.start(); engine.uniform("shop", "e1") == engine.uniform("shop", "e1"); engine.stop()
        True
        """
        return uniform(self._secret, app, id)

    def wait_learnt(self, seq: int | None = None, timeout: float = 120.0) -> None:
        """Wait until the published models have all events up to ``seq`` (default: all there are).

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.wait_learnt(); engine.stop()
        """
        if seq is None:
            with self._reading:
                seq = self._reader.last()[0]
        self.learner.wait(seq, timeout)

    @property
    def clock_jumps(self) -> int:
        """How often the clock jumped since the start.

        >>> Engine(None, {}).clock_jumps
        0
        """
        return getattr(self._clock, "jumps", 0)

    @property
    def learning(self) -> bool:
        """Whether the learner is alive.

        >>> Engine(None, {}).learning
        False
        """
        return self.learner.alive

    def lag(self) -> int:
        """Events that are durable and not yet published in a model.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {})
        >>> engine.start(); engine.lag(); engine.stop()
        0
        """
        with self._reading:
            return self._reader.last()[0] - self.learner.published

    # ------------------------------------------------------------------ behind the scenes

    def open_journal(self) -> Journal:
        """The journal in a session of its own, to be closed by whoever asked for it.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> journal = Engine(SQLite(":memory:"), {}).open_journal()
        >>> journal.last()[0]; journal.connection.close()
        0
        """
        return Journal(self.store.connect(), self.store.lock, self.store.clock)

    def _telling_journal(self) -> Journal:
        journal = self.open_journal()
        journal.on_commit = self._take_committed
        return journal

    def _take_committed(self, committed: list[tuple[Row, Write]]) -> None:
        self.learner.take_committed(committed)
        self.counts.take(committed)

    def open_decisions(self) -> dict[str, int]:
        """How many decisions of each application wait for a reward; counted at most every few seconds.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); _ = engine.decide("shop", b"{}", [b'"a"']); engine.open_decisions(); engine.stop()
        {'shop': 1}
        """
        if time.monotonic() - self._counted_at > 5.0:
            with self._reading:
                rows = self._reader.connection.execute(
                    "SELECT app, count(*) FROM decisions WHERE closed = 0 GROUP BY app"
                )
            self._open, self._counted_at = {app: int(n) for app, n in rows}, time.monotonic()
        return self._open

    def now(self) -> int:
        """Milliseconds, by a clock that never goes back.

        >>> engine = Engine(None, {}, clock=lambda: 1.5)
        >>> engine.now()
        1500
        """
        return int(self._clock() * 1000.0)

    def new_id(self, now: int | None = None, request: str = "") -> str:
        """An id that no event has: time first, so that the index grows at its end, then 80 bits of chance.

        ``request`` is the idempotency key, which matters where there are several databases.

        >>> len(Engine(None, {}).new_id())
        32
        """
        try:
            chance = self._chance.pop()
        except IndexError:  # asking the system for each costs more than the rest of an id
            fresh = os.urandom(2048 * 10).hex()  # many at once: it gives the interpreter away
            self._chance = [fresh[i : i + 20] for i in range(0, len(fresh), 20)]
            chance = self._chance.pop()
        return f"{self.now() if now is None else now:012x}{chance}"

    def _expire(self, journal: Journal) -> bool:
        """Close some of the windows that are over; True if there may be more: decisions come in between."""
        due = journal.due(self.now()) if self.leader else []
        if due:
            journal.append([[Write(s.app, s.id, Expiry())] for s in due], self.now())
        return bool(due)

    def _save(self, snapshots: Snapshots, upto: int, without: list[str]) -> None:
        """Store models in a session of their own, which no commit waits for."""
        leading = self.store.leading()
        if leading is not None:  # the session that holds the lead: once that is lost, so is the right to publish
            Journal(leading).put_snapshots(snapshots, upto, without)
            return
        journal = self.open_journal()
        try:
            journal.put_snapshots(snapshots, upto, without)
        finally:
            journal.connection.close()
