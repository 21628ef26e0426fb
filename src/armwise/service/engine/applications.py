"""The applications of a journal: what they are made of, and how that is changed; each change is an event."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from armwise.features.encoding.arms import ArmColumns, read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.journaling import Journaling
from armwise.service.engine.startup import apply, await_applications, warm
from armwise.service.errors import Unavailable, Unknown
from armwise.service.journal.append import Write
from armwise.service.journal.events import Change, Creation, Event, Import, Lessons
from armwise.service.journal.store import Database
from armwise.service.model.model import Model
from armwise.service.model.trial import check_creation, check_import, exported


class Applications(Journaling):
    """A journal at work whose applications are created, configured, taught, replaced and retired.

    >>> from armwise.service.journal.sqlite import SQLite
    >>> applications = Applications(SQLite.temporary(), {"shop": Creation()})
    >>> applications.start(); sorted(applications.models); applications.stop()
    ['shop']
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
        super().__init__(store, applications, clock=clock, snapshot_every=snapshot_every, publish_every=publish_every)
        self.adopt = adopt  # applications that the journal has are served as it has them
        self._catalogues: dict[str, ArmColumns] = {}
        self._looking = threading.Lock()

    def start(self) -> None:
        """Recover from the journal, create what is new, and begin.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> applications = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> applications.start(); sorted(applications.models); applications.stop()
        ['shop']
        """
        super().start()
        with self.reading as journal:
            made_by_request = journal.made_by_request()
        for app, made in made_by_request.items():
            self.creations.setdefault(app, made)
        apply(self, self.creations)
        if self.leader:
            self.learner.catch_up()
        self.learner.start()
        await_applications(self)
        warm(self)

    def model(self, app: str) -> Model:
        """The published model of an application.

        >>> Applications(None, {}).model("shop")
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unknown: no application is called 'shop'
        """
        try:
            return self.models[app]
        except KeyError:
            if app not in self.creations:
                raise Unknown(f"no application is called {app!r}") from None
            reason = self.learner.broken.get(app, "it has no model yet")
            raise Unavailable(f"{app!r} cannot be served: {reason}; see the log") from None

    def configured(self, app: str) -> tuple[int, Creation | None]:
        """What the configuration last made an application of, and the event that said so.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation(seed=3)})
        >>> engine.start(); engine.configured("shop")[1].seed; engine.stop()
        3
        """
        with self.reading as journal:
            return journal.configured(app)

    def creation(self, app: str) -> Creation:
        """What an application is made of by its configuration, or by the request that made it.

        >>> Applications(None, {"shop": Creation(seed=3)}).creation("shop").seed
        3
        """
        made = self.creations.get(app) or self.configured(app)[1]
        if made is None:
            raise Unknown(f"no application is called {app!r}")
        return made

    def forgotten(self, app: str) -> int:
        """The event up to which the application's log was deleted: nothing shows what is before.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.forgotten("shop"); engine.stop()
        0
        """
        return self.model(app).settings.forgotten

    def configure(self, app: str, change: Change) -> None:
        """Change settings (and ``epsilon`` where the agent has one), from now on; returns when they are in force.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
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
        self.journal_change(app, change)

    def apply(self, creations: dict[str, Creation], only: bool = True) -> None:
        """Serve these applications from now on, and with ``only`` no others but those made by request.

        Returns when what changed is learnt here.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
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

        >>> from armwise.service.journal.events import Settings
        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {})
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

    def reset(self, app: str, creation: Creation | None = None) -> None:
        """Begin the application's model anew, as it was created, or from something else.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.reset("shop"); engine.models["shop"].lessons; engine.stop()
        0
        """
        self.model(app)
        if creation is not None:
            check_creation(creation)
        self.journal_change(app, msgspec.structs.replace(creation or self.creation(app), train=False), id="reset")

    def teach(self, app: str, lessons: Lessons, request: str = "") -> None:
        """Journal what others decided, for the application's model to learn; returns when it is learnt.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> from armwise.service.journal.events import Decision
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> engine.start(); engine.teach("shop", Lessons([asked], [1.0])); engine.model("shop").lessons; engine.stop()
        1
        """
        model = self.model(app)
        for reward in lessons.rewards:
            model.check_reward(reward)
        self.journal_change(app, lessons, request=request)

    def replace(self, app: str, model: bytes) -> None:
        """Put a model from outside (as ``export`` gave it) in place of the application's own.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> engine.replace("shop", engine.export("shop")); engine.stop()
        """
        check_import(model, self.model(app))
        self.journal_change(app, Import.of(model))

    def export(self, app: str) -> bytes:
        """The published model as bytes, for ``replace`` here or elsewhere.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.export("shop")[:8]; engine.stop()
        b'ARMWISE!'
        """
        return exported(self.model(app))

    def journal_change(self, app: str, event: Event, id: str = "", request: str = "") -> None:
        """Journal an event that changes an application, unchecked; returns when it is learnt.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.journal_change("shop", Change(window=5.0)); engine.models["shop"].settings.window
        5.0
        >>> engine.stop()
        """
        written = self.writer.write([Write(app, id, event, request)])
        self.wait_learnt(written[0].row.seq)

    # ------------------------------------------------------------------ catalogues

    def put_catalogue(self, arms: ArmColumns) -> str:
        """Store arms for requests to name; returns their hash when they are durable.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
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

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Applications(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.catalogue("00" * 16)
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unknown: no catalogue has the hash 00000000000000000000000000000000: send its arms again
        >>> engine.stop()
        """
        with self._looking:
            arms = self._catalogues.pop(name, None)
        if arms is None:
            try:
                hash = bytes.fromhex(name)
            except ValueError:
                raise InvalidInput(f"catalogue must be a hash of 32 hexadecimal digits, got {name[:40]!r}") from None
            with self.reading as journal:
                found = journal.catalogues([hash])
            if hash not in found:
                raise Unknown(f"no catalogue has the hash {name}: send its arms again")
            arms = read_arms([bytes(arm) for arm in found[hash]])
        with self._looking:
            self._catalogues[name] = arms  # the last used is the last to go
            while len(self._catalogues) > 32:
                del self._catalogues[next(iter(self._catalogues))]
        return arms
