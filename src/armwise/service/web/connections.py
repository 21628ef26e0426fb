"""Limits that uvicorn does not have: on headers (size and time), on slow readers, on connections per address."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 65_536  # of a request line and its headers
HEADER_TIMEOUT = 10.0  # seconds that these may take, from the first byte or from connecting
MAX_CONNECTIONS_PER_ADDRESS = 1_000
MIN_SENT = 16_384  # bytes that a reader must take within ``send_timeout`` while more wait

_open: Counter[str] = Counter()  # connections by address, of this process


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits; it overrides asyncio's and httptools' callbacks only."""

    _header_timer: asyncio.TimerHandle | None = None
    _in_headers = True
    _header_bytes = 0
    _address = ""
    _send_timer: asyncio.TimerHandle | None = None  # while more waits to be sent than the buffers take

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        _open[self._address] += 1
        if _open[self._address] > MAX_CONNECTIONS_PER_ADDRESS:
            self._refuse(503, f"{MAX_CONNECTIONS_PER_ADDRESS} connections from this address are open")
            return
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_send_timer()
        _open[self._address] -= 1
        if _open[self._address] <= 0:
            del _open[self._address]
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_reader(None)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_send_timer()

    def _check_reader(self, before: int | None) -> None:
        """Cut off a reader that took next to nothing of the ``before`` bytes that waited for it."""
        self._stop_send_timer()
        waiting = self.transport.get_write_buffer_size() + _unacknowledged(self.transport)
        if before is not None and before - waiting < MIN_SENT:
            self.transport.abort()
        else:
            timeout: float = self.app.config.send_timeout
            self._send_timer = self.loop.call_later(timeout, self._check_reader, waiting)

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            self._header_bytes += len(data)
            # What a first packet holds beyond its headers is its body: only a packet without their end counts.
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
        phrase = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}[status]
        body = f'{{"error":{{"code":"{phrase.replace(" ", "")}","message":"{reason}"}}}}'.encode()
        head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()


def _unacknowledged(transport: asyncio.Transport) -> int:
    """Bytes in the kernel's send buffer, which takes more only when much of it is free; 0 where it cannot say."""
    try:
        import fcntl
        import termios
    except ModuleNotFoundError:
        return 0
    found = bytearray(4)
    with contextlib.suppress(OSError):
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, found)
    return int.from_bytes(found, sys.byteorder)
