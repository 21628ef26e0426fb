"""A ``Decider`` that keeps nothing on disk: the service's events, rules and model, without its threads."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from armwise.core.agent import Agent
from armwise.features.encoding.arms import ArmColumns, check_id
from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import NO_TOKENS, ArmTokens, RequestTokens, part
from armwise.service.decider.decided import Decided, Ranked, Receipt
from armwise.service.decider.home import APP, Given, receipt
from armwise.service.engine.ids import Ids
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import SlotsRequest, slot_id
from armwise.service.errors import Conflict, Unknown
from armwise.service.journal.events import LARGEST, Creation, Decision, Expiry, Lessons, Reward, Row
from armwise.service.journal.rules import Status
from armwise.service.journal.writes import canonical
from armwise.service.log.export import Entry, Outcome, as_dsjson
from armwise.service.model.build import build_model
from armwise.service.model.dims import AUTOMATIC, NEVER, SAMPLE, next_look, wanted_dim
from armwise.service.model.drawing.encoded import EncodedRequest
from armwise.service.model.model import DecisionOutcome, DrawRequest, JournaledDecision, Model

MOST_SEEN = 1000  # decisions whose features stay in memory for their rewards; of older ones they are made again


class _Made(Status, gc=False):  # no cycle goes through it
    """A decision: where it stands, and what its reward needs."""

    context: bytes = b"{}"
    arms: ArmColumns = msgspec.field(default_factory=lambda: ArmColumns((), ArmTokens(0, b""), [], None))
    p: Sequence[float] = ()
    arm: int = 0
    note: Any = None
    version: int = 0
    time: int = 0
    scaling: bytes = b""  # as ``Scaling`` packs it
    seen: EncodedRequest | None = None
    outcomes: tuple[tuple[float, int, bool, Any, bool], ...] = ()

    def journaled(self) -> Decision:
        """As a journal has it."""
        return self._decision(self.arms.raws, Scaling(self.scaling).journal)

    def unlogged(self) -> Decision:
        """As a model needs it, which has the row of the arm that was drawn: its arms need not be written."""
        return self._decision([], "") if self.seen is not None and self.seen.drawn else self.journaled()

    def _decision(self, sent: list[msgspec.Raw], scaling: str) -> Decision:
        return Decision(
            msgspec.Raw(self.context), sent, list(self.p), self.arm, self.version, self.deadline - self.time,
            self.default, self.rule, self.learn, note=self.note, scaling=scaling,
        )  # fmt: skip

    def entry(self, now: int) -> Entry:
        """As a log has it."""
        row = Row(self.seq, self.time, APP, "decision", self.id, b"")
        return Entry(row, self.journaled(), self, [Outcome(*each) for each in self.outcomes], now)

    def answer(self) -> Decided:
        arms, arm, p = self.arms, self.arm, self.p
        return Decided(self.id, arms.ids[arm], p[arm], p, self.context, arms)


class _Closed:
    """The lock of what is closed."""

    def __enter__(self) -> None:
        raise ValueError("this Decider is closed")

    def __exit__(self, *_: object) -> None: ...


class Memory:
    """Decisions in memory, learnt the moment their rewards come.

    >>> from armwise.features.encoding.arms import read_arms
    >>> from armwise.features.encoding.tokens import NO_TOKENS
    >>> home = Memory(Creation())
    >>> [made] = home.decide([ParsedRequest(b"{}", NO_TOKENS, read_arms([b'"a"', b'"b"']))])
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
        self._creation = creation
        self._model = model = build_model(creation, agent)
        settings = model.settings
        self._look_at = (
            0 if settings.extra == AUTOMATIC else NEVER
        )  # after so many decisions there may be more positions
        self._taught: list[tuple[int, Lessons]] = []
        self._window, self._learns = round(settings.window * 1000), model.learns
        self._rule, self._default = settings.rule, settings.default
        self._unbounded = not creation.rewards and model.agent.reward_range == (-math.inf, math.inf)
        self._clock, self._random = clock, random.Random(None if seed is None else f"decider {seed}").random
        self._lock: threading.Lock | _Closed = threading.Lock()
        self._made: dict[str, _Made] = {}
        self._lists: dict[str, str] = {}  # what was asked for, as a digest, by the id of a list
        self._order: list[_Made] = []  # the window is the same for all: the soonest deadline first
        self._expired = 0  # the first of these that may be open
        self._now = 0  # never goes back
        self._ids = Ids()
        self._seq = 0

    def decide(self, requests: Sequence[ParsedRequest]) -> list[Decided]:
        """Decide, one after the other.

        >>> from armwise.features.encoding.arms import read_arms
        >>> from armwise.features.encoding.tokens import NO_TOKENS
        >>> Memory(Creation()).decide([ParsedRequest(b"{}", NO_TOKENS, read_arms([b'"a"']), "e1")])[0].arm
        'a'
        """
        with self._lock:
            now = self._expire()
            for asked in requests:
                if asked.id is not None:
                    self._check_id(asked)
            if len(self._order) >= self._look_at:
                self._look(requests)
            if self._model.optimist is None and len(requests) > 1:  # nothing is decided if one is refused
                self._model.decide([DrawRequest(asked.context, asked.arms, 0.5, asked.tokens) for asked in requests])
                self._model.draws.begin_again()
            return [self._decide(asked, now) for asked in requests]

    def rank(self, requests: Sequence[SlotsRequest]) -> list[Ranked]:
        """Fill lists, one after the other.

        >>> from armwise.features.encoding.arms import read_arms
        >>> from armwise.service.engine.requests.ranking import read_ranking
        >>> Memory(Creation()).rank([read_ranking(b"{}", read_arms([b'"a"', b'"b"']), 2, pinned={0: "b"})])[0].arms
        ['b', 'a']
        """
        with self._lock:
            now = self._expire()
            for asked in requests:
                digest = asked.digest if asked.id is None else self._lists.get(check_id("the event id", asked.id))
                if digest not in (None, asked.digest):
                    raise Conflict(f"event {asked.id} was decided with other content")
                self._try(asked)
            if len(self._order) >= self._look_at:
                self._look([ParsedRequest(a.contexts[0], a.tokens[0] or NO_TOKENS, a.arms) for a in requests])
            return [self._rank(asked, now) for asked in requests]

    def _try(self, asked: SlotsRequest) -> None:
        """Raise what the first or the last slot would be refused with: nothing is decided then."""
        if self._model.optimist is None:
            last = len(asked.contexts) - 1
            left = asked.arms.picked(range(last, len(asked.arms.ids)))
            self._model.decide([DrawRequest(asked.contexts[0], asked.arms, 0.5, asked.tokens[0])])
            self._model.decide([DrawRequest(asked.contexts[last], left, 0.5, asked.tokens[last])])
            self._model.draws.begin_again()

    def _rank(self, asked: SlotsRequest, now: int) -> Ranked:
        id, ids = asked.id or self._ids.fresh(now), asked.arms.ids
        self._lists[id] = asked.digest
        slots: list[Decided] = []
        for k, context in enumerate(asked.contexts):
            free = asked.free([ids.index(slot.arm) for slot in slots])
            arms = asked.arms.picked(np.flatnonzero(free).tolist())
            slots.append(self._decide(ParsedRequest(context, asked.tokens[k] or NO_TOKENS, arms, slot_id(id, k)), now))
        return Ranked(id, tuple(slots))

    def shown(self, id: str) -> list[str]:
        """The arms of a list, from the top.

        >>> Memory(Creation()).shown("e1")
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unknown: no list has the id e1
        """
        with self._lock:
            if id not in self._lists:
                raise Unknown(f"no list has the id {id}", id)
            made = itertools.takewhile(bool, (self._made.get(slot_id(id, k)) for k in itertools.count()))
            return [each.arms.ids[each.arm] for each in made if each is not None]

    def _look(self, requests: Sequence[ParsedRequest]) -> None:
        """Have as many positions as the decisions at hand ask for."""
        asked = [RequestTokens(each.tokens, each.arms.tail) for each in requests[:SAMPLE]]
        before = [RequestTokens(part(made.context, "c"), made.arms.tail) for made in self._order[-SAMPLE:]]
        dim = wanted_dim(self._model, [*asked, *before])
        self._look_at = next_look(len(self._order) + len(requests) - 1)
        if dim > self._model.encoder.dim:
            self._grow(dim)

    def _grow(self, dim: int) -> None:
        """Begin anew with ``dim`` positions, trained on all that was decided, as a service trains on its journal."""
        creation = msgspec.structs.replace(self._creation, features=self._creation.features | {"dim": dim})
        model = build_model(creation)
        past: list[tuple[int, Any]] = [*((made.seq, made) for made in self._order), *self._taught]
        for _, event in sorted(past, key=operator.itemgetter(0)):
            if isinstance(event, Lessons):
                model.warm_start(event)
                continue
            with contextlib.suppress(ValueError, ArithmeticError):
                lesson = event.outcome if event.closed else None
                model.learn_past(
                    model.reencode(event.journaled()), event.seq, True, lesson, event.deadline >= self._now
                )
            event.seen = None
        model.version = model.since = self._seq
        self._creation, self._model = creation, model

    def _check_id(self, asked: ParsedRequest) -> None:
        assert asked.id is not None
        before = self._made.get(check_id("the event id", asked.id))
        if before is not None and canonical(before.journaled()) != canonical(
            Decision(msgspec.Raw(asked.context), asked.arms.raws, [], 0, 0, 1, 0.0)
        ):
            raise Conflict(f"event {asked.id} was decided with other content")

    def _decide(self, asked: ParsedRequest, now: int) -> Decided:
        context, arms, id = asked.context, asked.arms, asked.id
        if id is None:
            id = self._ids.fresh(now)
        elif id in self._made:
            return self._made[id].answer()
        model, seq, deadline = self._model, self._seq + 1, now + self._window
        [drawn] = model.decide([DrawRequest(context, arms, self._random(), asked.tokens)])
        arm, p, note, seen = drawn.arm, tuple(drawn.p.tolist()), drawn.note, drawn.seen
        if note is not None:
            note = msgspec.json.decode(msgspec.json.encode(note))  # as journals do
        made = _Made(
            APP, id, seq, deadline, self._rule, self._default, True, 0, 0.0, 0.0, False, self._learns,
            context, arms, p, arm, note, model.version, now, seen.scaling.packed, seen,
        )  # fmt: skip
        row = Row(seq, now, APP, "decision", id, b"")
        model.register_decisions([JournaledDecision(row, made.unlogged(), seen)])
        self._seq = model.version = seq
        self._made[id] = made
        order = self._order
        order.append(made)
        if len(order) > MOST_SEEN:
            order[-MOST_SEEN - 1].seen = None
        return Decided(id, arms.ids[arm], p[arm], p, context, arms)

    def reward(self, rewards: Sequence[Given], final: bool = False) -> list[Receipt]:
        """Give decisions their rewards; Unknown if one of the ids is.

        >>> Memory(Creation()).reward([("e1", 1.0, None)])
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unknown: no decision has the id e1
        """
        with self._lock:
            now = self._expire()
            checked = [self._check(*each) for each in rewards]  # nothing is taken if one is refused
            return [self._reward(made, value, cost, now, final) for made, value, cost in checked]

    def _check(self, id: str, value: float, cost: Any) -> tuple[_Made, float, float | list[float] | None]:
        if not (self._unbounded and -LARGEST <= value <= LARGEST):
            self._model.check_reward(value)
        made = self._made.get(id)
        if made is None:
            raise Unknown(f"no decision has the id {check_id('the event id', id)}", id)
        return made, value, self._model.check_cost(cost)

    def _reward(self, made: _Made, value: float, cost: float | list[float] | None, now: int, final: bool) -> Receipt:
        event = made.reward(value, now, cost, final)
        made.outcomes += ((value, now, event.late, cost, final),)
        if event.lesson is not None:
            self._settle(made, event)
        return receipt(made.id, event, made.repeated)

    def _settle(self, made: _Made, event: Reward | Expiry) -> None:
        """A decision is settled, once."""
        self._model.apply_outcomes([DecisionOutcome(event, made.unlogged(), made.seen)])
        made.seen, made.scaling = None, b""

    def _expire(self) -> int:
        now = int(self._clock() * 1000.0)
        if now < self._now:
            now = self._now
        self._now, order, first = now, self._order, self._expired
        while first < len(order) and order[first].deadline < now:
            made = order[first]
            first += 1
            if not made.closed:
                self._settle(made, made.expire())
        self._expired = first
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
        """Every decision in order, with its status and its age now.

        >>> list(Memory(Creation()).lines())
        []
        """
        with self._lock:
            now = self._expire()
            entries = [made.entry(now) for made in self._order]
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
            if self._look_at < NEVER:
                self._taught.append((self._seq, lessons))
            self._model.warm_start(lessons)
            self._model.version = self._seq

    def close(self) -> None:
        """Answer no more, as a folder that was let go.

        >>> home = Memory(Creation()); home.close(); home.model()
        Traceback (most recent call last):
        ...
        ValueError: this Decider is closed
        """
        self._lock = _Closed()
