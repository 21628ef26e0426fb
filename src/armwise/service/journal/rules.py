"""The state machine of a decision: the journal applies it on append, ``verify`` when it checks."""

from __future__ import annotations

import msgspec

from armwise.service.errors import Conflict, Unknown
from armwise.service.journal.events import (
    CLOSE,
    EARLIEST,
    LARGEST,
    LATEST,
    MAX,
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

MOST_REWARDS = 1000  # of one decision: more is a client that repeats itself without an idempotency key


class Status(msgspec.Struct, gc=False):  # no cycle goes through it
    """The status of a decision: a row beside the journal, and a pure function of the journal.

    >>> status = Status("shop", "e1", seq=1, deadline=1000, rule=EARLIEST, default=0.0, active=True)
    >>> status.reward(value=0.7, time=500).lesson, status.reward(value=0.2, time=600).lesson
    (0.7, None)
    """

    app: str
    id: str
    seq: int
    deadline: int
    rule: str
    default: float
    active: bool
    n: int = 0  # rewards within the window
    total: float = 0.0
    value: float = 0.0  # what they come to, by the rule
    closed: bool = False  # nothing can be learnt from it any more
    learn: str = PROVISIONAL

    @classmethod
    def of(cls, row: Row, decision: Decision) -> Status:
        """The status of a new decision.

        >>> asked = Decision(msgspec.Raw(b"{}"), [], [], 0, 0, window=5, default=0.0)
        >>> Status.of(Row(7, 1000, "shop", "decision", "e1", b"{}"), asked).deadline
        1005
        """
        return cls(
            row.app, row.id, row.seq, row.time + decision.window, decision.rule, decision.default,
            active=not decision.deferred, learn=decision.learn,
        )  # fmt: skip

    @property
    def early(self) -> bool:
        """Whether the first reward settles the decision; otherwise a final one does, or the end of the window.

        >>> Status("shop", "e1", 1, 1000, SUM, 0.0, True).early
        False
        """
        return self.rule == EARLIEST and self.learn != CLOSE

    @property
    def outcome(self) -> float:
        """The outcome so far: the rewards combined by the rule, or the default without one.

        >>> Status("shop", "e1", 1, 1000, SUM, default=-1.0, active=True).outcome
        -1.0
        """
        return self.value if self.n else self.default

    @property
    def repeated(self) -> bool:
        """Whether an earlier reward counts instead of the last one.

        >>> Status("shop", "e1", 1, 1000, EARLIEST, 0.0, True, n=2).repeated
        True
        """
        return self.rule == EARLIEST and self.n > 1

    def reward(self, value: float, time: int, cost: float | list[float] | None = None, final: bool = False) -> Reward:
        """Apply a reward; a late one changes nothing, a final one closes the decision.

        >>> Status("shop", "e1", 1, 1000, SUM, 0.0, True).reward(0.5, time=1001).late
        True
        >>> Status("shop", "e1", 1, 1000, SUM, 0.0, True).reward(0.5, time=999, final=True).lesson
        0.5
        """
        event = Reward(value, self.seq, late=time > self.deadline, cost=cost, final=final)
        if event.late:
            return event
        self.n += 1
        self.total = min(max(self.total + value, -LARGEST), LARGEST)
        self.value = self._come_to(value)
        if (self.early or final) and self.active and not self.closed:
            self.closed = True
            event.lesson = self.value
        return event

    def _come_to(self, value: float) -> float:
        """The outcome of the rewards so far and one more."""
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
        """A deferred decision was shown; a reward may have come before. One that is active already stays as it is.

        >>> status = Status("shop", "e1", 1, 1000, EARLIEST, 0.0, active=False)
        >>> status.reward(0.7, time=500).lesson, status.activate(time=600).lesson
        (None, 0.7)
        """
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
        """Close the window: the outcome or the default is learnt, if the decision was shown.

        >>> Status("shop", "e1", 1, 1000, EARLIEST, default=-1.0, active=True).expire().lesson
        -1.0
        """
        self.closed = True
        return Expiry(self.seq, lesson=self.outcome if self.active else None, early=early)


def check(event: Event, status: Status | None, id: str, time: int, rewards: int = 0) -> None:
    """Raise Unknown or Conflict if the decision's status does not allow an event, after ``rewards`` more.

    >>> check(Reward(1.0), None, "e1", time=5)
    Traceback (most recent call last):
    ...
    armwise.service.errors.Unknown: no decision has the id e1
    """
    if status is None:
        if isinstance(event, Sequel):
            raise Unknown(f"no decision has the id {id}", id)
    elif isinstance(event, Reward):
        if status.n + rewards >= MOST_REWARDS:
            raise too_many(id)
    elif isinstance(event, Expiry) and (status.closed or (status.deadline >= time and not event.early)):
        raise Conflict(f"event {id} is not to be closed")


def too_many(id: str) -> Conflict:
    """The reason why a decision takes no more rewards.

    >>> too_many("e1")
    Conflict('decision e1 has 1000 rewards already, which is the most it takes')
    """
    return Conflict(f"decision {id} has {MOST_REWARDS} rewards already, which is the most it takes")


def happen(event: Event, status: Status | None, time: int) -> Event:
    """Apply a requested event to the status of its decision; return the event to journal.

    >>> happen(Reward(1.0), Status("shop", "e1", 3, 1000, EARLIEST, 0.0, True), time=5)
    Reward(value=1.0, decision=3, late=False, lesson=1.0, cost=None, final=False)
    """
    if status is not None:
        match event:
            case Reward():
                return status.reward(event.value, time, event.cost, event.final)
            case Activation():
                return status.activate(time)
            case Expiry():
                return status.expire(event.early)
    return event
