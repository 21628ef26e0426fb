"""The web page at ``/``: one file without external resources; it reads ``/v1/live``, server-sent events.

It may import web, experiments, log, engine, model, journal, offline, features and core.
Invariant: the page shows only data that the reader's key may read.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncGenerator
from importlib.resources import files
from typing import Any

import msgspec

from armwise.service.experiments.hosted import definitions
from armwise.service.experiments.report import STYLE_TAG
from armwise.service.web.http import Call, Response, Route
from armwise.service.web.keys import Key
from armwise.service.web.offload import in_thread

HTML = (files(__name__) / "index.html").read_bytes()


def policy(*pages: bytes) -> bytes:
    """Return the content security policy: only the page's own script and style, by hash."""

    def allowed(tag: str) -> str:
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), b"".join(pages), re.S)
        return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in inside)

    sources = f"script-src {allowed('script')}; style-src {allowed('style')}; connect-src 'self'; base-uri 'none'"
    return f"default-src 'none'; {sources}; form-action 'none'; frame-ancestors 'none'; img-src data:".encode()


_HEADERS = (
    (b"content-security-policy", policy(HTML, STYLE_TAG)),  # a report that the page fetched with its key is under it
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


async def show(call: Call) -> Response:
    """``GET /``: the empty page, without data."""
    return Response(200, HTML, b"text/html; charset=utf-8", _HEADERS)


async def live(call: Call) -> Response:
    """``GET /v1/live``: the state of an application, sent again whenever it changes."""
    names = [name for name in sorted(call.engine.models) if call.key.may("read", name)]
    await in_thread(call.service.watch, call.application)  # before the status is sent: errors are no 200
    return Response(200, stream(call.service, call.application, call.key, names), b"text/event-stream")


def experiments_of(service: Any, key: Key) -> list[dict[str, Any]]:
    """The experiments that a key may read: state, arms, and the newest line of each log."""
    return [
        {"name": name, "state": made.state, "arms": made.arms, "newest": msgspec.to_builtins(made.log[-1])}
        for name, made in sorted(definitions(service.engine).items())
        if key.may("read", name)
    ]


async def stream(service: Any, application: str, key: Key, names: list[str]) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events until the reader disconnects or the service stops."""
    before, quiet = b"", 0
    while service.ready and not service.ending:
        seen = await in_thread(lambda: service.watch(application).look())  # a reload makes a new watch
        tests = await in_thread(experiments_of, service, key)
        data = msgspec.json.encode(seen | {"applications": names, "experiments": tests})
        if data != before:
            yield b"data: " + data + b"\n\n"
            before, quiet = data, 0
        elif quiet >= 15:  # keep-alive: each end notices that the other is gone
            yield b": still here\n\n"
            quiet = 0
        quiet += 1
        await asyncio.sleep(1.0)


ROUTES = [
    Route("GET", "", "", show, gives={200: "text/html"}),
    Route("GET", "v1/live", "read", live, gives={200: "text/event-stream"}),
]
