"""Make unique ids."""

from __future__ import annotations

from collections.abc import Callable

from armwise.service.journal.system import SYSTEM


def chances(n: int, random_bytes: Callable[[int], bytes] = SYSTEM.random_bytes) -> list[str]:
    """Random bytes for many ids: one system call for each would cost more than the rest of an id."""
    fresh = random_bytes(n * 10).hex()
    return [fresh[i : i + 20] for i in range(0, len(fresh), 20)]


class Ids:
    """Makes ids: the time first, so that the index grows at its end, then 80 random bits."""

    def __init__(self, random_bytes: Callable[[int], bytes] = SYSTEM.random_bytes) -> None:
        self._random_bytes = random_bytes
        self._chance: list[str] = []

    def fresh(self, now: int) -> str:
        """A new id for a time in milliseconds."""
        try:
            chance = self._chance.pop()
        except IndexError:
            self._chance = chances(2048, self._random_bytes)  # many at once: it gives the interpreter away
            chance = self._chance.pop()
        return f"{now:012x}{chance}"
