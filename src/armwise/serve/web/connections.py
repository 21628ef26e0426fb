"""Connections within limits: endless headers, silence, or connections without end harm no other client."""

from __future__ import annotations

import asyncio
from collections import Counter

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADERS = 65_536  # bytes of a request line and its headers
SLOWEST = 10.0  # seconds that these may take, from the first byte or from connecting
MOST_CONNECTIONS = 1_000  # of one address

_open: Counter[str] = Counter()  # connections by address, of this process


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, with limits on headers, on how slowly they come, and on connections per address."""

    _waiting: asyncio.TimerHandle | None = None
    _in_headers = True
    _header_bytes = 0
    _counted = ""

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
        _open[self._counted] -= 1
        if _open[self._counted] <= 0:
            del _open[self._counted]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            self._header_bytes += len(data)
            if self._waiting is None:
                self._await_headers()
            # What a first packet holds beyond its headers is its body: only a packet without their end counts.
            if self._header_bytes > MOST_HEADERS and b"\r\n\r\n" not in data[:MOST_HEADERS]:
                self._refuse(431, f"a request line and its headers must have at most {MOST_HEADERS} bytes")
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._headers_came()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_headers, self._header_bytes = True, 0
        super().on_message_complete()

    def _await_headers(self) -> None:
        self._waiting = self.loop.call_later(SLOWEST, self._too_slow)

    def _headers_came(self) -> None:
        self._in_headers = False
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
