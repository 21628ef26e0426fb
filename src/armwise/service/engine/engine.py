"""The engine: decide, reward, activate, and say what became of it; free of any web framework.

Two threads work beside the callers. The *writer* commits what is submitted and only then answers. The *learner* reads
the journal in order and folds it into the models; at times it publishes a copy of each, and decisions are made from
the copies. So learning never blocks deciding, and the models are a function of the journal alone.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from armwise.features.encoding.arms import ArmColumns, read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.base_engine import BaseEngine
from armwise.service.engine.clock import TrustedClock
from armwise.service.engine.commit_counts import CommitCounts
from armwise.service.engine.ids import Ids
from armwise.service.engine.journal_reader import JournalReader
from armwise.service.engine.learning.learner import Learner, Snapshots
from armwise.service.engine.requests.draw import uniform
from armwise.service.engine.startup import apply, await_applications, rehearse_models
from armwise.service.engine.writer import Writer
from armwise.service.journal.databases.database import Database
from armwise.service.journal.errors import Unavailable, Unknown
from armwise.service.journal.events import (
    Change,
    Creation,
    Event,
    Expiry,
    Import,
    Row,
)
from armwise.service.journal.journal import Journal
from armwise.service.journal.members import stand_alone
from armwise.service.journal.pace import Pace
from armwise.service.journal.system import SYSTEM, System
from armwise.service.journal.writes import Write, Written
from armwise.service.model.model import Model
from armwise.service.model.trial import check_creation, check_import, exported


def served_model(app: str, models: Mapping[str, Model], creations: Collection[str], broken: Mapping[str, str]) -> Model:
    """The published model of an application; raise Unknown or Unavailable if there is none."""
    try:
        return models[app]
    except KeyError:
        if app not in creations:
            raise Unknown(f"no application is called {app!r}") from None
        reason = broken.get(app, "it has no model yet")
        raise Unavailable(f"{app!r} cannot be served: {reason}; see the log") from None


class Engine(BaseEngine):
    """All applications over one journal."""

    def __init__(
        self,
        store: Database,
        applications: dict[str, Creation],
        *,
        clock: Callable[[], float] | None = None,
        snapshot_every: float = 30.0,
        publish_every: float = 0.03,
        adopt: bool = False,
        system: System = SYSTEM,
    ) -> None:
        super().__init__(Ids(system.random_bytes))
        self.store, self.creations, self.system = store, dict(applications), system
        self._clock = clock or TrustedClock()
        self.learner = Learner(
            store,
            self.open_journal,
            self._save,
            applications=self.creations,
            publish_every=publish_every,
            snapshot_every=snapshot_every,
            system=system,
        )
        self.alone = True  # False: one of several databases, whose models are merged (``shards``)
        self.merged: dict[str, Model] | None = None  # what decisions are made from then
        self.merging = contextlib.nullcontext()  # held while several databases are changed, one after the other
        self.writer = Writer(self._telling_journal, self.now, self.expire_some, system=system)
        self._reading = JournalReader(self.writer, system)
        self.counts = CommitCounts()
        self._open: dict[str, int] = {}
        self._counted_at = -1e9
        self.adopt = adopt  # applications that the journal has are served as it has them
        self._catalogues: dict[str, ArmColumns] = {}
        self._looking, self.changing, self.evaluating = system.lock(), system.lock(), system.lock()

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Recover from the journal, create new applications, and start the threads."""
        if not self.store.shared and not self.store.lead():
            holder = getattr(self.store, "holder", "")
            named = f"the process {holder}" if holder else "another process"
            raise RuntimeError(f"{named} is serving from this journal")
        journal = self.open_journal()
        self._reading.open(journal)
        if self.alone and self.store.shared:
            stand_alone(journal.connection)
        self._secret = journal.meta("secret")
        if journal.connection.tail is not None:
            journal.connection.tail.begin(journal)
        if isinstance(self._clock, TrustedClock):
            self._clock.continue_from(journal.last()[1] / 1000.0)
        self.recover()
        self.writer.start()
        with self.reading as journal:
            made_by_request = journal.made_by_request()
        for app, made in made_by_request.items():
            self.creations.setdefault(app, made)
        apply(self, self.creations)
        if self.leader:
            self.learner.catch_up()
        self.learner.start()
        await_applications(self)
        rehearse_models(self)

    def stop(self) -> None:
        """Commit and learn what was submitted, take a snapshot, and stop. Acknowledged writes are kept in any case."""
        self.learner.stop()
        self.writer.stop()
        self._reading.close()
        self.store.close()

    def recover(self) -> None:
        """Load the newest snapshots and fold in later events."""
        self.learner.recover()

    @property
    def models(self) -> dict[str, Model]:
        """The published models of the configured applications, which decide."""
        return self.learner.served if self.merged is None else self.merged

    @property
    def broken(self) -> dict[str, str]:
        """The reasons why applications cannot be served, by name."""
        return self.learner.broken

    @property
    def leader(self) -> bool:
        """Whether this process learns; one of several on a journal does."""
        return self.learner.leader

    @property
    def learning(self) -> bool:
        """Whether the learner is alive."""
        return self.learner.alive

    @property
    def clock_jumps(self) -> int:
        """The number of jumps of the clock since the start."""
        return getattr(self._clock, "jumps", 0)

    @property
    def draws_again(self) -> bool:
        """Whether other processes decide from the same journal."""
        return self.store.shared and self.merged is None

    @property
    def reading(self) -> JournalReader:
        """The session for reading, for one reader at a time."""
        return self._reading

    def write(self, group: Sequence[Write]) -> Sequence[Written]:
        """Have the writer commit a group; return when it is durable."""
        written: Sequence[Written] = self.writer.write(group)
        return written

    def open_journal(self) -> Journal:
        """Open the journal in a new session; the caller closes it."""
        connection = self.store.connect()
        try:
            journal = Journal(connection, self.store.lock, self.store.clock, self.system)
        except BaseException:
            connection.close()
            raise
        journal.pace = Pace(lambda: self.writer.busy, self.system)
        return journal

    def _telling_journal(self) -> Journal:
        journal = self.open_journal()
        journal.on_commit = self._take_committed
        return journal

    def _take_committed(self, committed: list[tuple[Row, Write]]) -> None:
        self.learner.take_committed(committed)
        self.counts.take(committed)

    def _save(self, snapshots: Snapshots, upto: int, without: list[str]) -> None:
        """Store models in a separate session, so that no commit waits for them."""
        leading = self.store.leading()
        if leading is not None:  # the session that holds the lead: once that is lost, so is the right to publish
            Journal(leading, system=self.system).put_snapshots(snapshots, upto, without)
            return
        journal = self.open_journal()
        try:
            journal.put_snapshots(snapshots, upto, without)
        finally:
            journal.connection.close()

    def now(self) -> int:
        """Milliseconds, by a clock that never goes back."""
        return int(self._clock() * 1000.0)

    def expire(self) -> None:
        """Close the windows that are over; the writer also does so several times a second."""
        answers: list[bool] = []
        while True:
            self.writer.run(lambda journal: answers.append(self.expire_some(journal)))
            if not answers or not answers.pop():  # none: it failed, which the writer's health says
                return

    def expire_some(self, journal: Journal) -> bool:
        """Close some of the windows that are over, so that decisions can come between; True if there may be more."""
        due = journal.due(self.now()) if self.leader else []
        if due:
            journal.append([[Write(s.app, s.id, Expiry())] for s in due], self.now())
        return bool(due)

    def snapshot(self) -> None:
        """Store the models that changed now; the learner also does so from time to time."""
        self.wait_learnt()
        self.learner.save()

    def wait_learnt(self, seq: int | None = None, timeout: float = 120.0) -> None:
        """Wait until the published models include all events up to ``seq`` (default: all)."""
        if seq is None:
            with self.reading as journal:
                seq = journal.last()[0]
        self.learner.wait(seq, timeout)

    def lag(self) -> int:
        """The number of durable events that no published model includes yet."""
        with self.reading as journal:
            return journal.last()[0] - self.learner.published

    def open_decisions(self) -> dict[str, int]:
        """The number of decisions of each application that wait for a reward; counted at most every few seconds."""
        if self.system.monotonic() - self._counted_at > 5.0:
            with self.reading as journal:
                rows = journal.connection.execute("SELECT app, count(*) FROM decisions WHERE closed = 0 GROUP BY app")
            self._open, self._counted_at = {app: int(n) for app, n in rows}, self.system.monotonic()
        return self._open

    # ------------------------------------------------------------------ applications: each change is an event

    def model(self, app: str) -> Model:
        """The published model of an application."""
        found = self.models.get(app)
        return served_model(app, self.models, self.creations, self.broken) if found is None else found

    def configured(self, app: str) -> tuple[int, Creation | None]:
        """The description that the configuration last gave an application, and its event."""
        with self.reading as journal:
            return journal.configured(app)

    def creation(self, app: str) -> Creation:
        """The event that created an application, by configuration or by request."""
        made = self.creations.get(app) or self.configured(app)[1]
        if made is None:
            raise Unknown(f"no application is called {app!r}")
        return made

    def configure(self, app: str, change: Change, request: str = "") -> None:
        """Change settings (and ``epsilon`` where the agent has one); return when they apply.

        Conflict where a change of the same ``request``, and other content, came before."""
        model = self.model(app)
        settings = model.settings.changed(change)
        model.check_reward(settings.default)
        model.check_settings(settings)
        epsilon = change.epsilon
        if epsilon is not msgspec.UNSET and not (hasattr(model.agent, "epsilon") and 0.0 <= epsilon <= 1.0):
            raise InvalidInput("epsilon must lie in [0, 1], for an agent that has one")
        self.journal_change(app, change, request=request)

    def apply(self, creations: dict[str, Creation], only: bool = True) -> None:
        """Serve these applications from now on; with ``only``, no others except those created by request.

        Returns when what changed is learnt here."""
        last = apply(self, creations)
        for app in [app for app, made in self.creations.items() if only and not made.settings.by_request]:
            del self.creations[app]
        self.creations.update(creations)
        self.wait_learnt(last)
        self.learner.refresh()

    def retire(self, app: str) -> None:
        """Stop serving an application that was created by request; its events stay in the journal."""
        made = self.creation(app)
        self.wait_learnt(
            apply(self, {app: msgspec.structs.replace(made, settings=made.settings.changed(Change(by_request=False)))})
        )
        self.creations.pop(app, None)
        self.learner.refresh()

    def reset(self, app: str, creation: Creation | None = None) -> None:
        """Restart the application's model, as it was created or from another description."""
        self.model(app)
        if creation is not None:
            check_creation(creation)
        self.journal_change(app, msgspec.structs.replace(creation or self.creation(app), train=False), id="reset")

    def replace(self, app: str, model: bytes) -> None:
        """Replace the application's model by another that ``export`` wrote."""
        check_import(model, self.model(app))
        self.journal_change(app, Import.of(model))

    def export(self, app: str) -> bytes:
        """The published model as bytes, for ``replace`` here or elsewhere."""
        return exported(self.model(app))

    def journal_change(self, app: str, event: Event, id: str = "", request: str = "") -> None:
        """Journal an event that changes an application, without checks; return when it is learnt."""
        self.wait_learnt(self.write([Write(app, id, event, request)])[0].row.seq)

    def put_catalogue(self, arms: ArmColumns) -> str:
        """Store a catalogue of arms; return its hash when it is durable."""
        text, done = arms.text, []
        self.writer.run(lambda journal: done.append(journal.put_catalogue(text, self.now())))
        if not done:
            raise Unavailable("the journal cannot be written now: try again")
        return done[0].hex()

    def catalogue(self, name: str) -> ArmColumns:
        """The arms of a catalogue; read once and cached while they are in use."""
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

    # ------------------------------------------------------------------ as one of several databases would answer

    @property
    def writable(self) -> bool:
        """Whether decisions can be journaled, as far as the last attempt shows."""
        return self.writer.healthy

    def states(self) -> dict[str, str]:
        """The state of each database in words, if there are several."""
        return {}

    def parts(self) -> dict[str, dict[str, float]]:
        """The state of each database in numbers, if there are several."""
        return {}

    def totals(self) -> dict[str, float]:
        """The totals of merging, if there are several databases."""
        return {}

    def add(self, stores: Sequence[Database]) -> bool:
        """Add new databases, if there can be several; return whether there can."""
        return False

    def merge(self) -> None:
        """Serve what all databases have learnt; with one, it is served already."""

    @property
    def started(self) -> Sequence[Engine]:
        """The engines that are running."""
        return (self,)

    @property
    def each(self) -> Sequence[Engine]:
        """The engines with a journal: this one."""
        return (self,)

    def keepers(self, id: str) -> Sequence[Engine]:
        """The engines in whose journals a decision with this id may be: this one."""
        return (self,)

    def pseudonym(self, value: str) -> str:
        """A hash that stands for a value, keyed with the journal's secret: the same in every process."""
        return hashlib.blake2b(value.encode(), digest_size=16, key=self._secret).hexdigest()

    def uniform(self, app: str, id: str) -> float:
        """The number in [0, 1) that an event's arm is drawn with: fixed by the journal's secret, the names alone.

        It is the first 8 bytes of BLAKE2b (keyed with the secret) of application, NUL, id, as a little-endian
        integer, shifted right by 11 and divided by 2^53."""
        return uniform(self._secret, app, id)
