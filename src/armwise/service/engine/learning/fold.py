"""Fold events into models: the same events in the same order give the same models, bit for bit."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from armwise.core import saving
from armwise.service.engine.learning.training import train
from armwise.service.journal.compaction_snapshots import compaction_snapshot
from armwise.service.journal.events import (
    Activation,
    Change,
    Creation,
    Erasure,
    Expiry,
    Import,
    Lessons,
    Reward,
    Row,
    Version,
    decided,
)
from armwise.service.journal.journal import Journal, SnapshotMark
from armwise.service.journal.source import EventSource
from armwise.service.model.build import build_model
from armwise.service.model.model import DecisionOutcome, Model
from armwise.service.model.versions import Challenger, fold_version, inherit

log = logging.getLogger("armwise.service")

MAX_OUTCOMES_READ = 500  # outcomes that waited for their windows, whose decisions are read together
DECISION = "decision"  # the kind of most events
ANEW = ("create", "import")  # the kinds of events with which a model begins anew
MAX_RECENT = 3_000  # decisions kept in memory for their rewards


def fold(
    models: dict[str, Model],
    rows: Sequence[Row],
    journal: EventSource | None,
    recent: dict[int, Row] | None = None,
    broken: dict[str, str] | None = None,
) -> None:
    """Fold events into the models of their applications, in order.

    An application whose events cannot be folded goes from ``models`` to ``broken`` (None: it is an error). Where the
    journal cannot be read, that is no fault of theirs: it is raised, and all is folded again later.
    What a row has ``seen``, and ``recent``, the decisions whose rewards may come soon, spare reading what is still in
    memory: they change how fast it is, and nothing else.
    """
    recent = {} if recent is None else recent
    unreadable: tuple[type[Exception], ...] = () if journal is None else journal.errors
    lessons: dict[int, int] = {}  # the decision that an event is about, where there is something to learn
    for row in rows:
        try:
            if row.kind == DECISION:
                decided(row)
                recent[row.seq] = row
            elif decision := row.teaches:
                lessons[row.seq] = decision
        except ValueError:  # it is found again, and named, when its turn comes
            if row.kind != DECISION and broken is None:
                raise
    if lessons and journal is not None and (missing := [seq for seq in lessons.values() if seq not in recent]):
        for seq, row in journal.rows(missing).items():
            with contextlib.suppress(ValueError):  # its lesson says what is the matter
                decided(row)
                recent[seq] = row
    at, n = 0, len(rows)
    while at < n:
        row = rows[at]
        model = models.get(row.app)
        if model is not None and (model.waiting or model.versions):
            _learn_waiting(model, journal, recent, row.time)
        if row.kind == DECISION and model is not None and row.seq in recent:
            run = _decisions_from(model, rows, at, recent)
            at += len(run)
            try:
                model.register_decisions(run)
                model.version = run[-1].seq
                for challenger in model.versions.values():
                    challenger.follow(run[-1], None)
            except Exception as error:
                if broken is None:
                    raise
                which = f"event {row.seq}" if len(run) == 1 else f"events {row.seq} to {run[-1].seq}"
                give_up(models, broken, row.app, f"{which} (decision) cannot be folded in: {error}")
            continue
        at += 1
        if broken is not None and model is None and not row.is_a(Creation):
            broken.setdefault(row.app, f"event {row.seq} is for it, but it has no model")
            continue
        try:
            match event := row.event:
                case Reward() | Activation() | Expiry() if model is not None:
                    if row.seq in lessons:
                        about = recent[lessons[row.seq]]
                        taught = decided(about)
                        deadline = about.time + taught.window
                        model.apply_outcomes([DecisionOutcome(event, taught, about.seen, deadline)])
                case Creation() as creation:
                    models[row.app] = _made(creation, journal, row, model)
                    if model is not None:
                        inherit(models[row.app], model)
                case _ if model is None:
                    raise ValueError(f"event {row.seq} is for {row.app!r}, which was never created")
                case Import() as imported:
                    models[row.app] = saving.loads(imported.data)
                    # The settings are the application's, not the model's, and what waits is of another journal.
                    models[row.app].settings, models[row.app].assumed = model.settings, row.seq
                    models[row.app].waiting = []
                    inherit(models[row.app], model)
                case Lessons() as lessons_of_others:
                    model.warm_start(lessons_of_others)
                case Version():
                    make = functools.partial(_made, journal=journal, row=row, before=model)
                    models[row.app] = fold_version(model, row, make)
                case Change() as change:
                    if change.forgotten is not msgspec.UNSET:
                        _learn_waiting(model, journal, recent, math.inf)
                    model.configure(change)
                case Erasure():  # decisions may go: what they still have to teach is learnt before
                    _learn_waiting(model, journal, recent, math.inf)
            leader = models[row.app]
            leader.version = row.seq
            if row.kind in ANEW:
                leader.since, leader.name = row.seq, f"v{row.seq}"
            if leader.versions:
                made = recent[lessons[row.seq]] if row.seq in lessons else None
                for challenger in leader.versions.values():
                    challenger.follow(row, made)
        except unreadable:
            raise
        except Exception as error:
            if broken is None:
                raise
            give_up(models, broken, row.app, f"event {row.seq} ({row.kind}) cannot be folded in: {error}")
            continue
        if broken and row.kind in ANEW:
            broken.pop(row.app, None)


def drop_oldest(recent: OrderedDict[int, Row]) -> None:
    """Forget the oldest decisions that were kept for their rewards, and what was seen of them.

    One by one, as others come: thousands at once hold the GIL for 7 ms, every half a second at 4,000 decisions/s.
    """
    while len(recent) > MAX_RECENT:
        recent.popitem(last=False)[1].seen = None  # a journal in memory keeps the row


def _decisions_from(model: Model, rows: Sequence[Row], at: int, recent: dict[int, Row]) -> Sequence[Row]:
    """The consecutive decisions of one application from that of a row on; one at a time if it has versions."""
    app, end, n = rows[at].app, at + 1, len(rows)
    if not (model.versions or model.waiting):
        while end < n and (row := rows[end]).kind == DECISION and row.app == app and row.seq in recent:
            end += 1
    return rows[at:end]


def _learn_waiting(leader: Model, journal: EventSource | None, recent: dict[int, Row], now: float) -> None:
    """Learn, in versions that cannot correct what they learnt, the outcomes whose windows closed before ``now``."""
    for one in (leader, *(each for each in leader.versions.values() if not each.broken)):
        model = one.model if isinstance(one, Challenger) else one
        while due := model.take_waiting(now, MAX_OUTCOMES_READ):
            missing = [seq for _, seq, _ in due if seq not in recent]
            read = journal.rows(missing) if missing and journal is not None else {}
            for _, seq, lesson in due:
                with contextlib.suppress(ValueError):  # a decision that is damaged
                    one.learn_waiting(seq, decided(recent[seq] if seq in recent else read[seq]), lesson)


def _made(creation: Creation, journal: EventSource | None, row: Row, before: Model | None) -> Model:
    """A restarted model, trained if the event says so; deleted parts of the log stay deleted."""
    model = build_model(creation)
    if before is not None:
        forgotten = max(model.settings.forgotten, before.settings.forgotten)
        model.settings = model.settings.changed(Change(forgotten=forgotten))
    model.assumed = row.seq
    if creation.train and journal is not None:
        model.assumed = model.settings.forgotten
        train(model, journal, row.app, row.seq, row.time)
    return model


def give_up(models: dict[str, Model], broken: dict[str, str], app: str, reason: str) -> None:
    """Stop serving an application, with the reason; called in an except block, so that the log has the traceback."""
    log.exception("%s cannot be served: %s", app, reason)
    models.pop(app, None)
    broken[app] = reason


def refold(models: dict[str, Model], journal: Journal, app: str, upto: int, broken: dict[str, str]) -> None:
    """Rebuild the model of an application without a snapshot from its events up to a given one."""
    seq = journal.base().seq
    if (data := compaction_snapshot(journal.connection, app)) is not None:
        try:
            models[app] = saving.loads(data)
        except saving.LoadError as error:
            give_up(models, broken, app, f"the snapshot that its events begin with cannot be loaded: {error}")
    while seq < upto:
        rows = [row for row in journal.after(seq) if row.seq <= upto]
        fold(models, [row for row in rows if row.app == app], journal, broken=broken)
        seq = rows[-1].seq if rows else upto


def restore(journal: Journal, at_hand: dict[str, Model] | None = None) -> tuple[dict[str, Model], int]:
    """The models of the newest snapshots, and the event from which to fold on; ``at_hand`` need not be loaded again.

    Only models that changed are stored; one that is missing or cannot be loaded is left out.
    """
    published = journal.published()
    base, saved = journal.base().seq, journal.saved()
    if saved is None or saved.seq < base:
        saved = SnapshotMark(base, "")
    execute = journal.connection.execute
    left: dict[str, int] = dict(execute("SELECT app, seq FROM bases"))
    newest = "SELECT app, max(seq) FROM snapshots WHERE app <> '' AND seq > ? AND seq <= ? GROUP BY app"
    newer: dict[str, int] = dict(execute(newest, (base, saved.seq)))
    models = {}
    for app, seq in (left | newer).items():
        if app in saved.without:
            continue
        if at_hand is not None and app in at_hand and at_hand[app].version == seq:
            models[app] = at_hand[app]
            continue
        try:
            stored = "SELECT data FROM snapshots WHERE app = ? AND seq = ?"
            if app in newer:
                rows = execute(stored, (app, seq))
                data = bytes(rows[0][0]) if rows else b""  # dropped meanwhile: newer ones are there
            else:
                data = compaction_snapshot(journal.connection, app) or b""
            models[app] = saving.loads(data, f"snapshot of {app}")
        except saving.LoadError as error:
            if journal.published() == published:
                log.warning("its model is rebuilt from the first event on: %s", error)
    if journal.published() != published:  # the leading process stored newer ones and dropped some of these: look again
        return restore(journal, at_hand)
    return models, saved.seq
