"""Connections within limits: endless headers, silence, or connections without end harm no other client.

A small request that came whole, to a route with a plan (``http.Route``), is answered here: it is planned as it arrives,
what it wants written goes to the writer together with that of the others which arrived with it, and the answer is sent
when the disk has it. That spares a task, a coroutine and several events per request, half of what a decision costs; all
else is uvicorn's, and so is any such request that has to wait for something.

Clients that keep a connection send the same request line and headers again and again. Those of a request for a decision
that was parsed, found whole and let in are remembered (``Heads``): the same bytes mean the same.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from armwise.service.engine.writer import Writer
from armwise.service.errors import Unavailable
from armwise.service.journal.append import Appended
from armwise.service.web.asgi import HTTPScope
from armwise.service.web.http import Call, Headers, Planned, Response, Route

MOST_HEADERS = 65_536  # bytes of a request line and its headers
SLOWEST = 10.0  # seconds that these may take, from the first byte or from connecting
MOST_CONNECTIONS = 1_000  # of one address
SMALL = 65_536  # bytes of a body that may be answered at once
WAITING = 1.0  # seconds for such a body to come
TOGETHER = 16  # requests that are submitted at once while more of them arrive: the writer begins meanwhile
MOST_KNOWN = 2_048  # request lines with headers that are remembered: lengths of bodies differ
LONGEST_KNOWN = 2_048  # bytes of one

_open: Counter[str] = Counter()  # connections by address, of this process


class Turn:
    """What the requests that arrive in one turn of the loop want written: the writer is woken once for many of them.

    >>> Turn().waiting
    []
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[Writer, Direct, Planned]] = []

    def add(self, writer: Writer, direct: Direct, planned: Planned) -> None:
        """Submit it when this turn of the loop is over, or enough wait."""
        self.waiting.append((writer, direct, planned))
        if len(self.waiting) >= TOGETHER:
            self.submit()
        elif len(self.waiting) == 1:
            direct.connection.loop.call_soon(self.submit)

    def submit(self) -> None:
        """Give the writer what waits.

        >>> Turn().submit()
        """
        waiting, self.waiting = self.waiting, []
        for writer, direct, planned in waiting:
            try:
                writer.submit(planned.writes, direct.done, direct.connection.loop.call_soon_threadsafe)
            except Unavailable as error:
                direct.done(error)


class Head(NamedTuple):
    """A request line and headers that were parsed and let in, and what they asked for; ``call`` lacks its body."""

    length: int  # of the body
    scope: HTTPScope
    route: Route
    call: Call


class Heads:
    """What requests for a decision began with, by their very bytes; for as long as keys and configuration stay.

    >>> Heads().find(b"POST /v1/decisions HTTP/1.1\\r\\n\\r\\n") is None
    True
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """The head that these bytes begin with and the body that they end with; None: they are not one known request.

        >>> heads = Heads()
        >>> heads.add(b"POST ...\\r\\n\\r\\n{}", b"{}", None, None, None); heads.find(b"POST ...\\r\\n\\r\\n[]")[1]
        b'[]'
        """
        end = data.find(_END, 0, LONGEST_KNOWN) + 4
        head = self._known.get(data[:end])
        return None if head is None or len(data) != end + head.length else (head, data[end:])

    def add(self, data: bytes, body: bytes, scope: Any, route: Any, call: Any) -> None:
        """Remember what a request began with, of which this is all.

        >>> Heads().add(b"", b"", None, None, None)
        """
        end = data.find(_END, 0, LONGEST_KNOWN) + 4
        if end > 3 and data[end:] == body:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[data[:end]] = Head(len(body), scope, route, call)


_END = b"\r\n\r\n"


class _Ignored:
    """An event that nobody waits for."""

    def set(self) -> None:
        pass


class Direct:
    """A request that is answered without a task; to uvicorn it looks like one of its own that is under way."""

    __slots__ = ("answer", "application", "connection", "disconnected", "keep_alive", "response_complete", "route",
                 "scope", "started")  # fmt: skip
    message_event = _Ignored()

    def __init__(self, connection: Connection, scope: HTTPScope, keep_alive: bool) -> None:
        self.connection, self.scope, self.keep_alive = connection, scope, keep_alive
        self.response_complete = self.disconnected = False
        self.started = time.perf_counter()
        self.route: Route | None = None
        self.application = ""
        self.answer: Any = None

    def done(self, outcome: Appended) -> None:
        """It is durable, or it is not."""
        if isinstance(outcome, Exception):
            self.refuse(outcome)
            return
        try:
            response = self.answer(outcome)
        except Exception as error:
            self.refuse(error)
        else:
            self.send(response)

    def refuse(self, error: Exception) -> None:
        """Say what went wrong."""
        self.send(self.connection.service.refusal(self.scope, error, self.application))

    def send(self, response: Response) -> None:
        """Answer, if anybody is still there."""
        self.response_complete = True
        path, method = ("other", "any") if self.route is None else (self.route.path, "POST")
        self.connection.service.metrics.observe(method, path, response.status, time.perf_counter() - self.started)
        if not self.disconnected:
            self.connection.answer(self, response)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, with limits on headers, on how slowly they come, and on connections per address."""

    _waiting: asyncio.TimerHandle | None = None
    _in_headers = True
    _header_bytes = 0
    _counted = ""
    _size = 0
    _pieces: list[bytes] | None = None  # of the body of a request that may be answered at once
    _idle: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _packet = b""  # which began where a request begins

    @property
    def service(self) -> Any:
        """The application: ``app.Service``."""
        return self.app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._counted = self.client[0] if self.client else ""
        _open[self._counted] += 1
        if _open[self._counted] > MOST_CONNECTIONS:
            self._refuse(503, f"{MOST_CONNECTIONS} connections from this address are open")
            return
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_came()
        if self._idle is not None:
            self._idle.cancel()
        _open[self._counted] -= 1
        if _open[self._counted] <= 0:
            del _open[self._counted]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            if not self._header_bytes and self._is_free():
                if (found := self.service.heads.find(data)) and self._answer_again(*found):
                    return
                self._packet = data
            self._header_bytes += len(data)
            # What a first packet holds beyond its headers is its body: only a packet without their end counts.
            if self._header_bytes > MOST_HEADERS and b"\r\n\r\n" not in data[:MOST_HEADERS]:
                self._refuse(431, f"a request line and its headers must have at most {MOST_HEADERS} bytes")
                return
        super().data_received(data)
        self._packet = b""
        if self.transport.is_closing() or self._waiting is not None:
            return
        if self._pieces is not None:  # the rest of its body is still to come, in most cases at once
            self._waiting = self.loop.call_later(WAITING, self._go_the_long_way)
        elif self._in_headers and self._header_bytes:
            self._await_headers()

    def on_headers_complete(self) -> None:
        self._headers_came()
        if self._may_be_direct():
            self._pieces, self._size = [], 0
        else:
            super().on_headers_complete()

    def _may_be_direct(self) -> bool:
        """Whether a request can be answered without a task: nothing is under way before it, and a route may plan it."""
        return (
            self._is_free()
            and self.url.endswith((b"/v1/decisions", b"/reward"))
            and self.url[:1] == b"/"
            and self.parser.get_method() == b"POST"
            and not self.expect_100_continue
            and not self.parser.should_upgrade()
        )

    def _is_free(self) -> bool:
        """Whether nothing is under way here."""
        cycle = self.cycle
        return (cycle is None or cycle.response_complete) and not self.flow.write_paused and hasattr(self.app, "turn")

    def on_body(self, body: bytes) -> None:
        if self._pieces is None:
            super().on_body(body)
        else:
            self._pieces.append(body)
            self._size += len(body)
            if self._size > SMALL:
                self._go_the_long_way()

    def on_message_complete(self) -> None:
        self._stop_waiting()
        self._in_headers, self._header_bytes = True, 0
        if self._pieces is None:
            super().on_message_complete()
        elif not self._answer_directly(b"".join(self._pieces)):
            self._go_the_long_way()
            super().on_message_complete()

    def _go_the_long_way(self) -> None:
        """Let uvicorn have what came of a request so far."""
        pieces, self._pieces = self._pieces or (), None
        self._stop_waiting()
        super().on_headers_complete()
        for piece in pieces:
            super().on_body(piece)

    def _answer_directly(self, body: bytes) -> bool:
        """Plan what a request asks for; False if it has to wait for something."""
        service = self.service
        heads = service.heads  # before the keys are asked: those of keys that are taken away meanwhile go with them
        if len(body) > service.config.max_body:
            return False
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        scope: Any = {"type": "http", "method": "POST", "raw_path": self.url, "path": "", "query_string": b"",
                      "headers": self.headers, "client": self.client}  # fmt: skip
        direct = Direct(self, scope, keep_alive)
        try:
            route, call = service.route(scope)
            retried = bool(call.request_id)
        except Exception as error:
            self._pieces, self.cycle = None, direct  # type: ignore[assignment]
            direct.refuse(error)
            return True
        if route.plan is None:
            return False
        told = call.headers.get(b"content-length") == b"%d" % len(body)  # and so nothing else says how long it is
        if told and keep_alive and not call.params and not retried:
            heads.add(self._packet, body, scope, route, call)
        return self._plan(direct, route, call, body)

    def _answer_again(self, head: Head, body: bytes) -> bool:
        """Plan what a request asks for that begins as one before; False if it has to wait for something."""
        service = self.service
        if not service.ready or head.call.application not in service.engine.models:
            return False
        self._stop_waiting()
        self._unset_keepalive_if_required()
        return self._plan(Direct(self, head.scope, True), head.route, head.call, body)

    def _plan(self, direct: Direct, route: Route, call: Call, body: bytes) -> bool:
        service = self.service
        direct.route, direct.application, call.body = route, call.application, body
        try:
            planned = route.plan(call)  # type: ignore[misc]
            if planned is None:
                return False
        except Exception as error:
            self._pieces, self.cycle = None, direct  # type: ignore[assignment]
            direct.refuse(error)
            return True
        self._pieces, self.cycle, direct.answer = None, direct, planned.answer  # type: ignore[assignment]
        service.turn.add(service.engine.writer, direct, planned)
        return True

    def answer(self, direct: Direct, response: Response) -> None:
        """Send the whole answer to a request that was planned."""
        assert isinstance(response.body, bytes)
        head = _head(response.status, response.type, response.headers, direct.keep_alive)
        self.transport.write(b"%b%d\r\n\r\n%b" % (head, len(response.body), response.body))
        if not direct.keep_alive:
            self.transport.close()
        if self.pipeline or not direct.keep_alive or self.flow.read_paused:
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if self._idle is None:
            self._idle = self.loop.call_later(self.timeout_keep_alive, self._end_idle)

    def _end_idle(self) -> None:
        """Close if nothing has come for long; one timer for all requests of a connection."""
        self._idle = None
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        busy = self.timeout_keep_alive_task is not None or not self.cycle.response_complete
        if left > 0.0 or busy:
            self._idle = self.loop.call_later(max(left, 1.0), self._end_idle)
        elif not self.transport.is_closing():
            self.transport.close()

    def _await_headers(self) -> None:
        self._waiting = self.loop.call_later(SLOWEST, self._too_slow)

    def _headers_came(self) -> None:
        self._in_headers = False
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self._refuse(408, f"no request came within {SLOWEST:g} s")

    def _refuse(self, status: int, reason: str) -> None:
        phrase = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}[status]
        body = f'{{"error":{{"code":"{phrase.replace(" ", "")}","message":"{reason}"}}}}'.encode()
        head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()


@functools.lru_cache(maxsize=256)
def _head(status: int, type: bytes, further: Headers, keep_alive: bool) -> bytes:
    """What an answer begins with, up to its length."""
    headers = ((b"content-type", type), (b"cache-control", b"no-store"), *further)
    lines = [name + b": " + value + b"\r\n" for name, value in headers]
    lines += [] if keep_alive else [b"connection: close\r\n"]
    return b"".join([STATUS_LINE[status], *lines, b"content-length: "])
