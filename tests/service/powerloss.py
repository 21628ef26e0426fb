"""A disk that remembers every write, so that the power can go at any of them.

An apsw VFS passes everything on to real files and keeps a list of what was done: writes, truncations, syncs. A
surviving disk is then built for any moment: what was synced is there; of what was not, nothing, or some, or the last
write torn in two.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from armwise.service.journal.databases.sqlite import SQLite, _SQLiteConnection

Operation = tuple[str, str, int, bytes]  # what, file name, offset or size, data
Files = tuple[tuple[str, bytes], ...]  # name, contents


class Disk(apsw.VFS):
    """The VFS; ``operations`` is all that was done through it."""

    def __init__(self, name: str) -> None:
        self.operations: list[Operation] = []
        self.name = name
        super().__init__(name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.operations.append(("delete", Path(filename).name, 0, b""))

    def survivor(self, moment: int, chance: random.Random | None) -> Files:
        """What may be left after ``moment`` operations: only what was synced, or with ``chance`` some more."""
        contents: dict[str, bytearray] = {}
        pending: dict[str, list[Operation]] = {}
        for operation in self.operations[:moment]:
            what, name, _, _ = operation
            if what == "sync":
                for each in pending.pop(name, []):
                    _apply(contents, each)
                contents.setdefault(name, bytearray())
            elif what == "delete":
                contents.pop(name, None)
                pending.pop(name, None)
            else:
                pending.setdefault(name, []).append(operation)
        if chance is not None:
            for operations in pending.values():
                for each in operations:
                    if chance.random() < 0.5:
                        _apply(contents, each)
                what, name, offset, data = operations[-1]
                if what == "write" and chance.random() < 0.5:  # torn: a part of the last one
                    _apply(contents, (what, name, offset, data[: chance.randrange(len(data) + 1)]))
        return tuple((name, bytes(content)) for name, content in sorted(contents.items()))


def write(files: Files, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        (folder / name).write_bytes(content)


def _apply(contents: dict[str, bytearray], operation: Operation) -> None:
    what, name, offset, data = operation
    content = contents.setdefault(name, bytearray())
    if what == "truncate":
        del content[offset:]
    else:
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        path = name if isinstance(name, (str, type(None))) else name.filename()
        self._name = Path(path).name if path else "temporary"
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.operations.append(("write", self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self._disk.operations.append(("truncate", self._name, size, b""))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._disk.operations.append(("sync", self._name, 0, b""))


class _Shared(_SQLiteConnection):
    """One connection for all: without shared memory the write-ahead log can have no second one."""

    def __init__(self, raw: Any) -> None:
        self._raw, self._lock = raw, threading.RLock()
        self.tail = None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return list(self._raw.execute(sql, tuple(values)))

    def begin(self, lock: str = "") -> None:
        self._lock.acquire()
        self._raw.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._raw.execute("COMMIT")
        self._lock.release()

    def rollback(self) -> None:
        if not self._raw.get_autocommit():
            self._raw.execute("ROLLBACK")
        self._lock.release()

    def close(self) -> None:
        pass


class Remembered(SQLite):
    """A store on such a disk."""

    def __init__(self, path: Path, disk: Disk, synchronous: str = "FULL") -> None:
        super().__init__(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = apsw.Connection(str(path), vfs=disk.name)
        raw.execute("PRAGMA locking_mode=EXCLUSIVE")
        from armwise.service.journal.databases.database import make_tables
        from armwise.service.journal.databases.sqlite import ENTRIES

        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute(f"PRAGMA synchronous={synchronous}")
        raw.execute("PRAGMA wal_autocheckpoint=30")  # so that checkpoints happen in a short run
        self._one = _Shared(raw)
        self._raw = raw
        raw.execute("PRAGMA temp_store=MEMORY")
        raw.execute("ATTACH DATABASE ? AS aside", (f"{path}.snapshots",))
        raw.execute("PRAGMA aside.journal_mode=WAL")
        raw.execute("PRAGMA aside.synchronous=NORMAL")
        words = {"bytes": "BLOB", "integer": "INTEGER", "real": "REAL", "suffix": " WITHOUT ROWID", "aside": "aside."}
        make_tables(self._one, **words)
        for statement in ENTRIES:
            raw.execute(statement)

    def connect(self) -> Any:
        return self._one

    def shut(self) -> None:
        self._raw.close()
