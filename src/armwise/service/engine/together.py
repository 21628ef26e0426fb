"""What concerns all databases of a service: changes are made in each, in order, and questions answered from all."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from armwise.features.encoding.arms import ArmColumns
from armwise.service.engine.alike import make_one_alike
from armwise.service.engine.counts import Counts
from armwise.service.engine.draw import Answer
from armwise.service.engine.merged import check_merges
from armwise.service.engine.routes import asked_by, key_of
from armwise.service.errors import Unavailable, Unknown
from armwise.service.journal.events import Change, Creation, Decision, Lessons, Row
from armwise.service.journal.rules import Status
from armwise.service.journal.store import Database
from armwise.service.model.model import Model
from armwise.service.model.trial import exported

if TYPE_CHECKING:
    from armwise.service.engine.engine import Engine
    from armwise.service.engine.members import Members

T = TypeVar("T")
log = logging.getLogger("armwise.service")


class Together:
    """The half of ``Shards`` that is about all databases.

    A change is refused before it begins if one of them cannot be written to. One that stops midway is completed when
    it is asked for again, or at the next start: the first database is changed first, and the others follow it.
    """

    engines: dict[str, Engine]
    members: Members
    models: dict[str, Model]
    creations: dict[str, Creation]
    stores: list[Database]
    store: Database
    merging: threading.RLock

    if TYPE_CHECKING:

        @property
        def each(self) -> Sequence[Engine]: ...

        def engine(self, identity: str) -> Engine: ...

        def working(self, identity: str) -> Engine: ...

        def new_id(self, now: int | None = None, request: str = "") -> str: ...

        def merge(self) -> None: ...

        def label(self, identity: str) -> str: ...

        def _down(self, identity: str) -> bool: ...

    # ------------------------------------------------------------------ changes

    def configure(self, app: str, change: Change) -> None:
        """Change settings, from now on; returns when they are in force."""
        with self.merging:  # a change that has not reached all of them is not merged
            for engine in self.each:
                engine.configure(app, change)
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
                if list(journal.named("SELECT seq FROM requests", "request", [(app, request)])):
                    journal.connection.settle()  # it is acknowledged now
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
                make_one_alike(engine, first, app, anew=True)
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

    # ------------------------------------------------------------------ questions

    def model(self, app: str) -> Model:
        """The merged model of an application; its version is the sum of the databases'."""
        try:
            return self.models[app]
        except KeyError:
            if app not in self.creations:
                raise Unknown(f"no application is called {app!r}") from None
            reason = self.broken.get(app, "it has no model yet")
            raise Unavailable(f"{app!r} cannot be served: {reason}; see the log") from None

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

    def rewards(self, app: str, id: str) -> list[Row]:
        """Every reward that a decision was given, late ones too."""

        def look(engine: Engine) -> list[Row]:
            engine.find(app, id, deleted=True)
            return engine.rewards(app, id)

        return self._found(self.members.homes(key_of(id)), look)

    def _found(self, homes: Sequence[str], look: Callable[[Engine], T]) -> T:
        """What the first database says that knows it; Unknown only if none of them does."""
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
        """What the configuration last made an application of."""
        return self.each[0].configured(app)

    def creation(self, app: str) -> Creation:
        """What an application is made of."""
        return self.creations.get(app) or self.each[0].creation(app)

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
        """How often the clock jumped since the start."""
        return max((engine.clock_jumps for engine in self.engines.values()), default=0)

    def lag(self) -> int:
        """Events that are durable and not yet published, in the databases that answer."""
        found = 0
        for engine in self.engines.values():
            with contextlib.suppress(Unavailable, *engine.store.errors):
                found += engine.lag()
        return found

    def open_decisions(self) -> dict[str, int]:
        """How many decisions of each application wait for a reward, in the databases that answer."""
        found: Counter[str] = Counter()
        for engine in self.engines.values():
            with contextlib.suppress(Unavailable, *engine.store.errors):
                found.update(engine.open_decisions())
        return dict(found)

    @property
    def counts(self) -> Counts:
        """What this process has committed, to all databases."""
        whole = Counts()
        for engine in self.engines.values():
            one = engine.counts
            for name in ("decisions", "rewards", "late", "expired"):
                getattr(whole, name).update(getattr(one, name).copy())
            for key, value in one.values.copy().items():
                whole.values[key] = whole.values.get(key, 0.0) + value
        return whole

    def parts(self) -> dict[str, dict[str, float]]:
        """How each database fares, by name."""
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
