"""Client: the same verbs against a running ``armwise serve``, over HTTP; nothing but the standard library."""

from __future__ import annotations

import asyncio
import http.client
import json
import tempfile
import threading
import time
import urllib.parse
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from armwise.decider.answers import Decided, Receipt, UnknownDecision
from armwise.features.plain import arm_to_json, to_json
from armwise.offline.log import Log

_AGAIN = frozenset({429, 502, 503, 504})  # answers after which the same request may be sent again


class ServiceError(RuntimeError):
    """The service refused a request, or could not be reached; ``status`` is 0 for the latter.

    >>> ServiceError(503, "the journal is not writable").status
    503
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Decide and reward over HTTP.

    A request that fails on the way is sent again, up to ``retries`` times: decisions carry their id, rewards an
    idempotency key, so that nothing happens twice. Connections are kept and used again, from any thread. ``app`` names
    the application, where the service has several.

    >>> Client("http://127.0.0.1:8484", key="secret").address
    '127.0.0.1:8484'
    """

    def __init__(
        self, url: str, key: str | None = None, *, app: str | None = None, timeout: float = 5.0, retries: int = 3
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https:// and name a host, got {url!r}")
        if not timeout > 0.0 or retries < 0:
            raise ValueError(f"timeout must be above 0 and retries at least 0, got {timeout} and {retries}")
        self.address, self._scheme, self._path = parts.netloc, parts.scheme, parts.path.rstrip("/")
        self.key, self.app, self.timeout, self.retries = key, app, timeout, retries
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    # ------------------------------------------------------------------ the verbs

    def decide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """As ``Decider.decide``.

        >>> Client("http://127.0.0.1:1", retries=0).decide({"hour": 9}, ["a"])
        Traceback (most recent call last):
        ...
        armwise.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        if isinstance(arms, (str, bytes, Mapping)):
            raise ValueError(f"arms must be a list of ids or dictionaries, got {type(arms).__name__}")
        sent, texts = to_json("context", context), [arm_to_json(arm) for arm in arms]
        name = id or uuid.uuid4().hex  # of our own making, so that a retry finds the decision it made
        body = b'{"id":%s,"context":%s,"arms":[%s]}' % (json.dumps(name).encode(), sent, b",".join(texts))
        answer = json.loads(self._send("POST", "/v1/decisions", body))
        chances = {each["arm"]: each["probability"] for each in answer["probabilities"]}
        return Decided(answer["id"], answer["arm"], answer["probability"], chances, sent, tuple(texts))

    def decide_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Decided]:
        """Several decisions, over one connection.

        >>> Client("http://127.0.0.1:1").decide_many([])
        []
        """
        return [self.decide(each.get("context"), each.get("arms", ()), id=each.get("id")) for each in requests]

    def reward(self, id: str | Decided, value: float) -> Receipt:
        """As ``Decider.reward``.

        >>> Client("http://127.0.0.1:1", retries=0).reward("e1", 1.0)
        Traceback (most recent call last):
        ...
        armwise.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        name = id.id if isinstance(id, Decided) else id
        path = f"/v1/decisions/{urllib.parse.quote(name, safe='')}/reward"
        body = json.dumps({"value": float(value)}).encode()
        try:
            answer = json.loads(self._send("POST", path, body, {"Idempotency-Key": uuid.uuid4().hex}))
        except ServiceError as error:
            if error.status == 404:
                raise UnknownDecision(name) from None
            raise
        return Receipt(name, "late" if answer["late"] else "repeated" if answer["repeated"] else "taken")

    def reward_many(self, rewards: Iterable[tuple[str | Decided, float]]) -> list[Receipt]:
        """Rewards of several decisions, over one connection.

        >>> Client("http://127.0.0.1:1").reward_many([])
        []
        """
        return [self.reward(id, value) for id, value in rewards]

    async def adecide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """``decide`` for asyncio, in a thread.

        >>> asyncio.iscoroutinefunction(Client.adecide)
        True
        """
        return await asyncio.to_thread(self.decide, context, arms, id=id)

    async def areward(self, id: str | Decided, value: float) -> Receipt:
        """``reward`` for asyncio, in a thread.

        >>> asyncio.iscoroutinefunction(Client.areward)
        True
        """
        return await asyncio.to_thread(self.reward, id, value)

    def log(self) -> Log:
        """What the service has decided so far, as a log for ``offline.evaluate``; the key must be allowed to read it.

        >>> Client("http://127.0.0.1:1", retries=0).log()
        Traceback (most recent call last):
        ...
        armwise.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        data = self._send("GET", "/v1/log?format=dsjson", None)
        folder = tempfile.TemporaryDirectory(prefix="armwise-")
        path = Path(folder.name) / "log.dsjson"
        path.write_bytes(b"".join(line for line in data.splitlines(True) if b'"_skipLearn":true' not in line))
        log = Log.from_dsjson(path)
        weakref.finalize(log, folder.cleanup)
        return log

    # ------------------------------------------------------------------ life

    def close(self) -> None:
        """Close the connections that are kept.

        >>> Client("http://127.0.0.1:1").close()
        """
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None) -> bytes:
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self.key is not None:
            sent["Authorization"] = f"Bearer {self.key}"
        if self.app is not None:
            path = f"/apps/{urllib.parse.quote(self.app, safe='')}{path}"
        failure = ServiceError(0, "")
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(min(2.0, 0.05 * 2**attempt))
            connection = self._connection()
            try:
                connection.request(method, self._path + path, body, sent)
                response = connection.getresponse()
                data = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                failure = ServiceError(0, f"{self.address} cannot be reached: {error}")
                continue
            with self._lock:
                self._idle.append(connection)
            if response.status < 300:
                return data
            failure = ServiceError(response.status, _reason(response.status, data))
            if response.status not in _AGAIN:
                break
        raise failure

    def _connection(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        kind = http.client.HTTPSConnection if self._scheme == "https" else http.client.HTTPConnection
        return kind(self.address, timeout=self.timeout)


def _reason(status: int, data: bytes) -> str:
    """What the service says is wrong."""
    try:
        answer = json.loads(data)
        text = answer.get("error", answer) if isinstance(answer, dict) else answer
        return str(text.get("message", text)) if isinstance(text, dict) else str(text)
    except ValueError:
        return f"the service answered {status}"
