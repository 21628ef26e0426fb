"""Every call fails once: each statement and file call of the journal, exports, retention, compaction and model files.

The n-th call raises, for n = 1, 2, ... until none is left to fail; it fails before it was done, or after, when only
the word that it was done is lost. After each failure what was acknowledged is there, the same work succeeds when it is
tried again, ``verify`` is clean, and no file descriptor is left open.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

import armwise as aw
from armwise.core import policy_document, saving
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.postgres import Postgres
from armwise.service.journal.databases.postgres_session import Session as PostgresSession
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Unavailable
from armwise.service.journal.events import Creation, Decision, Reward, Settings
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write, keyed
from armwise.service.log.compact import compact
from armwise.service.log.export_journal import pieces
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify
from tests.service.database import Server

DAY = 86_400_000


class Faults:
    """Lets the n-th call from now on fail, before or after it is done."""

    def __init__(self) -> None:
        self.left, self.after, self.fired = 0, False, False

    def arm(self, n: int, after: bool) -> None:
        self.left, self.after, self.fired = n, after, False

    def disarm(self) -> bool:
        self.left = 0
        return self.fired

    def step(self, do: Callable[[], Any], error: Exception) -> Any:
        if self.left <= 0:
            return do()
        self.left -= 1
        if self.left:
            return do()
        self.fired = True
        if self.after:
            do()
        raise error


class Session:
    """SQLite's own session, whose statements may fail."""

    def __init__(self, faults: Faults, path: str) -> None:
        self._faults = faults
        self._raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30.0)

    def execute(self, sql: str, values: Any = ()) -> Any:
        return self._faults.step(lambda: self._raw.execute(sql, values), sqlite3.OperationalError("disk I/O error"))

    @property
    def in_transaction(self) -> bool:
        return self._raw.in_transaction

    def close(self) -> None:
        self._raw.close()


def store(faults: Faults, path: Path) -> SQLite:
    return SQLite(path, opener=lambda name: Session(faults, name))


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module")
def filled() -> Iterator[Path]:
    """A folder with a journal of settled and open decisions, keys, a catalogue and snapshots."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        engine = Engine(SQLite(path), {"shop": Creation(features={"dim": 8})}, clock=lambda: 1_000.0)
        engine.start()
        arms = [b'{"id": "a%d", "features": {"x": "%s"}}' % (k, b"y" * 60) for k in range(70)]
        for k in range(12):
            some = arms if k % 4 == 0 else [b'"a"', b'"b"']
            engine.decide("shop", b'{"user": %d}' % (k % 3), some, id=f"e{k}", request=f"r{k}")
            if k % 2:
                engine.reward("shop", f"e{k}", 0.5, request=f"w{k}")
        engine.snapshot()
        engine.stop()
        yield Path(folder)


def decision(arm: bytes = b'"a"') -> Decision:
    return Decision(msgspec.Raw(b"{}"), [msgspec.Raw(arm)], [1.0], 0, 0, 600_000, 0.0)


def clean(path: Path) -> None:
    connection = SQLite(path).connect_reading()
    try:
        assert verify(Journal(connection)).problems == []
    finally:
        connection.close()


def every_failure(
    filled: Path, tmp_path: Path, work: Callable[[Journal], Any], check: Callable[[Journal], None], least: int
) -> None:
    """Let each statement of ``work`` fail, on a fresh copy; then it is done again, and ``check`` looks at it."""
    faults = Faults()
    before = descriptors()
    for after in (False, True):
        n = 0
        while True:
            n += 1
            folder = tmp_path / "copy"
            shutil.copytree(filled, folder)
            journal = Journal(store(faults, folder / "journal.db").connect())
            faults.arm(n, after)
            with contextlib.suppress(sqlite3.Error, ValueError):  # of a replay it says which event could not be read
                work(journal)
            fired = faults.disarm()
            work(journal)
            check(journal)
            journal.connection.close()
            clean(folder / "journal.db")
            shutil.rmtree(folder)
            if not fired:
                break
        assert n > least, f"only {n - 1} statements could fail"
    assert descriptors() <= before, "descriptors stay open"


def test_an_append_is_there_once_or_not_at_all(filled: Path, tmp_path: Path) -> None:
    arms = b'{"id": "a", "features": {"x": "' + b"z" * 4000 + b'"}}'

    def work(journal: Journal) -> Any:
        rewards = [Write("shop", "e2", Reward(0.5)), Write("shop", "e4", Reward(0.25))]
        groups = [
            [Write("shop", "new", decision(), "key")],
            [Write("shop", "large", decision(arms), "large key")],
            [Write("shop", "e0", Reward(1.0), "reward key")],
            keyed(rewards, lambda part: f"batch {part}"),
        ]
        return [journal.append([group], 1_100_000) for group in groups]

    def check(journal: Journal) -> None:
        found = {status.id: status.n for status in journal.statuses([("shop", id) for id in ("new", "e0", "e2", "e4")])}
        assert found == {"new": 0, "e0": 1, "e2": 1, "e4": 1}

    every_failure(filled, tmp_path, work, check, least=8)


def test_snapshots_are_whole_or_those_before(filled: Path, tmp_path: Path) -> None:
    model = saving.dumps(aw.LinUCB(dim=4))

    def work(journal: Journal) -> None:
        journal.put_snapshots([("other", 3, model)], upto=3)

    def check(journal: Journal) -> None:
        assert journal.snapshot("other") == (3, model) and journal.saved() is not None
        journal.connection.execute("DELETE FROM snapshots WHERE seq = 3")

    every_failure(filled, tmp_path, work, check, least=5)


def test_an_export_that_breaks_off_can_be_had_again(filled: Path, tmp_path: Path) -> None:
    whole: list[bytes] = []

    def check(journal: Journal) -> None:
        whole.append(b"".join(pieces(journal, "shop")))

    every_failure(filled, tmp_path, lambda journal: list(pieces(journal, "shop")), check, least=4)
    assert len(set(whole)) == 1 and len(whole[0].splitlines()) == 12


def test_a_compaction_is_done_or_not(filled: Path, tmp_path: Path) -> None:
    def check(journal: Journal) -> None:
        assert journal.connection.execute("SELECT count(*) FROM decisions WHERE closed = 1") == [(0,)]
        assert journal.connection.execute("SELECT count(*) FROM decisions") == [(6,)], "what is open stays"

    every_failure(filled, tmp_path, lambda journal: compact(journal, 100 * DAY), check, least=20)


@pytest.mark.parametrize("after", [False, True])
def test_an_erasure_is_finished_by_the_next_turn(filled: Path, tmp_path: Path, after: bool) -> None:
    """Retention beside a running service: decisions go on, and whatever failed is done when it is tried again."""
    faults, n, fired, before = Faults(), 0, True, descriptors()
    while fired:
        n += 3 if n > 12 else 1  # about 80 statements: every third of the later ones
        folder = tmp_path / "copy"
        shutil.copytree(filled, folder)
        engine = Engine(
            store(faults, folder / "journal.db"), {"shop": Creation(features={"dim": 8})}, clock=lambda: 2e3
        )
        engine.start()
        retention = Retention(engine)
        faults.arm(n, after)
        with contextlib.suppress(sqlite3.Error, Unavailable):
            retention.erase("shop", "user", 1)
        fired = faults.disarm()
        answer = retention.erase("shop", "user", 1)
        assert answer.remaining == 0
        assert engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="later").id == "later"
        with engine.reading as journal:
            assert journal.connection.execute("SELECT count(*) FROM decisions") == [(9,)]
        engine.wait_learnt()
        engine.stop()
        clean(folder / "journal.db")
        shutil.rmtree(folder)
    assert n > 30
    assert descriptors() <= before


def test_a_service_survives_every_file_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock, record of the tail, files that are made: a run ends or goes on, and no later one lacks what it answered."""
    faults, answered = Faults(), list[str]()

    def run(path: Path, name: str) -> None:
        engine = Engine(SQLite(path), {"shop": Creation(features={"dim": 8})}, snapshot_every=0.01)
        try:
            engine.start()
            for k in range(3):
                engine.decide("shop", b"{}", [b'"a"', b'"b"'], id=f"{name}{k}")
                answered.append(f"{name}{k}")
            engine.snapshot()
        finally:
            engine.stop()

    for name in ("open", "fdopen", "fstat", "pwrite", "read", "fsync", "unlink"):
        real = getattr(os, name)

        def call(*args: Any, real: Any = real, **options: Any) -> Any:
            return faults.step(lambda: real(*args, **options), OSError(5, "Input/output error"))

        monkeypatch.setattr(os, name, call)
    n, fired = 0, True
    while fired:
        n += 1
        path, before = tmp_path / str(n) / "journal.db", descriptors()
        path.parent.mkdir()
        answered.clear()
        run(path, "first")
        faults.arm(n, after=False)
        with contextlib.suppress(OSError, RuntimeError, Unavailable):
            run(path, "second")
        fired = faults.disarm()
        run(path, "third")
        clean(path)
        journal = Journal(SQLite(path).connect())
        there = {row.id for row in journal.events() if row.is_a(Decision)}
        journal.connection.close()
        assert len(answered) >= 6 and set(answered) <= there, f"lost after file call {n}: {set(answered) - there}"
        assert not path.with_name("journal.db.lost").exists(), f"file call {n} made a loss that is none"
        assert descriptors() <= before, f"a descriptor stays open after file call {n}"
    assert n > 12, f"only {n - 1} file calls could fail"


def lose_sessions(monkeypatch: pytest.MonkeyPatch, faults: Faults) -> None:
    """Let a session with PostgreSQL end at a statement: before it is sent, or before its answer comes."""

    def breaking(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: PostgresSession, *args: Any) -> Any:
            fails = faults.left == 1
            try:
                return faults.step(lambda: real(self, *args), psycopg.OperationalError("the connection was closed"))
            finally:
                if fails:
                    self._raw.close()

        return call

    for name in ("execute", "_exchange"):
        monkeypatch.setattr(PostgresSession, name, breaking(getattr(PostgresSession, name)))


@pytest.mark.parametrize("after", [False, True])
def test_a_session_with_postgresql_is_lost_at_every_statement(
    server: Server, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """The socket breaks before a statement is sent, or before its answer comes."""
    store, faults = Postgres(server.new_database()), Faults()
    lose_sessions(monkeypatch, faults)
    before = descriptors()
    whole = Journal(store.connect(), store.lock, store.clock)
    whole.append([[Write("shop", "", Creation(features={"dim": 8}))]], 1_000_000)
    n, fired, large = 0, True, b'{"id": "a", "features": {"x": "' + b"z" * 4000 + b'"}}'
    while fired:
        n += 1
        journal = Journal(store.connect(), store.lock, store.clock)
        groups = [
            [Write("shop", f"new{n}", decision(), f"key {n}")],
            [Write("shop", f"large{n}", decision(large), f"large {n}")],
            [Write("shop", f"new{n}", Reward(1.0), f"reward {n}")],
            keyed(
                [Write("shop", f"large{n}", Reward(0.5)), Write("shop", f"large{n}", Reward(0.25))],
                f"batch {n} {{}}".format,
            ),
        ]

        def work(journal: Journal = journal, groups: Any = groups) -> bytes:
            for group in groups:
                journal.append([group], 1_100_000)
            return b"".join(pieces(journal, "shop"))

        faults.arm(n, after)
        with contextlib.suppress(psycopg.Error):
            work()
        fired = faults.disarm()
        exported = work()
        journal.connection.close()
        statuses = {status.id: status.n for status in whole.statuses([("shop", f"{id}{n}") for id in ("new", "large")])}
        assert statuses == {f"new{n}": 1, f"large{n}": 2}, f"after statement {n}"
        assert exported.count(b"\n") == 2 * n
    assert n > 8, f"only {n - 1} statements could fail"
    assert verify(whole).problems == []
    whole.connection.close()
    assert descriptors() <= before, "descriptors stay open"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", ["erasure", "retention"])
def test_what_postgresql_is_to_forget_goes_though_a_session_is_lost(
    server: Server, monkeypatch: pytest.MonkeyPatch, kind: str, after: bool
) -> None:
    """An erasure, or retention by age, beside a running service; its search, closings, snapshots and deletions."""
    faults, store = Faults(), Postgres(server.new_database())
    lose_sessions(monkeypatch, faults)
    window = Settings(window=0.001 if kind == "retention" else 600.0)
    engine = Engine(store, {"shop": Creation(features={"dim": 8}, settings=window)}, publish_every=0.0)
    engine.start()
    retention = Retention(engine, days=1e-9 if kind == "retention" else 0.0)
    large, before = b'{"id": "a", "features": {"x": "' + b"z" * 4000 + b'"}}', descriptors()
    n, fired = 0, True
    try:
        while fired:
            n += 1 if n < 6 else 9  # some 60 statements: every ninth of the later ones
            for k in range(3):
                context = b'{"user": "%s"}' % (b"other", b"gone", b"gone")[k]
                engine.decide("shop", context, [b'"a"', b'"b"'] if k < 2 else [large, b'"b"'], id=f"{n}.{k}")
            engine.reward("shop", f"{n}.1", 1.0)
            engine.wait_learnt()
            faults.arm(n, after)
            with contextlib.suppress(psycopg.Error, RuntimeError, Unavailable):
                forget(retention, kind)
            fired = faults.disarm()
            asked_again(retention, kind)
            with engine.reading as journal:
                left = journal.connection.execute("SELECT DISTINCT id FROM events WHERE kind = 'decision'")
                [[bodies]] = journal.connection.execute(
                    "SELECT count(*) FROM events WHERE id IN (?, ?)", (f"{n}.1", f"{n}.2")
                )
            assert bodies == 0, f"after statement {n}"
            assert (f"{n}.0",) in [tuple(row) for row in left] or kind == "retention", "another's went"
        journal = engine.open_journal()
        assert verify(journal).problems == []
        journal.connection.close()
    finally:
        faults.disarm()
        engine.stop()
    assert n > 25, f"only {n} statements could fail"
    assert descriptors() <= before


def forget(retention: Retention, kind: str) -> bool:
    """Forget; False where the process found that it does not lead, and said that another one deletes."""
    if kind == "erasure":
        return retention.erase("shop", "user", "gone").deleted is not None
    retention._engine.expire()
    retention.run()
    return retention._engine.leader


def asked_again(retention: Retention, kind: str) -> None:
    """Ask until it is done: a process whose lead went with its session has it again within moments."""
    began = time.monotonic()
    done = False
    while not done:
        assert time.monotonic() - began < 60.0
        time.sleep(0.02)
        with contextlib.suppress(RuntimeError, Unavailable):
            retention._rest_until = 0.0
            done = retention._engine.leader and forget(retention, kind)


class File:
    """A file of which every call may fail; it is closed in any case, as the system does it."""

    def __init__(self, raw: Any, faults: Faults) -> None:
        self._raw, self._faults = raw, faults

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: object) -> None:
        self._raw.close()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._raw, name)
        return lambda *args: self._faults.step(lambda: found(*args), OSError(28, "No space left on device"))


def save_again_and_again(old: Any, new: Any, path: Path, faults: Faults, after: bool, at_least: int) -> Iterator[None]:
    """Save the new over the old, failing at one call after the other; yield whenever the file may be either."""
    before, n, fired = descriptors(), 0, True
    while fired:
        n += 1
        old.save(path)
        faults.arm(n, after)
        with contextlib.suppress(OSError):
            new.save(path)
        fired = faults.disarm()
        yield
        assert [file.name for file in path.parent.iterdir()] == [path.name], f"a file stays after call {n}"
        assert descriptors() <= before, f"a descriptor stays open after call {n}"
    assert n > at_least


@pytest.mark.parametrize("after", [False, True])
def test_an_exported_policy_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    faults, path = Faults(), tmp_path / "policy.json"
    old, new = (aw.LinUCB(dim=3, alpha=alpha).policy() for alpha in (1.0, 2.0))
    real = os.replace

    def opened(*args: Any, **options: Any) -> File:
        faults.step(lambda: None, OSError(28, "No space left on device"))  # always before there is a descriptor
        return File(open(*args, **options), faults)

    monkeypatch.setattr(policy_document, "open", opened, raising=False)
    monkeypatch.setattr(os, "replace", lambda *args: faults.step(lambda: real(*args), OSError(5, "Input/output error")))
    for _ in save_again_and_again(old, new, path, faults, after, at_least=3):
        assert policy_document.Policy.load(path).checksum in (old.checksum, new.checksum)


@pytest.mark.parametrize("after", [False, True])
def test_a_model_file_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    faults, path = Faults(), tmp_path / "model.aw"
    old, new = aw.LinUCB(dim=3, alpha=1.0), aw.LinUCB(dim=3, alpha=2.0)

    def failing(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            came = faults.step(lambda: real(*args, **options), OSError(5, "Input/output error"))
            return File(came, faults) if name == "fdopen" else came

        def open_file(handle: int, mode: str) -> File:
            if faults.left == 1:  # it fails before it takes the descriptor over
                faults.left, faults.fired = 0, True
                raise OSError(12, "Cannot allocate memory")
            return call(handle, mode)  # type: ignore[no-any-return]

        return open_file if name == "fdopen" else call

    for name in ("fdopen", "fsync", "replace"):
        monkeypatch.setattr(os, name, failing(name))
    for _ in save_again_and_again(old, new, path, faults, after, at_least=5):
        assert vars(aw.load(path))["alpha"] in (1.0, 2.0)
