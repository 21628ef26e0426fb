"""The journal: an append-only table of events, with where each decision stands kept beside it.

Everything is appended in batches, each one transaction: read what the batch touches, apply the rules of ``rules``,
write it all with a few statements, commit. Every row carries a chain: BLAKE2b (16 bytes) of the chain before it and
the row itself, so that an altered or missing row is found by ``armwise journal verify``.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
import secrets
import struct
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

import msgspec

from armwise.features.encoding.tokens import Stack
from armwise.native.requests import linked
from armwise.service.errors import Conflict, Damaged, Stale, Unavailable, Unknown
from armwise.service.journal.bodies import MANY, hashed, pack, pack_arms, together
from armwise.service.journal.events import Change, Creation, Decision, Event, Reward, Row, Sequel, Version, kind_of
from armwise.service.journal.records import STATUSES, Records, as_status, chunks, marks
from armwise.service.journal.records import Base as Base
from armwise.service.journal.rules import MOST_REWARDS, Status, check, happen, too_many
from armwise.service.journal.store import Rows, SharedConnection, Statement

T = TypeVar("T")
_NO_STATUS = (None,) * 10
_OF_DECISIONS = (Decision, *get_args(Sequel))
_REQUESTS = "SELECT app, request, seq FROM requests"
_HERE = (  # the time, the last event, and what else a batch must know, in one query
    "SELECT ({clock}), e.seq, e.time, e.chain, m.value, (SELECT value FROM meta WHERE key = 'spread') FROM meta m "
    "LEFT JOIN LATERAL (SELECT seq, time, chain FROM events ORDER BY seq DESC LIMIT 1) e ON true WHERE m.key = 'base'"
)
_MADE = "SELECT seq FROM events WHERE app = ? AND kind = 'decision' AND seq > ? ORDER BY seq"
_HELD = 2047  # bytes that are hashed without giving the interpreter away, for which a busy writer would wait long


# From decisions of other processes: the decision, and ``stack``, ``seen`` and ``held`` of its ``Write``.
Again = Callable[[Sequence[Row]], tuple[Decision, Any, Any, Any]]


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
    again: Again | None = None  # draws it again, where its agent counts decisions and other processes make some too
    catalogue: bytes = b""  # the hash of its arms, where the request named it
    home: str = ""  # the database that a decision was drawn for, where there are several
    spread: int = 0  # how often databases had been added, as far as was known when it was brought here (``members``)
    look: bool = False  # only ask what would come of it: a decision that is not there yet is Unknown
    refusal: Exception | None = None  # or refused with this, where it could not be drawn

    @property
    def new(self) -> bool:
        """Whether it is a decision with an id that was made here and no idempotency key: none before can be the same.

        >>> Write("shop", "e1", Reward(0.5)).new
        False
        """
        return self.fresh and not self.request and not self.look and type(self.event) is Decision


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
More = Callable[[], Sequence[Sequence[Write]]]


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
    rows: list[tuple[Row, Write]] = field(default_factory=list)
    dirty: dict[tuple[str, str], None] = field(default_factory=dict)
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    catalogues: dict[bytes, list[msgspec.Raw]] = field(default_factory=dict)  # arms to store apart, by hash
    made: dict[int, bytes] = field(default_factory=dict)  # bodies of decisions, by the identity of the write
    hash_of: Callable[[list[msgspec.Raw]], bytes] = field(default_factory=_Hashes)
    strange: dict[str, list[Row]] = field(default_factory=dict)  # decisions that those of this batch did not count

    def append(self, write: Write, event: Event) -> Row:
        self.seq += 1
        body = self.made.get(id(write)) or self.stored(write, event)
        row = Row(self.seq, self.time, write.app, kind_of(event), write.id, body, event)
        self.rows.append((row, write))
        if write.request:
            self.requests[write.app, write.request] = row.seq
            self.asked.append((write.app, write.request, row.seq))
        return row

    def stored(self, write: Write, event: Event) -> bytes:
        """The body of an event; arms that are stored apart are put in the order in which they were sent."""
        if not isinstance(event, Decision) or not (write.catalogue or _size(event) >= MANY):
            return pack(msgspec.json.encode(event))
        arms = event.arms
        if event.order:
            arms = [arm for _, arm in sorted(zip(event.order, arms), key=lambda pair: pair[0])]
        catalogue = write.catalogue or self.hash_of(arms)
        self.catalogues[catalogue] = arms
        return pack(msgspec.json.encode(msgspec.structs.replace(event, sent=[])), catalogue)

    def links(self) -> list[bytes]:
        """The chain after each row; once, when all are there."""
        if not self.rows:
            return []
        chains = linked(
            self.chain, self.rows[0][0].seq, self.time, [_head(row) for row, _ in self.rows],
            [row.body for row, _ in self.rows],
        )  # fmt: skip
        self.chain = chains[-1]
        return chains

    def inserted(self, rows: Sequence[tuple[tuple[Row, Write], bytes]]) -> Statement:
        """What puts rows into ``sqlite.ENTRIES``."""
        if all(write.new for (_, write), _ in rows):
            return f"INSERT INTO made VALUES {marks(rows, 11)}", [*itertools.chain(*self.made_entries(rows))]
        return f"INSERT INTO entries VALUES {marks(rows, 18)}", self.entries(rows)

    def tables(self) -> dict[str, Rows]:
        """The rows of each table, for where others append too."""
        rows = list(zip(self.rows, self.links()))
        if all(write.new for _, write in self.rows):
            return {"made": self.made_entries(rows)}
        return {
            "events": [(r.seq, r.time, r.app, r.kind, r.id, r.body, chain) for (r, _), chain in rows],
            "decisions": [_columns(self.known[key]) for key in self.dirty],
            "requests": self.asked,
        }

    def made_entries(self, rows: Sequence[tuple[tuple[Row, Write], bytes]]) -> list[tuple[Any, ...]]:
        """Rows of new decisions."""
        values = []
        for (r, _), chain in rows:
            s = self.known[r.app, r.id]
            values.append((r.seq, r.time, r.app, r.id, r.body, chain, s.deadline, s.rule, s.default, s.active, s.learn))
        return values

    def entries(self, rows: Sequence[tuple[tuple[Row, Write], bytes]]) -> list[Any]:
        """The values of rows of ``sqlite.ENTRIES``, one after the other."""
        values: list[Any] = []
        for (r, write), chain in rows:
            s = self.known[r.app, r.id] if (r.app, r.id) in self.dirty else None
            values += (r.seq, r.time, r.app, r.kind, r.id, r.body, chain, write.request)
            values += _NO_STATUS if s is None else _columns(s)[2:]
        return values


def _size(decision: Decision) -> int:
    """Bytes of the arms."""
    if isinstance(decision.sent, msgspec.Raw):  # with a comma or a bracket after each, and a bracket
        return len(decision.sent) - 1 - max(len(decision.p), len(decision.order))
    return sum(map(len, decision.sent))


def link(chain: bytes, row: Row) -> bytes:
    """The chain after ``row``.

    >>> link(b"", Row(1, 0, "shop", "create", "", b"{}")).hex()
    '00693b81b596ae070777b7fbde605f9a'
    """
    head = _head(row)
    text = b"".join((chain, struct.pack("<QQQ", row.seq, row.time, len(head)), head, row.body))
    if len(text) <= _HELD:
        return hashlib.blake2b(text, digest_size=16).digest()
    whole = memoryview(text)
    digest = hashlib.blake2b(whole[:_HELD], digest_size=16)
    for start in range(_HELD, len(whole), _HELD):
        digest.update(whole[start : start + _HELD])
    return digest.digest()


def _head(row: Row) -> bytes:
    return f"{row.app}\0{row.kind}\0{row.id}".encode()


class Journal(Records):
    """Appends to and reads from one connection; not for use by two threads at once.

    >>> from armwise.service.journal.events import Change
    >>> from armwise.service.journal.sqlite import SQLite
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

    def append(self, groups: Sequence[Sequence[Write]], now: int, more: More | None = None) -> list[Appended]:
        """Append groups of writes in one transaction; each group is taken whole or refused with the reason.

        ``more`` gives groups that came while others appended, if ``joins`` says that they may join this batch now;
        their outcomes follow those of the others. Where nobody else appends it is not asked.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> journal = Journal(SQLite(":memory:").connect())
        >>> journal.append([[Write("shop", "e1", Reward(0.5))]], now=5)
        [Unknown('no decision has the id e1')]
        """
        batch, outcomes = self._append_in_turn(groups, more) if self._lock else self._append_alone(groups, now)
        if self.on_commit is not None:
            self.on_commit(batch.rows)
        return outcomes

    def _append_alone(self, groups: Sequence[Sequence[Write]], now: int) -> tuple[_Batch, list[Appended]]:
        begun = False  # where it is alone, nothing can change between reading and writing
        try:
            last, time, chain = self._at or self.last()
            batch = _Batch(max(now, time), last, chain, hash_of=self._hashes)
            self._read_touched(batch, groups)
            outcomes = [self._take(batch, group) for group in groups]
            entries = list(chunks(list(zip(batch.rows, batch.links()))))
            new = self._unstored(batch.catalogues)
            if len(entries) + len(new) > 1:  # one statement is a transaction by itself
                self.connection.begin()
                begun = True
            for hash in new:
                self.connection.execute(*_put_arms(hash, together(batch.catalogues[hash]), batch.time))
            for chunk in entries:
                self.connection.execute(*batch.inserted(chunk))
            if begun:
                self.connection.commit()
        except BaseException:
            self._at = None  # whether it is there is for the database to say
            if begun:
                self.connection.rollback()
            raise
        self._at = batch.seq, batch.time, batch.chain
        if self.connection.tail is not None and batch.rows:
            self.connection.tail.note(batch.seq, batch.chain)
        return batch, outcomes

    def _append_in_turn(self, groups: Sequence[Sequence[Write]], more: More | None) -> tuple[_Batch, list[Appended]]:
        """Where others append too: what can be done without the lock is done while it is waited for."""
        connection: SharedConnection = self.connection  # type: ignore[assignment]
        batch = _Batch(0, 0, b"", hash_of=self._hashes)
        writes = [write for group in groups for write in group]
        made = [write for write in writes if isinstance(write.event, Decision) and not write.look]

        def encode() -> None:
            batch.made = {id(write): batch.stored(write, write.event) for write in made}

        if large := any(write.catalogue or not joins([write]) for write in made):
            encode()  # which says what arms are to be looked for
        ids, keys, hashes = _ids(writes), _keys(writes), list(batch.catalogues)
        asked = [(_HERE.format(clock=self._clock), ()), *self.naming(STATUSES, "id", ids)]
        at, asked = len(asked), [*asked, *self.naming(_REQUESTS, "request", keys)]
        until, asked = len(asked), [*asked, *map(self._asking_arms, chunks(hashes))]
        counted: dict[str, list[Write]] = {}
        for write in made:
            if write.again is not None:
                counted.setdefault(write.app, []).append(write)
        since = [(app, min(write.held.version for write in some)) for app, some in counted.items()]
        rest, asked = len(asked), [*asked, *((_MADE, each) for each in since)]
        try:
            found = connection.open_batch(self._lock, asked, (lambda: None) if large else encode)
            now, batch.seq, time, batch.chain = self._here(*found[0][0])
            batch.time = max(now, time)
            for status in (as_status(raw) for rows in found[1:at] for raw in rows):
                batch.known[status.app, status.id] = status
            for app, request, seq in (raw for rows in found[at:until] for raw in rows):
                batch.requests[app, request] = seq
            there = {bytes(hash) for rows in found[until:rest] for (hash,) in rows}
            self._look_around(batch, counted, found[rest:])
            all_groups = [*groups, *more()] if more is not None else groups
            outcomes = [self._take(batch, group) for group in all_groups]
            new = [hash for hash in batch.catalogues if hash not in there]
            arms = [_put_arms(hash, together(batch.catalogues[hash]), batch.time) for hash in new]
            connection.close_batch(arms, batch.tables())
        except BaseException:
            connection.rollback()
            raise
        for some in counted.values():
            for write in some:
                write.again = None  # it is drawn
        return batch, outcomes

    def _look_around(self, batch: _Batch, counted: dict[str, list[Write]], found: Sequence[Sequence[Any]]) -> None:
        """What other processes decided since the decisions of this batch were drawn; these are then drawn again.

        Nobody appends meanwhile, so each decision of an application that counts them knows of all before it.
        """
        for (app, some), rows in zip(counted.items(), found):
            seqs = [int(seq) for (seq,) in rows]
            if strange := {seq for write in some for seq in write.held.unknown(seqs)} if seqs else None:
                there = self.rows(sorted(strange))
                batch.strange[app] = [there[seq] for seq in sorted(strange)]
                for write in some:
                    write.held = None  # or the next one would count it beside its own new draw
                    batch.made.pop(id(write), None)

    def _draw_again(self, batch: _Batch, write: Write) -> None:
        """Draw a decision again that did not know of others, unless it was made before."""
        there = (write.app, write.request) in batch.requests or (write.app, write.id) in batch.known
        if write.again is not None and write.app in batch.strange and not there:
            write.event, write.stack, write.seen, write.held = write.again(batch.strange[write.app])

    def _here(
        self, now: int, seq: int | None, time: int | None, chain: bytes | None, base: bytes, spread: bytes | None
    ) -> tuple[int, int, int, bytes]:
        """The time, and the number, time and chain of the last event of a database that others share."""
        self._spread = int(bytes(spread)) if spread is not None else 0
        if bytes(base) != self._base[0]:  # it is long where many decisions were open
            self._base = bytes(base), msgspec.json.decode(base, type=Base)
        began = self._base[1]
        if seq is None or chain is None or seq <= began.seq:
            return int(now), began.seq, time or 0, bytes.fromhex(began.chain)
        return int(now), seq, time or 0, bytes(chain)

    def put_catalogue(self, text: bytes, now: int) -> bytes:
        """Store arms, as ``bodies.together`` has them, for decisions to refer to; their hash.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Journal(SQLite(":memory:").connect()).put_catalogue(b'["a"]', now=5).hex()
        'f53b3155b302982e196b7645b7b614b1'
        """
        self.connection.execute(*_put_arms(hash := hashed(text), text, self.now(now)))
        return hash

    def _unstored(self, hashes: Collection[bytes]) -> list[bytes]:
        """Those of which the arms are not stored; asked each time, since a compaction may have taken them away."""
        there: set[bytes] = set()
        for chunk in chunks(list(hashes)):
            there.update(bytes(hash) for (hash,) in self.connection.execute(*self._asking_arms(chunk)))
        return [hash for hash in hashes if hash not in there]

    def _asking_arms(self, hashes: Sequence[bytes]) -> Statement:
        where, values = self.connection.among("hash", hashes)
        return f"SELECT hash FROM catalogues WHERE {where}", values

    def alone(self, work: Callable[[], T]) -> T:
        """Work in one transaction, while no other process appends.

        >>> from armwise.service.journal.sqlite import SQLite
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

        >>> from armwise.service.journal.sqlite import SQLite
        >>> Journal(SQLite(":memory:").connect()).probe()
        """
        self.connection.execute(
            "INSERT INTO meta VALUES ('probe', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (secrets.token_bytes(1 << 15),),
        )

    def _read_touched(self, batch: _Batch, groups: Sequence[Sequence[Write]]) -> None:
        writes = [w for group in groups for w in group]
        for status in self.statuses(_ids(writes)):
            batch.known[status.app, status.id] = status
        for app, request, seq in self.named(_REQUESTS, "request", _keys(writes)):
            batch.requests[app, request] = seq

    def _take(self, batch: _Batch, group: Sequence[Write]) -> Appended:
        if batch.strange:
            try:
                for write in group:
                    self._draw_again(batch, write)
            except Exception as error:  # as if it had been drawn a moment later: the budget is spent, say
                return error
        if len(group) == 1 and group[0].new and group[0].spread == self._spread:
            return [self._take_new(batch, group[0])]
        if any(write.spread != self._spread and isinstance(write.event, Decision) for write in group):
            return Stale("a database was added that this process does not know of: name it in its storage")
        try:
            for write in group:
                if (refusal := self._refuse(batch, write)) is not None:
                    return refusal
        except (Conflict, Unknown) as error:
            return error
        except Damaged as error:  # of what came before with the same id: no reason to refuse the others of this batch
            return Unavailable(str(error))
        if any(write.look and not isinstance(write.event, Decision) for write in group):
            return []
        return [self._take_one(batch, write) for write in group]

    def _refuse(self, batch: _Batch, write: Write) -> Exception | None:
        """Raise if this write contradicts one before; say why it is refused if none came before; nothing is changed."""
        seq = batch.requests.get((write.app, write.request)) if write.request else None
        if seq is not None:
            row = self._row(batch, seq)
            if (row.id != write.id and not write.fresh) or not _same(row, write.event):
                key = write.request.rpartition("\x1f")[2]  # as it was sent
                raise Conflict(f"request {key} came before with other content")
            return None
        status = batch.known.get((write.app, write.id))
        if write.look and status is None:
            if write.refusal is not None:
                return write.refusal
            raise Unknown(f"no decision has the id {write.id}")
        check(write.event, status, write.id, batch.time)
        if status is not None and isinstance(write.event, Reward) and batch.time > status.deadline:
            self._limit_late(batch, write)
        again = status is not None and isinstance(write.event, Decision)
        if again and not _same(self._row(batch, status.seq), write.event):  # type: ignore[union-attr]
            raise Conflict(f"event {write.id} was decided with other content")
        return None

    def _limit_late(self, batch: _Batch, write: Write) -> None:
        """Late rewards change no status, which counts the others: they are counted where they are kept."""
        sql = "SELECT count(*) FROM events WHERE kind = 'reward' AND app = ? AND id = ?"
        [[kept]] = self.connection.execute(sql, (write.app, write.id))
        taken = sum(isinstance(w.event, Reward) and (w.app, w.id) == (write.app, write.id) for _, w in batch.rows)
        if kept + taken >= MOST_REWARDS:
            raise too_many(write.id)

    def _take_new(self, batch: _Batch, write: Write) -> Written:
        """``_take_one`` of a decision that nothing before it can have to do with."""
        row = batch.append(write, write.event)
        key = write.app, write.id
        status = batch.known[key] = Status.of(row, write.event)  # type: ignore[arg-type]
        batch.dirty[key] = None
        return Written(row, status=status)

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


def joins(group: Sequence[Write]) -> bool:
    """Whether a group may join a batch for which all was read that it needs: new decisions that need nothing.

    >>> joins([Write("shop", "e1", Reward(0.5))])
    False
    """
    return all(
        isinstance(write.event, Decision) and write.fresh and not write.request and not write.catalogue
        and write.again is None and _size(write.event) < MANY
        for write in group
    )  # fmt: skip


def _ids(writes: Sequence[Write]) -> list[tuple[str, str]]:
    """The decisions of which has to be known where they stand."""
    return list({(w.app, w.id): None for w in writes if w.id and not w.fresh})


def _keys(writes: Sequence[Write]) -> list[tuple[str, str]]:
    return list({(w.app, w.request): None for w in writes if w.request})


def _put_arms(hash: bytes, text: bytes, now: int) -> Statement:
    sql = "INSERT INTO catalogues VALUES (?, ?, ?) ON CONFLICT (hash) DO UPDATE SET time = excluded.time"
    return sql, (hash, now, pack_arms(text))


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
