"""A service to ask, in a thread of its own; nothing but loopback is ever spoken to."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation, Settings
from armwise.service.journal.journal import Journal
from armwise.service.server.app import Service
from armwise.service.server.config import Config, open_store
from armwise.service.sharding.sharded_engine import ShardedEngine
from tests.service.database import Server
from tests.service.serving import Clock, Running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@functools.cache
def empty_journal() -> dict[str, bytes]:
    """The files of a journal without events, by what they add to its name; its secret, and so its draws, is settled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        connection = Journal(SQLite(path).connect()).connection
        connection.execute("UPDATE meta SET value = ? WHERE key = 'secret'", (bytes(32),))
        connection.close()
        return {file.name.removeprefix(path.name): file.read_bytes() for file in Path(folder).iterdir()}


def settle_chance(path: Path) -> None:
    """Make a journal whose secret is always the same, so that its draws are."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for suffix, data in empty_journal().items():
        file = Path(f"{path}{suffix}")
        file.touch(mode=0o600)
        file.write_bytes(data)


@pytest.fixture
def engines(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Engine]]:
    """Makes started engines over one journal; call again after ``stop`` to recover."""
    made: list[Engine] = []

    def make(path: Path | None = None, **application: Any) -> Engine:
        creation = Application(**application).creation()
        path = path or tmp_path / "journal.db"
        if not path.exists():
            settle_chance(path)
        store = SQLite(path)
        engine = Engine(store, {"shop": creation}, clock=clock, publish_every=0.0)
        made.append(engine)  # one that does not start has opened files too
        engine.start()
        return engine

    yield make
    for engine in made:
        engine.stop()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts services; all are stopped at the end."""
    running: list[Running] = []

    def start(config: Config | None = None, **options: Any) -> Running:
        config = config or Config(storage=str(tmp_path / f"data{len(running)}"), **options)
        running.append(Running(Service(config)))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL for all tests of this process, each with a database of its own."""
    with Server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """An engine on each kind of database; several rewards of a decision are summed."""
    storage = str(tmp_path) if request.param == "sqlite" else request.getfixturevalue("server").new_database()
    application = Creation(features={"dim": 8}, settings=Settings(rule="sum"))
    engine = Engine(open_store(storage), {"shop": application}, clock=clock, publish_every=0.0)
    engine.start()
    yield engine
    engine.stop()


@pytest.fixture
def urls(server: Server) -> list[str]:
    return [server.new_database() for _ in range(3)]


@pytest.fixture
def spread() -> Iterator[Callable[..., ShardedEngine]]:
    """Starts engines over several databases; all are stopped at the end."""
    made: list[ShardedEngine] = []

    def start(urls: list[str], creation: Creation | None = None) -> ShardedEngine:
        creation = creation or Creation(features={"dim": 16})
        made.append(ShardedEngine([open_store(url) for url in urls], {"shop": creation}))
        made[-1].start()
        return made[-1]

    yield start
    for one in made:
        one.stop()
