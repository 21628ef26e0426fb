"""One schedule: a seed says what clients ask for, what goes wrong, and in which order everything happens."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.service.simulation.check import check
from tests.service.simulation.cluster import Cluster
from tests.service.simulation.kernel import Owner
from tests.service.simulation.workload import Client, History

TROUBLE = 16.0  # simulated seconds
CLIENTS, REQUESTS = 3, 22
HEALED = 300.0  # simulated seconds in which everything is well again once the trouble is over


class Outcome(NamedTuple):
    """What came of a schedule."""

    problems: list[str]
    acknowledged: int
    steps: int
    seconds: float  # simulated
    trace: int


def run(seed: int) -> Outcome:
    """Run the schedule of a seed."""
    loggers = [logging.getLogger(name) for name in ("armwise.service", "asyncio")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True  # what goes wrong is meant to
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        cluster, history = Cluster(seed, Path(folder)), History()
        try:
            _play(cluster, history)
        except RuntimeError as error:
            history.wrong(f"{error}: {error.__cause__!r}")
        finally:
            kernel = cluster.kernel
            cluster.close()
            for logger, disabled in zip(loggers, before):
                logger.disabled = disabled
        return Outcome(history.problems, history.acknowledged, kernel.steps, kernel.now, kernel.trace)


def _play(cluster: Cluster, history: History) -> None:
    kernel = cluster.kernel
    clients = [Client(cluster, history, f"c{k}", REQUESTS) for k in range(CLIENTS)]
    cluster.trouble(kernel.now + TROUBLE)
    kernel.run(lambda: all(client.task.done for client in clients), TROUBLE)
    cluster.heal()
    if not kernel.run(lambda: all(client.task.done for client in clients), HEALED):
        history.wrong("a client still waits for an answer")
        return
    kernel.run(lambda: False, 6.0)  # windows close, and servers notice who is gone
    if not kernel.run(lambda: all(process.started and process.alive for process in cluster.places), HEALED):
        history.wrong("a process is not ready again")
        return
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
