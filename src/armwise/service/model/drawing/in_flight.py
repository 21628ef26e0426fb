"""Decisions in flight: drawn, but not yet part of the published model."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from armwise.core.agent import Agent, Choice
from armwise.core.capabilities.counting import record_choice
from armwise.service.model.inside import copied


class Reservation:
    """A drawn choice that counts against a budget: while this object is held, and for good once it is journaled."""

    __slots__ = ("__weakref__", "_foreign", "_in_flight", "beside", "choice", "place", "version", "view")

    def __init__(self, in_flight: InFlight, place: int, view: Any, choice: Choice) -> None:
        self._in_flight, self.place, self.view, self.choice = in_flight, place, view, choice
        self.version: int = in_flight.version
        self._foreign = frozenset(in_flight.foreign)  # all that it was drawn with
        self.beside: Sequence[Reservation] = ()  # the same decision as other versions of the model count it

    def instead(self, choice: Choice) -> None:
        """Count another arm than the one drawn here: versions are drawn from together."""
        with self._in_flight.lock:
            self.choice = choice
            self._in_flight.begin_again()

    def along(self, beside: Sequence[Reservation]) -> None:
        """Hold the reservations that other versions made for the same decision."""
        self.beside = beside
        self.version = min(self.version, *(each.version for each in beside))

    def unknown(self, seqs: Iterable[int]) -> list[int]:
        """The application's decisions, by event, that this draw did not count because other processes made them."""
        known = self._foreign | self._in_flight.own()
        for each in self.beside:
            known &= each._foreign | each._in_flight.own()
        return [seq for seq in seqs if seq > self.version and seq not in known]

    def journaled(self, seq: int) -> None:
        """Record that the choice is durable as event ``seq``: it counts until a model includes that event."""
        for each in (self, *self.beside):
            each._in_flight.keep(seq, each)


class InFlight:
    """The decisions in flight of one application, shared by all copies of its model, for agents that count choices.

    A published model is a moment old. Decisions that are drawn meanwhile, by whatever thread, are all drawn from one
    twin of the newest model, which counts each as it is drawn; a newer model's twin begins with those that the model
    does not know yet. A draw that comes to nothing (refused, not journaled) no longer counts once it is dropped. What
    other processes decide on the same journal counts from the moment that this one meets it there.
    """

    def __init__(self, beside: InFlight | None = None) -> None:
        # A draw that is dropped may be so while the lock is held; versions that are drawn from together share one.
        self.lock: threading.RLock = threading.RLock() if beside is None else beside.lock
        self._durable: list[tuple[int, Reservation]] = []
        self._drawn: dict[int, weakref.ref[Reservation]] = {}  # in the order of drawing
        self._n_drawn = 0
        self.foreign: dict[int, tuple[Any, Choice]] = {}  # what other processes decided, by event
        self._agent: Agent | None = None  # of the newest model that was drawn from
        self.version = -1  # the last event that it knows
        self._twin: Agent | None = None

    def __len__(self) -> int:
        return len(self._drawn)

    def twin(self, agent: Agent, version: int) -> Agent:
        """The agent to draw from, with all decisions in flight counted; ``agent`` includes events up to ``version``."""
        if version > self.version or self._agent is None:
            self._agent, self.version, self._twin = agent, version, None
            for seq, held in self._durable:
                if seq <= version:
                    self._drawn.pop(held.place, None)
            self._durable = [(seq, held) for seq, held in self._durable if seq > version]
            self.foreign = {seq: made for seq, made in self.foreign.items() if seq > version}
        if self._twin is None:
            self._twin = copied(self._agent)
            for view, choice in self.foreign.values():
                record_choice(self._twin, view, choice)
            for held in [each for ref in list(self._drawn.values()) if (each := ref()) is not None]:
                record_choice(self._twin, held.view, held.choice)
        return self._twin

    def hold(self, view: Any, choice: Choice) -> Reservation:
        """Reserve a choice that the twin has counted."""
        place = self._n_drawn
        held = Reservation(self, place, view, choice)
        self._drawn[place] = weakref.ref(held, lambda _: self._drop(place))
        self._n_drawn += 1
        return held

    def keep(self, seq: int, held: Reservation) -> None:
        """Count a choice that is durable as event ``seq`` until a model includes the event."""
        with self.lock:
            if seq > self.version:
                self._durable.append((seq, held))
            else:  # the learner was quicker
                self._drop(held.place)

    def own(self) -> set[int]:
        """The journaled events of this process that the newest model does not include."""
        with self.lock:
            return {seq for seq, _ in self._durable}

    def count_foreign(self, seq: int, view: Any, choice: Choice) -> None:
        """Count a decision of another process, event ``seq``, until a model includes the event."""
        with self.lock:
            if seq > self.version:
                self.foreign[seq] = view, choice
                self._twin = None

    def begin_again(self) -> None:
        """Discard the twin: it has counted a choice that came to nothing."""
        self._twin = None

    def _drop(self, place: int) -> None:
        with self.lock:
            if self._drawn.pop(place, None) is not None:
                self._twin = None
