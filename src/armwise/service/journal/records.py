"""What can be read from a journal: events, where decisions stand, snapshots of the models; and how it begins."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from armwise.service.errors import Damaged, Unknown
from armwise.service.journal.bodies import catalogue_of, unpack_arms
from armwise.service.journal.events import CONFIG, Change, Creation, Row
from armwise.service.journal.rules import Status
from armwise.service.journal.store import Connection, Statement

FORMAT = b"3"
OLDER = (b"2",)  # formats that are read, and written on in this one
_CHUNK = 500  # rows in one statement
_CATALOGUES = 32  # kept in memory per session
_ALL = ""  # no application's name: what is said of all snapshots
STATUS = "app, id, seq, deadline, rule, fallback, active, n, total, value, closed, learn"
STATUSES = f"SELECT {STATUS} FROM decisions"


class Base(msgspec.Struct):
    """Where a journal begins: the last event before it, the chain there, the decisions that were open then.

    >>> Base().seq
    0
    """

    seq: int = 0
    chain: str = ""
    open: list[Status] = []
    retained: str = ""  # the chain over the events before it that were kept nevertheless


class Saved(msgspec.Struct):
    """Up to which event the snapshots are complete: each application's newest one has all that was folded by then.

    >>> Saved(7, "").without
    []
    """

    seq: int
    chain: str  # of that event: snapshots of another journal, or of one that has lost events, do not fit
    without: list[str] = []  # applications whose snapshots, if there are any, are older than that


class Records:
    """A journal over one connection, as it is read; not for use by two threads at once.

    >>> from armwise.service.journal.sqlite import SQLite
    >>> Records(SQLite(":memory:").connect()).last()
    (0, 0, b'')
    """

    def __init__(self, connection: Connection, lock: str = "", clock: str = "") -> None:
        self.connection = connection
        self._lock = lock  # a statement that makes appends of several processes wait for each other
        self._clock = clock  # a query for the time that they agree on
        self._arms: dict[bytes, list[msgspec.Raw]] = {}  # catalogues that were read
        if not connection.execute("SELECT 1 FROM meta WHERE key = 'format'"):
            connection.begin()
            for key, value in (
                ("format", FORMAT),
                ("secret", secrets.token_bytes(32)),
                ("base", msgspec.json.encode(Base())),
            ):
                connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (key, value))
            connection.commit()
        found = bytes(self.meta("format"))
        if found in OLDER:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (FORMAT,))
        elif found != FORMAT:
            raise ValueError(
                f"the journal has format {found!r}; this armwise reads {FORMAT!r}: use the one that wrote it"
            )

    def last(self) -> tuple[int, int, bytes]:
        """The number, time and chain of the last event (of the base, where nothing follows it).

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).last()
        (0, 0, b'')
        """
        rows = self.connection.execute("SELECT seq, time, chain FROM events ORDER BY seq DESC LIMIT 1")
        base = self.base()
        seq, chain = base.seq, bytes.fromhex(base.chain)
        if rows and rows[0][0] > seq:
            return rows[0][0], rows[0][1], bytes(rows[0][2])
        return seq, 0 if not rows else rows[0][1], chain

    def now(self, default: int) -> int:
        """Milliseconds of the storage's clock, or the default where it has none.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).now(7)
        7
        """
        return int(self.connection.execute(self._clock)[0][0]) if self._clock else default

    def base(self) -> Base:
        """Where the journal begins: what is before may have been compacted away.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).base().seq
        0
        """
        return msgspec.json.decode(self.meta("base"), type=Base)

    def meta(self, key: str) -> bytes:
        """A value of the table ``meta``: format, secret, base.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).meta("format")
        b'3'
        """
        rows = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,))
        if not rows:
            raise ValueError(f"the journal's table meta has no {key}")
        return bytes(rows[0][0])

    def row(self, seq: int) -> Row:
        """One event by its number.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).row(1)
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unknown: the journal has no event 1
        """
        rows = self.connection.execute("SELECT seq, time, app, kind, id, body FROM events WHERE seq = ?", (seq,))
        if not rows:
            raise Unknown(f"the journal has no event {seq}")
        return self.with_arms([_as_row(rows[0])])[0]

    def rows(self, seqs: Sequence[int]) -> dict[int, Row]:
        """Some events by their numbers.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).rows([1, 2])
        {}
        """
        found = {}
        for chunk in chunks(list(seqs)):
            where, values = self.connection.among("seq", chunk)
            sql = f"SELECT seq, time, app, kind, id, body FROM events WHERE {where}"
            rows = self.with_arms([_as_row(raw) for raw in self.connection.execute(sql, values)])
            found.update({row.seq: row for row in rows})
        return found

    def after(self, seq: int, limit: int = 500) -> list[Row]:
        """The events that follow ``seq``, in order; all of them durable.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).after(0)
        []
        """
        sql = "SELECT seq, time, app, kind, id, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        rows = self.with_arms([_as_row(raw) for raw in self.connection.execute(sql, (seq, limit))])
        if rows:
            self.connection.settle()
        return rows

    def with_arms(self, rows: list[Row]) -> list[Row]:
        """The rows, those whose arms are stored apart with their arms.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).with_arms([])
        []
        """
        referring = [(row, hash) for row in rows if (hash := catalogue_of(row.body))]
        if referring:
            arms = self.catalogues({hash for _, hash in referring})
            for row, hash in referring:
                row.arms = arms.get(hash)
        return rows

    def catalogues(self, hashes: Collection[bytes]) -> dict[bytes, list[msgspec.Raw]]:
        """Arms that are stored by their hash; those that are missing or damaged are left out.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).catalogues([bytes(16)])
        {}
        """
        found = {hash: self._arms[hash] for hash in hashes if hash in self._arms}
        for chunk in chunks([hash for hash in hashes if hash not in found]):
            where, values = self.connection.among("hash", chunk)
            for hash, data in self.connection.execute(f"SELECT hash, data FROM catalogues WHERE {where}", values):
                with contextlib.suppress(ValueError, msgspec.MsgspecError):
                    found[bytes(hash)] = self._arms[bytes(hash)] = unpack_arms(bytes(data))
        while len(self._arms) > _CATALOGUES:
            del self._arms[next(iter(self._arms))]
        return found

    def events(self, seq: int = 0) -> Iterator[Row]:
        """All events after ``seq``, read in pieces.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> list(Records(SQLite(":memory:").connect()).events())
        []
        """
        while rows := self.after(seq):
            yield from rows
            seq = rows[-1].seq

    def named(self, sql: str, column: str, pairs: Sequence[tuple[str, str]], also: str = "") -> Iterator[Any]:
        """Rows of a table by application and ``column``, through its index: SQLite reads the whole table for pairs.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> list(Records(SQLite(":memory:").connect()).named("SELECT seq FROM requests", "request", [("shop", "r1")]))
        []
        """
        for statement, values in self.naming(sql, column, pairs, also):
            yield from self.connection.execute(statement, values)

    def naming(self, sql: str, column: str, pairs: Sequence[tuple[str, str]], also: str = "") -> Iterator[Statement]:
        """The statements that ``named`` executes.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> list(Records(SQLite(":memory:").connect()).naming("SELECT seq FROM requests", "request", [("shop", "r1")]))
        [('SELECT seq FROM requests WHERE app = ? AND request IN (?)', ('shop', 'r1'))]
        """
        by_app: dict[str, list[str]] = {}
        for app, value in pairs:
            by_app.setdefault(app, []).append(value)
        for app, wanted in by_app.items():
            for chunk in chunks(wanted):
                where, values = self.connection.among(column, chunk)
                yield f"{sql} WHERE {also}app = ? AND {where}", (app, *values)

    def statuses(self, ids: Sequence[tuple[str, str]]) -> list[Status]:
        """Where decisions stand, by application and id.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).statuses([("shop", "e1")])
        []
        """
        return [as_status(raw) for raw in self.named(STATUSES, "id", ids)]

    def rewards(self, ids: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[Row]]:
        """Every reward that decisions were given, late ones too, in order, by application and id.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).rewards([("shop", "e1")])
        {}
        """
        found: dict[tuple[str, str], list[Row]] = {}
        sql = "SELECT seq, time, app, kind, id, body FROM events"
        for raw in sorted(self.named(sql, "id", ids, "kind = 'reward' AND ")):
            found.setdefault((raw[2], raw[4]), []).append(_as_row(raw))
        return found

    def due(self, now: int, limit: int = 500) -> list[Status]:
        """Decisions whose window closed before ``now`` and that still wait for it.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).due(10**15)
        []
        """
        until, values = (f"({self._clock})", (limit,)) if self._clock else ("?", (now, limit))
        sql = f"SELECT {STATUS} FROM decisions WHERE closed = 0 AND deadline < {until} ORDER BY deadline, seq LIMIT ?"
        return [as_status(raw) for raw in self.connection.execute(sql, values)]

    def configured(self, app: str) -> tuple[int, Creation | None]:
        """What its configuration last made an application of, and the event that said so.

        A model begun anew by request, and settings changed by request, have other ids.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).configured("shop")
        (0, None)
        """
        sql = (
            "SELECT seq, time, app, kind, id, body FROM events WHERE app = ? AND kind IN ('create', 'configure') "
            "AND ((kind = 'create' AND id = '') OR (kind = 'configure' AND id = ?)) ORDER BY seq"
        )
        seq, found = 0, None
        for row in map(_as_row, self.connection.execute(sql, (app, CONFIG))):
            seq, event = row.seq, row.event
            if isinstance(event, Creation):
                found = event
            elif isinstance(event, Change) and found is not None:
                found = msgspec.structs.replace(found, settings=found.settings.changed(event))
        return seq, found

    def made_by_request(self) -> dict[str, Creation]:
        """The applications that were made by request, and what of.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).made_by_request()
        {}
        """
        found = {}
        for (app,) in self.connection.execute("SELECT DISTINCT app FROM events WHERE kind = 'create'"):
            with contextlib.suppress(Damaged):  # folding its events says so
                if (made := self.configured(app)[1]) is not None and made.settings.by_request:
                    found[app] = made
        return found

    # ------------------------------------------------------------------ snapshots

    def snapshot(self, app: str) -> tuple[int, bytes] | None:
        """The newest snapshot of an application's model: up to which event, and its bytes.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).snapshot("shop") is None
        True
        """
        sql = "SELECT seq, data FROM snapshots WHERE app = ? ORDER BY seq DESC LIMIT 1"
        rows = self.connection.execute(sql, (app,))
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    def published(self) -> int | None:
        """The event up to which the newest snapshots are said to be complete, if it is said; ``saved`` looks closer.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).published() is None
        True
        """
        [(seq,)] = self.connection.execute("SELECT max(seq) FROM snapshots WHERE app = ?", (_ALL,))
        return None if seq is None else int(seq)

    def saved(self) -> Saved | None:
        """Up to where the snapshots are complete; None if there are none that fit the journal.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).saved() is None
        True
        """
        newest = self.snapshot(_ALL)
        if newest is None:
            return self._saved_together()
        saved = msgspec.json.decode(newest[1], type=Saved)
        return saved if self.chain(saved.seq).hex() == saved.chain else None

    def _saved_together(self) -> Saved | None:
        """The same of a journal of format 2, where the snapshots of all applications have the same number."""
        numbers = self.connection.execute("SELECT app, max(seq) FROM snapshots GROUP BY app")
        seq = max((number for _, number in numbers), default=0)
        if not seq:
            return None
        return Saved(seq, self.chain(seq).hex(), [app for app, number in numbers if number < seq])

    def chain(self, seq: int) -> bytes:
        """The chain after an event; empty if it is not there.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Records(SQLite(":memory:").connect()).chain(7)
        b''
        """
        rows = self.connection.execute("SELECT chain FROM events WHERE seq = ?", (seq,))
        base = self.base()
        return bytes.fromhex(base.chain) if base.seq == seq else bytes(rows[0][0]) if rows else b""

    def put_snapshots(
        self, snapshots: Sequence[tuple[str, int, bytes]], upto: int, without: Sequence[str] = (), keep: int = 2
    ) -> None:
        """Store models that changed, each with its last event; with what is there they are complete up to ``upto``.

        Applications named in ``without`` have none that is. Older ones beyond ``keep`` go.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> journal = Records(SQLite(":memory:").connect())
        >>> journal.put_snapshots([("shop", 7, b"model")], upto=9)
        >>> journal.snapshot("shop")
        (7, b'model')
        """
        saved = Saved(upto, self.chain(upto).hex(), list(without))
        old = "SELECT seq FROM snapshots WHERE app = ? ORDER BY seq DESC LIMIT ?"
        self.connection.begin()
        try:
            for app, seq, data in [*snapshots, (_ALL, upto, msgspec.json.encode(saved))]:
                self.connection.execute(
                    "INSERT INTO snapshots VALUES (?, ?, ?) ON CONFLICT (app, seq) DO UPDATE SET data = excluded.data",
                    (app, seq, data),
                )
                self.connection.execute(f"DELETE FROM snapshots WHERE app = ? AND seq NOT IN ({old})", (app, app, keep))
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise


def _as_row(raw: Any) -> Row:
    # What is not stored as bytes is read as something that is no JSON: so it is named when its turn comes, and the
    # events of others that are read with it are not lost.
    body = bytes(raw[5]) if isinstance(raw[5], (bytes, memoryview)) else b"\0"
    return Row(raw[0], raw[1], raw[2], raw[3], raw[4], body)


def as_status(raw: Any) -> Status:
    """Where a decision stands, from the columns of ``STATUS``.

    >>> as_status(("shop", "e1", 1, 1000, "earliest", 0.0, 1, 0, 0.0, 0.0, 0, "close")).active
    True
    """
    app, id, seq, deadline, rule, default, active, n, total, value, closed, learn = raw
    return Status(app, id, seq, deadline, rule, default, bool(active), n, total, value, bool(closed), learn)


def marks(rows: Sequence[Any], width: int) -> str:
    """Places for values in a statement.

    >>> marks([1, 2], 3)
    '(?, ?, ?), (?, ?, ?)'
    """
    return ", ".join([f"({', '.join('?' * width)})"] * len(rows))


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """As many at a time as one statement takes.

    >>> [len(chunk) for chunk in chunks(range(1200))]
    [500, 500, 200]
    """
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]
