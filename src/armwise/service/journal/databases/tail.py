"""The last acknowledged event, in a small file beside the journal, to detect a truncated journal.

SQLite cannot tell a truncated write-ahead log from a shorter one: the rest is consistent. So after every commit, and
before the answer, the number and the chain of its last event are written to ``journal.db.last``, a memory-mapped file:
no system call, no second wait for the disk. The file is synced about twice per second.

If the process dies, the file has exactly the last acknowledged event. It never names an event that was not durable, so
an event that it names and the journal lacks was lost. Its limits: after a power failure the file may be about a second
old, and a loss of only that second goes unnoticed; and deleting the file deletes this record.
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
_SIZE = 2 * _RECORD.size  # two records in turn: a killed process may leave one half written


class Tail:
    """The file beside one journal."""

    def __init__(self, journal: str | os.PathLike[str]) -> None:
        self.path, self.lost = f"{journal}.last", f"{journal}.lost"
        self._map: mmap.mmap | None = None
        self._synced = b""

    def note(self, seq: int, chain: bytes) -> None:
        """Record that everything up to an event is acknowledged."""
        if self._map is None:
            try:
                self._map = self._open()
            except OSError as error:  # the commit is durable nevertheless
                log.warning(
                    "%s cannot be written: a loss of the journal's last events would go unnoticed: %s", self.path, error
                )
                return
        start = seq % 2 * _RECORD.size
        self._map[start : start + _RECORD.size] = _RECORD.pack(seq, chain, _check(seq, chain))

    def read(self) -> tuple[int, bytes] | None:
        """The last acknowledged event and its chain; None without a record."""
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
        """Compare the journal with the last acknowledged event, at start; record a loss in a file."""
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
        """The recorded losses of earlier starts; deleting the file acknowledges them."""
        try:
            return Path(self.lost).read_text().splitlines()
        except OSError:
            return []

    def close(self) -> None:
        """Close the file."""
        if self._map is not None:
            self._map.close()
            self._map = None

    def _open(self) -> mmap.mmap:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(handle).st_size != _SIZE:
                os.pwrite(handle, bytes(_SIZE), 0)  # allocates the blocks: a full disk would kill the process later
            return mmap.mmap(handle, _SIZE)
        finally:
            os.close(handle)


def _check(seq: int, chain: bytes) -> bytes:
    return hashlib.blake2b(struct.pack("<Q16s", seq, chain), digest_size=8).digest()


def missing(journal: Journal, acknowledged: tuple[int, bytes] | None) -> str:
    """A message about acknowledged events that a journal lacks; empty if none."""
    if acknowledged is None:
        return ""
    (seq, chain), last = acknowledged, journal.last()[0]
    if last < seq:
        return (
            f"events {last + 1} to {seq} were acknowledged, and are missing: the write-ahead log was truncated, or an "
            "older copy of the journal was restored"
        )
    there = journal.chain(seq)
    if there != chain and (there or seq > journal.base().seq):
        return f"event {seq} is not the one that was acknowledged: the journal has another history"
    return ""
