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
from collections.abc import Callable, Sequence
from typing import Any

from armwise.features.encoding.arms import ArmColumns, check_id
from armwise.service.engine.alike import make_alike
from armwise.service.engine.draw import Answer, answer
from armwise.service.engine.engine import Engine
from armwise.service.engine.members import Desk, Members, first
from armwise.service.engine.merged import check_merges, merge
from armwise.service.engine.routes import Routes, asked_by, key_of
from armwise.service.engine.together import Together
from armwise.service.errors import Unavailable
from armwise.service.journal.append import Write, Written
from armwise.service.journal.events import Creation
from armwise.service.journal.store import Database
from armwise.service.model.model import Model

log = logging.getLogger("armwise.service")
MERGE_EVERY = 0.1  # seconds between two merges, at least
MERGE_SHARE = 0.05  # of a processor that merging may take
LOOK_EVERY = 1.0  # seconds between two looks after the databases
YIELD_EVERY = 2.0  # seconds between two leads that are given away
FOUNDING = 60.0  # seconds that the first start waits for processes that serve from one of the databases alone


class Shards(Together):
    """All applications over several databases."""

    def __init__(
        self, stores: Sequence[Database], applications: dict[str, Creation], *, snapshot_every: float = 30.0,
        adopt: bool = False, clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self.stores, self.creations, self.adopt = list(stores), dict(applications), adopt
        self.store = self.stores[0]  # its kind: what it raises
        self._options: dict[str, Any] = {"snapshot_every": snapshot_every, "adopt": adopt, "clock": clock}
        self.members = Members(0, [], {})
        self.engines: dict[str, Engine] = {}  # by identity
        self._desks: dict[str, Desk] = {}
        self.models: dict[str, Model] = {}
        self.unmerged: dict[str, str] = {}  # why the parts of an application cannot be added up
        self._made_of: dict[str, tuple[Any, ...]] = {}
        self.writer = Routes(self)
        self._looking, self.merging = threading.RLock(), threading.RLock()
        self._waiting: list[tuple[int, Callable[[], None], Callable[[Exception], None]]] = []
        self._said = ""  # of what is wrong with the databases, which is not said every second
        self._news, self._ending = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._yield_at = 0.0
        self.merges, self.merge_seconds, self.merged_at = 0, 0.0, 0.0

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Find out which databases there are, recover from each that can be reached, and begin."""
        for app, creation in self.creations.items():
            check_merges(app, creation)
        with self._looking:
            reasons = self._open_desks()
            for reason in reasons:
                log.error("%s", reason)
            self._agree()
            for identity in list(self._desks):
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
        for desk in self._desks.values():
            desk.close()

    def _open_desks(self) -> list[str]:
        """Speak to every database that answers; why others do not."""
        known, reasons = {str(desk.store) for desk in self._desks.values()}, []
        for store in self.stores:
            if str(store) in known:
                continue
            try:
                desk = Desk(store)
            except store.errors as error:
                reasons.append(f"{store} cannot be reached: {error}")
                continue
            if (twice := self._desks.get(desk.identity)) is not None:
                desk.close()
                raise ValueError(f"storage: {store} and {twice.store} are the same database")
            self._desks[desk.identity] = desk
        return reasons

    def _agree(self) -> None:
        """Take the newest sets that any database knows, and let all of these know them: a half-done change is done."""
        told = []
        for desk in self._desks.values():
            with contextlib.suppress(*desk.store.errors):
                desk.attend(self._desks)
                if (found := desk.members()) is not None:
                    told.append(found)
        lost = len(self.stores) - len(self._desks)
        if not told:
            if lost:
                raise RuntimeError(f"at the first start every database is needed, and {lost} cannot be reached")
            newest = first(self._desks.values())
        else:
            newest = max(told, key=lambda members: members.spread)
        missing = [identity for identity in newest.newest if identity not in self._desks]
        if len(missing) > lost:
            named = ", ".join(newest.names[identity] for identity in missing)
            raise ValueError(f"storage lacks a database that decisions were spread over: one of {named}")
        secret = self._desks[min(newest.newest or self._desks, key=lambda i: (i not in self._desks, i))].journal.meta(
            "secret"
        )
        for identity, desk in self._desks.items():
            if identity not in newest.newest:
                if newest.sets and desk.decided():
                    raise ValueError(f"{desk.store} has decisions of its own: only an empty database can be added")
                desk.share_secret(secret)
        self._adopt(newest)

    def _adopt(self, members: Members) -> None:
        for identity in members.newest:
            if members.spread and (desk := self._desks.get(identity)) is not None:
                with contextlib.suppress(*desk.store.errors):  # nothing is decided there before it knows
                    desk.put(members)
        self.members = members

    def _start_engine(self, identity: str) -> None:
        engine = Engine(self._desks[identity].store, self.creations, **self._options)
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
        if len(self._desks) < len(self.stores) or len(self.engines) < len(self._desks):
            return False
        joining = {i: str(d.store) for i, d in self._desks.items() if i not in self.members.newest}
        if not joining:
            return True
        if any(desk.others(self._desks) for desk in self._desks.values()) or any(map(self._down, self._desks)):
            return False
        self._align()
        changed = self.members.joined(joining)
        arbiter = self._desks[min(self.members.sets[0] if self.members.sets else self._desks)]
        if (agreed := arbiter.put(changed)) != changed:  # another process was quicker, perhaps with another database
            missing = set(agreed.newest) - set(self._desks)
            if missing:
                raise RuntimeError(f"storage lacks {', '.join(agreed.names[i] for i in missing)}")
        self._adopt(agreed)
        log.info("decisions are spread over %s databases", len(agreed.newest))
        return not set(self._desks) - set(agreed.newest)

    def _align(self) -> None:
        """Let the applications of all databases be what those of the first one are."""
        pattern = self.engines[min(self.members.newest or self._desks)]
        with self.merging:  # not before all are alike
            for engine in self.engines.values():
                make_alike(engine, pattern)

    # ------------------------------------------------------------------ the threads

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
                    log.error("the databases cannot be looked after: %s", said)
            self._said = said
            for spread, again, refuse in waiting:
                try:
                    if self.members.spread == spread:
                        raise Unavailable("a database was added that this process does not know of: it must be told")
                    again()
                except Exception as error:
                    refuse(error)

    def _look(self, hurry: bool) -> None:
        if not hurry:
            self._open_desks()
        self._agree()
        if hurry:
            return
        for identity in [i for i in self._desks if i not in self.engines]:
            self._start_engine(identity)
            log.info("the database %s is served now", self._desks[identity].store)
        self._advance()
        self._share_lead()

    def _share_lead(self) -> None:
        """Learn for no more databases than this process's share of them, where others can."""
        mine = [identity for identity, engine in self.engines.items() if engine.leader]
        if len(mine) < 2 or time.monotonic() < self._yield_at:
            return
        self._yield_at = time.monotonic() + YIELD_EVERY
        processes = max(self._desks[mine[-1]].processes(), 1)
        if len(mine) > -(-len(self.engines) // processes):
            self.engines[mine[-1]].learner.yield_lead()

    def when_known(self, spread: int, again: Callable[[], None], refuse: Callable[[Exception], None]) -> None:
        """Do something again when newer sets than ``spread`` are known here; without waiting."""
        self._waiting.append((spread, again, refuse))
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

    # ------------------------------------------------------------------ which database

    def label(self, identity: str) -> str:
        """A database for those who need not know its host: its place in ``storage``, from 1."""
        desk = self._desks.get(identity)
        name = self.members.names.get(identity, "") if desk is None else str(desk.store)
        places = [place for place, store in enumerate(self.stores, 1) if str(store) == name]
        return str(places[0] if places else "?")

    def states(self) -> dict[str, str]:
        """How each database fares, in words."""
        found = {}
        for identity in {**dict.fromkeys(self.members.newest), **self._desks}:
            state = "ready" if identity in self.members.newest else "joining"
            if identity in self.engines and (broken := sorted(self.engines[identity].learner.broken)):
                state = f"{state}, but cannot serve {', '.join(broken)}"
            found[self.label(identity)] = "cannot be written" if self._down(identity) else state
        return found

    @property
    def started(self) -> Sequence[Engine]:
        """The engines that work, or did."""
        return list(self.engines.values())

    def add(self, stores: Sequence[Database]) -> None:
        """Take in databases that are not known yet; new decisions go there once every process knows them.

        ValueError, and nothing changes, if one that is known is missing.
        """
        known = {str(store) for store in self.stores}
        if missing := known - {str(store) for store in stores}:
            raise ValueError(f"storage: a database cannot be taken away: {', '.join(sorted(missing))}")
        with self._looking:
            self.stores += [store for store in stores if str(store) not in known]
            self._look(False)

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
        return [self.working(identity) for identity in {**dict.fromkeys(self.members.newest), **self._desks}]

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

    # ------------------------------------------------------------------ requests

    def prepare(
        self, app: str, context: bytes, arms: Sequence[bytes] | ArmColumns, *, id: str | None = None,
        request: str = "", now: int | None = None, **options: Any,
    ) -> Write:  # fmt: skip
        """Decide, without journaling yet; as ``Engine.prepare``."""
        spread = self.members.spread
        named = self.new_id(now, asked_by(request)) if id is None else check_id("the event id", id)
        home = self.members.owner(key_of(named))
        write = self.engine(home).prepare(app, context, arms, id=named, request=request, **options)
        write.home, write.fresh, write.spread = home, id is None, spread
        return write

    def decide(self, app: str, context: bytes, arms: Sequence[bytes], **options: Any) -> Answer:
        """Decide and wait until it is durable."""
        write = self.prepare(app, context, arms, **options)
        return answer(self.writer.write([write])[0], write)

    def reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Written:
        """Journal a reward and wait until it is durable."""
        written: list[Written] = self.writer.write([self.prepare_reward(app, id, value, request, cost)])
        return written[0]

    def prepare_reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Write:
        """A reward, checked."""
        return self._any().prepare_reward(app, id, value, request, cost)

    def activate(self, app: str, id: str, request: str = "") -> Written:
        """A deferred decision was shown."""
        written: list[Written] = self.writer.write([self.prepare_activation(app, id, request)])
        return written[0]

    def prepare_activation(self, app: str, id: str, request: str = "") -> Write:
        """An activation, checked."""
        return self._any().prepare_activation(app, id, request)
