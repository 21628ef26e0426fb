"""Runs the service under uvicorn until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import uvicorn

from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.connections import BoundedHeaders
from armwise.service.web.logging import set_up
from armwise.service.web.offload import in_thread

log = logging.getLogger("armwise.service")
MAX_GRACE = 5  # seconds that open requests get when the service stops
MAX_CONNECTIONS = 10_000  # open at once; beyond, requests get 503
MAX_STOPPING = 20  # seconds after these for learning and storing what is there


def greeting(address: str, keyed: bool, arms: Sequence[str] = ()) -> str:
    """The first lines printed: how to ask for a decision, between the arms of an application that has them fixed."""
    shown = json.dumps(list(arms)) if arms else '["pasta", {"id": "salad", "features": {"fresh": true}}]'
    quoted = shown.replace("'", "'\\''")
    key = " -H 'Authorization: Bearer KEY'" if keyed else ""
    return (
        f"armwise is serving on {address} (stop with Ctrl-C). Ask for a decision:\n"
        f"  curl {address}/v1/decisions{key} -d "
        f'\'{{"context": {{"hour": 9}}, "arms": {quoted}}}\'\n'
        f"and say what it was worth, with the id of the answer:\n"
        f"  curl {address}/v1/decisions/ID/reward{key} -d '{{\"value\": 1}}'"
    )


class _Server(uvicorn.Server):
    """Greets once it listens, so that the curl line works when it is read; ends with exit code 0 when it is told to."""

    def __init__(
        self, config: uvicorn.Config, service: Service, text: str, out: TextIO, read: Callable[[], Config] | None
    ) -> None:
        super().__init__(config)
        self._service, self._text, self._out, self._read = service, text, out, read
        self._reloading: asyncio.Task[None] | None = None

    def _hang_up(self) -> None:
        self._reloading = asyncio.ensure_future(in_thread(self._reload))

    def _reload(self) -> None:
        """SIGHUP: read the configuration again; one that cannot be had leaves the service as it is."""
        assert self._read is not None
        try:
            self._service.reload(self._read())
            log.info("the configuration was read again")
        except Exception as error:
            log.error("the configuration stays as it is: %s", error)

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._service.ending = True  # open streams end by themselves
        if not self.should_exit:
            threading.Thread(target=self._end_anyway, daemon=True).start()
        self.force_exit = self.should_exit and sig == signal.SIGINT  # Ctrl-C twice
        self.should_exit = True

    def _end_anyway(self) -> None:
        """Whatever hangs, such as a database that does not answer, cannot hold the process: nothing waits for it."""
        time.sleep(MAX_GRACE + MAX_STOPPING)
        log.error("the shutdown hangs %s s after the signal: exit without it", MAX_GRACE + MAX_STOPPING)
        os._exit(1)  # what was acknowledged is durable; the rest was promised to nobody

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            if self._read is not None:
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)
            print(self._text, file=self._out, flush=True)


def serve(config: Config, out: TextIO, as_json: bool = False, read: Callable[[], Config] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. OSError says why it cannot. SIGHUP takes what ``read`` gives."""
    set_up(config.log_level)
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # each connection has it from here: who takes nothing is cut off
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, math.ceil(config.send_timeout * 1000.0))
        try:
            listener.bind((config.host, config.port))
        except OSError as error:
            raise OSError(f"cannot listen on {config.listen}: {error.strerror or error}") from None
        shown = f"[{config.host}]" if ":" in config.host else config.host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        first = next(iter(config.applications.values()))
        text = json.dumps({"address": address}) if as_json else greeting(address, bool(config.keys), first.arms)
        service = Service(config)
        try:
            service.engine.start()
        except Exception as error:
            service.engine.stop()
            raise OSError(f"cannot serve from {service.engine.store}: {error}") from error
        gc.collect()
        gc.freeze()  # compiled kernels and modules live as long as the process: the collector need not visit them
        gc.set_threshold(20_000, 20, 50)
        options = uvicorn.Config(
            service, log_config=None, access_log=False, lifespan="on", proxy_headers=False, server_header=False,
            date_header=False, timeout_graceful_shutdown=MAX_GRACE, timeout_keep_alive=30, backlog=2048, ws="none",
            limit_concurrency=MAX_CONNECTIONS, http=BoundedHeaders,
        )  # fmt: skip
        server = _Server(options, service, text, out, read)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
        return 0 if server.started else 1
