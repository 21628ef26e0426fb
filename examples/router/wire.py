"""OpenAI's protocol as the proxy speaks it: requests that are read and checked, answers, and what a client is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from backends import LIMITS

MAX_BYTES = 4_000_000
TOKENS = ("prompt_tokens", "completion_tokens")
Send = Callable[[Any], Any]


class Failure(Exception):
    """What a client is told, in OpenAI's form."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.body = status, {"error": {"message": message, "type": kind, "param": None, "code": kind}}


async def in_thread(first: bytes, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Lines that a thread waits for."""
    line: bytes | None = first
    while line:
        yield line
        line = await asyncio.to_thread(next, lines, None)


def check(body: dict[str, Any], bounded: bool) -> None:
    """Failure if a request is none, or the most it can cost could not be told, and there is a budget (``bounded``)."""

    def must(fits: bool, what: str) -> None:
        if not fits:
            raise Failure(400, "invalid_request_error", what)

    messages = body.get("messages")
    must(isinstance(messages, list) and bool(messages), "messages must be a list that is not empty")
    contents = [message.get("content") if isinstance(message, dict) else 0 for message in messages or []]
    must(
        all(content is None or isinstance(content, (str, list)) for content in contents),
        "each of messages must be an object, whose content is a text, a list of parts, or null",
    )
    must(isinstance(body.get("model", "auto"), str), f"model must be a name, got {body.get('model')!r:.80}")
    must(body.get("stream") in (None, True, False), f"stream must be true or false, got {body.get('stream')!r:.80}")
    for name in (*LIMITS, "n"):
        value = body.get(name)
        fits = value is None or (type(value) is int and value >= 1)
        must(fits, f"{name} must be a whole number from 1 on, got {value!r:.80}")
    parts = [part for content in contents if isinstance(content, list) for part in content]
    texts = all(isinstance(part, dict) and part.get("type", "text") == "text" for part in parts)
    must(texts or not bounded, "under a budget messages are text: nobody knows what a picture costs")


def usage_of(answer: dict[str, Any]) -> dict[str, Any] | None:
    """The tokens that a back end counted, where it says them."""
    usage = answer.get("usage")
    if not isinstance(usage, dict) or TOKENS[0] not in usage:
        return None
    counts = [usage.get(name, 0) for name in TOKENS]
    return usage if all(type(count) is int and count >= 0 for count in counts) else None


def prompt_of(body: dict[str, Any]) -> str:
    """The words of a request: what the messages say, the last one first."""
    texts = []
    for message in reversed(body["messages"]):
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts)


async def read_body(receive: Callable[[], Any]) -> dict[str, Any]:
    """A JSON object, or a Failure that says what is wrong."""
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event.get("body", b""), event.get("more_body", False)
        if len(body) > MAX_BYTES:
            raise Failure(413, "invalid_request_error", f"a request has at most {MAX_BYTES} bytes")
    try:
        found = json.loads(body, parse_constant=no_number)
        json.dumps(found, ensure_ascii=False).encode()  # half a character can be written in JSON, and is no text
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Failure(400, "invalid_request_error", "the body must be a JSON object")
    return found


def no_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


async def respond(send: Send, status: int, body: Any, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    kind = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": kind + (headers or [])})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
