"""The storage of a ``Decider``, memory or a folder: the same verbs over an engine of either."""

from __future__ import annotations

import collections
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import RequestTokens, part
from armwise.service.decider.decided import Decided, Ranked, Receipt
from armwise.service.engine.engine import Engine
from armwise.service.engine.memory_engine import MemoryEngine
from armwise.service.engine.requests.draw import answer
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import MARK, SlotsRequest, offered_by_slot, prepare_slots, shown_by
from armwise.service.journal.events import Creation, Decision, Lessons, Reward
from armwise.service.journal.writes import Write, Written
from armwise.service.model.dims import AUTOMATIC, NEVER, SAMPLE, next_look, wanted_dim
from armwise.service.model.model import Model

APP = "default"  # the application's name in the journal, as ``armwise serve`` calls its only one
MAX_KEPT = 1000  # decisions of one call whose features stay in memory until they are learnt

Given = tuple[str, float, Any]  # a decision's id, its reward, its cost (None: not given)


class Backend(ABC):
    """Requests become writes, writes are journaled together, and each is answered from what came of it."""

    _turn: AbstractContextManager[object]  # held by each call, where one must wait for another

    def __init__(self, creation: Creation) -> None:
        self._n = 0  # decisions of this object
        self._look_at = (
            0 if creation.settings.extra == AUTOMATIC else NEVER
        )  # after so many there may be more positions
        self._latest: collections.deque[RequestTokens] = collections.deque(maxlen=SAMPLE)

    @property
    @abstractmethod
    def engine(self) -> Engine | MemoryEngine:
        """The engine; ValueError once it is closed."""

    @abstractmethod
    def catch_up(self, requests: int) -> None:
        """Learn what is due before so many requests are decided together."""

    @abstractmethod
    def write(self, group: Sequence[Write]) -> Sequence[Written]:
        """Journal writes together; raise the reason if one of them is refused."""

    @abstractmethod
    def model(self) -> Model:
        """The model with all that was decided and rewarded so far; not to be changed."""

    @abstractmethod
    def lines(self) -> Iterable[bytes]:
        """Yield every decision in order as dsjson, with its status and its age now."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""

    def decide(self, requests: Sequence[ParsedRequest]) -> list[Decided]:
        """Decide, in one commit; an id that was decided before gets the same answer."""
        with self._turn:
            self.catch_up(len(requests))
            if self._look_at < NEVER:
                self._look(requests)
            engine, keep = self.engine, len(requests) <= MAX_KEPT
            now = engine.now()
            writes = [
                engine.prepare(APP, a.context, a.arms, id=a.id, tokens=a.tokens, now=now, keep=keep) for a in requests
            ]
            return [_decided(*each) for each in zip(self.write(writes), writes, requests)]

    def rank(self, requests: Sequence[SlotsRequest]) -> list[Ranked]:
        """Fill lists, in one commit; an id that was ranked before gets the same answer."""
        each = [
            ParsedRequest(context, tokens or part(context, "c"), asked.arms)
            for asked in requests for context, tokens in zip(asked.contexts, asked.tokens)
        ]  # fmt: skip
        with self._turn:
            self.catch_up(len(each))
            if self._look_at < NEVER:
                self._look(each)
            now = self.engine.now()
            lists = [prepare_slots(self.engine, APP, asked, now=now) for asked in requests]
            writes = [write for some in lists for write in some]
            made = [_decided(*one) for one in zip(self.write(writes), writes, each)]
        found = []
        for asked, some in zip(requests, lists):
            slots, made = made[: len(some)], made[len(some) :]
            offered = offered_by_slot(asked, [slot.arm for slot in slots])
            slots = [_among(slot, arms) for slot, arms in zip(slots, offered)]
            found.append(Ranked(slots[0].id.partition(MARK)[0], tuple(slots)))
        return found

    def shown(self, id: str) -> list[str]:
        """The arms of a list that was ranked, from the top; ``Unknown`` if there is none with this id."""
        with self._turn:
            return shown_by(lambda each: self.engine.find(APP, each)[:2], id)

    def _look(self, requests: Sequence[ParsedRequest]) -> None:
        """Have as many positions as the decisions at hand ask for: an event of the journal, which trains the model."""
        self._latest.extend(RequestTokens(each.tokens, each.arms.tail) for each in requests)
        due, self._n = self._n >= self._look_at, self._n + len(requests)
        if not due:
            return
        self._look_at = next_look(self._n - 1)
        engine = self.engine
        model, made = engine.model(APP), engine.creation(APP)
        dim = wanted_dim(model, self._latest)
        if dim > model.encoder.dim:
            grown = msgspec.structs.replace(made, features=made.features | {"dim": dim})
            engine.apply({APP: grown}, only=False)

    def reward(self, rewards: Sequence[Given], final: bool = False) -> list[Receipt]:
        """Give decisions their rewards, in one commit; ``Unknown``, and nothing is taken, if one of the ids is."""
        with self._turn:
            self.catch_up(0)
            engine, writes = self.engine, []
            for id, value, cost in rewards:
                event, mark, slot = id.partition(MARK)
                writes.append(engine.prepare_reward(APP, event, value, cost=cost, final=final, slot=mark + slot))
            return [_receipt(written) for written in self.write(writes)]

    def teach(self, lessons: Lessons) -> None:
        """Learn decisions made elsewhere."""
        with self._turn:
            self.catch_up(0)
            self.engine.teach(APP, lessons)


def _receipt(written: Written) -> Receipt:
    event = written.row.event
    assert isinstance(event, Reward)
    return Receipt(written.row.id, "late" if event.late else "repeated" if written.repeated else "taken")


def _among(slot: Decided, arms: ArmColumns) -> Decided:
    """A decision between these arms alone."""
    p = slot.probabilities
    return msgspec.structs.replace(slot, chances={id: p[id] for id in arms.ids}, offered=arms)


def _decided(written: Written, write: Write, asked: ParsedRequest) -> Decided:
    context, arms, decision = asked.context, asked.arms, write.event
    if written.again or not isinstance(decision, Decision) or decision.order:
        it = answer(written, write)
        return Decided(it.id, it.arm, it.probability, dict(it.probabilities), context, arms)
    p, arm = decision.p, decision.arm
    return Decided(write.id, arms.ids[arm], p[arm], p, context, arms)


def read_clock(clock: Any) -> Callable[[], float] | None:
    """Return a given clock, each of whose answers must be seconds, or else is a ValueError."""
    if clock is None:
        return None

    def seconds() -> float:
        told = clock() if callable(clock) else clock
        if not (callable(clock) and isinstance(told, (int, float)) and math.isfinite(told)):
            raise ValueError(f"clock must be a function that gives seconds, such as time.time, got {told!r:.60}")
        return told

    seconds()
    return seconds


def forked(what: str, process: int) -> str:
    """The error of an object that was opened in this process, in a child that it forked."""
    return (
        f"this {what} was opened in process {process}, before it forked this one, which cannot share it: open it "
        "after the fork (on first use, or in a post-fork hook), or run `armwise serve` for all processes and use "
        "aw.Client"
    )
