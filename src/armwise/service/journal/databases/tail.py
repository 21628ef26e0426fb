"""The last acknowledged event, in a small file beside the journal, to detect a truncated journal.

A log cut short looks to SQLite like one that ended there, and what is left is consistent. So after every commit, and
before anyone is answered, the number and the chain of its last event are written to ``journal.db.last``, in memory that
the file is mapped to: no system call, no second wait for the disk. About twice per second the file is synced.

What that promises: if the process dies in any way, the file says exactly what was acknowledged last. It never says more
than was durable, so what it misses is missing. What it cannot: after a power failure the file itself may be up to about
a second old, and a loss of only that second goes unnoticed; and whoever removes the file removes what it knew.
"""

from __future__ import annotations

import datetime
import hashlib
import logging
import mmap
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armwise.service.journal.journal import Journal

log = logging.getLogger("armwise.service")
_RECORD = struct.Struct("<Q16s8s")  # the number, the chain, a check over both
_SIZE = 2 * _RECORD.size  # two places in turn: one may be half written when the process is killed


class Tail:
    """The file beside one journal.

    >>> import tempfile
    >>> tail = Tail(Path(tempfile.mkdtemp()) / "journal.db")
    >>> tail.note(7, bytes(16)); tail.read()[0]; tail.close()
    7
    """

    def __init__(self, journal: str | os.PathLike[str]) -> None:
        self.path, self.lost = f"{journal}.last", f"{journal}.lost"
        self._map: mmap.mmap | None = None
        self._synced = b""

    def note(self, seq: int, chain: bytes) -> None:
        """Record that everything up to an event is acknowledged."""
        if self._map is None:
            try:
                self._map = self._open()
            except OSError as error:  # the commit is durable all the same
                log.warning(
                    "%s cannot be written: a loss of the journal's last events would go unnoticed: %s", self.path, error
                )
                return
        start = seq % 2 * _RECORD.size
        self._map[start : start + _RECORD.size] = _RECORD.pack(seq, chain, _check(seq, chain))

    def read(self) -> tuple[int, bytes] | None:
        """The last acknowledged event and the chain there; None without a record.

        >>> Tail("/no/such/journal.db").read() is None
        True
        """
        try:
            data = Path(self.path).read_bytes()
        except OSError:
            return None
        found = [_RECORD.unpack_from(data, start) for start in (0, _RECORD.size) if start + _RECORD.size <= len(data)]
        return max(((seq, chain) for seq, chain, check in found if check == _check(seq, chain)), default=None)

    def sync(self) -> None:
        """Sync the file to disk if it changed."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            if (now := os.read(handle, _SIZE)) != self._synced:
                os.fsync(handle)
                self._synced = now
        finally:
            os.close(handle)

    def begin(self, journal: Journal) -> None:
        """Compare the journal with what was acknowledged, before anything new is; what is missing is kept on record."""
        if problem := missing(journal, self.read()):
            log.error(problem)
            found = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            handle = os.open(self.lost, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"found at {found}: {problem}\n")
                file.flush()
                os.fsync(file.fileno())
            os.unlink(self.path)

    def losses(self) -> list[str]:
        """The losses found at earlier starts that nobody has dealt with.

        >>> Tail("/no/such/journal.db").losses()
        []
        """
        try:
            return Path(self.lost).read_text().splitlines()
        except OSError:
            return []

    def close(self) -> None:
        """Close the file.

        >>> Tail("/no/such/journal.db").close()
        """
        if self._map is not None:
            self._map.close()
            self._map = None

    def _open(self) -> mmap.mmap:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(handle).st_size != _SIZE:
                os.pwrite(handle, bytes(_SIZE), 0)  # its place on the disk: without, a full one would kill us
            return mmap.mmap(handle, _SIZE)
        finally:
            os.close(handle)


def _check(seq: int, chain: bytes) -> bytes:
    return hashlib.blake2b(struct.pack("<Q16s", seq, chain), digest_size=8).digest()


def missing(journal: Journal, acknowledged: tuple[int, bytes] | None) -> str:
    """The acknowledged events that a journal lacks; empty if none.

    >>> from armwise.service.journal.journal import Journal
    >>> from armwise.service.journal.databases.sqlite import SQLite
    >>> missing(Journal(SQLite(":memory:").connect()), (2, b""))[:44]
    'events 1 to 2 were acknowledged, and are mis'
    """
    if acknowledged is None:
        return ""
    (seq, chain), last = acknowledged, journal.last()[0]
    if last < seq:
        return (
            f"events {last + 1} to {seq} were acknowledged, and are missing: the write-ahead log lost its tail, or an "
            "older copy of the journal was put back"
        )
    there = journal.chain(seq)
    if there != chain and (there or seq > journal.base().seq):
        return f"event {seq} is not the one that was acknowledged: the journal has another history"
    return ""
