"""Processes of the service on one simulated database, clients that use them, and everything that goes wrong.

A process is the whole service: ``Service`` over an ``Engine``, with its writer, learner, lead and retention, asked over
ASGI. Only time, threads, chance and the database come from the simulation.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from armwise.service.engine.application import Application
from armwise.service.engine.clock import TrustedClock
from armwise.service.engine.engine import Engine
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.simulation.database import Server, Shared, Wire
from tests.service.simulation.kernel import START, Event, Kernel, Loop, Owner, Simulated

ANSWERED = 7.0  # seconds that a client waits
AGENT = {"class": "LinUCB", "alpha": 1.0}
EXPLORE = {"class": "Explore", "epsilon": 0.1, "agent": AGENT}
BUDGET = 5.5  # of the application ``paid``: five dear decisions fit
RETAINED = 40.0  # simulated seconds, where decisions are dropped
RETAIN_EVERY = 3.0  # simulated seconds
CONFIG = Config(
    storage="simulated",
    applications={
        "shop": Application(agent=AGENT, features={"dim": 8}, window=5.0),
        "sums": Application(agent=AGENT, features={"dim": 8}, window=3.0, rule="sum", default=-0.5),
        "notes": Application(agent=EXPLORE, features={"dim": 8}, window=6.0),
        "paid": Application(
            agent={
                "class": "HardStop",
                "agent": {"class": "Exp3", "n_arms": 2, "gamma": 1.0},
                "budget": BUDGET,
                "max_cost": 1.0,
                "fallback": 0,
            },
            arms=["free", "dear"],
            window=6.0,
        ),
        "banner": Application(agent=AGENT | {"n_arms": 2}, features={"dim": 8}, arms=["red", "blue"], window=4.0),
    },
)


class Answer(NamedTuple):
    """What came of a request."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def one_dialect(path: str) -> str:
    """The path of a route, those of Personalizer without the version of the dialect: each has the same handlers.

    >>> one_dialect("personalizer/v1.0/rank"), one_dialect("personalizer/rank"), one_dialect("v1/log")
    ('personalizer/rank', 'personalizer/rank', 'v1/log')
    """
    return re.sub(r"^personalizer/v[^/]*/", "personalizer/", path)


class Process(Owner):
    """One run of one process, from its start to its end."""

    def __init__(self, cluster: Cluster, place: int, number: int) -> None:
        super().__init__(f"p{place}.{number}")
        self.cluster, self.place, kernel = cluster, place, cluster.kernel
        self.offset = 0.0  # by how much its own clock is wrong
        self.wire = Wire(cluster.server, self)
        self.wire.lost, self.wire.slow = cluster.lost, cluster.slow
        system = Simulated(kernel, self)
        clock = TrustedClock(wall=lambda: START + kernel.now + self.offset, steady=lambda: kernel.now)
        self.engine = Engine(
            Shared(self.wire, system), CONFIG.creations(), clock=clock, snapshot_every=1.0, system=system
        )
        self.service = Service(CONFIG, self.engine)
        self.loop = Loop(kernel, self)
        self.started = False
        kernel.spawn(self, "loop", self.loop.serve)
        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self._start()))

    async def _start(self) -> None:
        try:
            await self.service.start()
            for retention in self.service.retain():
                retention.days, retention._every = self.cluster.retained / 86400.0, RETAIN_EVERY
            self.started = True
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # no fault of the database's
            self.cluster.kernel.failed(error)
        except Exception:  # it says why and ends; whoever watches it starts it again
            self.cluster.kill(self, again=1.0)


class Cluster:
    """Processes, their database, and how requests reach them."""

    def __init__(self, seed: int, folder: Path, processes: int = 3) -> None:
        self.kernel = Kernel(seed)
        chance = self.kernel.random
        self.server = Server(self.kernel, folder)
        self.lost = chance.choice((0.0, 0.0, 0.002, 0.01))
        self.slow = chance.choice((0.0, 0.002, 0.01))
        self.retained = chance.choice((0.0, 0.0, RETAINED))  # seconds after which decisions are dropped; 0: never
        self.starts = 0
        self.all: list[Process] = []
        self.places: list[Process] = []
        self.unreachable: set[int] = set()  # places that no client reaches
        for place in range(processes):
            self.places.append(self.start(place))

    def start(self, place: int) -> Process:
        self.starts += 1
        process = Process(self, place, self.starts)
        self.all.append(process)
        return process

    def kill(self, process: Process, again: float) -> None:
        """End a process at once; after some seconds there is another in its place."""
        if process.alive:
            process.alive = False
            self.server.left(process)
            self.kernel.after(again, lambda: self.places.__setitem__(process.place, self.start(process.place)))

    # ------------------------------------------------------------------ requests

    def route(self, method: str, path: str) -> tuple[str, str]:
        """The method and path of the route that a request finds."""
        path = path.partition("?")[0].strip("/")
        if path.startswith("apps/"):
            path = path.partition("/")[2].partition("/")[2]
        found = self.places[0].service.router.find(method, tuple(path.split("/")))[0]
        return method, one_dialect(found.path)

    def ask(
        self, place: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None,
        twice: bool = False,
    ) -> Answer | None:  # fmt: skip
        """The answer, as the current client gets it; None if none comes in time."""
        kernel, came, got = self.kernel, Event(self.kernel), list[Answer]()

        def answered(answer: Answer) -> None:
            if place not in self.unreachable:
                got.append(answer)
                kernel.after(kernel.random.expovariate(500.0), came.set)

        def arrive(hear: Callable[[Answer], None]) -> None:
            process = self.places[place]
            if process.alive and place not in self.unreachable:
                process.loop.call_soon_threadsafe(
                    lambda: process.loop.create_task(self._serve(process, method, path, body, headers or {}, hear))
                )

        kernel.after(kernel.random.expovariate(500.0), lambda: arrive(answered))
        if twice:  # somebody on the way sends it again
            kernel.after(kernel.random.expovariate(1.0), lambda: arrive(lambda answer: None))
        return got[0] if came.wait(ANSWERED) else None

    async def _serve(
        self, process: Process, method: str, path: str, body: Any, headers: dict[str, str],
        answered: Callable[[Answer], None],
    ) -> None:  # fmt: skip
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        raw, _, query = path.partition("?")
        scope: Any = {
            "type": "http", "http_version": "1.1", "method": method, "path": raw, "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost"), *((k.encode(), v.encode()) for k, v in headers.items())],
        }  # fmt: skip
        left, pieces = [sent], list[Any]()

        async def receive() -> Any:
            if left:
                return {"type": "http.request", "body": left.pop(), "more_body": False}
            await asyncio.get_running_loop().create_future()  # it stays, and sends nothing more
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pieces.append(message)

        await process.service(scope, receive, send)
        if not pieces[-1].get("more_body", False):
            answered(Answer(pieces[0]["status"], b"".join(piece.get("body", b"") for piece in pieces[1:])))

    # ------------------------------------------------------------------ what goes wrong

    def trouble(self, until: float) -> None:
        """Faults of every kind at random moments; one of the seeds' choices is how many."""
        kernel, server = self.kernel, self.server
        chance = kernel.random
        now = kernel.now + chance.expovariate(0.5)
        pause = chance.choice((1.0, 3.0, 8.0))
        while now < until:
            kernel.after(
                now - kernel.now, chance.choice((self._kill, self._freeze, self._cut, self._isolate, self._jump))
            )
            now += chance.expovariate(1.0 / pause)
        for _ in range(chance.choice((0, 0, 1, 2))):
            kernel.after(chance.uniform(2.0, until - kernel.now), lambda: server.crash(chance.uniform(0.05, 2.0)))

    def _any(self) -> Process:
        return self.kernel.random.choice(self.places)

    def _kill(self) -> None:
        self.kill(self._any(), self.kernel.random.uniform(0.2, 3.0))

    def _freeze(self) -> None:
        self._any().frozen_until = self.kernel.now + self.kernel.random.choice((0.3, 3.5, 6.0, 9.0))

    def _cut(self) -> None:
        process = self._any()
        self.server.cut.add(process)
        self.kernel.after(self.kernel.random.choice((0.5, 3.0, 12.0, 20.0)), lambda: self.server.cut.discard(process))

    def _isolate(self) -> None:
        place = self._any().place
        self.unreachable.add(place)
        self.kernel.after(self.kernel.random.uniform(0.5, 8.0), lambda: self.unreachable.discard(place))

    def _jump(self) -> None:
        self._any().offset = self.kernel.random.choice((0.0, 30 * 86400.0, -3600.0, 4.0, -4.0))

    def heal(self) -> None:
        """No new trouble, and what was cut is connected."""
        self.server.cut.clear()
        self.unreachable.clear()
        self.lost = self.slow = 0.0
        for process in self.all:
            process.wire.lost = process.wire.slow = 0.0
            process.frozen_until = 0.0

    def close(self) -> None:
        self.kernel.close()
        for process in self.all:
            for task in asyncio.all_tasks(process.loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # it ended with its process
        self.server.close()
