"""A Decider in memory, one in a folder, and a client of a service: what holds for one holds for all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import armwise as aw
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running


@pytest.fixture(params=["memory", "folder", "http"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[aw.Decider | aw.Client]:
    if request.param == "http":
        running = Running(Service(Config(storage=str(tmp_path / "d"))))
        with aw.Client(running.url) as client:
            yield client
        running.stop()
    else:
        with aw.Decider(tmp_path / "d", seed=1) if request.param == "folder" else aw.Decider(seed=1) as decider:
            yield decider
