"""The database of a decision, among several: computed from its id and the set of databases at that time.

Every database has a random identity, so neither its address nor its place in a list matters. A new decision goes to the
database with the largest hash of identity and id (rendezvous hashing): an added database takes an equal share of new
ids from each of the others, and no other id moves. Every database keeps the history of the sets. A decision from before
a database was added is found in the database of its time, and is never made a second time.

A change of the set is fenced: the table ``meta`` of each database has the number of changes (``epoch``), every batch of
the writer reads it in its own transaction, and a process that does not know the newest set decides nothing there.
"""

from __future__ import annotations

import functools
import hashlib
import secrets
import zlib
from collections.abc import Collection, Iterable

import msgspec

from armwise.service.journal.databases.database import Connection, Database
from armwise.service.journal.journal import Journal

PRESENT = 0x6E7204  # the class of advisory locks that announce the databases a process knows
STATEMENT_TIMEOUT = 5.0  # seconds
_DECIDED = "SELECT 1 FROM events WHERE kind = 'decision' LIMIT 1"


class Members(msgspec.Struct, frozen=True):
    """The epochs of a sharded service: the set of databases in each, the oldest first."""

    epoch: int  # the number of journaled sets; 0: none, as a single database needs none
    sets: list[tuple[str, ...]]
    names: dict[str, str]  # by identity, for messages: without passwords

    @property
    def newest(self) -> tuple[str, ...]:
        """The set of databases of new decisions."""
        return self.sets[-1] if self.sets else ()

    def owner(self, key: str) -> str:
        """The database of a new decision."""
        return _largest(self.newest, key)

    def homes(self, key: str) -> list[str]:
        """The databases that may hold a decision, that of the newest epoch first."""
        return list(dict.fromkeys(_largest(each, key) for each in reversed(self.sets)))

    def joined(self, names: dict[str, str]) -> Members:
        """A new epoch with added databases."""
        newest = tuple(sorted({*self.newest, *names}))
        return Members(self.epoch + 1, [*self.sets, newest], self.names | names)


@functools.lru_cache(maxsize=4096)  # the same key is looked up several times per decision
def _largest(identities: tuple[str, ...], key: str) -> str:
    return identities[0] if len(identities) == 1 else max(identities, key=lambda one: _weight(one, key))


def _weight(identity: str, key: str) -> bytes:
    digest = _keyed(identity).copy()
    digest.update(key.encode())
    return digest.digest()


@functools.lru_cache(maxsize=1024)
def _keyed(identity: str) -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=8, key=identity.encode())


# ---------------------------------------------------------------------- in the databases


class MembershipSession:
    """A session with one database for its identity and the sets, not for events."""

    def __init__(self, store: Database) -> None:
        self.store = store
        self.journal = Journal(store.connect(), store.lock, store.clock)
        self.journal.connection.statement_timeout = STATEMENT_TIMEOUT
        self._execute = self.journal.connection.execute
        fresh = secrets.token_hex(16).encode()
        self._execute("INSERT INTO meta VALUES ('identity', ?) ON CONFLICT DO NOTHING", (fresh,))
        self.identity = self.journal.meta("identity").decode()

    def members(self) -> Members | None:
        """The epochs that this database knows; None if it is alone or new."""
        rows = self._execute("SELECT value FROM meta WHERE key = 'members'")
        return msgspec.json.decode(bytes(rows[0][0]), type=Members) if rows else None

    def decided(self) -> bool:
        """Return whether the database has, or ever had, decisions."""
        return bool(self._execute(_DECIDED)) or self.journal.base().seq > 0

    def put(self, members: Members) -> Members:
        """Store epochs unless newer ones are stored; return the stored ones."""

        def work() -> Members:
            there = self.members()
            if there is not None and there.epoch >= members.epoch:
                return there
            for key, value in (("members", msgspec.json.encode(members)), ("epoch", b"%d" % members.epoch)):
                sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
                self._execute(sql, (key, value))
            return members

        return self.journal.alone(work)  # no batch is appended meanwhile

    def share_secret(self, secret: bytes) -> None:
        """Copy the secret to a database without decisions, so that an id draws the same arm in every database."""
        if self.journal.meta("secret") != secret:
            if self.decided():
                raise ValueError(f"{self.store} has decisions of its own: only an empty database can be added")
            self._execute("UPDATE meta SET value = ? WHERE key = 'secret'", (secret,))

    def others(self, known: Iterable[str]) -> bool:
        """Return whether another process here knows other databases."""
        sql = (
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = ? AND objid::bigint <> ? "
            "AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1"
        )
        return bool(self._execute(sql, (PRESENT, _number(known))))

    def processes(self) -> int:
        """The number of processes that announced themselves here."""
        sql = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = ? AND objsubid = 2 "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(self._execute(sql, (PRESENT,))[0][0])

    def close(self) -> None:
        """End the session."""
        self.journal.connection.close()


def announce(connection: Connection, known: Iterable[str] = ()) -> None:
    """Announce the databases that this process knows (none: only this one), as long as the session lives."""
    connection.execute(
        f"SELECT pg_advisory_unlock_all(), pg_advisory_lock_shared({PRESENT}, {_number(known)})"  # no user input
    )


def _number(known: Iterable[str]) -> int:
    return zlib.crc32(" ".join(sorted(known)).encode()) & 0x7FFFFFFF


def stand_alone(connection: Connection) -> None:
    """Announce that a process serves this database alone; raise RuntimeError if decisions are sharded."""
    rows = connection.execute("SELECT value FROM meta WHERE key = 'members'")
    if rows:
        names = msgspec.json.decode(bytes(rows[0][0]), type=Members).names.values()
        raise RuntimeError(
            f"decisions are sharded over {len(names)} databases: storage must be the list of {', '.join(sorted(names))}"
        )
    announce(connection)


def first(memberships: Collection[MembershipSession]) -> Members:
    """The first epoch: the database that has decisions, if any."""
    decided = [membership for membership in memberships if membership.decided()]
    if len(decided) > 1:
        named = ", ".join(str(membership.store) for membership in decided)
        raise ValueError(f"{named} have decisions of their own: only empty databases can join one that has some")
    return Members(
        0,
        [(membership.identity,) for membership in decided],
        {membership.identity: str(membership.store) for membership in decided},
    )


def missing_of(journals: Collection[Journal]) -> str:
    """The problem with a list of journals that should be all databases of one service; empty if none."""
    sql = "SELECT key, value FROM meta WHERE key IN ('identity', 'members')"
    found = [{key: bytes(value) for key, value in journal.connection.execute(sql)} for journal in journals]
    told = [msgspec.json.decode(each["members"], type=Members) for each in found if "members" in each]
    if not told:
        return "" if len(journals) == 1 else "these are not the databases of one service"
    newest = max(told, key=lambda members: members.epoch)
    given = {each["identity"].decode() for each in found if "identity" in each}
    if missing := [newest.names[one] for one in newest.newest if one not in given]:
        return f"{', '.join(missing)} must be named too: decisions are sharded over {len(newest.newest)} databases"
    return "" if len(given) == len(journals) == len(newest.newest) else "these are not the databases of one service"
