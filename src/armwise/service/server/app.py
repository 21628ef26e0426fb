"""The ASGI application: reads a request within bounds, asks for its key, finds its route, says what went wrong."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from armwise.service.adapters.flags import evaluate_flags, failure, track
from armwise.service.adapters.personalizer import admin, evaluation_jobs, rank, slots
from armwise.service.engine.engine import Engine
from armwise.service.engine.interface import ServedEngine
from armwise.service.experiments.hosted import HostedExperiment
from armwise.service.log.retain import Retention
from armwise.service.server.config import Config, is_loopback, names_loopback
from armwise.service.web import audit, page
from armwise.service.web.asgi import HTTPScope, Receive, Send
from armwise.service.web.deadline import within
from armwise.service.web.http import RETRY, Call, Problem, Response, Route, Router, problem_of, reply, split_path
from armwise.service.web.keys import ANYONE, Keys
from armwise.service.web.metrics import Metrics
from armwise.service.web.offload import in_thread
from armwise.service.web.page.watch import Watch
from armwise.service.web.v1 import routes, schemas
from armwise.service.web.v1.exports import Exports
from armwise.service.web.v1.openapi import document

log = logging.getLogger("armwise.service")
_PUBLIC = {("healthz",), ("readyz",), ("openapi.json",), ("",)}  # say nothing of what is stored
_WHOLE = {"metrics", "v1/agents", *(route.path for route in (*evaluate_flags.ROUTES, *track.ROUTES))}
# They tell of all applications: one that cannot be served is no reason to refuse them.
_MAX_DRAINED_BYTES = 256 << 20  # bytes of a body too large that are read and thrown away
BODY_TIMEOUT = 20.0  # seconds that a body may take, and more for what has come of it
MIN_BODY_RATE = 4096  # bytes per second
PROBE_WAIT = 1.0  # seconds that readiness waits for a probe of the journal
_MIN_READ_BYTES = 65536  # bytes that a reader must take within ``send_timeout``
_SCHEME = re.compile("^https?://")
_KEY_HEADERS = (b"ocp-apim-subscription-key", b"x-api-key")


class Service:
    """Engine, keys and routes behind one ASGI callable; ``start`` and ``stop`` come with the server's lifespan."""

    def __init__(self, config: Config, engine: ServedEngine | None = None) -> None:
        self.config = config
        self.engine = engine or config.engine()
        self.keys, self.metrics = Keys(config.keys), Metrics()
        self.exports = Exports(config.max_exports)
        self.default = next(iter(config.applications))
        self.retentions: dict[Engine, Retention] = {}
        self.ready = self.ending = False
        self._refused_keys = audit.RefusedKeys()
        self._guarded = not config.keys  # then only clients on this machine are served
        self._local: set[bytes] = set()  # what was found to name it
        self._watches: dict[str, Watch] = {}
        self._watching = self.engine.system.lock()
        self._experiments: dict[str, HostedExperiment] = {}
        self.router = Router(
            [
                *routes.ROUTES,
                *rank.ROUTES,
                *slots.ROUTES,
                *admin.ROUTES,
                *evaluation_jobs.ROUTES,
                *evaluate_flags.ROUTES,
                *track.ROUTES,
                *page.ROUTES,
                Route("GET", "healthz", "", self._health, gives={200: schemas.HealthAnswer}),
                Route(
                    "GET", "readyz", "", self._readiness, gives={200: schemas.HealthAnswer, 503: schemas.HealthAnswer}
                ),
                Route("GET", "metrics", "read", self._measures, gives={200: "text/plain"}),
                Route("GET", "openapi.json", "", self._description, gives={200: "application/json"}),
            ]
        )

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def start(self) -> None:
        """Recover and be ready."""
        if not self.engine.learning:
            await in_thread(self.engine.start)
        self.retain()
        self.ready = True

    def retain(self) -> list[Retention]:
        """The retention of every database that works, started where it has not been yet."""
        for engine in self.engine.started:
            if engine not in self.retentions:
                self.retentions[engine] = Retention(engine, self.config.retention)
                self.retentions[engine].start()
        return list(self.retentions.values())

    def retentions_of_all(self) -> list[Retention]:
        """The retention of every database; Unavailable, before anything is changed, if one cannot be written to."""
        engines = self.engine.each
        self.retain()
        return [self.retentions[engine] for engine in engines]

    def experiment(self, name: str) -> HostedExperiment:
        """An experiment with its memory of units; made when the first one asks."""
        with self._watching:
            if name not in self._experiments:
                self._experiments[name] = HostedExperiment(self.engine, name)
            return self._experiments[name]

    def watch(self, application: str) -> Watch:
        """The page's view of an application, made for its first reader."""
        with self._watching:
            if application not in self._watches:
                self._watches[application] = Watch(self.engine, application)
            return self._watches[application]

    def reload(self, config: Config) -> None:
        """Put another configuration in force without a restart: applications, keys, policies and limits.

        Where it listens and what it stores to stay; ValueError, and nothing changes, if it cannot be had.
        """
        if not config.keys and not is_loopback(self.config.host):
            raise ValueError(f"keys cannot be removed while others can reach listen, {self.config.listen}")
        added = not isinstance(config.storage, str) and self.engine.add(config.stores())
        if not added and config.storage != self.config.storage:
            log.warning("storage stays as it is until a restart")
        if config.listen != self.config.listen:
            log.warning("listen stays as it is until a restart")
        self.engine.apply(config.creations())
        for retention in self.retain():
            retention.days = config.retention
        with self._watching:
            gone, self._watches = self._watches, {}
        self.config, self.keys, self.default = config, Keys(config.keys), next(iter(config.applications))
        self._guarded = not config.keys
        self.exports.limit = config.max_exports
        for watch in gone.values():
            watch.close()

    async def stop(self) -> None:
        """Learn and keep what was acknowledged, then end."""
        self.ready = False
        for retention in self.retentions.values():
            await in_thread(retention.stop)
        for watch in self._watches.values():
            await in_thread(watch.close)
        await in_thread(self.engine.stop)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except Exception as error:
                    log.error("cannot start: %s", error)
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        method, path = scope["method"], "other"
        route: Route | None = None
        application = ""
        try:
            route, call = self.route(scope)
            path, application = route.path, call.application
            call.body = await self._read(call, receive, route.limit or self.config.max_body)
            response = await route.handler(call)
        except Exception as error:
            response = self.refusal(scope, error, application)
        if route is not None:
            audit.changed(route, call, response.status)
        await _send(send, receive, response, method == "HEAD", self.config.send_timeout)
        self.metrics.observe(method if path != "other" else "any", path, response.status, time.perf_counter() - started)

    def refusal(self, scope: HTTPScope, error: Exception, application: str) -> Response:
        """The answer to a request that an error ended; ``application`` is empty where it was not known yet."""
        problem = problem_of(error)
        if problem is None and isinstance(error, self.engine.store.errors):
            log.error("the journal cannot be read: %s", error)  # it may name hosts, which clients need not know
            problem = Problem(503, "Unavailable", "the journal cannot be read now: try again", RETRY)
        if problem is None:
            log.error("unforeseen", exc_info=error)
            problem = Problem(500, "InternalError", "internal error; the log has the details")
        if application:
            self.metrics.refusals[application, problem.code] += 1
        return self._recoded(scope, problem).response()

    def _recoded(self, scope: HTTPScope, problem: Problem) -> Problem:
        """A problem in the words of the dialect that was spoken, told by the first segment after ``/apps/NAME``."""
        segments = _raw_path(scope).strip(b"/").split(b"/")
        spoken = segments[2:3] if segments[0] == b"apps" else segments[:1]
        return DIALECTS.get(b"".join(spoken), _as_it_is)(problem)

    def route(self, scope: HTTPScope) -> tuple[Route, Call]:
        """The route of a request that its key allows; nothing is said of what exists before the key is known."""
        raw = _raw_path(scope)
        if len(raw) > 8192:
            raise Problem(414, "UriTooLong", "the path must have at most 8192 bytes")
        path = split_path(raw)
        named = path[0] == "apps" and len(path) > 2
        application = path[1] if named else self.default
        path = path[2:] if named else path
        call = Call(self.engine, scope["method"], path, scope["query_string"], scope["headers"], application)
        if len(call.headers) < len(scope["headers"]) or b"host" not in call.headers:  # one is there twice, or missing
            hosts = [name for name, _ in scope["headers"]].count(b"host")
            if hosts != 1 and (hosts or scope.get("http_version") != "1.0"):
                raise Problem(400, "BadArgument", f"a request must have one Host header, got {hosts}")
        call.service, call.named = self, named
        if self._guarded and (call.headers.get(b"host") not in self._local or b"origin" in call.headers):
            self._check_local(call)
        if path in _PUBLIC:
            route, call.params = self.router.find(call.method, path)
            return route, call
        key = self.keys.find(_secret(call.headers)) if self.keys else ANYONE
        if key is None:
            self._refused_keys.note((scope.get("client") or ("unknown",))[0], "/".join(path))
            self.metrics.refused_keys = self._refused_keys.total
            raise Problem(401, "Unauthorized", "a valid key is needed", ((b"www-authenticate", b"Bearer"),))
        call.key = key
        if not named and key.applications and self.default not in key.applications:
            call.application = key.applications[0]
        route, call.params = self.router.find(call.method, path)
        if not key.may(route.role, call.application):
            audit.changed(route, call, 403)
            raise Problem(403, "Forbidden", "this key does not allow that")
        if call.method == "POST":
            _ = call.request_id  # one that is too long is refused whatever the handler would do with it
        if not self.ready:
            raise Problem(503, "Unavailable", "the service is starting or stopping", RETRY)
        if call.application not in self.engine.models and (named or route.path not in _WHOLE):
            self.engine.model(call.application)  # says why not
        return route, call

    def _check_local(self, call: Call) -> None:
        """Refuse requests of foreign pages: by their ``Origin`` (CSRF), and by a foreign ``Host`` (DNS rebinding)."""
        host, origin = call.header(b"host"), call.header(b"origin")
        if host and not names_loopback(host):
            raise Problem(403, "Forbidden", f"without keys only localhost is served, not {host[:80]!r}: see [[keys]]")
        if b"origin" in call.headers and not names_loopback(_SCHEME.sub("", origin) or "null"):
            raise Problem(403, "Forbidden", f"without keys only pages of localhost are served, not {origin[:80]!r}")
        if host and len(self._local) < 100:
            self._local.add(call.headers[b"host"])

    async def _read(self, call: Call, receive: Receive, most: int) -> bytes:
        length = call.headers.get(b"content-length", b"")
        if length.isdigit() and len(length) < 20 and int(length) > most:
            await _drain(receive)
            raise _too_large(most)
        pieces: list[bytes] = []
        size, more, began = 0, True, time.monotonic()
        while more:
            left = BODY_TIMEOUT
            if pieces:
                left += began + size / MIN_BODY_RATE - time.monotonic()
            try:
                message = await within(left, receive())
            except TimeoutError:
                late = f"{size} bytes of the body came within {time.monotonic() - began:.0f} s"
                raise Problem(408, "Timeout", late, ((b"connection", b"close"),)) from None
            if message["type"] == "http.disconnect":
                raise Problem(400, "BadArgument", "the body did not arrive")
            piece, more = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            if size > most:
                pieces.clear()
                if more:
                    await _drain(receive)
                raise _too_large(most)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # ------------------------------------------------------------------ how it fares

    async def _health(self, call: Call) -> Response:
        """Alive."""
        return reply({"status": "ok"})

    async def _readiness(self, call: Call) -> Response:
        """Ready if decisions would be taken now: where nothing was written lately, or it failed, a probe write says so.

        An application that cannot be served is named, and is no reason to send the others' clients elsewhere.
        """
        if self.ready:
            self.retain()  # of a database that has come since
            self.engine.writer.doubt()
            clock = asyncio.get_running_loop().time
            until = clock() + PROBE_WAIT
            while self.engine.writer.doubted and clock() < until:
                await asyncio.sleep(0.02)
        wrong = {
            "starting or stopping": not self.ready,
            "the journal cannot be written": not self.engine.writable,
            "the database has not answered for some seconds": not self.engine.writer.moving,
            "the learner has ended": not self.engine.learning,
        }
        reasons = [reason for reason, holds in wrong.items() if holds]
        answer: dict[str, Any] = {"status": "not ready" if reasons else "ready"}
        if reasons:
            answer["reasons"] = reasons
        if states := self.engine.states():
            answer["databases"] = states
        if withheld := sorted(set(self.engine.creations) - set(self.engine.models)):
            answer["unavailable"] = withheld
            broken = {app: self.engine.broken.get(app, "") for app in withheld}
            answer["because"] = {app: reason.partition(":")[0] for app, reason in broken.items() if reason}
        return reply(answer, 503 if reasons else 200)

    async def _measures(self, call: Call) -> Response:
        """Prometheus's metrics of the applications that the key may see."""

        def look(app: str) -> dict[str, Any]:
            return self.watch(app).look()

        body = await in_thread(self.metrics.render, self.engine, call.key, look)
        return Response(200, body, b"text/plain; version=0.0.4; charset=utf-8")

    async def _description(self, call: Call) -> Response:
        """This document."""
        return reply(document(self.router.routes))


async def asked_once(config: Config, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """The answer to one request to a service that runs for it alone, without a socket and without keys."""
    service = Service(msgspec.structs.replace(config, keys=[], listen="127.0.0.1:0"))
    answered: list[Any] = []

    left = [body]

    async def receive() -> Any:
        if not left:  # it stays to the end of the answer
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    async def send(message: Any) -> None:
        answered.append(message)

    raw: Any = {"type": "http", "method": method, "raw_path": path.encode(), "path": path, "query_string": b"",
                "headers": [(b"host", b"localhost")]}  # fmt: skip
    try:
        await service.start()
        await service(raw, receive, send)
    finally:
        await service.stop()
    return answered[0]["status"], b"".join(message.get("body", b"") for message in answered[1:])


def _raw_path(scope: HTTPScope) -> bytes:
    return scope.get("raw_path") or scope["path"].encode()


def _as_it_is(problem: Problem) -> Problem:
    return problem


DIALECTS: dict[bytes, Callable[[Problem], Problem]] = {
    b"personalizer": rank.recoded,
    b"ofrep": failure.recoded,
}


def _secret(headers: dict[bytes, bytes]) -> str | None:
    for name in _KEY_HEADERS:
        if name in headers:
            return headers[name].decode("latin-1")
    sent = headers.get(b"authorization", b"")
    return sent[7:].decode("latin-1").strip() if sent[:7].lower() == b"bearer " else None


def _too_large(most: int) -> Problem:
    return Problem(413, "TooLarge", f"the body must have at most {most} bytes", ((b"connection", b"close"),))


async def _drain(receive: Receive) -> None:
    """Read a body away, within bounds: a client that is still sending when it is cut off never reads the reason."""
    deadline, size = time.monotonic() + 10.0, 0
    with contextlib.suppress(TimeoutError):
        while size < _MAX_DRAINED_BYTES and time.monotonic() < deadline:
            message = await asyncio.wait_for(receive(), 1.0)
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


async def _send(send: Send, receive: Receive, response: Response, head: bool, patience: float) -> None:
    headers = [(b"content-type", response.type), (b"cache-control", b"no-store"), *response.headers]
    if isinstance(response.body, bytes):
        if response.status == 204:
            headers = [h for h in headers if h[0] != b"content-type"]
        else:
            headers.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head else response.body})
        return
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if head:
        await anext(response.body, b"")  # one that has not begun cannot let go of what it holds
        await response.body.aclose()
    elif not await _stream(send, receive, response.body, patience):
        return  # the server closes the connection: no reader takes what it got for the whole
    await send({"type": "http.response.body", "body": b""})


async def _stream(send: Send, receive: Receive, pieces: AsyncGenerator[bytes, None], patience: float) -> bool:
    """Send pieces as they come, until there are no more or the reader is gone; False if they cannot be had any more,
    or the reader does not take ``_MIN_READ_BYTES`` bytes within ``patience`` seconds."""
    gone = asyncio.ensure_future(_gone(receive))
    step: asyncio.Future[bytes] | None = None
    try:
        while True:
            step = asyncio.ensure_future(anext(pieces))
            await asyncio.wait({step, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return True
            try:
                piece = step.result()
            except StopAsyncIteration:
                return True
            except Exception as error:
                log.error("a response was interrupted: %s", error)
                return False
            for start in range(0, len(piece), _MIN_READ_BYTES):
                part = piece[start : start + _MIN_READ_BYTES]
                async with asyncio.timeout(patience):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
    except TimeoutError:
        log.warning("a client read less than %d bytes in %g s: connection closed", _MIN_READ_BYTES, patience)
        return False
    finally:
        gone.cancel()
        if step is not None and not step.done():
            step.cancel()
            await asyncio.wait({step})
        await pieces.aclose()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
