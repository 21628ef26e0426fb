"""A ``Decider`` that keeps nothing on disk: the service's events, rules and model, without its threads."""

from __future__ import annotations

import heapq
import math
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from armwise.agent import Agent
from armwise.decider.answers import Decided, Receipt
from armwise.decider.asked import Asked
from armwise.decider.home import APP, Given, receipt
from armwise.features.arms import ArmColumns, check_id
from armwise.features.scaling import Scaling
from armwise.serve.errors import Conflict, Unknown
from armwise.serve.journal.append import canonical
from armwise.serve.journal.events import LARGEST, PROVISIONAL, Creation, Decision, Expiry, Lessons, Reward, Row
from armwise.serve.journal.rules import Status
from armwise.serve.log.export import Entry, Outcome, as_dsjson
from armwise.serve.model.build import build_model
from armwise.serve.model.model import Model
from armwise.serve.model.seen import Seen

MOST_SEEN = 1000  # decisions whose features stay in memory for their rewards; of older ones they are made again


class _Made(msgspec.Struct, gc=False):  # no cycle goes through it
    """A decision, and what its reward needs."""

    id: str
    context: bytes
    arms: ArmColumns
    p: list[float]
    arm: int
    note: Any
    version: int
    time: int
    status: Status
    scaling: Scaling | None
    seen: Seen | None
    outcomes: tuple[Outcome, ...] = ()

    def journaled(self) -> Decision:
        """As a journal has it."""
        scaling = "" if self.scaling is None else self.scaling.journal
        status = self.status
        return Decision(
            msgspec.Raw(self.context), self.arms.raws, self.p, self.arm, self.version, status.deadline - self.time,
            status.default, status.rule, status.learn, note=self.note, scaling=scaling,
        )  # fmt: skip

    def answer(self) -> Decided:
        return Decided(self.id, self.arms.ids[self.arm], self.p[self.arm], self.p, self.context, self.arms)


class Memory:
    """Decisions in memory, learnt the moment their rewards come.

    >>> from armwise.features.arms import read_arms
    >>> home = Memory(Creation())
    >>> [made] = home.decide([Asked(b"{}", None, read_arms([b'"a"', b'"b"']), None)])
    >>> home.reward([(made.id, 1.0, None)])[0].status
    'taken'
    """

    def __init__(
        self,
        creation: Creation,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        agent: Agent | None = None,
    ) -> None:
        self._model = build_model(creation, agent)
        self._window, self._learns = round(self._model.settings.window * 1000), self._model.learns
        self._rule = self._model.settings.rule
        self._unbounded = not creation.rewards and self._model.agent.reward_range == (-math.inf, math.inf)
        self._clock, self._random = clock, random.Random(seed).random
        self._lock = threading.Lock()
        self._made: dict[str, _Made] = {}
        self._open: list[tuple[int, str]] = []  # deadlines, soonest first
        self._recent: deque[_Made] = deque()
        self._chance: list[str] = []
        self._instant = 0, "0" * 12  # a time, and how ids begin that are made then
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
        if before is not None and canonical(before.journaled()) != canonical(
            Decision(msgspec.Raw(asked.context), asked.arms.raws, [], 0, 0, 1, 0.0)
        ):
            raise Conflict(f"event {asked.id} was decided with other content")

    def _decide(self, asked: Asked, now: int) -> Decided:
        context, arms, id = asked.context, asked.arms, asked.id
        if id is None:
            id = self._new_id(now)
        elif id in self._made:
            return self._made[id].answer()
        model = self._model
        drawn = model.choose(context, arms, self._random(), asked.tokens)
        seen, note, default = drawn.seen, drawn.note, model.settings.default
        if note is not None:
            note = msgspec.json.decode(msgspec.json.encode(note))  # as journals do
        self._seq = seq = self._seq + 1
        status = Status(APP, id, seq, now + self._window, self._rule, default, True, 0, 0.0, 0.0, False, self._learns)
        made = _Made(
            id, context, arms, drawn.p.tolist(), drawn.arm, note, model.version, now, status, seen.scaling, seen
        )
        if seen.drawn and self._learns == PROVISIONAL:
            model.begin(seen, default, self._rule)
        else:
            decision = made.journaled()
            model.meet(decision, seen)
            model.assume(decision, at_hand=seen)
        model.version = seq
        self._made[id] = made
        self._recent.append(made)
        if len(self._recent) > MOST_SEEN:
            self._recent.popleft().seen = None
        heapq.heappush(self._open, (status.deadline, id))
        return made.answer()

    def reward(self, rewards: Sequence[Given]) -> list[Receipt]:
        """Give decisions their rewards; Unknown if one of the ids is.

        >>> Memory(Creation()).reward([("e1", 1.0, None)])
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no decision has the id e1
        """
        with self._lock:
            now, model = self._expire(), self._model
            checked = []
            for id, value, cost in rewards:  # nothing is taken if one is refused
                if not (self._unbounded and -LARGEST <= value <= LARGEST):
                    model.check_reward(value)
                made = self._made.get(id)
                if made is None:
                    raise Unknown(f"no decision has the id {id}")
                checked.append((made, value, model.check_cost(cost)))
            return [self._reward(made, value, cost, now) for made, value, cost in checked]

    def _reward(self, made: _Made, value: float, cost: float | list[float] | None, now: int) -> Receipt:
        event = made.status.reward(value, now, cost)
        made.outcomes += (Outcome(value, now, event.late, cost),)
        if event.lesson is not None:
            self._settle(made, event)
        return receipt(made.id, event, made.status.repeated)

    def _settle(self, made: _Made, event: Reward | Expiry) -> None:
        seen = made.seen
        if seen is not None and seen.drawn and self._learns == PROVISIONAL and event.lesson is not None:
            self._model.amend(seen, made.status.default, event.lesson, made.status.rule)
        else:
            self._model.settle(event, made.journaled(), seen)
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
                Entry(Row(m.status.seq, m.time, APP, "decision", id, b""), m.journaled(), m.status, list(m.outcomes))
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
        if now != self._instant[0]:
            self._instant = now, f"{now:012x}"
        return self._instant[1] + self._chance.pop()
