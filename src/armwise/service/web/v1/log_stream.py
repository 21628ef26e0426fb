"""The log over HTTP: streaming exports and erasure of a subject."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Generator, Sequence

from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.engine import Engine
from armwise.service.journal.journal import Journal
from armwise.service.log import parquet
from armwise.service.log.export_journal import FORMATS, pieces_of
from armwise.service.log.retain import Erased, merge
from armwise.service.web.http import Call, Problem, Response, Route, read_object, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1 import schemas
from armwise.service.web.v1.exports import Exports
from armwise.service.web.v1.schemas import DecisionAnswer as DecisionAnswer

WHOLE = {"type": "integer", "minimum": 0, "maximum": 10**18}


async def erase(call: Call) -> Response:
    """``POST /v1/erasures``: erase one subject's decisions, found by a value at a key of their contexts or arms.

    Their open windows are closed; the model keeps what it learnt. ``deleted`` is null if another process leads, which
    deletes them within seconds.
    """
    body = read_object(call.body, {"key", "value"})
    if not isinstance(body.get("key"), str) or not body["key"] or "value" not in body:
        raise InvalidInput('the body must name a key of the context and its value: {"key": "user", "value": "u7"}')
    retentions = call.service.retentions_of_all()

    def erased() -> Erased:
        return merge([each.erase(call.application, body["key"], body["value"]) for each in retentions])

    return reply(await in_thread(erased))


async def log(call: Call) -> Response:
    """``GET /v1/log``: stream decisions with their rewards as JSON lines, dsjson or Parquet."""
    query = call.query
    kind = query.get("format", "json")
    if kind not in FORMATS:
        raise InvalidInput(f"format must be one of {', '.join(FORMATS)}, got {kind[:40]!r}")
    after, limit = (_whole(query, name, default) for name, default in (("after", 0), ("limit", 10**18)))
    engines = call.engine.each
    if after and len(engines) > 1:
        raise InvalidInput("after: where there are several databases each counts its own events: leave it out")
    if kind == "parquet":
        try:
            await in_thread(parquet.check)
        except parquet.Missing as error:
            raise Problem(501, "NotImplemented", str(error)) from None
    pieces = counted(call.service.exports, stream(engines, call.application, kind, after, limit))
    first = await anext(pieces, b"")  # before the status is sent, so that read errors are not answered with 200
    return Response(200, continued(first, pieces), FORMATS[kind])


async def counted(exports: Exports, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Return a stream that counts as an export; raise Unavailable at the limit."""
    exports.begin()
    try:
        async for piece in pieces:
            yield piece
    finally:
        await pieces.aclose()
        exports.end()


async def continued(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Return a stream that starts with a chunk already read."""
    try:
        yield first
        async for piece in rest:
            yield piece
    finally:
        await rest.aclose()


async def stream(engines: Sequence[Engine], app: str, kind: str, after: int, limit: int) -> AsyncGenerator[bytes, None]:
    """Yield the log in chunks, each read by a thread; sessions are closed after the last thread has ended."""
    source = exported(engines, app, kind, after, limit)
    try:
        while data := await in_thread(next, source, b""):
            yield data
    finally:
        await in_thread(source.close)


def exported(engines: Sequence[Engine], app: str, kind: str, after: int, limit: int) -> Generator[bytes, None, None]:
    """Yield the log in chunks, one database after the other, in sessions that it opens and closes."""
    with contextlib.ExitStack() as sessions:
        journals: list[tuple[Journal, int]] = []
        for engine in engines:
            journal = engine.open_journal()
            sessions.callback(journal.connection.close)
            journals.append((journal, max(after, engine.forgotten(app))))
        yield from pieces_of(journals, app, kind, limit, max(engine.now() for engine in engines))


def _whole(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > 10**18:
        raise InvalidInput(f"{name} must be a whole number up to 10^18, got {text[:40]!r}")
    return int(text)


ROUTES = [
    Route("GET", "v1/log", "read", log, gives={200: "application/x-ndjson"},
          query={"format": {"enum": list(FORMATS)}, "after": WHOLE, "limit": WHOLE}),
    Route("POST", "v1/erasures", "admin", erase, takes=schemas.ErasureRequest, gives={200: schemas.ErasureAnswer}),
]  # fmt: skip
