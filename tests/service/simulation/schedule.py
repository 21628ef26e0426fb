"""One schedule: a seed says what clients ask for, what goes wrong, and in which order everything happens."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.service.simulation.check import check
from tests.service.simulation.cluster import Cluster, one_dialect
from tests.service.simulation.kernel import Owner
from tests.service.simulation.workload import KINDS, Client, History

TROUBLE = 16.0  # simulated seconds
CLIENTS, REQUESTS = 3, 22
HEALED = 300.0  # simulated seconds in which everything is well again once the trouble is over
COLLECT_EVERY = 10  # schedules
_runs = itertools.count(1)
ROUNDS = 150  # at most, in which each kind of request is asked once
LEFT_OUT = {("GET", "v1/live")}  # a stream without an end: tests/service/web/test_page.py


class Outcome(NamedTuple):
    """What came of a schedule."""

    problems: list[str]
    acknowledged: int
    steps: int
    seconds: float  # simulated
    trace: int


def run(seed: int) -> Outcome:
    """Run the schedule of a seed."""
    with _quiet(), tempfile.TemporaryDirectory(dir=_memory()) as folder:
        cluster, history = _begun(seed, Path(folder))
        try:
            _play(cluster, history)
        except RuntimeError as error:
            history.wrong(f"{error}: {error.__cause__!r}")
        finally:
            kernel = cluster.kernel
            cluster.close()
        return Outcome(history.problems, history.acknowledged, kernel.steps, kernel.now, kernel.trace)


def unasked(seed: int = 0) -> tuple[list[tuple[str, str]], list[str]]:
    """The routes that no kind of request asks for, and what goes wrong though there are no faults."""
    with _quiet(), tempfile.TemporaryDirectory(dir=_memory()) as folder:
        cluster, history = _begun(seed, Path(folder))
        cluster.heal()
        routes = {(route.method, one_dialect(route.path)) for route in cluster.places[0].service.router.routes}
        client = Client(cluster, history, "c0", 0)

        def every() -> None:
            for _ in range(ROUNDS):
                for kind in KINDS:
                    getattr(client, kind)("shop")
                if routes - LEFT_OUT == history.routes:
                    return

        asking = cluster.kernel.spawn(client, "every kind", every, delay=2.0)
        try:
            if not cluster.kernel.run(lambda: asking.done, 20.0 * HEALED):
                history.wrong("a request has no answer")
            cluster.kernel.run(lambda: False, 6.0)
            _look(cluster, history)
        except RuntimeError as error:
            history.wrong(f"{error}: {error.__cause__!r}")
        finally:
            cluster.close()
        return sorted(routes - LEFT_OUT - history.routes), history.problems


def _begun(seed: int, folder: Path) -> tuple[Cluster, History]:
    cluster, history = Cluster(seed, folder), History()
    history.now, history.retained = lambda: cluster.kernel.now, cluster.retained
    return cluster, history


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without logs, since what goes wrong is meant to, and without collections of garbage, which are a fifth of the
    time, and which no seed says when to make."""
    loggers = [logging.getLogger(name) for name in ("armwise.service", "asyncio")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    gc.disable()
    try:
        yield
    finally:
        if next(_runs) % COLLECT_EVERY == 0:
            gc.collect()
        gc.enable()
        for logger, disabled in zip(loggers, before):
            logger.disabled = disabled


def _play(cluster: Cluster, history: History) -> None:
    kernel = cluster.kernel
    clients = [Client(cluster, history, f"c{k}", REQUESTS) for k in range(CLIENTS)]
    cluster.trouble(kernel.now + TROUBLE)
    kernel.run(lambda: False, TROUBLE)  # also when all clients are done, since nothing may go wrong after it is healed
    cluster.heal()
    if not kernel.run(lambda: all(client.task.done for client in clients), HEALED):
        history.wrong("a client still waits for an answer")
        return
    kernel.run(lambda: False, 6.0)  # windows close, and servers notice who is gone
    if not kernel.run(lambda: all(process.started and process.alive for process in cluster.places), HEALED):
        history.wrong("a process is not ready again")
        return
    _look(cluster, history)
    if cluster.retained:  # everything grows old, and goes
        kernel.run(lambda: False, cluster.retained + 30.0)
        _look(cluster, history)


def _look(cluster: Cluster, history: History) -> None:
    kernel = cluster.kernel
    watcher = cluster.places[0]
    looking = kernel.spawn(Owner("end"), "check", lambda: _settled(cluster, history))
    if not kernel.run(lambda: looking.done, HEALED):
        history.wrong(f"the processes do not agree with the journal: {watcher.engine.learner.published}")


def _settled(cluster: Cluster, history: History) -> None:
    """Once every process has all that the journal has, look at everything."""
    kernel, journal = cluster.kernel, cluster.places[0].engine.open_journal()
    while True:
        last = journal.last()[0]
        engines = [process.engine for process in cluster.places]
        if all(engine.learner.published >= last and not engine.writer.depth for engine in engines):
            break
        kernel.sleep(0.5)
    check(cluster, journal, history)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
