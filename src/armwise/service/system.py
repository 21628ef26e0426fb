"""Time, threads and chance, as the operating system has them; a simulation gives the service others.

Everything of the service that waits, measures how long something took or makes up what nobody can guess asks here, so
that a cluster of several processes can run in one thread, from one seed (``tests/service/simulation``).
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any


class System:
    """Time, threads and chance.

    >>> System().monotonic() <= System().monotonic(), len(System().random_bytes(16))
    (True, 16)
    """

    Empty = queue.Empty

    def monotonic(self) -> float:
        """Seconds that pass whatever the wall clock does."""
        return time.monotonic()

    def thread_time(self) -> float:
        """Seconds of processor time that this thread took."""
        return time.thread_time()

    def sleep(self, seconds: float) -> None:
        """Let this thread wait."""
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
        """A lock that its holder may take again."""
        return threading.RLock()

    def event(self) -> threading.Event:
        """Something that threads wait for."""
        return threading.Event()

    def condition(self) -> threading.Condition:
        """A condition that threads wait for."""
        return threading.Condition()

    def queue(self) -> queue.SimpleQueue[Any]:
        """A queue between threads."""
        return queue.SimpleQueue()


SYSTEM = System()
