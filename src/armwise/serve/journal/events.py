"""The words of the journal: what is appended, and the pure rules that say what each event teaches.

An event is one row: a number (``seq``), a time in milliseconds, the application, a kind, an id and a JSON body.

==============  =======================================================================================
kind            body
==============  =======================================================================================
``create``      the application's agent, features, seed and settings; its model begins anew
``configure``   settings that change from here on
``decision``    ``Decision``: all that was asked, answered and needed for learning
``reward``      ``Reward``: the value, whether it came late, and the lesson if it is one
``activate``    ``Activation``: a deferred decision did happen; the lesson if its reward was waiting
``expire``      ``Expiry``: the reward window closed; the lesson: the sum, or the default reward
``import``      a model given from outside, base64; it replaces the application's own
==============  =======================================================================================

A *lesson* is a reward to learn, with the ``seq`` of its decision. Whoever folds the events in order, learning every
lesson as it comes, arrives at the same agent, bit for bit.
"""

from __future__ import annotations

from typing import Any

import msgspec

from armwise.features.tokens import InvalidInput

EARLIEST, SUM = "earliest", "sum"
LARGEST = 1e150  # magnitude of a reward, and of a sum of them, so that squares stay finite


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """What may change while an application lives; every change is journaled.

    >>> Settings().window
    600.0
    """

    window: float = 600.0  # seconds that a reward may take
    default: float = 0.0  # learnt when none came
    rule: str = EARLIEST
    apprentice: bool = False
    extra: dict[str, Any] = {}  # what a dialect wants kept, of no meaning here

    def __post_init__(self) -> None:
        if not 0.0 < self.window <= 10 * 365 * 86400.0:
            raise InvalidInput(f"window must be seconds above 0 and within ten years, got {self.window}")
        if self.rule not in (EARLIEST, SUM):
            raise InvalidInput(f"rule must be 'earliest' or 'sum', got {self.rule!r}")


class Decision(msgspec.Struct, omit_defaults=True):
    """One decision as it is journaled; ``arms`` are the offered ones first, in order, then the excluded.

    >>> Decision(context=msgspec.Raw(b"{}"), arms=[], p=[], arm=0, version=0, window=1, default=0.0).rule
    'earliest'
    """

    context: msgspec.Raw
    arms: list[msgspec.Raw]
    p: list[float]  # of each offered arm
    arm: int
    version: int  # the journal's seq up to which the model had learnt
    window: int  # milliseconds
    default: float
    rule: str = EARLIEST
    deferred: bool = False
    apprentice: bool = False
    note: Any = None
    scaling: str = ""  # see ``scaling.Scaling.journal``
    order: list[int] = []  # positions in the request, where it excluded arms
    by: str = ""  # the name of the key that asked
    slots: list[str] = []  # of the first slot of several: the names of all
    asked: str = ""  # a digest of the request, where this is one slot of several


class Reward(msgspec.Struct, omit_defaults=True):
    """A reward as it is journaled.

    >>> msgspec.json.encode(Reward(value=1.0, decision=3, lesson=1.0))
    b'{"value":1.0,"decision":3,"lesson":1.0}'
    """

    value: float
    decision: int
    late: bool = False
    lesson: float | None = None


class Activation(msgspec.Struct, omit_defaults=True):
    """A deferred decision was shown.

    >>> Activation(decision=3).lesson is None
    True
    """

    decision: int
    late: bool = False
    lesson: float | None = None


class Expiry(msgspec.Struct, omit_defaults=True):
    """A reward window closed.

    >>> Expiry(decision=3, lesson=0.0).lesson
    0.0
    """

    decision: int
    lesson: float | None = None


class Status(msgspec.Struct):
    """Where a decision stands: a row beside the journal, and a pure function of it.

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
    first: float = 0.0
    closed: bool = False  # nothing can be learnt from it any more

    def reward(self, value: float, time: int) -> Reward:
        """Take a reward in; late ones change nothing.

        >>> Status("shop", "e1", 1, 1000, SUM, 0.0, True).reward(0.5, time=1001).late
        True
        """
        event = Reward(value, self.seq, late=time > self.deadline)
        if event.late:
            return event
        self.n += 1
        self.total = min(max(self.total + value, -LARGEST), LARGEST)
        if self.n == 1:
            self.first = value
        if self.rule == EARLIEST and self.active and not self.closed:
            self.closed = True
            event.lesson = value
        return event

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
        self.active = True
        if self.rule == EARLIEST and self.n:
            self.closed = True
            event.lesson = self.first
        return event

    def expire(self) -> Expiry:
        """The window closed: the sum is learnt, or the default reward, if the decision was ever shown.

        >>> Status("shop", "e1", 1, 1000, EARLIEST, default=-1.0, active=True).expire().lesson
        -1.0
        """
        self.closed = True
        if not self.active:
            return Expiry(self.seq)
        return Expiry(self.seq, lesson=self.total if self.n else self.default)


class Row(msgspec.Struct):
    """One event of the journal.

    >>> Row(1, 0, "shop", "reward", "e1", b"{}").kind
    'reward'
    """

    seq: int
    time: int
    app: str
    kind: str
    id: str
    body: bytes


def lesson_of(row: Row) -> tuple[int, float] | None:
    """The decision and the reward that an event teaches, if it teaches any.

    >>> lesson_of(Row(2, 0, "shop", "expire", "e1", b'{"decision":1,"lesson":0.0}'))
    (1, 0.0)
    """
    if row.kind not in ("reward", "activate", "expire"):
        return None
    event = msgspec.json.decode(row.body, type=Expiry)
    return None if event.lesson is None else (event.decision, event.lesson)
