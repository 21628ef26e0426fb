"""Limits on the size and duration of request headers, and responses in one packet, which uvicorn's protocol lacks.

Other limits are configured where the server is started (``service/server/run.py``): open connections, keep-alive
time and, in the kernel, the time that sent data may stay unacknowledged. A proxy can do all of this instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 65_536  # bytes of a request line and its headers
HEADER_TIMEOUT = 10.0  # seconds for them to arrive, from the connection or the previous request on
_PHRASES = {408: "Request Timeout", 431: "Request Header Fields Too Large"}


class JoinedWrites:
    """A transport that sends what is written in one step of the event loop together.

    uvicorn writes the head of a response and its body apart: two system calls, each of which lets go of the GIL.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing: Callable[[], bool] = transport.is_closing  # asked for several times in every request
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self.is_closing():  # the connection may have been lost since
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))


class BoundedHeaders(HttpToolsProtocol):
    """uvicorn's protocol with limits; it overrides callbacks of asyncio and httptools only."""

    _header_timer: asyncio.TimerHandle | None = None
    _in_headers = True
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:  # uvicorn leaves it, and with it the connection, after a reset
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            self._header_bytes += len(data)
            # Data after the end of the headers is the body: count a packet only if the headers do not end in it.
            if self._header_bytes > MAX_HEADER_BYTES and b"\r\n\r\n" not in data[:MAX_HEADER_BYTES]:
                self._refuse(431, f"a request line and its headers must have at most {MAX_HEADER_BYTES} bytes")
                return
        super().data_received(data)
        if self._in_headers and self._header_bytes and self._header_timer is None and not self.transport.is_closing():
            self._start_header_timer()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop_header_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_headers, self._header_bytes = True, 0
        super().on_message_complete()

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_TIMEOUT, self._time_out)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _time_out(self) -> None:
        if not self.transport.is_closing():
            self._refuse(408, f"no request came within {HEADER_TIMEOUT:g} s")

    def _refuse(self, status: int, reason: str) -> None:
        phrase = _PHRASES[status]
        body = f'{{"error":{{"code":"{phrase.replace(" ", "")}","message":"{reason}"}}}}'.encode()
        head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()
