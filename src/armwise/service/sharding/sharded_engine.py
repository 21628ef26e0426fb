"""Several databases that share one service: an engine for each, one merged model for all.

It stands where an ``Engine`` stands. Each database is a journal with a lead, a writer, a learner and snapshots of its
own, so all that holds of one database holds of each. ``members`` says which one a decision belongs to, ``routes`` takes
it there, ``merged`` adds up what they have learnt. A database that cannot be reached answers for its share alone.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from armwise.features.encoding.arms import ArmColumns, check_id
from armwise.service.engine.commit_counts import CommitCounts
from armwise.service.engine.engine import Engine, served_model
from armwise.service.engine.requests.draw import Answer, answer
from armwise.service.journal.databases.database import Database
from armwise.service.journal.errors import Unavailable, Unknown
from armwise.service.journal.events import Change, Creation, Decision, Lessons, Row
from armwise.service.journal.members import Members, MembershipSession, announce, first
from armwise.service.journal.rules import Status
from armwise.service.journal.system import SYSTEM
from armwise.service.journal.writes import Write, Written
from armwise.service.model.merged_views import check_merges, merge
from armwise.service.model.model import Model
from armwise.service.model.trial import exported
from armwise.service.sharding.configuration_copy import copy_application, copy_configuration
from armwise.service.sharding.routed_writer import RoutedWriter, asked_by, key_of

log = logging.getLogger("armwise.service")
T = TypeVar("T")
MERGE_EVERY = 0.1  # seconds between two merges, at least
MERGE_SHARE = 0.05  # of a processor that merging may take
LOOK_EVERY = 1.0  # seconds between two looks after the databases
YIELD_EVERY = 2.0  # seconds between two leads that are given away
FOUNDING = 60.0  # seconds that the first start waits for processes that serve from one of the databases alone


class ShardedEngine:
    """All applications over several databases.

    A change is refused before it begins if one of them cannot be written to. One that stops midway is completed when
    it is asked for again, or at the next start: the first database is changed first, and the others follow it.
    """

    def __init__(
        self, stores: Sequence[Database], applications: dict[str, Creation], *, snapshot_every: float = 30.0,
        adopt: bool = False, clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self.stores, self.creations, self.adopt = list(stores), dict(applications), adopt
        self.system = SYSTEM
        self.store = self.stores[0]  # its kind: what it raises
        self._options: dict[str, Any] = {"snapshot_every": snapshot_every, "adopt": adopt, "clock": clock}
        self.members = Members(0, [], {})
        self.engines: dict[str, Engine] = {}  # by identity
        self._memberships: dict[str, MembershipSession] = {}
        self.models: dict[str, Model] = {}
        self.unmerged: dict[str, str] = {}  # why the parts of an application cannot be added up
        self._made_of: dict[str, tuple[Any, ...]] = {}
        self.writer = RoutedWriter(self)
        self._looking, self.merging = threading.RLock(), threading.RLock()
        self.changing, self.evaluating = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[int, Callable[[], None], Callable[[Exception], None]]] = []
        self._said = ""  # of what is wrong with the databases, which is not said every second
        self._news, self._ending = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._yield_at = 0.0
        self.merges, self.merge_seconds, self.merged_at = 0, 0.0, 0.0

    def start(self) -> None:
        """Find out which databases there are, recover from each that can be reached, and begin."""
        for app, creation in self.creations.items():
            check_merges(app, creation)
        with self._looking:
            reasons = self._open_desks()
            for reason in reasons:
                log.error("%s", reason)
            self._agree()
            for identity in list(self._memberships):
                self._start_engine(identity)
            until = time.monotonic() + FOUNDING
            while not self.members.sets and not self._advance():
                if time.monotonic() > until:
                    raise RuntimeError("another process serves from one of these databases alone: restart it first")
                time.sleep(0.2)
            if not reasons:
                self._align()
                self._advance()
        self.merge()
        for name, work in (("armwise-merge", self._keep_merging), ("armwise-databases", self._look_after)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Commit, learn and keep what was acknowledged, in every database, then end."""
        self._ending.set()
        self._news.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        ends = [threading.Thread(target=engine.stop) for engine in self.engines.values()]
        for end in ends:
            end.start()
        for end in ends:
            end.join()
        for membership in self._memberships.values():
            membership.close()

    def _open_desks(self) -> list[str]:
        """Speak to every database that answers; why others do not."""
        known, reasons = {str(membership.store) for membership in self._memberships.values()}, []
        for store in self.stores:
            if str(store) in known:
                continue
            try:
                membership = MembershipSession(store)
            except store.errors as error:
                reasons.append(f"{store} cannot be reached: {error}")
                continue
            if (twice := self._memberships.get(membership.identity)) is not None:
                membership.close()
                raise ValueError(f"storage: {store} and {twice.store} are the same database")
            self._memberships[membership.identity] = membership
        return reasons

    def _agree(self) -> None:
        """Take the newest sets that any database knows, and let all of these know them: a half-done change is done."""
        told = []
        for membership in self._memberships.values():
            with contextlib.suppress(*membership.store.errors):
                announce(membership.journal.connection, self._memberships)
                if (found := membership.members()) is not None:
                    told.append(found)
        lost = len(self.stores) - len(self._memberships)
        if not told:
            if lost:
                raise RuntimeError(f"at the first start every database is needed, and {lost} cannot be reached")
            newest = first(self._memberships.values())
        else:
            newest = max(told, key=lambda members: members.epoch)
        missing = [identity for identity in newest.newest if identity not in self._memberships]
        if len(missing) > lost:
            named = ", ".join(newest.names[identity] for identity in missing)
            raise ValueError(f"storage lacks a database that decisions were sharded over: one of {named}")
        secret = self._memberships[
            min(newest.newest or self._memberships, key=lambda i: (i not in self._memberships, i))
        ].journal.meta("secret")
        for identity, membership in self._memberships.items():
            if identity not in newest.newest:
                if newest.sets and membership.decided():
                    raise ValueError(
                        f"{membership.store} has decisions of its own: only an empty database can be added"
                    )
                membership.share_secret(secret)
        self._adopt(newest)

    def _adopt(self, members: Members) -> None:
        for identity in members.newest:
            if members.epoch and (membership := self._memberships.get(identity)) is not None:
                with contextlib.suppress(*membership.store.errors):  # nothing is decided there before it knows
                    membership.put(members)
        self.members = members

    def _start_engine(self, identity: str) -> None:
        engine = Engine(self._memberships[identity].store, self.creations, **self._options)
        engine.alone = False
        try:
            engine.start()
        except BaseException:
            engine.stop()
            raise
        self.creations.update({app: made for app, made in engine.creations.items() if app not in self.creations})
        self.engines[identity] = engine

    def _advance(self) -> bool:
        """Let new decisions go to all databases that are configured, once every process at work knows them all."""
        if len(self._memberships) < len(self.stores) or len(self.engines) < len(self._memberships):
            return False
        joining = {i: str(d.store) for i, d in self._memberships.items() if i not in self.members.newest}
        if not joining:
            return True
        if any(membership.others(self._memberships) for membership in self._memberships.values()) or any(
            map(self._down, self._memberships)
        ):
            return False
        self._align()
        changed = self.members.joined(joining)
        arbiter = self._memberships[min(self.members.sets[0] if self.members.sets else self._memberships)]
        if (agreed := arbiter.put(changed)) != changed:  # another process was quicker, perhaps with another database
            missing = set(agreed.newest) - set(self._memberships)
            if missing:
                raise RuntimeError(f"storage lacks {', '.join(agreed.names[i] for i in missing)}")
        self._adopt(agreed)
        log.info("decisions are sharded over %s databases", len(agreed.newest))
        return not set(self._memberships) - set(agreed.newest)

    def _align(self) -> None:
        """Let the applications of all databases be what those of the first one are."""
        pattern = self.engines[min(self.members.newest or self._memberships)]
        with self.merging:  # not before all are alike
            for engine in self.engines.values():
                copy_configuration(engine, pattern)

    def _look_after(self) -> None:
        while not self._ending.is_set():
            self._news.wait(LOOK_EVERY)
            self._news.clear()
            if self._ending.is_set():
                return
            waiting, self._waiting = self._waiting, []
            said = ""
            try:
                with self._looking:
                    self._look(bool(waiting))
            except Exception as error:
                said = str(error)
                if said != self._said:
                    log.error("the databases cannot be checked: %s", said)
            self._said = said
            for epoch, again, refuse in waiting:
                try:
                    if self.members.epoch == epoch:
                        raise Unavailable("a database was added that is not in this process's storage: add it there")
                    again()
                except Exception as error:
                    refuse(error)

    def _look(self, hurry: bool) -> None:
        if not hurry:
            self._open_desks()
        self._agree()
        if hurry:
            return
        for identity in [i for i in self._memberships if i not in self.engines]:
            self._start_engine(identity)
            log.info("the database %s is served now", self._memberships[identity].store)
        self._advance()
        self._share_lead()

    def _share_lead(self) -> None:
        """Learn for no more databases than this process's share of them, where others can."""
        mine = [identity for identity, engine in self.engines.items() if engine.leader]
        if len(mine) < 2 or time.monotonic() < self._yield_at:
            return
        self._yield_at = time.monotonic() + YIELD_EVERY
        processes = max(self._memberships[mine[-1]].processes(), 1)
        if len(mine) > -(-len(self.engines) // processes):
            self.engines[mine[-1]].learner.yield_lead()

    def when_known(self, epoch: int, again: Callable[[], None], refuse: Callable[[Exception], None]) -> None:
        """Do something again when newer sets than ``epoch`` are known here; without waiting."""
        self._waiting.append((epoch, again, refuse))
        self._news.set()

    def _keep_merging(self) -> None:
        pause = MERGE_EVERY
        while not self._ending.wait(pause):
            started = time.thread_time()
            try:
                self.merge()
            except Exception:
                log.exception("the models cannot be merged now")
            pause = max(MERGE_EVERY, (time.thread_time() - started) / MERGE_SHARE)

    def merge(self) -> None:
        """Add up what the databases' learners have published, where it is new."""
        with self.merging:
            engines = [self.engines[identity] for identity in sorted(self.engines)]  # everywhere in the same order
            own = [engine.learner.served for engine in engines]
            views: list[dict[str, Model]] = [dict(engine.merged or {}) for engine in engines]
            whole = dict(self.models)
            for app in {app for models in own for app in models}:
                having = [i for i, models in enumerate(own) if app in models]
                parts = [own[i][app] for i in having]
                made_of = tuple((engines[i].store, part.version, part.since) for i, part in zip(having, parts))
                if self._made_of.get(app) == made_of:
                    continue
                started = time.thread_time()
                try:
                    *each, whole[app] = merge(parts)
                    self.unmerged.pop(app, None)
                except ValueError as error:  # a change that has not reached all of them yet
                    if self.unmerged.get(app) != str(error):
                        log.error("the models of %s cannot be merged: %s", app, error)
                    self.unmerged[app] = str(error)
                    for i, part in zip(having, parts):  # whoever has no model yet decides by its own
                        views[i].setdefault(app, part)
                    whole.setdefault(app, parts[0])
                    continue
                for i, view in zip(having, each):
                    views[i][app] = view
                self._made_of[app] = made_of
                self.merges, self.merge_seconds = self.merges + 1, self.merge_seconds + time.thread_time() - started
            for engine, models, views_of in zip(engines, own, views):
                engine.merged = {app: view for app, view in views_of.items() if app in models}
            served = set().union(*own) if own else set()
            self.models, self.merged_at = {app: m for app, m in whole.items() if app in served}, time.time()

    def label(self, identity: str) -> str:
        """A database for those who need not know its host: its place in ``storage``, from 1."""
        membership = self._memberships.get(identity)
        name = self.members.names.get(identity, "") if membership is None else str(membership.store)
        places = [place for place, store in enumerate(self.stores, 1) if str(store) == name]
        return str(places[0] if places else "?")

    @property
    def writable(self) -> bool:
        """Whether decisions can be journaled: a database that cannot be written answers for its share alone."""
        return True

    def states(self) -> dict[str, str]:
        """The state of each database, in words."""
        found = {}
        for identity in {**dict.fromkeys(self.members.newest), **self._memberships}:
            state = "ready" if identity in self.members.newest else "joining"
            if identity in self.engines and (broken := sorted(self.engines[identity].learner.broken)):
                state = f"{state}, but cannot serve {', '.join(broken)}"
            found[self.label(identity)] = "cannot be written" if self._down(identity) else state
        return found

    @property
    def started(self) -> Sequence[Engine]:
        """The engines that work, or did."""
        return list(self.engines.values())

    def add(self, stores: Sequence[Database]) -> bool:
        """Take in databases that are not known yet; new decisions go there once every process knows them.

        ValueError, and nothing changes, if one that is known is missing.
        """
        known = {str(store) for store in self.stores}
        if missing := known - {str(store) for store in stores}:
            raise ValueError(f"storage: a database cannot be taken away: {', '.join(sorted(missing))}")
        with self._looking:
            self.stores += [store for store in stores if str(store) not in known]
            self._look(False)
        return True

    def totals(self) -> dict[str, float]:
        """The results of merging."""
        return {"model_merges": self.merges, "model_merge_seconds": round(self.merge_seconds, 6)}

    def engine(self, identity: str) -> Engine:
        """The engine of a database; Unavailable if it could not be reached yet."""
        try:
            return self.engines[identity]
        except KeyError:
            raise Unavailable(
                f"database {self.label(identity)} of {len(self.stores)} cannot be reached: try again"
            ) from None

    def _down(self, identity: str) -> bool:
        engine = self.engines.get(identity)
        return engine is None or not (engine.writer.healthy and engine.writer.moving)

    def down(self) -> list[str]:
        """The databases that cannot be written to now."""
        return [identity for identity in self.members.newest if self._down(identity)]

    def working(self, identity: str) -> Engine:
        """The same as ``engine``, if it can be written to."""
        if self._down(identity):
            raise Unavailable(f"database {self.label(identity)} of {len(self.stores)} cannot be written now: try again")
        return self.engines[identity]

    @property
    def each(self) -> Sequence[Engine]:
        """All engines, in order; Unavailable if one is missing: what concerns all is done by all or not begun."""
        return [self.working(identity) for identity in {**dict.fromkeys(self.members.newest), **self._memberships}]

    def _any(self) -> Engine:
        for engine in self.engines.values():
            return engine
        raise Unavailable("no database can be reached: try again")

    def new_id(self, now: int | None = None, request: str = "") -> str:
        """An id that no event has, of a database that works; with the key of a request, of the one that it belongs to.

        Without one, ids are drawn until they belong to a database that can be written to: nobody waits for a lost one.
        """
        home = self.members.owner(request) if request else ""
        down, drawing = self.down(), self._any()
        for _ in range(10_000):
            id = drawing.new_id(now)
            owner = self.members.owner(id)
            if owner == home if home else owner not in down:
                return id
        raise Unavailable("no database can be written now: try again")

    def prepare(
        self, app: str, context: bytes, arms: Sequence[bytes] | ArmColumns, *, id: str | None = None,
        request: str = "", now: int | None = None, **options: Any,
    ) -> Write:  # fmt: skip
        """Decide, without journaling yet; as ``Engine.prepare``."""
        epoch = self.members.epoch
        named = self.new_id(now, asked_by(request)) if id is None else check_id("the event id", id)
        home = self.members.owner(key_of(named))
        write = self.engine(home).prepare(app, context, arms, id=named, request=request, **options)
        write.home, write.fresh, write.epoch = home, id is None, epoch
        if id is None and request:
            write.redraw = lambda: self.prepare(app, context, arms, request=request, now=now, **options)
        return write

    def decide(self, app: str, context: bytes, arms: Sequence[bytes], **options: Any) -> Answer:
        """Decide and wait until it is durable."""
        write = self.prepare(app, context, arms, **options)
        return answer(self.writer.write([write])[0], write)

    def reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Written:
        """Journal a reward and wait until it is durable."""
        written: list[Written] = self.writer.write([self.prepare_reward(app, id, value, request, cost)])
        return written[0]

    def prepare_reward(
        self, app: str, id: str, value: float, request: str = "", cost: Any = None, final: bool = False,
        slot: str = "",
    ) -> Write:  # fmt: skip
        """A reward, checked."""
        return self._any().prepare_reward(app, id, value, request, cost, final, slot)

    def activate(self, app: str, id: str, request: str = "") -> Written:
        """A deferred decision was shown."""
        written: list[Written] = self.writer.write([self.prepare_activation(app, id, request)])
        return written[0]

    def prepare_activation(self, app: str, id: str, request: str = "") -> Write:
        """An activation, checked."""
        return self._any().prepare_activation(app, id, request)

    # ------------------------------------------------------------------ what concerns all databases

    def configure(self, app: str, change: Change, request: str = "") -> None:
        """Change settings, from now on; returns when they are in force."""
        with self.merging:  # a change that has not reached all of them is not merged
            for engine in self.each:
                engine.configure(app, change, request)
            self.merge()

    def apply(self, creations: dict[str, Creation], only: bool = True) -> None:
        """Serve these applications from now on; as ``Engine.apply``."""
        for app, creation in creations.items():
            check_merges(app, creation)
        with self.merging:
            for engine in self.each:
                engine.apply(creations, only)
            for app in [app for app, made in self.creations.items() if only and not made.settings.by_request]:
                del self.creations[app]
            self.creations.update(creations)
            self.merge()

    def retire(self, app: str) -> None:
        """Serve an application that was made by request no longer."""
        with self.merging:
            for engine in self.each:
                engine.retire(app)
            self.creations.pop(app, None)
            self.merge()

    def reset(self, app: str, creation: Creation | None = None) -> None:
        """Begin the application's model anew."""
        if creation is not None:
            check_merges(app, creation)
        with self.merging:
            for engine in self.each:
                engine.reset(app, creation)
            self.merge()

    def teach(self, app: str, lessons: Lessons, request: str = "") -> None:
        """Journal what others decided in one of the databases; returns when it is learnt."""
        homes = self.members.homes(asked_by(request) if request else self.new_id())
        for home in homes[1:]:
            engine = self.working(home)
            with engine.reading as journal:
                there = list(journal.look_up("SELECT seq FROM requests", "request", [(app, request)]))
                if there:
                    journal.connection.wait_until_durable()  # what is there is now acknowledged, or refused for it
            if there:
                engine.teach(app, lessons, request)
                return
        self.working(homes[0]).teach(app, lessons, request)
        self.merge()

    def replace(self, app: str, model: bytes) -> None:
        """Put a model from outside in the place of what all have learnt: the first database takes it, and the others
        begin anew, so that it counts once."""
        with self.merging:
            first, *others = self.each
            first.replace(app, model)
            for engine in others:
                copy_application(engine, first, app, anew=True)
            self.merge()

    def export(self, app: str) -> bytes:
        """The merged model as bytes."""
        return exported(self.model(app))

    def expire(self) -> None:
        """Close the windows that are over."""
        for engine in self.each:
            engine.expire()

    def snapshot(self) -> None:
        """Store the models now."""
        for engine in self.each:
            engine.snapshot()

    def wait_learnt(self, timeout: float = 120.0) -> None:
        """Wait until all events are learnt, and merged."""
        for engine in self.each:
            engine.wait_learnt(timeout=timeout)
        self.merge()

    def model(self, app: str) -> Model:
        """The merged model of an application; its version is the sum of the databases'."""
        return served_model(app, self.models, self.creations, self.broken)

    def put_catalogue(self, arms: ArmColumns) -> str:
        """Store arms for requests to name, in every database that works."""
        works = [i for i in self.members.newest if not self._down(i)]
        if not works:
            raise Unavailable("no database can be written now: try again")
        return {self.engines[identity].put_catalogue(arms) for identity in works}.pop()

    def catalogue(self, name: str) -> ArmColumns:
        """The arms that a request names, from whichever database has them."""
        return self._found(sorted(self.engines, key=self._down), lambda engine: engine.catalogue(name))

    def find(self, app: str, id: str, deleted: bool = False) -> tuple[Answer, Decision, Status]:
        """A decision as it was answered and journaled, and where it stands."""
        return self._found(self.members.homes(key_of(id)), lambda engine: engine.find(app, id, deleted))

    def find_with_rewards(self, app: str, id: str) -> tuple[Answer, Decision, Status, list[Row]]:
        """The same, and every reward that it was given, late ones too."""
        return self._found(self.members.homes(key_of(id)), lambda engine: engine.find_with_rewards(app, id))

    def _found(self, homes: Sequence[str], look: Callable[[Engine], T]) -> T:
        """The answer of the first database that knows it; Unknown only if none of them does."""
        missing: Exception = Unavailable("no database can be reached: try again")
        lost: Unavailable | None = None
        for home in homes:
            try:
                return look(self.engine(home))
            except Unknown as error:
                missing = error
            except Unavailable as error:
                lost = error
            except self.store.errors as error:
                log.error("the database %s cannot be read: %s", self.label(home), error)
                lost = Unavailable(f"database {self.label(home)} of {len(self.stores)} cannot be read now: try again")
        raise lost or missing

    @property
    def broken(self) -> dict[str, str]:
        """Why applications cannot be served, as the first database says that has a reason."""
        found: dict[str, str] = {}
        for engine in self.engines.values():
            found = dict(engine.learner.broken) | found
        return found

    def configured(self, app: str) -> tuple[int, Creation | None]:
        """The event by which the configuration last made an application."""
        return self.each[0].configured(app)

    def creation(self, app: str) -> Creation:
        """The event that created an application."""
        return self.creations.get(app) or self.each[0].creation(app)

    def keepers(self, id: str) -> Sequence[Engine]:
        """The engines in whose journals a decision with this id may be, the one for a new decision first."""
        return [self.engine(home) for home in self.members.homes(key_of(id))]

    def pseudonym(self, value: str) -> str:
        """A hash that stands for a value: the databases share the secret that keys it."""
        return next(iter(self.engines.values())).pseudonym(value)

    def uniform(self, app: str, id: str) -> float:
        """The number that an event's arm is drawn with: the databases share their secret."""
        return next(iter(self.engines.values())).uniform(app, id)

    def now(self) -> int:
        """Milliseconds."""
        return next(iter(self.engines.values())).now()

    @property
    def leader(self) -> bool:
        """Whether this process learns for every database."""
        return bool(self.engines) and all(engine.leader for engine in self.engines.values())

    @property
    def learning(self) -> bool:
        """Whether every learner is alive."""
        return bool(self.engines) and all(engine.learning for engine in self.engines.values())

    @property
    def clock_jumps(self) -> int:
        """The number of jumps of the clock since the start."""
        return max((engine.clock_jumps for engine in self.engines.values()), default=0)

    def lag(self) -> int:
        """Events that are durable and not yet published, in the databases that answer."""
        found = 0
        for engine in self.engines.values():
            with contextlib.suppress(Unavailable, *engine.store.errors):
                found += engine.lag()
        return found

    def open_decisions(self) -> dict[str, int]:
        """The number of decisions of each application that wait for a reward, in the databases that answer."""
        found: Counter[str] = Counter()
        for engine in self.engines.values():
            with contextlib.suppress(Unavailable, *engine.store.errors):
                found.update(engine.open_decisions())
        return dict(found)

    @property
    def counts(self) -> CommitCounts:
        """The counts of this process's commits to all databases."""
        whole = CommitCounts()
        for engine in self.engines.values():
            one = engine.counts
            for name in ("decisions", "rewards", "late", "expired"):
                getattr(whole, name).update(getattr(one, name).copy())
            for key, value in one.values.copy().items():
                whole.values[key] = whole.values.get(key, 0.0) + value
        return whole

    def parts(self) -> dict[str, dict[str, float]]:
        """The state of each database, by name."""
        found: dict[str, dict[str, Any]] = {}
        for identity in {**dict.fromkeys(self.members.newest), **self.engines}:
            engine = self.engines.get(identity)
            shown: dict[str, Any] = {"up": int(engine is not None and engine.writer.healthy and engine.writer.moving)}
            if engine is not None:
                shown |= {"queue_depth": engine.writer.depth, "leader": int(engine.leader),
                          "commits_total": engine.writer.commits, "decisions_total": engine.counts.decisions.total(),
                          "rewards_total": engine.counts.rewards.total()}  # fmt: skip
                with contextlib.suppress(Unavailable, *engine.store.errors):
                    shown["lag"] = engine.lag()
            found[self.label(identity)] = shown
        return found
