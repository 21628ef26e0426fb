"""The journal: an append-only table of events, and a table with the status of each decision.

Events are appended in batches, each one transaction (group commit): read the rows that the batch refers to, apply the
rules of ``intake``, write the new rows with a few statements, commit. Every row has a hash chain: BLAKE2b (16 bytes) of
the chain before it, the row and its idempotency key. ``armwise journal verify`` finds altered and missing rows by it.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import operator
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from armwise.service.journal.bodies import (
    MIN_CATALOGUE_BYTES,
    as_array,
    catalogue_of,
    hashed,
    pack,
    pack_arms,
    unpack_arms,
)
from armwise.service.journal.databases.database import Connection, Rows, Statement
from armwise.service.journal.errors import Damaged, Unknown
from armwise.service.journal.events import CONFIG, Change, Creation, Decision, Event, Row
from armwise.service.journal.intake import Intake
from armwise.service.journal.pace import NO_PACE
from armwise.service.journal.rules import Status
from armwise.service.journal.system import SYSTEM, System
from armwise.service.journal.writes import Appended, More, Write, size_of

FORMAT = b"4"
OLDER = (b"3",)  # formats that are read, and upgraded to this one
KEYED = "keyed"  # in the table meta: the event after which the chain covers idempotency keys; format 3 had none
_MAX_ROWS = 500  # rows in one statement
_MAX_CATALOGUES = 32  # kept in memory per session
_ALL = ""  # in place of an application's name: the mark of all snapshots
STATUS = "app, id, seq, deadline, rule, fallback, active, n, total, value, closed, learn"
STATUSES = f"SELECT {STATUS} FROM decisions"


class Base(msgspec.Struct):
    """The start of a compacted journal: the last event before it, its chain, and the decisions that were open."""

    seq: int = 0
    chain: str = ""
    open: list[Status] = []
    retained: str = ""  # the chain over the events before it that were kept


class SnapshotMark(msgspec.Struct):
    """The event up to which the newest snapshots of all applications are complete."""

    seq: int
    chain: str  # of that event: snapshots of another journal, or of one that lost events, do not match
    without: list[str] = []  # applications without a snapshot, or with an older one


T = TypeVar("T")
_NO_STATUS = (None,) * 10
_REQUESTS = "SELECT app, request, seq FROM requests"
_HERE = (  # the time, the last event, the base and the epoch, in one query
    "SELECT ({clock}), e.seq, e.time, e.chain, m.value, (SELECT value FROM meta WHERE key = 'epoch') FROM meta m "
    "LEFT JOIN (SELECT seq, time, chain FROM events ORDER BY seq DESC LIMIT 1) e ON true WHERE m.key = 'base'"
)
_MADE = "SELECT seq FROM events WHERE app = ? AND kind = 'decision' AND seq > ? ORDER BY seq"
_encode = msgspec.json.Encoder().encode
_whole_numbers = struct.Struct("<QQQ").pack
_MAX_GIL_BYTES = 2047  # hashlib releases the GIL above this size, and a busy writer would wait long for it


class _Hashes:
    """Hashes of arms, with a cache keyed by object identity, since requests share the objects."""

    def __init__(self) -> None:
        self._last: deque[tuple[list[msgspec.Raw], bytes]] = deque(maxlen=8)

    def __call__(self, arms: list[msgspec.Raw]) -> bytes:
        for known, found in self._last:
            if len(known) == len(arms) and all(map(operator.is_, known, arms)):
                return found
        self._last.append((arms, hashed(as_array(arms))))
        return self._last[-1][1]


class _Batch(Intake):
    """The rows of one batch: loaded at its start, written at its end."""

    def __init__(self, journal: Journal, hash_of: Callable[[list[msgspec.Raw]], bytes]) -> None:
        super().__init__()
        self.chain = b""
        self.catalogues: dict[bytes, list[msgspec.Raw]] = {}  # arms to store in ``catalogues``, by hash
        self.made: dict[int, bytes] = {}  # bodies of decisions, by the identity of the write
        self.apart: set[int] = set()  # decisions whose arms are stored apart, by the identity of the write
        self._journal, self._hash_of = journal, hash_of

    def row(self, seq: int) -> Row:
        return self._journal.row(seq)

    def rewards_before(self, app: str, id: str) -> int:
        sql = "SELECT count(*) FROM events WHERE kind = 'reward' AND app = ? AND id = ?"
        [[kept]] = self._journal.connection.execute(sql, (app, id))
        return int(kept)

    def stored(self, write: Write, event: Event) -> bytes:
        """The stored body of an event; a catalogue keeps the arms in the order of the request."""
        if isinstance(event, Decision):
            event.write_arms()  # one that was drawn again has not
        if id(write) not in self.apart or not isinstance(event, Decision):
            return pack(_encode(event))
        arms = event.arms
        if event.order:
            arms = [arm for _, arm in sorted(zip(event.order, arms), key=lambda pair: pair[0])]
        catalogue = write.catalogue or self._hash_of(arms)
        self.catalogues[catalogue] = arms
        return pack(msgspec.json.encode(msgspec.structs.replace(event, sent=[])), catalogue)

    def write_bodies(self) -> None:
        """Write the stored body of each row that was accepted."""
        made = self.made
        for row, write in self.appended:
            row.body = made.get(id(write)) or self.stored(write, row.event)

    def links(self) -> list[bytes]:
        """Compute the chain after each row, once, when all rows are known."""
        chains = []
        for row, _ in self.appended:
            self.chain = link(self.chain, row)
            chains.append(self.chain)
        return chains

    def statements(self) -> list[Statement]:
        """The statements that insert the rows into ``sqlite.ENTRIES``."""
        rows, found = list(zip(self.appended, self.links())), list[Statement]()
        for chunk in chunks(rows):
            if all(write.new for (_, write), _ in chunk):
                values = [*itertools.chain(*self.made_entries(chunk))]
                found.append((f"INSERT INTO made VALUES {marks(chunk, 11)}", values))
            else:
                found.append((f"INSERT INTO entries VALUES {marks(chunk, 18)}", self.entries(chunk)))
        return found

    def tables(self) -> dict[str, Rows]:
        """The rows of each table, for a database with several writers."""
        rows = list(zip(self.appended, self.links()))
        if all(write.new for _, write in self.appended):
            return {"made": self.made_entries(rows)}
        return {
            "events": [(r.seq, r.time, r.app, r.kind, r.id, r.body, chain) for (r, _), chain in rows],
            "decisions": [_columns(self.known[key]) for key in self.dirty],
            "requests": [(r.app, r.request, r.seq) for (r, _), _ in rows if r.request],
        }

    def made_entries(self, rows: Sequence[tuple[tuple[Row, Write], bytes]]) -> list[tuple[Any, ...]]:
        """The rows of new decisions."""
        values = []
        for (r, _), chain in rows:
            s = self.known[r.app, r.id]
            values.append((r.seq, r.time, r.app, r.id, r.body, chain, s.deadline, s.rule, s.default, s.active, s.learn))
        return values

    def entries(self, rows: Sequence[tuple[tuple[Row, Write], bytes]]) -> list[Any]:
        """The values of rows of ``sqlite.ENTRIES``, flat."""
        values: list[Any] = []
        for (r, write), chain in rows:
            s = self.known[r.app, r.id] if (r.app, r.id) in self.dirty else None
            values += (r.seq, r.time, r.app, r.kind, r.id, r.body, chain, write.request)
            values += _NO_STATUS if s is None else _columns(s)[2:]
        return values


def link(chain: bytes, row: Row) -> bytes:
    """The chain after ``row``."""
    head = f"{row.app}\0{row.kind}\0{row.id}{chr(0) if row.request else ''}{row.request}".encode()
    text = b"".join((chain, _whole_numbers(row.seq, row.time, len(head)), head, row.body))
    if len(text) <= _MAX_GIL_BYTES:
        return hashlib.blake2b(text, digest_size=16).digest()
    whole = memoryview(text)
    digest = hashlib.blake2b(whole[:_MAX_GIL_BYTES], digest_size=16)
    for start in range(_MAX_GIL_BYTES, len(whole), _MAX_GIL_BYTES):
        digest.update(whole[start : start + _MAX_GIL_BYTES])
    return digest.digest()


class Journal:
    """Appends to and reads from one connection; not for use by two threads at once."""

    on_commit: Callable[[list[tuple[Row, Write]]], None] | None = None  # called with the committed events, in order
    _epoch = 0  # the number of times that databases were added
    _at: tuple[int, int, bytes] | None = None  # the last event, where no other process appends
    _base: tuple[bytes, Base] = b"", Base()  # as it was last read

    def __init__(self, connection: Connection, lock: str = "", clock: str = "", system: System = SYSTEM) -> None:
        self.connection, self._system = connection, system
        self._lock = lock  # a statement that takes the append lock of several processes
        self._clock = clock  # a query for their common time
        self._hash_of = _Hashes()
        self._arms: dict[bytes, list[msgspec.Raw]] = {}  # catalogues in memory
        self.pace = NO_PACE  # of long reads beside requests
        if not connection.execute("SELECT 1 FROM meta WHERE key = 'format'"):
            connection.begin()
            for key, value in (
                ("format", FORMAT),
                ("secret", system.random_bytes(32)),
                ("base", msgspec.json.encode(Base())),
            ):
                connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (key, value))
            connection.commit()
        found = bytes(self.meta("format"))
        self._keyed = 0
        if found in OLDER:
            self._keyed = self.last()[0]
            if not connection.read_only:
                connection.begin()
                connection.execute("INSERT INTO meta VALUES (?, ?)", (KEYED, str(self._keyed).encode()))
                connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (FORMAT,))
                connection.commit()
        elif found != FORMAT:
            raise ValueError(
                f"the journal has format {found!r}; this armwise reads {FORMAT!r}: use the one that wrote it"
            )
        elif older := connection.execute("SELECT value FROM meta WHERE key = ?", (KEYED,)):
            self._keyed = int(bytes(older[0][0]))

    # ------------------------------------------------------------------ append

    def append(self, groups: Sequence[Sequence[Write]], now: int, more: More | None = None) -> list[Appended]:
        """Append groups of writes in one transaction; each group is accepted whole or refused with the reason.

        ``more`` returns groups that came while this process waited for the append lock and that ``joins`` admits; their
        outcomes follow those of ``groups``. It is called only if other processes append too.
        """
        connection, batch = self.connection, _Batch(self, self._hash_of)
        writes = [write for group in groups for write in group]
        made = []
        for write in writes:
            if isinstance(write.event, Decision) and not write.look:
                made.append(write)
                if size_of(write.event) >= MIN_CATALOGUE_BYTES or write.catalogue:
                    batch.apart.add(id(write))

        def encode() -> None:
            batch.made = {id(write): batch.stored(write, write.event) for write in made}

        if large := bool(batch.apart):
            encode()  # it finds the catalogues to look for
        here: list[Statement] = [(_HERE.format(clock=self._clock), ())] if self._lock else []
        ids = list({(w.app, w.id): None for w in writes if w.id and not w.fresh})  # their status is loaded first
        keys = list({(w.app, w.request): None for w in writes if w.request})
        statuses = list(self.lookup_statements(STATUSES, "id", ids)) if ids else []
        requests = list(self.lookup_statements(_REQUESTS, "request", keys)) if keys else []
        arms = [self._asking_arms(chunk) for chunk in chunks(list(batch.catalogues))] if batch.catalogues else []
        counted: dict[str, list[Write]] = {}
        for write in made:
            if write.again is not None:
                counted.setdefault(write.app, []).append(write)
        strange = [(_MADE, (app, min(write.held.version for write in some))) for app, some in counted.items()]
        try:
            asked = [*here, *statuses, *requests, *arms, *strange]
            found = iter(connection.open_batch(self._lock, asked, (lambda: None) if large else encode))
            if here:
                now, seq, time, chain = self._here(*next(found)[0])
            else:
                seq, time, chain = self._at or self.last()
            batch.time, batch.seq, batch.chain, batch.epoch = max(now, time), seq, chain, self._epoch
            for status in (as_status(raw) for rows in itertools.islice(found, len(statuses)) for raw in rows):
                batch.known[status.app, status.id] = status
            for app, request, seq in (raw for rows in itertools.islice(found, len(requests)) for raw in rows):
                batch.requests[app, request] = seq
            there = {bytes(hash) for rows in itertools.islice(found, len(arms)) for (hash,) in rows}
            if counted:
                self._look_around(batch, counted, list(found))
            all_groups = [*groups, *more()] if more is not None and self._lock else groups
            outcomes = [batch.take(group) for group in all_groups]
            batch.write_bodies()
            also: list[Statement] = []
            if batch.catalogues:
                stored = {hash: None for row, _ in batch.appended if (hash := catalogue_of(row.body))}
                missing = [hash for hash in stored if hash not in there]
                also = [_put_arms(hash, as_array(batch.catalogues[hash]), batch.time) for hash in missing]
            connection.close_batch(also, batch)
        except BaseException:
            self._at = None  # unknown: read it again
            connection.rollback()
            raise
        if not self._lock:
            self._at = batch.seq, batch.time, batch.chain
        if connection.tail is not None and batch.appended:
            connection.tail.note(batch.seq, batch.chain)
        for some in counted.values():
            for write in some:
                write.again = None  # it is committed
        if self.on_commit is not None:
            self.on_commit(batch.appended)
        return outcomes

    def _look_around(self, batch: _Batch, counted: dict[str, list[Write]], found: Sequence[Sequence[Any]]) -> None:
        """Read the decisions of other processes since this batch was drawn, and draw the affected ones again.

        No other process appends meanwhile, so each decision of an application that counts decisions counts all before
        it.
        """
        for (app, some), rows in zip(counted.items(), found):
            seqs = [int(seq) for (seq,) in rows]
            if strange := {seq for write in some for seq in write.held.unknown(seqs)} if seqs else None:
                there = self.rows(sorted(strange))
                batch.strange[app] = [there[seq] for seq in sorted(strange)]
                for write in some:
                    write.held = None  # otherwise the next draw would count both draws of it
                    batch.made.pop(id(write), None)

    def _here(
        self, now: int, seq: int | None, time: int | None, chain: bytes | None, base: bytes, epoch: bytes | None
    ) -> tuple[int, int, int, bytes]:
        """The time, and the number, time and chain of the last event of a shared database."""
        self._epoch = int(bytes(epoch)) if epoch is not None else 0
        if bytes(base) != self._base[0]:  # decoding takes long if many decisions were open
            self._base = bytes(base), msgspec.json.decode(base, type=Base)
        began = self._base[1]
        if seq is None or chain is None or seq <= began.seq:
            return int(now), began.seq, time or 0, bytes.fromhex(began.chain)
        return int(now), seq, time or 0, bytes(chain)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions raised if the database cannot be reached or read."""
        return self.connection.errors

    def wait_until_durable(self) -> None:
        """Wait until every event read here is durable."""
        self.connection.wait_until_durable()

    def put_catalogue(self, text: bytes, now: int) -> bytes:
        """Store a catalogue in the form of ``bodies.as_array``; return its hash."""
        self.connection.execute(*_put_arms(hash := hashed(text), text, self.now(now)))
        return hash

    def _asking_arms(self, hashes: Sequence[bytes]) -> Statement:
        where, values = self.connection.among("hash", hashes)
        return f"SELECT hash FROM catalogues WHERE {where}", values

    def alone(self, work: Callable[[], T]) -> T:
        """Run work in one transaction in which no other process appends."""
        try:
            self.connection.begin(self._lock)
            came = work()
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise
        return came

    def probe(self) -> None:
        """Try an append; raise if nothing can be appended durably.

        The event is rolled back; what is committed is a meaningless value as large as a batch may be.
        """

        def work() -> None:
            execute, (seq, time, chain) = self.connection.execute, self.last()
            execute("SAVEPOINT probe")
            status = Status("", "probe", seq + 1, time, "", 0.0, True)
            event = (seq + 1, time, "", "probe", "probe", b"{}", chain)
            for table, row in (
                ("events", event),
                ("decisions", _columns(status)),
                ("requests", ("", "probe", seq + 1)),
            ):
                execute(f"INSERT INTO {table} VALUES {marks([row], len(row))}", row)
            execute("ROLLBACK TO SAVEPOINT probe")
            data = self._system.random_bytes(1 << 15)
            execute(
                "INSERT INTO meta VALUES ('probe', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (hashed(data) + data,),
            )

        self.alone(work)

    # ------------------------------------------------------------------ read

    @contextlib.contextmanager
    def consistent_reads(self) -> Iterator[None]:
        """Let everything read within be of one moment; return when it is durable.

        Otherwise an erasure or the retention may drop a decision between two reads of it.
        """
        try:
            self.connection.begin_reading()
            yield
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.wait_until_durable()

    def last(self) -> tuple[int, int, bytes]:
        """The number, time and chain of the last event, or of the base."""
        rows = self.connection.execute("SELECT seq, time, chain FROM events ORDER BY seq DESC LIMIT 1")
        base = self.base()
        seq, chain = base.seq, bytes.fromhex(base.chain)
        if rows and rows[0][0] > seq:
            return rows[0][0], rows[0][1], bytes(rows[0][2])
        return seq, 0 if not rows else rows[0][1], chain

    def now(self, default: int) -> int:
        """The time of the database in milliseconds; the default if it has no clock."""
        return int(self.connection.execute(self._clock)[0][0]) if self._clock else default

    def base(self) -> Base:
        """The start of the journal; earlier events may have been compacted."""
        return msgspec.json.decode(self.meta("base"), type=Base)

    def meta(self, key: str) -> bytes:
        """A value of the table ``meta``: format, secret, base."""
        rows = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,))
        if not rows:
            raise ValueError(f"the journal's table meta has no {key}")
        return bytes(rows[0][0])

    def row(self, seq: int) -> Row:
        """One event by its number."""
        rows = self.connection.execute("SELECT seq, time, app, kind, id, body FROM events WHERE seq = ?", (seq,))
        if not rows:
            raise Unknown(f"the journal has no event {seq}")
        return self.with_arms([_as_row(rows[0])])[0]

    def rows(self, seqs: Sequence[int]) -> dict[int, Row]:
        """Some events by their numbers."""
        found = {}
        for chunk in chunks(list(seqs)):
            where, values = self.connection.among("seq", chunk)
            sql = f"SELECT seq, time, app, kind, id, body FROM events WHERE {where}"
            rows = self.with_arms([_as_row(raw) for raw in self.connection.execute(sql, values)])
            found.update({row.seq: row for row in rows})
        return found

    def after(self, seq: int, limit: int = 500) -> list[Row]:
        """Durable events after ``seq``, in order."""
        sql = "SELECT seq, time, app, kind, id, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        rows = self.with_arms([_as_row(raw) for raw in self.connection.execute(sql, (seq, limit))])
        if rows:
            self.connection.wait_until_durable()
        return rows

    def with_requests(self, rows: Collection[Row]) -> None:
        """Load the idempotency keys of the rows, since the chain covers them."""
        by_seq = {row.seq: row for row in rows if row.seq > self._keyed}
        for chunk in chunks(list(by_seq)):
            where, values = self.connection.among("seq", chunk)
            for seq, request in self.connection.execute(f"SELECT seq, request FROM requests WHERE {where}", values):
                by_seq[seq].request = request

    def with_arms(self, rows: list[Row]) -> list[Row]:
        """Load the catalogues that the rows refer to."""
        referring = [(row, hash) for row in rows if (hash := catalogue_of(row.body))]
        if referring:
            arms = self.catalogues({hash for _, hash in referring})
            for row, hash in referring:
                row.arms = arms.get(hash)
        return rows

    def catalogues(self, hashes: Collection[bytes]) -> dict[bytes, list[msgspec.Raw]]:
        """Catalogues by hash, without those that are missing or damaged."""
        found = {hash: self._arms[hash] for hash in hashes if hash in self._arms}
        for chunk in chunks([hash for hash in hashes if hash not in found]):
            where, values = self.connection.among("hash", chunk)
            for hash, data in self.connection.execute(f"SELECT hash, data FROM catalogues WHERE {where}", values):
                with contextlib.suppress(ValueError, msgspec.MsgspecError):
                    found[bytes(hash)] = self._arms[bytes(hash)] = unpack_arms(bytes(data))
        while len(self._arms) > _MAX_CATALOGUES:
            del self._arms[next(iter(self._arms))]
        return found

    def events(self, seq: int = 0) -> Iterator[Row]:
        """All events after ``seq``, read in chunks."""
        while rows := self.after(seq):
            yield from rows
            seq = rows[-1].seq

    def look_up(self, sql: str, column: str, pairs: Sequence[tuple[str, str]], also: str = "") -> Iterator[Any]:
        """Rows of a table by application and ``column``, per application: SQLite uses no index for pairs."""
        for statement, values in self.lookup_statements(sql, column, pairs, also):
            yield from self.connection.execute(statement, values)

    def lookup_statements(
        self, sql: str, column: str, pairs: Sequence[tuple[str, str]], also: str = ""
    ) -> Iterator[Statement]:
        """The statements of ``look_up``."""
        by_app: dict[str, list[str]] = {}
        for app, value in pairs:
            by_app.setdefault(app, []).append(value)
        for app, wanted in by_app.items():
            for chunk in chunks(wanted):
                where, values = self.connection.among(column, chunk)
                yield f"{sql} WHERE {also}app = ? AND {where}", (app, *values)

    def statuses(self, ids: Sequence[tuple[str, str]]) -> list[Status]:
        """The status of decisions, by application and id."""
        return [as_status(raw) for raw in self.look_up(STATUSES, "id", ids)]

    def rewards(self, ids: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[Row]]:
        """All rewards of decisions in order, including late ones, by application and id."""
        found: dict[tuple[str, str], list[Row]] = {}
        sql = "SELECT seq, time, app, kind, id, body FROM events"
        for raw in sorted(self.look_up(sql, "id", ids, "kind = 'reward' AND ")):
            found.setdefault((raw[2], raw[4]), []).append(_as_row(raw))
        return found

    def due(self, now: int, limit: int = 500) -> list[Status]:
        """Open decisions whose deadline was before ``now``."""
        until, values = (f"({self._clock})", (limit,)) if self._clock else ("?", (now, limit))
        sql = f"SELECT {STATUS} FROM decisions WHERE closed = 0 AND deadline < {until} ORDER BY deadline, seq LIMIT ?"
        return [as_status(raw) for raw in self.connection.execute(sql, values)]

    def configured(self, app: str) -> tuple[int, Creation | None]:
        """The newest description of an application by a configuration, and its event.

        A model that a request began anew, and settings that a request changed, have other ids.
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

    def created_before(self, app: str, seq: int) -> bool:
        """Whether an event before this one created the application."""
        sql = "SELECT 1 FROM events WHERE app = ? AND kind IN ('create', 'configure') AND seq < ? LIMIT 1"
        return bool(self.connection.execute(sql, (app, seq)))

    def made_by_request(self) -> dict[str, Creation]:
        """The applications that were created by request, with their descriptions."""
        found = {}
        for (app,) in self.connection.execute("SELECT DISTINCT app FROM events WHERE kind = 'create'"):
            with contextlib.suppress(Damaged):  # reported when its events are folded
                if (made := self.configured(app)[1]) is not None and made.settings.by_request:
                    found[app] = made
        return found

    def snapshot(self, app: str) -> tuple[int, bytes] | None:
        """The newest snapshot of an application's model: its last event and its bytes."""
        sql = "SELECT seq, data FROM snapshots WHERE app = ? ORDER BY seq DESC LIMIT 1"
        rows = self.connection.execute(sql, (app,))
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    def published(self) -> int | None:
        """The event up to which the newest snapshots claim to be complete; ``saved`` verifies it."""
        [(seq,)] = self.connection.execute("SELECT max(seq) FROM snapshots WHERE app = ?", (_ALL,))
        return None if seq is None else int(seq)

    def saved(self) -> SnapshotMark | None:
        """The event up to which the snapshots are complete; None if it does not match the journal."""
        newest = self.snapshot(_ALL)
        if newest is None:
            return None
        saved = msgspec.json.decode(newest[1], type=SnapshotMark)
        return saved if self.chain(saved.seq).hex() == saved.chain else None

    def chain(self, seq: int) -> bytes:
        """The chain after an event; empty if the event is missing."""
        rows = self.connection.execute("SELECT chain FROM events WHERE seq = ?", (seq,))
        base = self.base()
        return bytes.fromhex(base.chain) if base.seq == seq else bytes(rows[0][0]) if rows else b""

    def put_snapshots(
        self, snapshots: Sequence[tuple[str, int, bytes]], upto: int, without: Sequence[str] = (), keep: int = 2
    ) -> None:
        """Store changed models, each with its last event; all snapshots are then complete up to ``upto``.

        Applications in ``without`` have no complete snapshot. All but the newest ``keep`` snapshots are deleted.
        """
        saved = SnapshotMark(upto, self.chain(upto).hex(), list(without))
        old = "SELECT seq FROM snapshots WHERE app = ? ORDER BY seq DESC LIMIT ?"
        try:
            self.connection.begin()
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


def _put_arms(hash: bytes, text: bytes, now: int) -> Statement:
    sql = "INSERT INTO catalogues VALUES (?, ?, ?) ON CONFLICT (hash) DO UPDATE SET time = excluded.time"
    return sql, (hash, now, pack_arms(text))


def _columns(s: Status) -> tuple[Any, ...]:
    return (
        s.app, s.id, s.seq, s.deadline, s.rule, s.default, int(s.active), s.n, s.total, s.value, int(s.closed), s.learn,
    )  # fmt: skip


def _as_row(raw: Any) -> Row:
    # A body that is not stored as bytes becomes invalid JSON: decoding this event fails and names it, and the other
    # events of the same query are not affected.
    body = bytes(raw[5]) if isinstance(raw[5], (bytes, memoryview)) else b"\0"
    return Row(raw[0], raw[1], raw[2], raw[3], raw[4], body)


def as_status(raw: Any) -> Status:
    """A decision's status from the columns of ``STATUS``."""
    app, id, seq, deadline, rule, default, active, n, total, value, closed, learn = raw
    return Status(app, id, seq, deadline, rule, default, bool(active), n, total, value, bool(closed), learn)


def marks(rows: Sequence[Any], width: int) -> str:
    """Placeholders for values in a statement."""
    return ", ".join([f"({', '.join('?' * width)})"] * len(rows))


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Split values into chunks for one statement each."""
    for start in range(0, len(items), _MAX_ROWS):
        yield items[start : start + _MAX_ROWS]
