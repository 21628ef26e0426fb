"""Time, threads and randomness of the operating system; a simulation replaces them.

Every part of the service that waits, measures a duration or needs a secret uses this interface, so that a simulation
can run a cluster of several processes in one thread, from one seed (``tests/service/simulation``).
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any


class System:
    """Time, threads and randomness."""

    Empty = queue.Empty

    def monotonic(self) -> float:
        """Seconds of a clock that never jumps."""
        return time.monotonic()

    def thread_time(self) -> float:
        """Seconds of CPU time of this thread."""
        return time.thread_time()

    def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)

    def random_bytes(self, n: int) -> bytes:
        """Bytes that nobody can guess."""
        return secrets.token_bytes(n)

    def start(self, work: Callable[..., object], name: str, *args: Any) -> threading.Thread:
        """Run work in a thread that ends with the process."""
        thread = threading.Thread(target=work, args=args, name=name, daemon=True)
        thread.start()
        return thread

    def lock(self) -> threading.Lock:
        """A lock."""
        return threading.Lock()

    def rlock(self) -> Any:
        """A reentrant lock."""
        return threading.RLock()

    def event(self) -> threading.Event:
        """An event that threads wait for."""
        return threading.Event()

    def condition(self) -> threading.Condition:
        """A condition that threads wait for."""
        return threading.Condition()

    def queue(self) -> queue.SimpleQueue[Any]:
        """A queue between threads."""
        return queue.SimpleQueue()


SYSTEM = System()
