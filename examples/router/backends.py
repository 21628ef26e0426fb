"""Models behind an OpenAI-compatible interface: what they charge, how they are asked, and a budget that holds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import json
import os
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LIMITS = ("max_tokens", "max_completion_tokens")


class BackendError(Exception):
    """A back end could not be reached, took too long, or failed: another one may be asked.

    ``billed`` says that it has the request and did not say what became of it: it may charge for it.
    """

    def __init__(self, message: str, billed: bool = False) -> None:
        super().__init__(message)
        self.billed = billed


class Refused(Exception):
    """The back end says that the request itself is wrong; ``said`` is how."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status, self.said = status, body.decode("utf-8", "replace")
        with contextlib.suppress(ValueError, LookupError, TypeError):  # not in OpenAI's form: as it is
            self.said = str(json.loads(body)["error"]["message"])


@dataclass(frozen=True)
class Model:
    """One back end; prices are in dollars per million tokens.

    ``url`` is the base (".../v1"), ``model`` the name it knows, ``key_from`` the environment variable with its key,
    ``limit`` what it calls the limit on the answer (newer models of OpenAI: "max_completion_tokens").
    """

    name: str
    url: str
    model: str
    input: float
    output: float
    max_tokens: int = 1024
    timeout: float = 30.0
    key_from: str = ""
    limit: str = LIMITS[0]

    def dollars(self, usage: dict[str, Any]) -> float:
        """What an answer cost, by the tokens that the back end counted."""
        return float(self.input * usage["prompt_tokens"] + self.output * usage.get("completion_tokens", 0)) / 1e6

    def request(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request as this back end gets it: its own name, a limit on the answer, and usage in streams."""
        limits = [body[name] for name in LIMITS if body.get(name) is not None]
        stream = {"stream_options": {"include_usage": True}} if body.get("stream") else {}
        rest = {name: value for name, value in body.items() if name not in LIMITS}  # a second limit could be the larger
        return {**rest, "model": self.model, self.limit: min([*limits, self.max_tokens]), **stream}

    def most(self, body: dict[str, Any]) -> float:
        """The most that a request can cost: no text or tool has more tokens than bytes; the answer is limited."""
        asked = self.request(body)
        prompt = len(json.dumps(body, ensure_ascii=False).encode()) + 16
        return float(self.input * prompt + self.output * asked[self.limit] * int(body.get("n") or 1)) / 1e6

    def ask(self, body: dict[str, Any]) -> Iterator[bytes]:
        """The answer, line by line as it comes; BackendError at any line, Refused before the first."""
        headers = {"content-type": "application/json"}
        if self.key_from:
            if self.key_from not in os.environ:
                raise BackendError(f"{self.name}: its key is not in the environment as {self.key_from}")
            headers["authorization"] = f"Bearer {os.environ[self.key_from]}"
        parts = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=self.timeout)
        sent = False
        try:
            path = f"{parts.path.rstrip('/')}/chat/completions"
            connection.request("POST", path, json.dumps(self.request(body)), headers)
            sent = True
            answer = connection.getresponse()
            if answer.status in (400, 413, 422):
                raise Refused(answer.status, answer.read())
            if answer.status != 200:
                raise BackendError(f"{self.name} answers with status {answer.status}")
            if not body.get("stream"):
                yield self._whole(answer.read())
                return
            if answer.headers.get_content_type() != "text/event-stream":
                raise BackendError(f"{self.name} does not answer with a stream", billed=True)
            while line := answer.readline():
                yield line
        except (OSError, http.client.HTTPException) as error:
            raise BackendError(f"{self.name}: {str(error) or type(error).__name__}", billed=sent) from None
        finally:
            connection.close()

    def _whole(self, answer: bytes) -> bytes:
        """An answer that is a JSON object; others are none, and may be charged for."""
        try:
            fits = isinstance(json.loads(answer), dict)
        except (ValueError, RecursionError):
            fits = False
        if not fits:
            raise BackendError(f"{self.name} does not answer with a JSON object", billed=True)
        return answer


class Ledger:
    """A budget in dollars that is never overspent: the most that a request can cost is set aside while it is under way.

    With ``path`` every line is in that file before anything is asked or answered, and a process that was killed goes on
    where it was: what it had asked and not settled counts as if it had cost all it could. One process has the file.

    >>> ledger = Ledger(1.0)
    >>> ledger.reserve(0.8), ledger.reserve(0.8)
    (True, False)
    >>> ledger.settle(0.8, 0.1); round(ledger.left, 2)
    0.9
    """

    def __init__(self, dollars: float | None, path: str | None = None) -> None:
        self.dollars, self.spent, self._aside = dollars, 0.0, 0.0
        self.waiting: dict[str, tuple[float, float]] = {}  # answers without feedback: dollars, and when they came
        self._lock = threading.Lock()
        self._file = None if path is None else open(path, "a+b", buffering=0)  # noqa: SIM115 (open while it runs)
        if self._file is not None:
            try:
                self._go_on(self._file)
            except BaseException:
                self.close()
                raise

    def _go_on(self, file: Any) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BlockingIOError(f"{file.name} is another proxy's: a budget is held by one process") from None
        file.seek(0)
        asked: dict[str, float] = {}
        for number, line in enumerate(whole := file.read().splitlines(keepends=True), 1):
            try:
                match json.loads(line):
                    case {"asked": id, "most": most}:
                        asked[id] = most
                    case {"paid": id, "dollars": dollars}:
                        asked.pop(id, None)
                        self.spent += dollars
                        self.waiting[id] = dollars, time.monotonic()
                    case {"learnt": id}:
                        self.waiting.pop(id, None)
                    case _:
                        raise ValueError
            except (ValueError, TypeError):
                if number < len(whole):
                    raise ValueError(f"{file.name}, line {number}: not a line of a ledger: {line!r:.80}") from None
                file.truncate(sum(map(len, whole[:-1])))  # the process died while it wrote this
        self.spent += sum(asked.values())
        for id, most in asked.items():
            self._note({"paid": id, "dollars": most}, {"learnt": id})

    def _note(self, *lines: dict[str, Any]) -> None:
        if self._file is not None:
            whole = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            if (written := self._file.write(whole)) < len(whole):  # a full disk: half a line would spoil the next
                self._file.truncate(self._file.tell() - written)
                raise OSError(errno.ENOSPC, "no room for the next line", self._file.name)

    @property
    def kept(self) -> bool:
        """Whether it is in a file, for the next start."""
        return self._file is not None

    @property
    def left(self) -> float:
        """What is neither spent nor set aside."""
        return float("inf") if self.dollars is None else self.dollars - self.spent - self._aside

    def reserve(self, most: float) -> bool:
        """Set the most that a request can cost aside; False if that much is not left. ``settle`` gives it back."""
        with self._lock:
            if most > self.left:
                return False
            self._aside += most
            return True

    def asks(self, id: str, most: float) -> None:
        """A back end is about to be asked, which may cost this much."""
        with self._lock:
            self._note({"asked": id, "most": most})

    def settle(self, most: float, dollars: float, id: str | None = None, waits: bool = False) -> None:
        """Put what it did cost in the place of what was set aside for it; ``waits``: its feedback is still to come."""
        with self._lock:
            self._aside -= most
            self.spent += dollars
            if id is not None:
                self._note({"paid": id, "dollars": dollars}, *([] if waits else [{"learnt": id}]))
                if waits:
                    self.waiting[id] = dollars, time.monotonic()

    def learnt(self, id: str) -> None:
        """Its outcome is in the journal: it waits for nothing."""
        with self._lock:
            self.waiting.pop(id, None)
            self._note({"learnt": id})

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()


class Resting:
    """Back ends that failed, and until when they are left alone: longer after every failure in a row."""

    def __init__(self, seconds: float = 5.0) -> None:
        self.seconds = seconds
        self._failed: dict[str, tuple[int, float]] = {}

    def failed(self, name: str) -> None:
        n = self._failed.get(name, (0, 0.0))[0] + 1
        self._failed[name] = n, time.monotonic() + self.seconds * min(2.0 ** (n - 1), 64.0)

    def worked(self, name: str) -> None:
        self._failed.pop(name, None)

    def rests(self, name: str) -> bool:
        return self._failed.get(name, (0, 0.0))[1] > time.monotonic()
