"""Checks a journal from its first event to its last, and compacts it.

What is checked: the chain; the order of numbers and times; that every event says what the rules say it must; that
every arm is the one its probabilities and the journal's secret draw; that the statuses beside the journal are those it
implies; that every stored snapshot equals a replay, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from noregret import persist
from noregret.numerics.choice import draw
from noregret.serve.answers import uniform
from noregret.serve.events import Decision, Reward, Row, Status
from noregret.serve.journal import Base, Journal, link
from noregret.serve.learner import fold
from noregret.serve.model import Model


class Report(msgspec.Struct):
    """What was found: counts, and every problem (the first hundred).

    >>> Report().problems
    []
    """

    events: int = 0
    decisions: int = 0
    rewards: int = 0
    lessons: int = 0
    snapshots: int = 0
    problems: list[str] = msgspec.field(default_factory=list)

    def wrong(self, problem: str) -> None:
        """Note a problem.

        >>> report = Report(); report.wrong("event 3 is missing"); report.problems
        ['event 3 is missing']
        """
        if len(self.problems) < 100:
            self.problems.append(problem)


Statuses = dict[tuple[str, str], Status]


def expected(statuses: Statuses, row: Row) -> Any:
    """Fold an event into the statuses; what its body must be by the rules (None: the rules do not say).

    >>> expected({}, Row(1, 0, "shop", "create", "", b"{}"))
    """
    key = row.app, row.id
    if row.kind == "decision":
        if key in statuses:
            raise ValueError(f"{row.id} was decided before")
        body = msgspec.json.decode(row.body, type=Decision)
        deadline = row.time + body.window
        statuses[key] = Status(row.app, row.id, row.seq, deadline, body.rule, body.default, not body.deferred)
        return None
    if row.kind == "reward":
        return statuses[key].reward(msgspec.json.decode(row.body, type=Reward).value, row.time)
    if row.kind == "activate":
        return statuses[key].activate(row.time)
    if row.kind == "expire":
        if statuses[key].closed or statuses[key].deadline >= row.time:
            raise ValueError(f"{row.id} was not to be closed")
        return statuses[key].expire()
    return None


def verify(journal: Journal, models: bool = True) -> Report:
    """Check everything; with ``models`` also that every snapshot equals a replay.

    >>> from noregret.serve.store import SQLite
    >>> verify(Journal(SQLite(":memory:").connect())).problems
    []
    """
    report, base = Report(), journal.base()
    secret = journal.meta("secret")
    chain, seq, time = bytes.fromhex(base.chain), base.seq, 0
    statuses: Statuses = {(s.app, s.id): s for s in base.open}
    replayed = dict(base_models(journal, base))
    if base.seq and not replayed:
        report.wrong(f"the journal begins after event {base.seq}, but the snapshot there is missing")
    broken: dict[str, str] = {}
    stored = {row[0] for row in journal.connection.execute("SELECT DISTINCT seq FROM snapshots")}
    for row, kept in chained(journal, base.seq):
        report.events += 1
        seq += 1
        chain = link(chain, row)
        if row.seq != seq:
            report.wrong(f"event {seq} is missing")
            seq = row.seq
        if chain != kept:
            report.wrong(f"event {row.seq} does not continue the chain: it, or one before it, was altered or lost")
            chain = kept
        if row.time < time:
            report.wrong(f"event {row.seq} is older than the one before it")
        time = row.time
        _check_rules(report, statuses, row, secret)
        if models:
            fold(replayed, [row], journal, broken=broken)
            if row.seq in stored:
                _check_snapshots(report, journal, replayed, row.seq)
    for app, reason in broken.items():
        report.wrong(f"the model of {app} cannot be replayed: {reason}")
    _check_statuses(report, journal, statuses)
    return report


def chained(journal: Journal, after: int) -> Iterator[tuple[Row, bytes]]:
    """Events with the chain that is stored with each.

    >>> from noregret.serve.store import SQLite
    >>> list(chained(Journal(SQLite(":memory:").connect()), 0))
    []
    """
    sql = "SELECT seq, time, app, kind, id, body, chain FROM events WHERE seq > ? ORDER BY seq LIMIT 500"
    while rows := journal.connection.execute(sql, (after,)):
        for seq, time, app, kind, id, body, chain in rows:
            yield Row(seq, time, app, kind, id, bytes(body)), bytes(chain)
        after = rows[-1][0]


def base_models(journal: Journal, base: Base) -> dict[str, Model]:
    """The models with which a replay begins: none, or those of the snapshot that a compaction left.

    >>> from noregret.serve.store import SQLite
    >>> base_models(Journal(SQLite(":memory:").connect()), Base())
    {}
    """
    if base.seq == 0:
        return {}
    rows = journal.connection.execute("SELECT app, data FROM snapshots WHERE seq = ?", (base.seq,))
    return {app: persist.loads(bytes(data)) for app, data in rows}


def _check_rules(report: Report, statuses: Statuses, row: Row, secret: bytes) -> None:
    try:
        implied = expected(statuses, row)
    except (KeyError, ValueError, msgspec.MsgspecError) as error:
        report.wrong(f"event {row.seq} ({row.kind}) is against the rules: {error}")
        return
    if implied is not None and msgspec.json.encode(implied) != row.body:
        report.wrong(f"event {row.seq} says {row.body[:200]!r}, but the rules say {msgspec.json.encode(implied)!r}")
    if row.kind == "decision":
        report.decisions += 1
        decision = msgspec.json.decode(row.body, type=Decision)
        drawn = decision.note is None and not decision.apprentice
        if drawn and draw(np.array(decision.p), uniform(secret, row.app, row.id)) != decision.arm:
            report.wrong(f"event {row.seq}: its arm is not the one that its probabilities draw")
    report.rewards += row.kind == "reward"
    report.lessons += getattr(implied, "lesson", None) is not None


def _check_snapshots(report: Report, journal: Journal, replayed: dict[str, Model], seq: int) -> None:
    for app, data in journal.connection.execute("SELECT app, data FROM snapshots WHERE seq = ?", (seq,)):
        report.snapshots += 1
        if app not in replayed or persist.dumps(replayed[app]) != bytes(data):
            report.wrong(f"the snapshot of {app} at event {seq} differs from a replay")


def _check_statuses(report: Report, journal: Journal, statuses: Statuses) -> None:
    ids = list(statuses)
    found = {(s.app, s.id): s for s in journal.statuses(ids)}
    for key, status in statuses.items():
        if found.get(key) != status:
            report.wrong(f"decision {key[1]}: the status kept is {found.get(key)}, but the journal implies {status}")
    kept = journal.connection.execute("SELECT count(*) FROM decisions")[0][0]
    if kept != len(found):
        report.wrong(f"{kept - len(found)} statuses belong to no decision of the journal")


def compact(journal: Journal, before: int) -> int:
    """Drop the events older than ``before`` (milliseconds); how many went. Only while no service runs.

    What they taught stays, as a snapshot from which a replay begins; decisions still open then are kept. Ids and
    idempotency keys of what is dropped are forgotten.

    >>> from noregret.serve.store import SQLite
    >>> compact(Journal(SQLite(":memory:").connect()), before=10**15)
    0
    """
    old = journal.base()
    models, statuses = dict(base_models(journal, old)), {(s.app, s.id): s for s in old.open}
    last, chain = old.seq, bytes.fromhex(old.chain)
    for row, kept in chained(journal, old.seq):
        if row.time >= before:
            break
        fold(models, [row], journal)
        expected(statuses, row)
        last, chain = row.seq, kept
    if last == old.seq:
        return 0
    still = [status for status in statuses.values() if not status.closed]
    keep = {status.seq for status in still}
    execute = journal.connection.execute
    journal.connection.begin()
    try:
        drop = [
            seq
            for (seq,) in execute("SELECT seq FROM events WHERE seq <= ? AND kind <> 'create'", (last,))
            if seq not in keep
        ]
        for start in range(0, len(drop), 500):
            chunk = drop[start : start + 500]
            marks = ", ".join("?" * len(chunk))
            execute(f"DELETE FROM events WHERE seq IN ({marks})", chunk)
            execute(f"DELETE FROM decisions WHERE seq IN ({marks})", chunk)
        execute("DELETE FROM requests WHERE seq <= ?", (last,))
        execute("DELETE FROM snapshots WHERE seq <= ?", (last,))
        for app, model in models.items():
            execute("INSERT INTO snapshots VALUES (?, ?, ?)", (app, last, persist.dumps(model)))
        base = msgspec.json.encode(Base(last, chain.hex(), still))
        execute("UPDATE meta SET value = ? WHERE key = 'base'", (base,))
        journal.connection.commit()
    except BaseException:
        journal.connection.rollback()
        raise
    return len(drop)
