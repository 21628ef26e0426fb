"""The audit log: changes and deletions by name of the key, and refused keys at a limited rate."""

from __future__ import annotations

import logging
import time

from armwise.service.web.http import Call, Route

log = logging.getLogger("armwise.audit")
log.setLevel(logging.INFO)  # independent of the level of the other logs
MAX_PER_MINUTE = 5  # refused keys logged per address and minute
MAX_ADDRESSES = 1000  # addresses counted separately per minute
NOBODY = "(no key)"  # on loopback, if no keys are configured


def changed(route: Route, call: Call, status: int) -> None:
    """Log a request that required the admin role and changed something."""
    if route.role != "admin" or call.method in ("GET", "HEAD"):
        return
    data = {"who": call.key.name or NOBODY, "application": call.application, "method": call.method, "path": route.path,
            "of": list(call.params), "status": status}  # fmt: skip
    log.info("changed" if status < 400 else "refused", extra={"data": data})


class RefusedKeys:
    """Count requests without a valid key and log a few per minute and address."""

    def __init__(self) -> None:
        self.total = 0
        self._minute, self._counts = 0, dict[str, int]()

    def note(self, address: str, path: str) -> None:
        """Count one refused request."""
        self.total += 1
        minute = int(time.monotonic() // 60.0)
        if minute != self._minute:
            unsaid = sum(n - MAX_PER_MINUTE for n in self._counts.values() if n > MAX_PER_MINUTE)
            if unsaid:
                log.warning("more keys were refused", extra={"data": {"requests": unsaid}})
            self._minute, self._counts = minute, {}
        if address not in self._counts and len(self._counts) >= MAX_ADDRESSES:
            address = "others"
        n = self._counts[address] = self._counts.get(address, 0) + 1
        if n <= MAX_PER_MINUTE:
            log.warning("a key was refused", extra={"data": {"address": address, "path": path[:200]}})
