"""Export the journal as a log: every decision with its outcome."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from armwise.features.encoding.arms import read_arm
from armwise.offline.logs.cohorts import CLOSED, OPEN, PROVISIONAL, Record
from armwise.service.journal.events import ARRIVAL, EARLIEST, Decision, Reward, Row, decided
from armwise.service.journal.journal import Journal
from armwise.service.journal.pace import MAX_PAGE_ROWS
from armwise.service.journal.rules import Status
from armwise.service.journal.source import EventSource

FORMATS = {
    "json": b"application/x-ndjson",
    "dsjson": b"application/x-ndjson",
    "parquet": b"application/vnd.apache.parquet",
}
# A page is read in about a millisecond, after which requests may go first. Pages of 500 rows took five to seven, and no
# less over all: decisions waited for them (benchmarks/serve_beside.py).
MAX_PAGE_BYTES = 1 << 17  # of the rows' bodies, about
_MAX_PIECE_BYTES = 1 << 17  # bytes of text that are sent at a time


class Outcome(msgspec.Struct, repr_omit_defaults=True):
    """One reward of a decision; a late one was kept but not learnt."""

    value: float
    time: int  # milliseconds
    late: bool
    cost: float | list[float] | None = None
    final: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        cost = {} if self.cost is None else {"cost": self.cost}
        return {"value": self.value, "time": stamp(self.time), "late": self.late, "final": self.final, **cost}


class Entry(NamedTuple):
    """One decision of the log: its event, what was decided, where it stands, every reward it was given; and when."""

    row: Row
    decision: Decision
    status: Status
    outcomes: list[Outcome]
    now: int  # milliseconds

    @property
    def standing(self) -> str:
        """Open, provisional or closed: whether rewards may still come, whatever was learnt already."""
        status = self.status
        if self.now > status.deadline or any(each.final for each in self.outcomes):
            return CLOSED
        if status.n and status.learn == ARRIVAL and status.rule == EARLIEST:  # every outcome is reported, once
            return CLOSED
        return PROVISIONAL if status.n else OPEN

    @property
    def reward(self) -> float | None:
        """Its reward: None until it is closed, whether rewards came or not, and if it was never shown."""
        return self.status.outcome if self.status.active and self.standing == CLOSED else None

    @property
    def record(self) -> Record:
        """The fields that a judge needs."""
        status = self.status
        rewards = [((each.time - self.row.time) / 1000.0, each.value) for each in self.outcomes]
        age, window = (self.now - self.row.time) / 1000.0, self.decision.window / 1000.0
        promised, in_time = status.learn == ARRIVAL, sum(not each.late for each in self.outcomes)
        return Record(age, window, status.default, status.rule, self.standing, promised, rewards, in_time)

    @property
    def terms(self) -> dict[str, Any]:
        """The fields that judges need beside the rewards; times in seconds."""
        status, age = self.status, (self.now - self.row.time) / 1000.0
        return {
            "status": self.standing, "age": age, "window": self.decision.window / 1000.0, "default": status.default,
            "rule": status.rule, "learn": status.learn,
        }  # fmt: skip


def entries(journal: EventSource, app: str, after: int = 0, now: int | None = None) -> Iterator[Entry]:
    """The decisions of an application after an event, in order, each with its status and every reward.

    ``now`` is when they are asked for (None: the time of the last event).
    """
    if now is None:
        now = journal.last()[1]
    for mine, statuses, rewards in _pages(journal, app, after):
        for row in mine:
            journal.pace.rest()
            yield Entry(row, decided(row), statuses[row.id], outcomes(rewards.get((app, row.id), ())), now)


def _pages(
    journal: EventSource, app: str, after: int
) -> Iterator[tuple[list[Row], dict[str, Status], dict[tuple[str, str], list[Row]]]]:
    limit = MAX_PAGE_ROWS
    while True:
        with journal.consistent_reads():
            rows = journal.after(after, limit)
            journal.pace.rest()
            mine = [row for row in rows if row.app == app and row.is_a(Decision)]
            ids = [(app, row.id) for row in mine]
            statuses = {status.id: status for status in journal.statuses(ids)}
            rewards = journal.rewards(ids)
        if not rows:
            return
        after = rows[-1].seq
        size = sum(len(row.body) + sum(map(len, row.arms or ())) for row in rows)
        limit = max(1, min(MAX_PAGE_ROWS, MAX_PAGE_BYTES * len(rows) // max(size, 1)))
        journal.pace.rest()
        yield mine, statuses, rewards


def outcomes(rewards: Iterable[Row]) -> list[Outcome]:
    """The outcomes of journaled rewards."""
    pairs = [(row, row.event) for row in rewards]
    return [
        Outcome(event.value, row.time, event.late, event.cost, event.final)
        for row, event in pairs
        if isinstance(event, Reward)
    ]


def as_json(entry: Entry) -> bytes:
    """One line of the plain format, with all fields named."""
    row, decision, status, received = entry[:4]
    return msgspec.json.encode(
        {
            "seq": row.seq, "id": row.id, "time": stamp(row.time), "context": decision.context, "arms": decision.arms,
            "offered": len(decision.p), "probabilities": decision.p, "arm": played_arm(decision), "index": decision.arm,
            "probability": decision.p[decision.arm], "reward": entry.reward, "rewards": status.n,
            **entry.terms,
            "outcomes": [outcome.to_dict() for outcome in received],
            "version": decision.version, "deferred": decision.deferred, "active": status.active,
            "apprentice": decision.apprentice,
        }
    )  # fmt: skip


def played_arm(decision: Decision) -> str:
    """The id of the arm that was played."""
    return read_arm(bytes(decision.arms[decision.arm])).id


def as_dsjson(entry: Entry) -> bytes:
    """One line of VW's format; labels come first, because readers ignore labels after ``c``."""
    row, decision, status, received = entry[:4]
    value = entry.reward
    others = [i for i in range(len(decision.p)) if i != decision.arm]
    order = [decision.arm, *others]
    multi = []
    for text in decision.arms[: len(decision.p)]:
        arm = msgspec.json.decode(text)
        sent = {"id": arm} if isinstance(arm, str) else arm
        features = sent.get("features", {})
        whole = features if isinstance(features, dict) else {str(i): f for i, f in enumerate(features)}
        multi.append({"_tag": sent["id"], "i": {"constant": 1, "id": sent["id"]}, "f": whole})
    context = msgspec.json.decode(decision.context)
    shared = context if isinstance(context, dict) else {str(i): f for i, f in enumerate(context)}
    line: dict[str, Any] = {
        "_label_cost": 0.0 if value is None else -value,
        "_label_probability": decision.p[decision.arm],
        "_label_Action": decision.arm + 1,
        "_labelIndex": decision.arm,
        "o": [
            {"v": o.value, "EventId": row.id, "Timestamp": stamp(o.time), "late": o.late}
            | ({} if o.cost is None else {"cost": o.cost})
            | ({"final": True} if o.final else {})
            for o in received
        ],
        "Timestamp": stamp(row.time),
        "Version": "1",
        "EventId": row.id,
        "a": [i + 1 for i in order],
        "c": {"shared": shared, "_multi": multi},
        "p": [decision.p[i] for i in order],
        "VWState": {"m": str(decision.version)},
        "active": status.active,
        **entry.terms,
    }
    if value is None:
        line = {"_skipLearn": True} | line
    return msgspec.json.encode(line)


def pieces(journal: Journal, app: str, kind: str = "json", after: int = 0, limit: int = 1 << 60) -> Iterator[bytes]:
    """The log of an application after an event in one of ``FORMATS``, in bounded chunks."""
    yield from pieces_of([(journal, after)], app, kind, limit)


def pieces_of(
    journals: Sequence[tuple[Journal, int]], app: str, kind: str = "json", limit: int = 1 << 60, now: int | None = None
) -> Iterator[bytes]:
    """The same of several journals, one after the other, each after an event of its own; ``now`` as in ``entries``."""
    every = itertools.chain.from_iterable(entries(journal, app, after, now) for journal, after in journals)
    chosen = itertools.islice(every, limit)
    if kind == "parquet":
        from armwise.service.log.parquet import row_groups

        yield from row_groups(chosen)
        return
    shape = as_json if kind == "json" else as_dsjson
    lines: list[bytes] = []
    size = 0
    for entry in chosen:
        lines += (shape(entry), b"\n")
        size += len(lines[-2])
        if size > _MAX_PIECE_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)


def stamp(milliseconds: int) -> str:
    """Format a time for JSON."""
    moment = datetime.datetime.fromtimestamp(milliseconds / 1000.0, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
