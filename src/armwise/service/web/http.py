"""A small HTTP layer over ASGI for the APIs: requests, responses, and routes on the raw path."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from armwise.agents.budget.accounts import BudgetSpent
from armwise.features.encoding.tokens import InvalidInput, read_json
from armwise.service.engine.interface import ServedEngine
from armwise.service.journal.errors import Conflict, Damaged, Unavailable, Unknown
from armwise.service.journal.writes import Appended, Write, Written
from armwise.service.web.keys import ANYONE, Key

JSON = b"application/json"
Headers = tuple[tuple[bytes, bytes], ...]


class Response(NamedTuple):
    """A response: status, body (bytes or a stream of chunks), media type, further headers."""

    status: int
    body: bytes | AsyncGenerator[bytes, None] = b""
    type: bytes = JSON
    headers: Headers = ()


def reply(value: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(status, msgspec.json.encode(value))


class Problem(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, message: str, headers: Headers = (), decision: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers
        self.decision = decision  # the id of the unknown decision, if the error is about one

    def response(self) -> Response:
        """Return the error body of the native API."""
        fault = {"code": self.code, "message": str(self)}
        if self.decision:
            fault["decision"] = self.decision
        return Response(self.status, msgspec.json.encode({"error": fault}), JSON, self.headers)


RETRY: Headers = ((b"retry-after", b"1"),)
PROBLEMS: dict[type[Exception], tuple[int, str, Headers]] = {
    InvalidInput: (400, "BadArgument", ()),
    BudgetSpent: (402, "BudgetSpent", ()),
    Unknown: (404, "NotFound", ()),
    Conflict: (409, "Conflict", ()),
    Unavailable: (503, "Unavailable", RETRY),
    Damaged: (503, "Unavailable", RETRY),
}


def problem_of(error: Exception) -> Problem | None:
    """Return the HTTP error for an exception of the engine; None for an unexpected one."""
    if isinstance(error, Problem):
        return error
    for cls in type(error).__mro__:
        if cls in PROBLEMS:
            status, code, headers = PROBLEMS[cls]
            return Problem(status, code, str(error), headers, error.id if isinstance(error, Unknown) else "")
    return None


class Call:
    """A request with its key and its application."""

    __slots__ = (
        "_query", "_request_id", "application", "body", "engine", "headers", "key", "method", "named", "params",
        "path", "service",
    )  # fmt: skip

    def __init__(
        self, engine: ServedEngine, method: str, path: tuple[str, ...], query: bytes,
        headers: Sequence[tuple[bytes, bytes]], application: str,
    ) -> None:  # fmt: skip
        self.engine, self.method, self.path, self._query = engine, method, path, query
        self.headers = dict(reversed(headers))  # the first value if a name repeats
        self._request_id: str | None = None
        self.application = application
        self.named = False  # whether the path started with ``/apps/NAME``
        self.params: tuple[str, ...] = ()
        self.key: Key = ANYONE
        self.body = b""
        self.service: Any = None

    @property
    def query(self) -> dict[str, str]:
        """Return the query parameters; the last value if a name repeats."""
        try:
            return dict(
                parse_qsl(self._query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
            )
        except ValueError:
            raise Problem(400, "BadArgument", "the query string cannot be read") from None

    def header(self, name: bytes) -> str:
        """Return a header by its lower-case name, or ""."""
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def request_id(self) -> str:
        """Return the idempotency key: ``idempotency-key`` or ``x-ms-client-request-id``."""
        if (found := self._request_id) is None:
            sent = self.headers.get(b"idempotency-key") or self.headers.get(b"x-ms-client-request-id") or b""
            found = sent.decode("latin-1")
            if len(found) > 256:
                raise Problem(400, "BadArgument", "the idempotency key must have at most 256 characters")
            self._request_id = found
        return found

    async def submit(self, group: Sequence[Write]) -> list[Written]:
        """Commit writes without blocking the event loop; raise the error that refused them."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Appended] = loop.create_future()

        def done(outcome: Appended) -> None:
            if not future.done():  # the client may have disconnected
                future.set_result(outcome)

        self.engine.writer.submit(group, done, loop.call_soon_threadsafe)
        outcome = await future
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


Handler = Callable[[Call], Awaitable[Response]]


class Route(NamedTuple):
    """A method and a path, whose ``{}`` segments become ``call.params``; the required role (empty: none).

    ``limit`` is the maximum body size in bytes if it differs from the configured one. The rest is for OpenAPI:
    the struct of the body, the answers by status (a struct, a media type, or nothing), and the query parameters.
    """

    method: str
    path: str
    role: str
    handler: Handler
    limit: int = 0
    takes: type | str | None = None
    gives: Mapping[int, type | str | None] = MappingProxyType({})
    query: Mapping[str, Any] = MappingProxyType({})


class Router:
    """Find the route of a path; the path is split before it is decoded, so that ``%2F`` stays inside a segment."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = list(routes)
        self._table: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            self._table.setdefault(tuple(route.path.split("/")), {})[route.method] = route
        self._open = {path: tuple(i for i, name in enumerate(path) if name == "{}") for path in self._table}
        self._places: dict[int, list[tuple[int, ...]]] = {}  # of parameters, by the length of a path
        for path, places in self._open.items():
            known = self._places.setdefault(len(path), [])
            if places and places not in known:
                known.append(places)

    def find(self, method: str, path: tuple[str, ...]) -> tuple[Route, tuple[str, ...]]:
        """Return the route and its parameters; raise Problem 404 or 405."""
        params: tuple[str, ...] = ()
        methods = self._table.get(path)
        if methods is None or "{}" in path:
            for places in self._places.get(len(path), ()):
                pattern = tuple(["{}" if i in places else name for i, name in enumerate(path)])
                if self._open.get(pattern) == places:
                    methods = self._table[pattern]
                    params = tuple([path[i] for i in places])
                    break
            else:
                raise Problem(404, "NotFound", "there is nothing at this path")
        route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
        if route is None:
            allow = ", ".join(sorted(methods)).encode()
            raise Problem(405, "MethodNotAllowed", f"{method} is not allowed for this path", ((b"allow", allow),))
        return route, params


@functools.lru_cache(maxsize=256)
def split_path(raw: bytes) -> tuple[str, ...]:
    """Return the percent-decoded segments of a raw path."""
    pieces = raw.partition(b"?")[0].strip(b"/").split(b"/")
    try:
        path = tuple(p.decode() if b"%" not in p else unquote_to_bytes(p).decode() for p in pieces)
    except UnicodeDecodeError:
        raise Problem(400, "BadArgument", "the path is not UTF-8") from None
    if b"%00" in raw:  # no id contains NUL, and PostgreSQL stores none
        raise Problem(400, "BadArgument", "the path must not have a NUL character")
    return path


def read_object(body: bytes, allowed: set[str]) -> dict[str, Any]:
    """Parse a JSON object; refuse unknown fields."""
    value = read_json(body)
    if not isinstance(value, dict):
        raise InvalidInput("the body must be a JSON object")
    if strange := sorted(set(value) - allowed):
        raise InvalidInput(f"the body has an unknown field {strange[0][:40]!r}; expected {', '.join(sorted(allowed))}")
    return value


def finite(value: Any, what: str = "a number") -> float:
    """Return a finite number as a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{what} must be a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput(f"{what} is too large") from None
