"""The journal as a log: every decision with what it earned, for ``noregret evaluate`` and for other tools."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from noregret.serve.arms import read_arm
from noregret.serve.engine import Engine
from noregret.serve.events import Decision, Row, Status
from noregret.serve.journal import Journal

FORMATS = {"json": b"application/x-ndjson", "dsjson": b"application/x-ndjson"}


def earned(status: Status) -> float | None:
    """What a decision earned, as far as it is settled: None while its window is open, or if it was never shown.

    >>> earned(Status("shop", "e1", 1, 5, "sum", -1.0, True, closed=True))
    -1.0
    """
    if not status.active or not status.closed:
        return None
    if status.n == 0:
        return status.default
    return status.first if status.rule == "earliest" else status.total


def decisions(journal: Journal, app: str, after: int = 0) -> Iterator[tuple[Row, Decision, Status]]:
    """The decisions of an application after an event, in order, each with its status.

    >>> from noregret.serve.store import SQLite
    >>> list(decisions(Journal(SQLite(":memory:").connect()), "shop"))
    []
    """
    while rows := journal.after(after):
        after = rows[-1].seq
        mine = [row for row in rows if row.app == app and row.kind == "decision"]
        statuses = {status.id: status for status in journal.statuses([(app, row.id) for row in mine])}
        for row in mine:
            yield row, msgspec.json.decode(row.body, type=Decision), statuses[row.id]


def as_json(row: Row, decision: Decision, status: Status) -> bytes:
    """One line of the plain format: everything, with names.

    >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
    >>> status = Status("shop", "e1", 1, 5, "sum", 0.0, True)
    >>> msgspec.json.decode(as_json(Row(1, 0, "shop", "decision", "e1", b""), asked, status))["arm"]
    'a'
    """
    arms = [read_arm(bytes(arm)).id for arm in decision.arms]
    return msgspec.json.encode(
        {
            "seq": row.seq, "id": row.id, "time": stamp(row.time), "context": decision.context, "arms": decision.arms,
            "offered": len(decision.p), "probabilities": decision.p, "arm": arms[decision.arm], "index": decision.arm,
            "probability": decision.p[decision.arm], "reward": earned(status), "rewards": status.n,
            "version": decision.version, "deferred": decision.deferred, "active": status.active,
            "apprentice": decision.apprentice,
        }
    )  # fmt: skip


def as_dsjson(row: Row, decision: Decision, status: Status) -> bytes:
    """One line of VW's format: labels first, since readers ignore those that come after ``c``.

    >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
    >>> status = Status("shop", "e1", 1, 5, "sum", 0.5, True, closed=True)
    >>> as_dsjson(Row(1, 0, "shop", "decision", "e1", b""), asked, status)[:40]
    b'{"_label_cost":-0.5,"_label_probability"'
    """
    value = earned(status)
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
        "o": [] if value is None else [{"v": value, "EventId": row.id}],
        "Timestamp": stamp(row.time),
        "Version": "1",
        "EventId": row.id,
        "a": [i + 1 for i in order],
        "c": {"shared": shared, "_multi": multi},
        "p": [decision.p[i] for i in order],
        "VWState": {"m": str(decision.version)},
    }
    if value is None:
        line = {"_skipLearn": True} | line
    return msgspec.json.encode(line)


def lines(journal: Journal, app: str, kind: str = "json", after: int = 0, limit: int = 1 << 60) -> Iterator[bytes]:
    """The log, line by line.

    >>> from noregret.serve.store import SQLite
    >>> list(lines(Journal(SQLite(":memory:").connect()), "shop"))
    []
    """
    shape = as_json if kind == "json" else as_dsjson
    for n, (row, decision, status) in enumerate(decisions(journal, app, after)):
        if n >= limit:
            return
        yield shape(row, decision, status) + b"\n"


async def stream(engine: Engine, app: str, kind: str, after: int, limit: int) -> AsyncIterator[bytes]:
    """The log in pieces, read by a thread with a session of its own."""

    def piece(lines_: Iterator[bytes]) -> bytes:
        return b"".join(line for _, line in zip(range(200), lines_))

    journal = await asyncio.to_thread(engine._journal)
    try:
        source = lines(journal, app, kind, after, limit)
        while data := await asyncio.to_thread(piece, source):
            yield data
    finally:
        journal.connection.close()


def stamp(milliseconds: int) -> str:
    """A time as JSON has it.

    >>> stamp(0)
    '1970-01-01T00:00:00.000Z'
    """
    moment = datetime.datetime.fromtimestamp(milliseconds / 1000.0, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
