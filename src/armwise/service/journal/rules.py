"""The state machine of a decision, applied by the journal on append and by ``verify``."""

from __future__ import annotations

import msgspec

from armwise.service.journal.errors import Conflict, Unknown
from armwise.service.journal.events import (
    CLOSE,
    EARLIEST,
    LATEST,
    MAX,
    MAX_MAGNITUDE,
    MEAN,
    MIN,
    PROVISIONAL,
    SUM,
    Activation,
    Decision,
    Event,
    Expiry,
    Reward,
    Row,
    Sequel,
)

MAX_REWARDS = 1000  # of one decision: more come from a client that retries without an idempotency key


class Status(msgspec.Struct, gc=False):  # no cycle goes through it
    """The status of a decision: a row beside the journal, and a pure function of the journal."""

    app: str
    id: str
    seq: int
    deadline: int
    rule: str
    default: float
    active: bool
    n: int = 0  # rewards within the window
    total: float = 0.0
    value: float = 0.0  # these rewards combined by the rule
    closed: bool = False  # nothing more will be learnt from it
    learn: str = PROVISIONAL

    @classmethod
    def of(cls, row: Row, decision: Decision) -> Status:
        """The status of a new decision."""
        return cls(
            row.app, row.id, row.seq, row.time + decision.window, decision.rule, decision.default,
            active=not decision.deferred, learn=decision.learn,
        )  # fmt: skip

    @property
    def early(self) -> bool:
        """Whether the first reward closes the decision; otherwise a final one does, or the end of the window."""
        return self.rule == EARLIEST and self.learn != CLOSE

    @property
    def outcome(self) -> float:
        """The outcome so far: the rewards combined by the rule, or the default without one."""
        return self.value if self.n else self.default

    @property
    def repeated(self) -> bool:
        """Whether an earlier reward counts instead of the last one."""
        return self.rule == EARLIEST and self.n > 1

    def reward(self, value: float, time: int, cost: float | list[float] | None = None, final: bool = False) -> Reward:
        """Apply a reward; a late one changes nothing, a final one closes the decision: what comes after it is late."""
        late = time > self.deadline or (self.closed and self.rule != EARLIEST)  # where the earliest counts: repeated
        event = Reward(value, self.seq, late=late, cost=cost, final=final)
        if event.late:
            return event
        self.n += 1
        self.total = min(max(self.total + value, -MAX_MAGNITUDE), MAX_MAGNITUDE)
        self.value = self._combined(value)
        if (self.early or final) and self.active and not self.closed:
            self.closed = True
            event.lesson = self.value
        return event

    def _combined(self, value: float) -> float:
        """The rewards so far and one more, combined by the rule."""
        if self.n == 1:
            return value
        if self.rule == SUM:
            return self.total
        if self.rule == MEAN:
            return self.total / self.n
        if self.rule == LATEST:
            return value
        if self.rule == MAX:
            return max(self.value, value)
        return min(self.value, value) if self.rule == MIN else self.value

    def activate(self, time: int) -> Activation:
        """Mark a deferred decision as shown; a reward may have come before. An active decision does not change."""
        if self.active:
            return Activation(self.seq)
        event = Activation(self.seq, late=time > self.deadline or self.closed)
        if event.late:
            return event
        self.active = event.shown = True
        if self.early and self.n:
            self.closed = True
            event.lesson = self.value
        return event

    def expire(self, early: bool = False) -> Expiry:
        """Close the window: learn the outcome or the default, if the decision was shown."""
        self.closed = True
        return Expiry(self.seq, lesson=self.outcome if self.active else None, early=early)


def check(event: Event, status: Status | None, id: str, time: int, rewards: int = 0) -> None:
    """Raise Unknown or Conflict if the status of a decision, with ``rewards`` more, does not allow an event."""
    if status is None:
        if isinstance(event, Sequel):
            raise Unknown(f"no decision has the id {id}", id)
    elif isinstance(event, Reward):
        if status.n + rewards >= MAX_REWARDS:
            raise too_many_rewards(id)
    elif isinstance(event, Expiry) and (status.closed or (status.deadline >= time and not event.early)):
        raise Conflict(f"event {id} cannot be closed: it is closed, or its window is open")


def too_many_rewards(id: str) -> Conflict:
    """The refusal of a reward beyond ``MAX_REWARDS``."""
    return Conflict(f"decision {id} has {MAX_REWARDS} rewards already, which is the maximum", id)


def happen(event: Event, status: Status | None, time: int) -> Event:
    """Apply a requested event to the status of its decision; return the event to journal."""
    if status is not None:
        match event:
            case Reward():
                return status.reward(event.value, time, event.cost, event.final)
            case Activation():
                return status.activate(time)
            case Expiry():
                return status.expire(event.early)
    return event
