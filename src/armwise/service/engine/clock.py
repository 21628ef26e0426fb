"""A clock that follows a jump of the system clock only after the jump has lasted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("armwise.service")

TOLERANCE = 5.0  # seconds against the time since boot: beyond is a jump, below is how clocks are kept right
LASTING = 600.0  # seconds after which a jump forward is believed
SLEW = 0.1  # of the time that passes, by which a clock that was set back is approached
_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def since_boot() -> float:
    """Seconds since boot, independent of the wall clock; they include sleep where the system counts it."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)


class TrustedClock:
    """The wall clock, except that it never goes back, and follows a jump forward only after ten minutes.

    A jump forward and back leaves no trace: otherwise the journal, whose time never goes back, would stand still until
    the clock had caught up, and close no window.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = since_boot) -> None:
        self._wall, self._steady = wall, steady
        self._last_wall, self._last_steady = wall(), steady()
        self._untrusted = 0.0  # by how much the wall clock is ahead of the time that is told
        self._since = 0.0
        self.jumps = 0

    def __call__(self) -> float:
        wall, steady = self._wall(), self._steady()
        passed = steady - self._last_steady
        jump = wall - self._last_wall - passed
        self._last_wall, self._last_steady = wall, steady
        if abs(jump) > TOLERANCE:
            self._untrusted += jump
            self._since = steady
            self.jumps += 1
            log.warning("the wall clock jumped by %.0f s: ignored unless the jump lasts", jump)
            if abs(self._untrusted) < TOLERANCE:  # it is back where it was
                self._untrusted = 0.0
        elif self._untrusted < 0.0:
            self._untrusted = min(0.0, self._untrusted + SLEW * passed)
        elif self._untrusted and steady - self._since > LASTING:
            log.warning(
                "the wall clock has been %.0f s ahead for %.0f s: followed from now on", self._untrusted, LASTING
            )
            self._untrusted = 0.0
        return wall - self._untrusted

    def continue_from(self, moment: float) -> None:
        """Continue from a journaled time, even if the wall clock is behind it."""
        if moment > self():
            self._untrusted = self._last_wall - moment
