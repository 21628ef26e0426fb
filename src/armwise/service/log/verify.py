"""Check a journal from its first event to its last.

What is checked is named in the report (``checked``). What is not: bytes that mean nothing (free pages, the unused part
of a page), and which of two journals that are both sound is the right one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from armwise.core import saving
from armwise.native.choice import draw
from armwise.service.engine.learning.fold import fold
from armwise.service.engine.requests.draw import uniform
from armwise.service.journal.bodies import as_array, hashed, unpack_arms
from armwise.service.journal.compaction_snapshots import compaction_snapshot
from armwise.service.journal.databases.tail import missing
from armwise.service.journal.errors import Conflict, Unknown
from armwise.service.journal.events import Creation, Decision, Event, Reward, Row, Sequel
from armwise.service.journal.journal import KEYED, Base, Journal, SnapshotMark, link
from armwise.service.journal.pace import MAX_PAGE_ROWS
from armwise.service.journal.rules import Status, check, happen
from armwise.service.log.subjects import ERASED
from armwise.service.model.model import Model


class Report(msgspec.Struct):
    """The findings: counts, and the first hundred problems."""

    events: int = 0
    decisions: int = 0
    rewards: int = 0
    lessons: int = 0
    snapshots: int = 0
    checked: list[str] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)

    def wrong(self, problem: str) -> None:
        """Record a problem."""
        if len(self.problems) < 100:
            self.problems.append(problem)


Statuses = dict[tuple[str, str], Status]


def expected(statuses: Statuses, row: Row) -> Event:
    """Apply an event to the statuses; return what the rules expect."""
    key, event = (row.app, row.id), row.event
    status = statuses.get(key) if isinstance(event, Decision | Sequel) else None
    if isinstance(event, Decision) and status is not None:
        raise ValueError(f"{row.id} was decided before")
    check(event, status, row.id, row.time)
    implied = happen(event, status, row.time)
    if isinstance(event, Decision):
        statuses[key] = Status.of(row, event)
    return implied


def verify(journal: Journal, models: bool = True) -> Report:
    """Check everything; with ``models``, also that every snapshot equals a replay.

    All is read in one transaction, so that a service may go on writing meanwhile.
    """
    report = Report()
    tail = journal.connection.tail
    acknowledged = None if tail is None else tail.read()  # before the events: it never says more than they have
    journal.connection.begin_reading()
    try:
        _verify(report, journal, models)
        covered, wrong = journal.connection.check()
        report.checked.append(f"database: {covered}")
        for problem in wrong:
            report.wrong(problem)
        if tail is not None:
            report.checked.append("tail: nothing that was acknowledged last is missing")
            if problem := missing(journal, acknowledged):
                report.wrong(problem)
            for loss in tail.losses():
                report.wrong(f"{loss} (remove {tail.lost} when that has been dealt with)")
    except Exception as error:  # what is damaged can fail anywhere, and to say so is what this is for
        report.wrong(f"it cannot be read further than {report.events} events: {explained(error)}")
    finally:
        journal.connection.rollback()
    return report


def _verify(report: Report, journal: Journal, models: bool) -> None:
    journal.snapshot("")  # which fixes what is seen of them: never more than of the events, which are read after them
    base, secret = journal.base(), journal.meta("secret")
    chain, seq, time = bytes.fromhex(base.chain), base.seq, 0
    statuses = _check_retained(report, journal, base, secret)
    replay = _Replay(report, journal, base) if models else None
    for row, stored in chained(journal, base.seq, report.wrong):
        report.events += 1
        seq += 1
        if row.seq != seq:
            report.wrong(f"event {seq} is missing")
            seq = row.seq
        try:
            if link(chain, row) != stored:
                report.wrong(f"event {seq} does not continue the chain: it, or one before it, was altered or lost")
            if row.time < time:
                report.wrong(f"event {seq} is older than the one before it")
            time = row.time
        except (struct.error, TypeError) as error:
            report.wrong(f"event {seq} cannot be checked: {error}")
        chain = stored
        _check_rules(report, statuses, row, secret)
        if replay is not None:
            replay.take(row)
    report.checked += [
        "chain: every event is the one that was appended, with its idempotency key, in order, and none is missing",
        "rules: every reward, activation and closing says what the rules say, once",
        "draws: every arm is the one that its probabilities and the secret draw",
    ]
    _check_statuses(report, journal, statuses)
    _check_requests(report, journal)
    report.checked.append("statuses and idempotency keys: as many as the events imply, and these")
    for hash, data in journal.connection.execute("SELECT hash, data FROM catalogues"):
        try:
            sound = hashed(as_array(unpack_arms(bytes(data)))) == bytes(hash)
        except (ValueError, TypeError):
            sound = False
        if not sound:
            report.wrong(f"the arms stored as {bytes(hash).hex()} were altered")
    _check_meta(report, journal)
    report.checked.append("catalogues: the arms that decisions refer to are those that were sent")
    if replay is not None:
        replay.end()
        report.checked.append("snapshots: every stored model equals a replay of the journal, bit for bit")


def _check_retained(report: Report, journal: Journal, base: Base, secret: bytes) -> Statuses:
    """The statuses at the start of the journal: kept by a compaction or open then."""
    statuses: Statuses = {}
    digest, total = b"", 0
    was_open = {(s.app, s.id) for s in base.open}
    for row, _ in chained(journal, 0, report.wrong, until=base.seq):
        report.events += 1
        digest, total = link(digest, row), total + weight(row)
        if (row.app, row.id) in was_open:
            report.decisions += row.is_a(Decision)  # its other events are gone, or in its status
        else:
            _check_rules(report, statuses, row, secret)
    if base.retained and base.retained not in (digest.hex(), sum_of(total)):
        report.wrong(f"what was kept of the events up to {base.seq} was altered or lost")
    return statuses | {(s.app, s.id): s for s in base.open}


class _Replay:
    """A replay of the models beside the checks, for comparison with every snapshot."""

    def __init__(self, report: Report, journal: Journal, base: Base) -> None:
        self._report, self._journal = report, journal
        self._models = dict(base_models(journal, base))
        self._lost: set[str] = set()  # applications that cannot be replayed any further
        if base.seq and not self._models:
            report.wrong(f"the journal begins after event {base.seq}, but the snapshot there is missing")
        stored = journal.connection.execute("SELECT DISTINCT seq FROM snapshots WHERE app <> ''")
        self._stored = {seq for (seq,) in stored if seq > base.seq}
        self._check_readable(base)

    def _check_readable(self, base: Base) -> None:
        """Load the snapshots that no replay can reach, and what says up to where they are complete."""
        for app, seq, data in self._journal.connection.execute(
            "SELECT app, seq, data FROM snapshots WHERE seq <= ? OR app = ''", (base.seq,)
        ):
            try:
                if app:
                    saving.loads(bytes(data))
                else:
                    saved = msgspec.json.decode(bytes(data), type=SnapshotMark)
                    if saved.seq != seq or self._journal.chain(seq).hex() not in ("", saved.chain):
                        raise ValueError("it is of another journal")
            except (saving.LoadError, ValueError, TypeError) as error:
                named = f"the snapshot of {app}" if app else "what is said of the snapshots"
                self._report.wrong(f"{named} at event {seq} was altered: {error}")

    def take(self, row: Row) -> None:
        if row.app not in self._lost or row.is_a(Creation):
            try:
                fold(self._models, [row], self._journal)
                self._lost.discard(row.app)
            except Exception as error:
                self._lost.add(row.app)
                why = f"event {row.seq} ({row.kind}): {explained(error)}"
                self._report.wrong(f"the model of {row.app} cannot be replayed: {why}; no later snapshot was checked")
        if row.seq in self._stored:
            self._stored.discard(row.seq)
            self._compare(row.seq)

    def _compare(self, seq: int) -> None:
        sql = "SELECT app, data FROM snapshots WHERE seq = ? AND app <> ''"
        for app, data in self._journal.connection.execute(sql, (seq,)):
            self._report.snapshots += 1
            if app in self._lost:
                continue
            if app not in self._models or saving.dumps(self._models[app]) != bytes(data):
                self._report.wrong(f"the snapshot of {app} at event {seq} differs from a replay")

    def end(self) -> None:
        for seq in sorted(self._stored):
            self._report.wrong(f"there is a snapshot of event {seq}, but no such event")


def weight(row: Row) -> int:
    """The checksum contribution of an event kept by a compaction."""
    return int.from_bytes(link(b"", row), "little")


def sum_of(total: int) -> str:
    """A sum of weights as the base has it: what goes is taken off, so that not all has to be read again."""
    return f"sum:{total % 2**128:032x}"


def explained(error: Exception) -> str:
    """Describe an error."""
    return f"there is no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__


def chained(
    journal: Journal, after: int, wrong: Callable[[str], None] | None = None, until: int = 1 << 62
) -> Iterator[tuple[Row, bytes]]:
    """Events with the chain that is stored with each; ``wrong`` is told of what is not stored as bytes."""
    sql = "SELECT seq, time, app, kind, id, body, chain FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    while rows := journal.connection.execute(sql, (after, until, MAX_PAGE_ROWS)):
        found = []
        for seq, time, app, kind, id, body, chain in rows:
            for name, value in (("body", body), ("chain", chain)):
                if not isinstance(value, (bytes, memoryview)):
                    problem = f"event {seq}: its {name} is stored as {type(value).__name__}, not as bytes"
                    if wrong is None:
                        raise ValueError(problem)
                    wrong(problem)
            found.append((Row(seq, time, app, kind, id, _bytes(body)), _bytes(chain)))
        journal.with_arms([row for row, _ in found])
        journal.with_requests([row for row, _ in found])
        for each in found:
            journal.pace.rest()
            yield each
        after = rows[-1][0]


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, (bytes, memoryview)) else str(value).encode()


def base_models(journal: Journal, base: Base) -> dict[str, Model]:
    """The models that a replay starts from: none, or those of the compaction's snapshot."""
    names = journal.connection.execute("SELECT app FROM bases") if base.seq else []
    return {app: saving.loads(compaction_snapshot(journal.connection, app) or b"") for (app,) in names}


def _check_rules(report: Report, statuses: Statuses, row: Row, secret: bytes) -> None:
    try:
        implied = expected(statuses, row)
        if isinstance(implied, Sequel) and msgspec.json.encode(implied) != row.body:
            report.wrong(f"event {row.seq} says {row.body[:200]!r}, but the rules say {msgspec.json.encode(implied)!r}")
        if isinstance(implied, Decision):
            report.decisions += 1
            exposed = implied.drawn_by.startswith(f"{row.app}/")  # drawn when it was assigned, in that application
            drawn = implied.note is None and not implied.apprentice and (exposed or not implied.drawn_by)
            source = implied.drawn_by if exposed else row.app
            if drawn and draw(np.array(implied.p), uniform(secret, source, row.id)) != implied.arm:
                report.wrong(f"event {row.seq}: its arm is not the one that its probabilities draw")
        report.rewards += isinstance(implied, Reward)
        report.lessons += isinstance(implied, Sequel) and implied.lesson is not None
    except Unknown:
        report.wrong(f"event {row.seq} ({row.kind}) is against the rules: there is no decision {row.id} before it")
    except (ValueError, TypeError, IndexError, Conflict) as error:
        report.wrong(f"event {row.seq} ({row.kind}) is against the rules: {error}")


def _check_statuses(report: Report, journal: Journal, statuses: Statuses) -> None:
    ids = list(statuses)
    found = {(s.app, s.id): s for s in journal.statuses(ids)}
    for key, status in statuses.items():
        if found.get(key) != status:
            report.wrong(f"decision {key[1]}: the status kept is {found.get(key)}, but the journal implies {status}")
    stored = journal.connection.execute("SELECT count(*) FROM decisions")[0][0]
    if stored != len(found):
        report.wrong(f"{stored - len(found)} statuses belong to no decision of the journal")


def _check_requests(report: Report, journal: Journal) -> None:
    """The chain says that none is missing; these, that there are no others."""
    execute = journal.connection.execute
    owner = "SELECT 1 FROM events e WHERE e.seq = r.seq AND e.app = r.app"
    if n := execute(f"SELECT count(*) FROM requests r WHERE NOT EXISTS ({owner})")[0][0]:
        report.wrong(f"{n} idempotency keys belong to no event of the journal")
    for seq, n in execute("SELECT seq, count(*) FROM requests GROUP BY seq HAVING count(*) > 1"):
        report.wrong(f"event {seq} has {n} idempotency keys")


def _check_meta(report: Report, journal: Journal) -> None:
    """Check the metadata that no event implies."""
    stored = {key: bytes(value) for key, value in journal.connection.execute("SELECT key, value FROM meta")}
    if (probe := stored.get("probe")) is not None and hashed(probe[16:]) != probe[:16]:
        report.wrong("what was written last to probe the disk was altered")
    for key in (ERASED, KEYED):
        if key in stored and not (stored[key].isdigit() and int(stored[key]) <= journal.last()[0]):
            report.wrong(f"{key} in the table meta is {stored[key][:40]!r}, which is no event of the journal")
