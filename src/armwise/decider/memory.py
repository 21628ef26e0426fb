"""A ``Decider`` that keeps nothing on disk: the service's events, rules and model, without its threads."""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from armwise.decider.answers import Decided, Receipt
from armwise.decider.asked import Asked
from armwise.decider.home import APP, Given, receipt
from armwise.features.arms import ArmColumns, check_id
from armwise.features.scaling import Scaling
from armwise.serve.engine.draw import uniform
from armwise.serve.errors import Conflict, Unknown
from armwise.serve.journal.append import canonical
from armwise.serve.journal.events import Creation, Decision, Expiry, Lessons, Reward, Row
from armwise.serve.journal.rules import Status
from armwise.serve.log.export import Entry, Outcome, as_dsjson
from armwise.serve.model.build import build_model
from armwise.serve.model.model import Model
from armwise.serve.model.seen import Seen

MOST_SEEN = 1000  # decisions whose features stay in memory for their rewards; of older ones they are made again


class _Made:
    """A decision, and what its reward needs."""

    __slots__ = ("arms", "decision", "outcomes", "scaling", "seen", "status", "time")

    def __init__(
        self, decision: Decision, arms: ArmColumns, status: Status, time: int, scaling: Scaling, seen: Seen
    ) -> None:
        self.decision, self.arms, self.status, self.time = decision, arms, status, time
        self.scaling: Scaling | None = scaling
        self.seen: Seen | None = seen
        self.outcomes: tuple[Outcome, ...] = ()

    def journaled(self) -> Decision:
        """The decision with its scaling written out, as a journal has it."""
        if not self.decision.scaling and self.scaling is not None:
            self.decision.scaling = self.scaling.journal
        return self.decision


class Memory:
    """Decisions in memory, learnt the moment their rewards come.

    >>> from armwise.features.arms import read_arms
    >>> home = Memory(Creation())
    >>> [made] = home.decide([Asked(b"{}", None, read_arms([b'"a"', b'"b"']), None)])
    >>> home.reward([(made.id, 1.0, None)])[0].status
    'taken'
    """

    def __init__(self, creation: Creation, clock: Callable[[], float] = time.time) -> None:
        self._model = build_model(creation)
        self._window, self._learns = round(self._model.settings.window * 1000), self._model.learns
        self._clock, self._secret = clock, os.urandom(32)
        self._lock = threading.Lock()
        self._made: dict[str, _Made] = {}
        self._open: list[tuple[int, str]] = []  # deadlines, soonest first
        self._recent: deque[_Made] = deque()
        self._chance: list[str] = []
        self._seq = 0

    def decide(self, requests: Sequence[Asked]) -> list[Decided]:
        """Decide, one after the other.

        >>> from armwise.features.arms import read_arms
        >>> Memory(Creation()).decide([Asked(b"{}", None, read_arms([b'"a"']), "e1")])[0].arm
        'a'
        """
        with self._lock:
            now = self._expire()
            for asked in requests:
                if asked.id is not None:
                    self._check_id(asked)
            return [self._decide(asked, now) for asked in requests]

    def _check_id(self, asked: Asked) -> None:
        assert asked.id is not None
        before = self._made.get(check_id("the event id", asked.id))
        if before is not None and canonical(before.decision) != canonical(
            Decision(msgspec.Raw(asked.context), list(asked.arms.raws), [], 0, 0, 1, 0.0)
        ):
            raise Conflict(f"event {asked.id} was decided with other content")

    def _decide(self, asked: Asked, now: int) -> Decided:
        context, tokens, arms, id = asked
        if id is None:
            id = self._new_id(now)
        elif id in self._made:
            made = self._made[id]
            return _decided(id, made.decision, made.arms)
        model = self._model
        settings = model.settings
        drawn = model.choose(context, arms, uniform(self._secret, APP, id), tokens)
        note = (
            drawn.note if drawn.note is None else msgspec.json.decode(msgspec.json.encode(drawn.note))
        )  # as journals do
        decision = Decision(
            msgspec.Raw(context), list(arms.raws), drawn.p.tolist(), drawn.arm, model.version,
            self._window, settings.default, settings.rule, self._learns, note=note,
        )  # fmt: skip
        self._seq += 1
        status = Status(
            APP, id, self._seq, now + decision.window, decision.rule, decision.default, True, learn=decision.learn
        )
        made = self._made[id] = _Made(decision, arms, status, now, drawn.seen.scaling, drawn.seen)
        model.scaler.update(model.numbers(decision, drawn.seen.stack))
        model.assume(decision, at_hand=drawn.seen)
        model.version = self._seq
        self._recent.append(made)
        if len(self._recent) > MOST_SEEN:
            self._recent.popleft().seen = None
        heapq.heappush(self._open, (status.deadline, id))
        return _decided(id, decision, arms)

    def reward(self, rewards: Sequence[Given]) -> list[Receipt]:
        """Give decisions their rewards; Unknown if one of the ids is.

        >>> Memory(Creation()).reward([("e1", 1.0, None)])
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no decision has the id e1
        """
        with self._lock:
            now = self._expire()
            checked = []
            for id, value, cost in rewards:  # nothing is taken if one is refused
                self._model.check_reward(value)
                if id not in self._made:
                    raise Unknown(f"no decision has the id {id}")
                checked.append((id, value, self._model.check_cost(cost)))
            return [self._reward(*each, now) for each in checked]

    def _reward(self, id: str, value: float, cost: float | list[float] | None, now: int) -> Receipt:
        made = self._made[id]
        event = made.status.reward(value, now, cost)
        made.outcomes += (Outcome(value, now, event.late, cost),)
        if event.lesson is not None:
            self._settle(made, event)
        return receipt(id, event, made.status.repeated)

    def _settle(self, made: _Made, event: Reward | Expiry) -> None:
        self._model.settle(event, made.decision if made.seen is not None else made.journaled(), made.seen)
        made.seen = made.scaling = None  # a decision is settled once

    def _expire(self) -> int:
        now = int(self._clock() * 1000.0)
        while self._open and self._open[0][0] < now:
            made = self._made[heapq.heappop(self._open)[1]]
            if not made.status.closed:
                self._settle(made, made.status.expire())
        return now

    def model(self) -> Model:
        """The model as it is now; not to be changed.

        >>> Memory(Creation()).model().lessons
        0
        """
        with self._lock:
            self._expire()
            return self._model.copy()

    def lines(self) -> Iterator[bytes]:
        """Every decision whose outcome is known, in order.

        >>> list(Memory(Creation()).lines())
        []
        """
        with self._lock:
            self._expire()
            entries = [
                Entry(Row(m.status.seq, m.time, APP, "decision", id, b""), m.decision, m.status, list(m.outcomes))
                for id, m in self._made.items()
                if m.status.closed
            ]
        return map(as_dsjson, entries)

    def teach(self, lessons: Lessons) -> None:
        """Learn what others decided.

        >>> home = Memory(Creation())
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> home.teach(Lessons([asked], [1.0])); home.model().lessons
        1
        """
        with self._lock:
            self._seq += 1
            self._model.study(lessons)
            self._model.version = self._seq

    def close(self) -> None:
        """Nothing is held open.

        >>> Memory(Creation()).close()
        """

    def _new_id(self, now: int) -> str:
        if not self._chance:  # asking the system for each costs more than the rest of an id
            fresh = os.urandom(256 * 10).hex()
            self._chance = [fresh[i : i + 20] for i in range(0, len(fresh), 20)]
        return f"{now:012x}{self._chance.pop()}"


def _decided(id: str, decision: Decision, arms: ArmColumns) -> Decided:
    p = decision.p
    return Decided(
        id, arms.ids[decision.arm], p[decision.arm], dict(zip(arms.ids, p)), bytes(decision.context), arms.raws
    )
