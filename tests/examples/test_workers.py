"""Servers that fork run what docs/web-frameworks.md says of them: several workers share a service, one has a folder."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import armwise as aw
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

PAGE = (Path(__file__).parents[2] / "docs" / "web-frameworks.md").read_text()
SHARED, ALONE = re.findall(r"```py\n(.*?)```", PAGE.split("## Workers that fork")[1], re.S)[:2]
VIEW = """
def visit():
    own = shop() if callable(shop) else shop
    made = own.decide({}, arms=["a", "b"])
    return own.reward(made.id, 1.0).status

def app(environ, start):
    try:
        said = visit()
    except RuntimeError as error:
        said = str(error)
    start("200 OK", [("Content-Type", "text/plain")])
    return [said.encode()]
"""
QUEUE = """
from celery import Celery

tasks = Celery("shop", broker="filesystem://", backend="file://results")
tasks.conf.broker_transport_options = {"data_folder_in": "queue", "data_folder_out": "queue"}
tasks.task(name="visit")(visit)
"""


def gunicorn(port: int, workers: int, *more: str) -> list[str]:
    bind = ["--bind", f"127.0.0.1:{port}", "--workers", str(workers), "--threads", "2"]
    return [sys.executable, "-m", "gunicorn", *bind, *more, "shop:app"]


def preloaded(port: int, workers: int) -> list[str]:
    return gunicorn(port, workers, "--preload")


def uwsgi(port: int, workers: int) -> list[str]:
    words = [str(Path(sys.executable).with_name("uwsgi")), "--http-socket", f"127.0.0.1:{port}", "--master"]
    return [
        *words,
        "--processes",
        str(workers),
        "--threads",
        "2",
        "--die-on-term",
        "--virtualenv",
        sys.prefix,
        "--wsgi-file",
        "shop.py",
        "--callable",
        "app",
    ]


SERVERS = [
    pytest.param(gunicorn, id="gunicorn"),
    pytest.param(preloaded, id="gunicorn --preload"),
    pytest.param(uwsgi, id="uwsgi"),
]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Starts a server in the folder of the application; it is ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(words: list[str], recipe: str, more: str = "") -> None:
        (tmp_path / "shop.py").write_text(f"import functools, os\nimport armwise as aw\n{recipe}\n{VIEW}\n{more}")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)])}
        with (tmp_path / "log").open("wb") as log:
            started.append(subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log))

    yield begin
    for each in started:
        each.terminate()
        each.wait(timeout=60)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    running = Running(Service(Config(storage=str(tmp_path / "served"))))
    yield running
    running.stop()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def visited(port: int, times: int = 8) -> list[str]:
    found: list[str] = []
    until = time.monotonic() + 60.0
    while len(found) < times:
        try:
            found.append(urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30).read().decode())
        except OSError:  # not up yet
            assert time.monotonic() < until
            time.sleep(0.1)
    return found


@pytest.mark.parametrize("server", SERVERS)
def test_several_workers_share_a_service(
    server: Callable[..., list[str]], start: Callable[..., None], service: Running
) -> None:
    port = free_port()
    start(server(port, 2), SHARED.replace("http://127.0.0.1:8484", service.url))
    assert visited(port) == ["taken"] * 8
    with aw.Client(service.url) as client:
        assert len(client.log()) == 8


@pytest.mark.parametrize("server", SERVERS)
def test_one_worker_opens_its_folder_on_first_use(
    server: Callable[..., list[str]], start: Callable[..., None], tmp_path: Path
) -> None:
    port = free_port()
    start(server(port, 1), ALONE)
    assert visited(port) == ["taken"] * 8
    assert (tmp_path / "decisions" / "journal.db").exists()


@pytest.mark.parametrize("server", [each for each in SERVERS if each.id != "gunicorn"])
def test_a_folder_that_is_opened_before_the_fork_is_named(
    server: Callable[..., list[str]], start: Callable[..., None]
) -> None:
    """It hung for ever."""
    port = free_port()
    start(server(port, 1), "shop = aw.Decider('decisions')")
    assert "open it after the fork" in visited(port, 1)[0]


@pytest.mark.parametrize("several", [True, False])
def test_celery(several: bool, start: Callable[..., None], service: Running, tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "results").mkdir()
    pool = ["--concurrency", "2"] if several else ["--pool", "threads"]
    recipe = SHARED.replace("http://127.0.0.1:8484", service.url) if several else ALONE
    start([sys.executable, "-m", "celery", "-A", "shop:tasks", "worker", *pool], recipe, QUEUE)
    asks = "import shop; print(*[shop.tasks.send_task('visit').get(timeout=60) for _ in range(4)])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)])}
    words = [sys.executable, "-c", asks]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["taken"] * 4
