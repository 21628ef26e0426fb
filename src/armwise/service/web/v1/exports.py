"""How many exports are under way: each holds a session with every database and a piece of the log in memory."""

from __future__ import annotations

from armwise.service.errors import Unavailable


class Exports:
    """Counts exports, and refuses one too many: sessions are left for the writer, and memory for the decisions."""

    def __init__(self, limit: int) -> None:
        self.limit, self.under_way = limit, 0

    def begin(self) -> None:
        """Count one more; Unavailable if there are as many as may be."""
        if self.under_way >= self.limit:
            raise Unavailable(f"{self.limit} exports are under way, which is the most at once: try again")
        self.under_way += 1

    def end(self) -> None:
        """Count one less."""
        self.under_way -= 1
