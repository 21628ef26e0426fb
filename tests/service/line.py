"""A connection to a service that costs next to nothing: the standard library's client takes more than the service."""

from __future__ import annotations

import json
import socket
from typing import Any


class Line:
    """Speaks HTTP/1.1 with a port of loopback; an OSError where it is cut off, before an answer or within it."""

    def __init__(self, port: int, timeout: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._answers = self._socket.makefile("rb")

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(sent)}\r\n\r\n"
        self._socket.sendall(head.encode() + sent)
        status, length = int(self._line().split(b" ")[1]), None
        while line := self._line():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length is not None, f"{method} {path} is answered without its length"
        data = self._answers.read(length)
        if len(data) < length:
            raise ConnectionError("cut off within an answer")
        return status, data

    def _line(self) -> bytes:
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("cut off")
        return line[:-2]

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def asked(port: int, method: str, path: str, body: Any = None, timeout: float = 5.0) -> tuple[int, bytes]:
    """The answer over a connection of its own."""
    with Line(port, timeout) as line:
        return line.ask(method, path, body)
