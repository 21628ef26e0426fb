"""Compact a journal: drop settled old events and deleted ones; keep what they taught."""

from __future__ import annotations

import msgspec

from armwise.core import saving
from armwise.service.engine.learning.fold import fold, restore
from armwise.service.journal.bodies import catalogue_of
from armwise.service.journal.events import CONFIG, KINDS, SEQUELS, Batch, Change, Creation, Decision, Row, Settings
from armwise.service.journal.journal import Base, Journal, link
from armwise.service.log.subjects import Subjects
from armwise.service.log.verify import Statuses, base_models, chained, expected, explained


def deleted_upto(journal: Journal) -> dict[str, int]:
    """The event up to which each application's log was deleted, as ``DELETE logs`` journals it."""
    found = {app: model.settings.forgotten for app, model in restore(journal)[0].items()}
    sql = "SELECT seq, time, app, kind, id, body FROM events WHERE kind IN ('configure', 'create')"
    for seq, time, app, kind, id, body in journal.connection.execute(sql):
        row = Row(seq, time, app, kind, id, bytes(body))
        event = row.event
        settings = event.settings if isinstance(event, Creation) else event
        if isinstance(settings, Settings | Change) and settings.forgotten is not msgspec.UNSET:
            found[row.app] = max(found.get(row.app, 0), settings.forgotten)
    return {app: seq for app, seq in found.items() if seq}


def compact(journal: Journal, before: int) -> int:
    """Drop what is settled and older than ``before`` (milliseconds), or was deleted; how many events went.

    Only while no service runs. By its age a decision goes only when its window was over before, rewarded or not: what
    is left is never selected by outcome. What they taught stays, as a snapshot from which a replay begins. Of a
    decision that is still open then, the decision itself is kept; one with later events is kept whole. Ids and
    idempotency keys of what is dropped are forgotten.
    """
    old, deleted, execute = journal.base(), deleted_upto(journal), journal.connection.execute
    aged = execute("SELECT max(seq) FROM events WHERE time < ?", (before,))[0][0] or 0
    there = "SELECT 1 FROM events WHERE app = ? AND kind = 'decision' AND seq <= ? LIMIT 1"
    # Where the journal will begin: after what was deleted there may be more of the same decisions.
    subjects = Subjects(journal)
    end = journal.last()[0] if subjects.erasures or any(execute(there, pair) for pair in deleted.items()) else aged
    if end:  # a model that was trained on the journal must not be trained again on what is left of it
        end = max(end, execute("SELECT max(seq) FROM events WHERE kind IN ('create', 'version')")[0][0] or 0)
    models, statuses = dict(base_models(journal, old)), _begun(journal, old)
    last, chain = old.seq, bytes.fromhex(old.chain)
    later: set[tuple[str, str]] = set()  # decisions with events after the end
    named = {hash for mine in subjects.search(journal).found_catalogues.values() for hash in mine}
    erased = {(row.app, row.id) for row, _ in chained(journal, 0, until=old.seq) if subjects.erased(row)}
    for row, chain_stored in chained(journal, old.seq):
        if row.seq <= end:
            try:
                fold(models, [row], journal)
                expected(statuses, row)
            except Exception as error:
                raise ValueError(f"event {row.seq} ({row.kind}) cannot be replayed: {explained(error)}") from error
            last, chain = row.seq, chain_stored
            if subjects.erased(row):
                erased.add((row.app, row.id))
        elif row.is_a(*SEQUELS):
            later.add((row.app, row.id))
    waiting = {seq for model in models.values() for seq in model.waits_for()}  # to be learnt, though settled
    limit = {app: max(aged, deleted.get(app, 0)) for app in models}
    keep = {
        key: status
        for key, status in statuses.items()
        if not status.closed
        or key in later
        or status.seq in waiting
        or (status.seq > limit[status.app] and key not in erased)
        or (status.deadline >= before and status.seq > deleted.get(status.app, 0) and key not in erased)
    }
    begun = {(s.app, s.id) for s in old.open}
    apart = {key: status for key, status in keep.items() if not status.closed or key in begun}  # not all their events

    def dropped(seq: int, app: str, kind: str, id: str) -> bool:
        if (app, id) in apart:
            return KINDS.get(kind) is not Decision and seq <= limit[app]
        return seq <= limit.get(app, aged) if KINDS.get(kind) is Batch else (app, id) not in keep

    try:
        journal.connection.begin()
        events = execute(
            "SELECT seq, app, kind, id FROM events WHERE seq <= ? AND kind <> 'create' AND "
            "kind <> 'erase' AND NOT (kind = 'configure' AND id = ?)",
            (last, CONFIG),
        )
        drop = [event[0] for event in events if dropped(*event)]
        for start in range(0, len(drop), 500):
            chunk = drop[start : start + 500]
            for table in ("events", "decisions", "requests"):
                execute(f"DELETE FROM {table} WHERE seq IN ({', '.join('?' * len(chunk))})", chunk)
        _drop_catalogues(journal, before, named)
        execute("DELETE FROM snapshots WHERE seq <= ?", (last,))
        execute("DELETE FROM bases")
        execute("DELETE FROM pieces")
        for app, model in models.items():
            execute("INSERT INTO bases VALUES (?, ?, ?)", (app, model.version, saving.dumps(model)))
        base = Base(last, chain.hex(), list(apart.values()))
        digest = b""
        for row, _ in chained(journal, 0, until=base.seq):
            digest = link(digest, row)
        base.retained = digest.hex()
        execute("UPDATE meta SET value = ? WHERE key = 'base'", (msgspec.json.encode(base),))
        journal.connection.commit()
    except BaseException:
        journal.connection.rollback()
        raise
    return len(drop)


def _drop_catalogues(journal: Journal, before: int, named: set[bytes]) -> None:
    """Drop catalogues that no decision refers to and that are old or name an erased subject."""
    execute = journal.connection.execute
    unused = {bytes(hash) for (hash,) in execute("SELECT hash FROM catalogues WHERE time < ?", (before,))} | named
    if unused:
        heads = execute("SELECT substr(body, 1, 17) FROM events WHERE kind = 'decision'")
        unused -= {catalogue_of(bytes(head)) for (head,) in heads}
    for hash in unused:
        execute("DELETE FROM catalogues WHERE hash = ?", (hash,))


def _begun(journal: Journal, base: Base) -> Statuses:
    """The statuses at the start of a sound journal."""
    statuses: Statuses = {}
    was_open = {(s.app, s.id): s for s in base.open}
    for row, _ in chained(journal, 0, until=base.seq):
        if (row.app, row.id) not in was_open:
            expected(statuses, row)
    return statuses | was_open
