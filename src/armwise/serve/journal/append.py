"""The journal: an append-only table of events, with where each decision stands kept beside it.

Everything is appended in batches, each one transaction: read what the batch touches, apply the rules of ``rules``,
write it all with a few statements, commit. Every row carries a chain: BLAKE2b (16 bytes) of the chain before it and
the row itself, so that an altered or missing row is found by ``armwise journal verify``.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import secrets
import struct
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

import msgspec

from armwise.features.tokens import Stack
from armwise.serve.errors import Conflict, Damaged, Stale, Unavailable, Unknown
from armwise.serve.journal.bodies import MANY, hashed, pack, pack_arms, together
from armwise.serve.journal.events import Change, Creation, Decision, Event, Reward, Row, Sequel, Version, kind_of
from armwise.serve.journal.records import STATUS, Records, chunks, marks
from armwise.serve.journal.records import Base as Base
from armwise.serve.journal.rules import Status, check, happen

T = TypeVar("T")
_NO_STATUS = (None,) * 10
_OF_DECISIONS = (Decision, *get_args(Sequel))
_HELD = 2047  # bytes that are hashed without giving the interpreter away, for which a busy writer would wait long


class Write(msgspec.Struct, gc=False):  # no cycle goes through it
    """One event to append, as it is asked for. ``fresh`` says that the id was made here, so that no other can have it.

    >>> Write("shop", "e1", Reward(0.5)).request
    ''
    """

    app: str
    id: str
    event: Event
    request: str = ""
    fresh: bool = False
    stack: Stack | None = None  # a decision's tokens, so that the learner need not read them again
    seen: Any = None  # all that the agent saw of a decision (``model.Seen``), where that is worth its memory
    names: tuple[str, ...] = ()  # a decision's arms, in the order they were sent
    held: Any = None  # counts a decision while it is under way (``model.underway.Held``), where its agent counts them
    catalogue: bytes = b""  # the hash of its arms, where the request named it
    home: str = ""  # the database that a decision was drawn for, where there are several
    spread: int = 0  # how often databases had been added, as far as was known when it was brought here (``members``)
    look: bool = False  # only ask what would come of it: a decision that is not there yet is Unknown


class Written(msgspec.Struct, gc=False):
    """What an append came to: the event's row; ``again`` if it was there before; the decision's status.

    >>> Written(Row(1, 0, "shop", "create", "", b"{}")).again
    False
    """

    row: Row
    again: bool = False
    status: Status | None = None
    repeated: bool = False  # a reward of which an earlier one counts instead


Appended = list[Written] | Exception


class _Hashes:
    """Hashes of arms; those of the last ones are remembered, by the very objects that requests share."""

    def __init__(self) -> None:
        self._last: deque[tuple[list[msgspec.Raw], bytes]] = deque(maxlen=8)

    def __call__(self, arms: list[msgspec.Raw]) -> bytes:
        for known, found in self._last:
            if len(known) == len(arms) and all(map(operator.is_, known, arms)):
                return found
        self._last.append((arms, hashed(together(arms))))
        return self._last[-1][1]


@dataclass
class _Batch:
    """What a batch touches, read at its start and written at its end."""

    time: int
    seq: int
    chain: bytes
    known: dict[tuple[str, str], Status] = field(default_factory=dict)
    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: list[tuple[Row, bytes, Write]] = field(default_factory=list)
    dirty: dict[tuple[str, str], None] = field(default_factory=dict)
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    catalogues: dict[bytes, list[msgspec.Raw]] = field(default_factory=dict)  # arms to store apart, by hash
    hash_of: Callable[[list[msgspec.Raw]], bytes] = field(default_factory=_Hashes)

    def append(self, write: Write, event: Event) -> Row:
        self.seq += 1
        if isinstance(event, Decision) and (write.catalogue or sum(map(len, event.arms)) >= MANY):
            body = self._refer(event, write.catalogue)
        else:
            body = pack(msgspec.json.encode(event))
        row = Row(self.seq, self.time, write.app, kind_of(event), write.id, body, event)
        self.chain = link(self.chain, row)
        self.rows.append((row, self.chain, write))
        if write.request:
            self.requests[write.app, write.request] = row.seq
            self.asked.append((write.app, write.request, row.seq))
        return row

    def _refer(self, decision: Decision, catalogue: bytes) -> bytes:
        """The body of a decision whose arms are stored apart, in the order in which they were sent."""
        arms = decision.arms
        if decision.order:
            arms = [arm for _, arm in sorted(zip(decision.order, arms), key=lambda pair: pair[0])]
        catalogue = catalogue or self.hash_of(arms)
        self.catalogues[catalogue] = arms
        return pack(msgspec.json.encode(msgspec.structs.replace(decision, arms=[])), catalogue)

    def entries(self, rows: Sequence[tuple[Row, bytes, Write]]) -> list[Any]:
        """The values of rows of ``store.ENTRIES``, one after the other."""
        values: list[Any] = []
        for r, chain, write in rows:
            s = self.known[r.app, r.id] if (r.app, r.id) in self.dirty else None
            values += (r.seq, r.time, r.app, r.kind, r.id, r.body, chain, write.request)
            values += _NO_STATUS if s is None else _columns(s)[2:]
        return values


def link(chain: bytes, row: Row) -> bytes:
    """The chain after ``row``.

    >>> link(b"", Row(1, 0, "shop", "create", "", b"{}")).hex()
    '00693b81b596ae070777b7fbde605f9a'
    """
    head = f"{row.app}\0{row.kind}\0{row.id}".encode()
    text = b"".join((chain, struct.pack("<QQQ", row.seq, row.time, len(head)), head, row.body))
    if len(text) <= _HELD:
        return hashlib.blake2b(text, digest_size=16).digest()
    whole = memoryview(text)
    digest = hashlib.blake2b(whole[:_HELD], digest_size=16)
    for start in range(_HELD, len(whole), _HELD):
        digest.update(whole[start : start + _HELD])
    return digest.digest()


class Journal(Records):
    """Appends to and reads from one connection; not for use by two threads at once.

    >>> from armwise.serve.journal.events import Change
    >>> from armwise.serve.journal.sqlite import SQLite
    >>> journal = Journal(SQLite(":memory:").connect())
    >>> [outcome] = journal.append([[Write("shop", "", Change())]], now=5)
    >>> outcome[0].row.seq, journal.last()[0]
    (1, 1)
    """

    on_commit: Callable[[list[tuple[Row, Write]]], None] | None = None  # called with what was committed, in order
    _spread = 0  # how often databases were added
    _at: tuple[int, int, bytes] | None = None  # the last event, where no other process appends
    _base: tuple[bytes, Base] = b"", Base()  # as it was last read

    @functools.cached_property
    def _hashes(self) -> _Hashes:
        return _Hashes()

    def append(self, groups: Sequence[Sequence[Write]], now: int) -> list[Appended]:
        """Append groups of writes in one transaction; each group is taken whole or refused with the reason.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> journal = Journal(SQLite(":memory:").connect())
        >>> journal.append([[Write("shop", "e1", Reward(0.5))]], now=5)
        [Unknown('no decision has the id e1')]
        """
        begun = bool(self._lock)  # where it is alone, nothing can change between reading and writing
        try:
            if begun:
                self.connection.begin(self._lock)
            now, last, time, chain = self._here(now)
            batch = _Batch(max(now, time), last, chain, hash_of=self._hashes)
            self._read_touched(batch, groups)
            outcomes = [self._take(batch, group) for group in groups]
            entries, new = list(chunks(batch.rows)), self._unstored(batch.catalogues)
            if not begun and len(entries) + len(new) > 1:  # one statement is a transaction by itself
                self.connection.begin()
                begun = True
            for hash in new:
                self._put_arms(hash, together(batch.catalogues[hash]), batch.time)
            if self._lock:
                self._write(batch)
            else:
                for chunk in entries:
                    self.connection.execute(f"INSERT INTO entries VALUES {marks(chunk, 18)}", batch.entries(chunk))
            if begun:
                self.connection.commit()
        except BaseException:
            self._at = None  # whether it is there is for the database to say
            if begun:
                self.connection.rollback()
            raise
        if not self._lock:
            self._at = batch.seq, batch.time, batch.chain
        if self.connection.tail is not None and batch.rows:
            self.connection.tail.note(batch.seq, batch.chain)
        if self.on_commit is not None:
            self.on_commit([(row, write) for row, _, write in batch.rows])
        return outcomes

    def _here(self, now: int) -> tuple[int, int, int, bytes]:
        """The time, and the number, time and chain of the last event; of a database that others share, in one query."""
        if not self._clock:
            return now, *(self._at or self.last())
        [(now, seq, time, chain, base, spread)] = self.connection.execute(
            f"SELECT ({self._clock}), e.seq, e.time, e.chain, m.value, "
            "(SELECT value FROM meta WHERE key = 'spread') FROM meta m LEFT JOIN LATERAL "
            "(SELECT seq, time, chain FROM events ORDER BY seq DESC LIMIT 1) e ON true WHERE m.key = 'base'"
        )
        self._spread = int(bytes(spread)) if spread is not None else 0
        if bytes(base) != self._base[0]:  # it is long where many decisions were open
            self._base = bytes(base), msgspec.json.decode(base, type=Base)
        began = self._base[1]
        if seq is None or seq <= began.seq:
            return int(now), began.seq, time or 0, bytes.fromhex(began.chain)
        return int(now), seq, time, bytes(chain)

    def put_catalogue(self, text: bytes, now: int) -> bytes:
        """Store arms, as ``bodies.together`` has them, for decisions to refer to; their hash.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> Journal(SQLite(":memory:").connect()).put_catalogue(b'["a"]', now=5).hex()
        'f53b3155b302982e196b7645b7b614b1'
        """
        self._put_arms(hash := hashed(text), text, self.now(now))
        return hash

    def _put_arms(self, hash: bytes, text: bytes, now: int) -> None:
        sql = "INSERT INTO catalogues VALUES (?, ?, ?) ON CONFLICT (hash) DO UPDATE SET time = excluded.time"
        self.connection.execute(sql, (hash, now, pack_arms(text)))

    def _unstored(self, hashes: Collection[bytes]) -> list[bytes]:
        """Those of which the arms are not stored; asked each time, since a compaction may have taken them away."""
        there: set[bytes] = set()
        for chunk in chunks(list(hashes)):
            sql = f"SELECT hash FROM catalogues WHERE hash IN ({', '.join('?' * len(chunk))})"
            there.update(bytes(hash) for (hash,) in self.connection.execute(sql, chunk))
        return [hash for hash in hashes if hash not in there]

    def alone(self, work: Callable[[], T]) -> T:
        """Work in one transaction, while no other process appends.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> Journal(SQLite(":memory:").connect()).alone(lambda: 7)
        7
        """
        try:
            self.connection.begin(self._lock)
            came = work()
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise
        return came

    def probe(self) -> None:
        """Write something of no meaning, durably, as large as a batch may be: raises if nothing can be written.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> Journal(SQLite(":memory:").connect()).probe()
        """
        self.connection.execute(
            "INSERT INTO meta VALUES ('probe', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (secrets.token_bytes(1 << 15),),
        )

    def _read_touched(self, batch: _Batch, groups: Sequence[Sequence[Write]]) -> None:
        writes = [w for group in groups for w in group]
        ids = list({(w.app, w.id): None for w in writes if w.id and not w.fresh})
        for status in self.statuses(ids):
            batch.known[status.app, status.id] = status
        asked = list({(w.app, w.request): None for w in writes if w.request})
        for app, request, seq in self.named("SELECT app, request, seq FROM requests", "request", asked):
            batch.requests[app, request] = seq

    def _take(self, batch: _Batch, group: Sequence[Write]) -> Appended:
        if any(write.spread != self._spread and isinstance(write.event, Decision) for write in group):
            return Stale("a database was added that this process does not know of: name it in its storage")
        try:
            for write in group:
                self._refuse(batch, write)
        except (Conflict, Unknown) as error:
            return error
        except Damaged as error:  # of what came before with the same id: no reason to refuse the others of this batch
            return Unavailable(str(error))
        if any(write.look and not isinstance(write.event, Decision) for write in group):
            return []
        return [self._take_one(batch, write) for write in group]

    def _refuse(self, batch: _Batch, write: Write) -> None:
        """Raise if this write contradicts one before; nothing is changed yet."""
        seq = batch.requests.get((write.app, write.request)) if write.request else None
        if seq is not None:
            row = self._row(batch, seq)
            if (row.id != write.id and not write.fresh) or not _same(row, write.event):
                key = write.request.rpartition("\x1f")[2]  # as it was sent
                raise Conflict(f"request {key} came before with other content")
            return
        status = batch.known.get((write.app, write.id))
        if write.look and status is None:
            raise Unknown(f"no decision has the id {write.id}")
        check(write.event, status, write.id, batch.time)
        again = status is not None and isinstance(write.event, Decision)
        if again and not _same(self._row(batch, status.seq), write.event):  # type: ignore[union-attr]
            raise Conflict(f"event {write.id} was decided with other content")

    def _take_one(self, batch: _Batch, write: Write) -> Written:
        seq = batch.requests.get((write.app, write.request)) if write.request else None
        if seq is not None:
            row = self._row(batch, seq)
            status = batch.known.get((write.app, row.id))
            repeated = isinstance(write.event, Reward) and status is not None and status.repeated
            return Written(row, again=True, status=status, repeated=repeated)
        if not isinstance(write.event, _OF_DECISIONS):
            return Written(batch.append(write, write.event))
        key = write.app, write.id
        status = batch.known.get(key)
        if status is not None and isinstance(write.event, Decision):
            return Written(self._row(batch, status.seq), again=True, status=status)
        event = happen(write.event, status, batch.time)
        row = batch.append(write, event)
        if isinstance(event, Decision):
            status = batch.known[key] = Status.of(row, event)
        batch.dirty[key] = None
        # Now, since a group may have another reward of the same decision.
        repeated = isinstance(event, Reward) and not event.late and status is not None and status.repeated
        return Written(row, status=status, repeated=repeated)

    def _row(self, batch: _Batch, seq: int) -> Row:
        if batch.rows and seq >= batch.rows[0][0].seq:
            return batch.rows[seq - batch.rows[0][0].seq][0]
        return self.row(seq)

    def _write(self, batch: _Batch) -> None:
        events = [(r.seq, r.time, r.app, r.kind, r.id, r.body, chain) for r, chain, _ in batch.rows]
        for chunk in chunks(events):
            self.connection.execute(f"INSERT INTO events VALUES {marks(chunk, 7)}", [v for row in chunk for v in row])
        changed = [batch.known[key] for key in batch.dirty]
        for chunk in chunks(changed):
            self.connection.execute(
                f"INSERT INTO decisions ({STATUS}) VALUES {marks(chunk, 12)} ON CONFLICT (app, id) DO UPDATE SET "
                "active = excluded.active, n = excluded.n, total = excluded.total, value = excluded.value, "
                "closed = excluded.closed",
                [value for status in chunk for value in _columns(status)],
            )
        for chunk in chunks(batch.asked):
            self.connection.execute(f"INSERT INTO requests VALUES {marks(chunk, 3)}", [v for row in chunk for v in row])


def _same(row: Row, asked: Event) -> bool:
    """Whether an event asks for what the journaled row was asked."""
    there = row.event
    if isinstance(there, Decision) and isinstance(asked, Decision):
        return canonical(there) == canonical(asked)
    if isinstance(there, Reward) and isinstance(asked, Reward):
        return there.value == asked.value
    return there == asked if isinstance(asked, Creation | Change | Version) else type(there) is type(asked)


def canonical(decision: Decision) -> bytes:
    """What was asked, in a form that does not depend on spacing or on the order of keys.

    >>> one = Decision(msgspec.Raw(b'{"b": 1, "a": 2}'), [], [], 0, 0, 1, 0.0)
    >>> canonical(one)
    b'[{"a":2,"b":1},[],false]'
    """
    if decision.asked:
        return decision.asked.encode()
    arms = [msgspec.json.decode(arm) for arm in decision.arms]
    if decision.order:
        arms = [[arms[decision.order.index(i)], decision.order.index(i) < len(decision.p)] for i in range(len(arms))]
    return msgspec.json.encode([msgspec.json.decode(decision.context), arms, decision.deferred], order="sorted")


def _columns(s: Status) -> tuple[Any, ...]:
    return (
        s.app, s.id, s.seq, s.deadline, s.rule, s.default, int(s.active), s.n, s.total, s.value, int(s.closed), s.learn,
    )  # fmt: skip
