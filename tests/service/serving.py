"""What the tests of the service start and look into."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import Any

import httpx
import uvicorn

from armwise.core import saving
from armwise.service.engine.engine import Engine
from armwise.service.engine.learning.fold import fold
from armwise.service.engine.requests.draw import Answer
from armwise.service.model.model import Model
from armwise.service.server.app import Service
from armwise.service.web.connections import BoundedHeaders

ARMS = [b'"pasta"', b'{"id": "salad", "features": {"fresh": true, "price": 7.5}}', b'"soup"']


def ask(engine: Engine, id: str, context: Any = None, **options: Any) -> Answer:
    """Decide between ``ARMS``."""
    return engine.decide("shop", json.dumps(context or {}).encode(), ARMS, id=id, **options)


def replayed(engine: Engine) -> dict[str, Model]:
    """The models that a fold of the whole journal from nothing gives."""
    journal = engine.open_journal()
    models: dict[str, Model] = {}
    for row in journal.events():
        fold(models, [row], journal)
    return models


def state(model: Model) -> bytes:
    return saving.dumps(model)


def settled(engine: Engine) -> bytes:
    """The state of the model when all is learnt."""
    engine.wait_learnt()
    return state(engine.learner.masters["shop"])


class Clock:
    """A time that moves when told to."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def client_of(url: str) -> httpx.Client:
    """Speaks to a service on loopback, without certificates, which take longer to read than the service to start."""
    return httpx.Client(base_url=url, timeout=30.0, verify=False)


class Running:
    """A service under uvicorn in a thread: ``url`` to speak to it, ``service`` to look inside."""

    def __init__(self, service: Service, application: Any = None, http: Any = BoundedHeaders) -> None:
        self.service = service
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            application or service, log_config=None, access_log=False, lifespan="on", ws="none", http=http,
            proxy_headers=False, server_header=False, date_header=False,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the service did not start"
            self._thread.join(0.01)
        self.client = client_of(self.url)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def stop(self) -> None:
        self.client.close()
        self.service.ending = self._server.should_exit = True
        self._thread.join(20.0)
        assert not self._thread.is_alive()
        self._socket.close()
