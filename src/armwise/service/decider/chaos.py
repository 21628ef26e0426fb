"""Fault injection for a client's requests, so that applications can test their error handling."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping

from armwise.core.arguments import fraction, positive, short

FAULTS = ("timeout", "duplicate", "delay", "unavailable")
_SETTINGS = {"seconds": 0.05, "seed": 0.0}


class Chaos:
    """Draw the fault of each attempt to send a request; seeded, shared by all threads of a client."""

    def __init__(self, settings: Mapping[str, float]) -> None:
        if not isinstance(settings, Mapping):
            raise ValueError(f"chaos: expected a dictionary such as {{'timeout': 0.1}}, got {short(settings)}")
        for name, value in settings.items():
            if name not in (*FAULTS, *_SETTINGS):
                known = ", ".join((*FAULTS, *_SETTINGS))
                raise ValueError(f"chaos: {name!r} is not one of {known}")
            if name in FAULTS:
                fraction(f"chaos: {name}", value, zero=True, one=True)
            else:
                positive(f"chaos: {name}", value, zero=True)
        whole = _SETTINGS | dict(settings)
        self._chances = {name: float(whole.get(name, 0.0)) for name in FAULTS}
        self._seconds, self._random = float(whole["seconds"]), random.Random(whole["seed"])
        self._lock = threading.Lock()

    def draw(self) -> set[str]:
        """Return the fault of one attempt; delays happen here."""
        with self._lock:
            faults = {name for name, chance in self._chances.items() if self._random.random() < chance}
            pause = self._random.random() * self._seconds
        if "delay" in faults:
            time.sleep(pause)
        return faults
