"""The limit on exports in flight: each holds a session per database and a chunk of the log in memory."""

from __future__ import annotations

from armwise.service.journal.errors import Unavailable


class Exports:
    """Count exports and refuse those beyond the limit: sessions and memory are reserved for decisions."""

    def __init__(self, limit: int) -> None:
        self.limit, self.under_way = limit, 0

    def begin(self) -> None:
        """Count a new export; raise Unavailable at the limit."""
        if self.under_way >= self.limit:
            raise Unavailable(f"{self.limit} exports are running, which is the limit: try again")
        self.under_way += 1

    def end(self) -> None:
        """Count an export that ended."""
        self.under_way -= 1
