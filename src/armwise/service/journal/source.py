"""The reading interface of a journal in a database or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from armwise.service.journal.events import Row
from armwise.service.journal.pace import Pace
from armwise.service.journal.rules import Status


class EventSource(Protocol):
    """Events in order, and the status of decisions."""

    pace: Pace

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions raised if the events cannot be read now."""
        ...

    def wait_until_durable(self) -> None:
        """Wait until every event read is durable."""
        ...

    def consistent_reads(self) -> AbstractContextManager[None]:
        """Let everything read within be of one moment; return when it is durable."""
        ...

    def last(self) -> tuple[int, int, bytes]: ...
    def row(self, seq: int) -> Row: ...
    def rows(self, seqs: Sequence[int]) -> dict[int, Row]: ...
    def after(self, seq: int, limit: int = 500) -> list[Row]: ...
    def events(self, seq: int = 0) -> Iterator[Row]: ...
    def statuses(self, ids: Sequence[tuple[str, str]]) -> list[Status]: ...
    def rewards(self, ids: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[Row]]: ...
    def created_before(self, app: str, seq: int) -> bool: ...
