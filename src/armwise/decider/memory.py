"""A ``Decider`` that keeps nothing on disk: the service's events, rules and model, without its threads."""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Callable

import msgspec

from armwise.features.arms import read_arms
from armwise.serve.engine.draw import Answer, answer, drawn, uniform
from armwise.serve.errors import Conflict, Unknown
from armwise.serve.journal.append import Write, Written
from armwise.serve.journal.events import Creation, Decision, Reward, Row
from armwise.serve.journal.rules import Status
from armwise.serve.log.export import Entry, Outcome
from armwise.serve.model.build import build_model

APP = "default"


class Memory:
    """Decisions in memory, learnt the moment their rewards come.

    >>> home = Memory(Creation())
    >>> made = home.decide([(b"{}", [b'"a"', b'"b"'], None)])[0]
    >>> home.reward([(made.id, 1.0)])[0][0].late
    False
    """

    def __init__(self, creation: Creation, clock: Callable[[], float] = time.time) -> None:
        self.model = build_model(creation)
        self._clock, self._secret = clock, os.urandom(32)
        self._lock = threading.Lock()
        self._made: dict[str, tuple[Row, Decision, Status, list[Outcome]]] = {}
        self._open: list[tuple[int, str]] = []  # deadlines, soonest first
        self._seq = 0

    def decide(self, requests: list[tuple[bytes, list[bytes], str | None]]) -> list[Answer]:
        """Decide, one after the other; an id that was decided before gets the same answer.

        >>> Memory(Creation()).decide([(b"{}", [b'"a"'], "e1")])[0].arm
        'a'
        """
        with self._lock:
            self._expire()
            return [self._decide(context, arms, id) for context, arms, id in requests]

    def _decide(self, context: bytes, arms: list[bytes], id: str | None) -> Answer:
        if id is not None and id in self._made:
            row, before, _, _ = self._made[id]
            if (bytes(before.context), [bytes(arm) for arm in before.arms]) != (context, arms):
                raise Conflict(f"the id {id} was decided for another context or other arms")
            whole = Row(row.seq, row.time, row.app, row.kind, row.id, msgspec.json.encode(before))
            return answer(Written(whole, again=True))
        name = id or f"{self._now():012x}{os.urandom(10).hex()}"
        read = read_arms(arms)
        decision, stack = drawn(self.model, context, read, (), uniform(self._secret, APP, name))
        self._seq += 1
        row = Row(self._seq, self._now(), APP, "decision", name, b"")
        status = Status.of(row, decision)
        self.model.scaler.update(self.model.numbers(decision, stack))
        self.model.assume(decision, stack=stack)
        self.model.version = self._seq
        self._made[name] = (row, decision, status, [])
        heapq.heappush(self._open, (status.deadline, name))
        write = Write(APP, name, decision, "", id is None, stack, read.ids)
        return answer(Written(row), write)

    def reward(self, rewards: list[tuple[str, float]]) -> list[tuple[Reward, Status]]:
        """Give decisions their rewards; Unknown if one of the ids is.

        >>> Memory(Creation()).reward([("e1", 1.0)])
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no decision has the id e1
        """
        with self._lock:
            self._expire()
            for id, value in rewards:
                if id not in self._made:
                    raise Unknown(f"no decision has the id {id}")
                self.model.check_reward(value)
            return [self._reward(id, value) for id, value in rewards]

    def _reward(self, id: str, value: float) -> tuple[Reward, Status]:
        _, decision, status, outcomes = self._made[id]
        event = status.reward(value, self._now())
        outcomes.append(Outcome(value, self._now(), event.late))
        self.model.settle(event, decision)
        return event, status

    def _expire(self) -> None:
        now = self._now()
        while self._open and self._open[0][0] < now:
            _, id = heapq.heappop(self._open)
            _, decision, status, _ = self._made[id]
            if status.closed:
                continue
            self.model.settle(status.expire(), decision)

    def entries(self) -> list[Entry]:
        """Every decision with what it earned, in order.

        >>> Memory(Creation()).entries()
        []
        """
        with self._lock:
            self._expire()
            return [Entry(*each) for each in self._made.values()]

    def find(self, id: str) -> Decision:
        """A decision as it was made.

        >>> Memory(Creation()).find("e1")
        Traceback (most recent call last):
        ...
        armwise.serve.errors.Unknown: no decision has the id e1
        """
        if id not in self._made:
            raise Unknown(f"no decision has the id {id}")
        return self._made[id][1]

    def close(self) -> None:
        """Nothing is held open.

        >>> Memory(Creation()).close()
        """

    def _now(self) -> int:
        return int(self._clock() * 1000.0)
