"""Background work in short pieces beside requests: exports, searches, training."""

from __future__ import annotations

import threading
from collections.abc import Callable

from armwise.service.system import SYSTEM, System

PIECE = 0.0005  # seconds of processor time that a piece may take: about as long a request waits for the GIL
SHARE = 0.25  # of a thread's time, while requests come


class Pace:
    """Sleeps between pieces of work while ``busy`` reports requests; one object per session."""

    def __init__(self, busy: Callable[[], bool], system: System = SYSTEM) -> None:
        self._busy, self._system = busy, system
        self._thread, self._since, self._spent = 0, 0.0, 0.0

    def rest(self) -> None:
        """Sleep after each ``PIECE`` of work, so that the work takes at most ``SHARE`` of the time."""
        thread, now = threading.get_ident(), self._system.thread_time()
        if thread == self._thread:
            self._spent += max(0.0, now - self._since)  # a thread that ended may leave its number to a new one
        self._thread, self._since = thread, now  # an export is read by whichever thread is free
        if self._spent >= PIECE:
            if self._busy():
                self._system.sleep(self._spent * (1.0 / SHARE - 1.0))
                self._since = self._system.thread_time()
            self._spent = 0.0


NO_PACE = Pace(lambda: False)
