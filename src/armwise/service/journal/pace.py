"""Background work in short pieces beside requests: exports, searches, training."""

from __future__ import annotations

import threading
from collections.abc import Callable

from armwise.service.journal.system import SYSTEM, System

MAX_PIECE = 0.0005  # seconds of CPU time of a piece: about as long as a request waits for the GIL
MAX_SHARE = 0.25  # of a thread's time, while requests come
MAX_PAGE_ROWS = 50  # read from the journal by one statement of such work: about a piece


class Pace:
    """Sleeps between pieces of work while ``busy`` reports requests; one object per session."""

    def __init__(self, busy: Callable[[], bool], system: System = SYSTEM) -> None:
        self._busy, self._system = busy, system
        self._thread, self._since, self._spent = 0, 0.0, 0.0

    def rest(self) -> None:
        """Sleep after each ``MAX_PIECE`` of work, so that the work takes at most ``MAX_SHARE`` of the time."""
        thread, now = threading.get_ident(), self._system.thread_time()
        if thread == self._thread:
            self._spent += max(0.0, now - self._since)  # the number of an ended thread may be reused
        self._thread, self._since = thread, now  # an export may change threads
        if self._spent >= MAX_PIECE:
            if self._busy():
                self._system.sleep(self._spent * (1.0 / MAX_SHARE - 1.0))
                self._since = self._system.thread_time()
            self._spent = 0.0


NO_PACE = Pace(lambda: False)
