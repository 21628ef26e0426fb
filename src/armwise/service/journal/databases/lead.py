"""The leader of several processes: it holds a lock in a database session and renews a lease.

A process that dies loses its session, and the lock with it. A process that freezes keeps both. Another process that
finds the lease expired ends that session: this frees the lock and fences later writes of the old leader.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from armwise.service.journal.system import SYSTEM, System

LEASE = 4_000  # ms after which a lease that is not renewed expires


class LeadSession(Protocol):
    """A database session that can hold the lead; its methods raise the errors that ``Lead`` expects."""

    @property
    def closed(self) -> bool:
        """Whether the session ended, as far as this side knows."""
        ...

    def ping(self) -> None:
        """Raise if the session is lost."""
        ...

    def take(self) -> int:
        """Take the lock if it is free; return the number of this session, or 0."""
        ...

    def renew(self, number: int, taking: bool = False) -> None:
        """Renew the lease of the leader's session; only a new leader (``taking``) overwrites another's."""
        ...

    def depose(self) -> None:
        """End the session of a leader whose lease has expired."""
        ...

    def unfreeze(self) -> None:
        """End a stalled session that has the append lock."""
        ...

    def close(self) -> None: ...


S = TypeVar("S", bound=LeadSession)


class Lead(Generic[S]):
    """The lead from the point of view of one process."""

    def __init__(self, connect: Callable[[], S], errors: tuple[type[Exception], ...], system: System = SYSTEM) -> None:
        self._connect, self._errors, self._system = connect, errors, system
        self._held: S | None = None

    def lead(self) -> bool:
        """Take the lead if no process has it; True while this process has it."""
        with contextlib.suppress(*self._errors):
            if self._held is not None and not self._held.closed:
                self._held.ping()
                return True
        if self._held is not None:
            self._held.close()
            self._held = None
        with contextlib.suppress(*self._errors):
            candidate = self._connect()
            try:
                if number := candidate.take():
                    candidate.renew(number, taking=True)
                    self._held = candidate
                    self._system.start(self._keep, "armwise-lease", candidate, number)
                    return True
                candidate.depose()
                candidate.unfreeze()
            finally:
                if self._held is not candidate:
                    candidate.close()
        return False

    def _keep(self, held: S, number: int) -> None:
        """Renew the lease from a separate session while this process leads."""
        own: S | None = None
        while self._held is held and not held.closed:
            try:
                if own is None or own.closed:
                    own = self._connect()
                own.renew(number)
                own.unfreeze()
            except self._errors:
                if own is not None:
                    own.close()
            self._system.sleep(LEASE / 4000)
        if own is not None:
            own.close()

    def leading(self) -> S:
        """The session that holds the lead; statements in it fail once the lead is lost."""
        if self._held is None or self._held.closed:
            raise RuntimeError("this process no longer leads")
        return self._held

    def close(self) -> None:
        """Give up the lead."""
        if self._held is not None:
            self._held.close()
            self._held = None
