"""The types of ASGI, as far as the service speaks it (https://asgi.readthedocs.io)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NotRequired, TypedDict


class HTTPScope(TypedDict):
    """The connection scope; for types other than ``http`` only ``type`` is present."""

    type: str
    method: str
    path: str
    raw_path: NotRequired[bytes]
    query_string: bytes
    headers: list[tuple[bytes, bytes]]
    client: NotRequired[tuple[str, int] | None]


Message = dict[str, Any]  # ``type`` determines the other keys
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
