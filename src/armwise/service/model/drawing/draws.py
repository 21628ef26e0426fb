"""Draw arms for an agent, for several threads at once."""

from __future__ import annotations

import threading
from typing import Any

from armwise.core.agent import Agent, Floats, make_choice
from armwise.core.capabilities.counting import record_choice
from armwise.features.encoding.tokens import InvalidInput
from armwise.native.choice import draw
from armwise.service.model.drawing.encoded import restricted
from armwise.service.model.drawing.in_flight import InFlight, Reservation
from armwise.service.model.inside import copied, counts_choices, reseed


class Draws:
    """Draws from an agent's distribution; an agent whose choices carry notes draws through a copy, its twin."""

    def __init__(self, agent: Agent, copied: Draws | None = None) -> None:
        self._agent = agent  # a copy of the one of ``copied``
        self._lock = threading.Lock()
        self._twin: Agent | None = None
        # Whether the agent is known to have nothing to note; copies share what one finds out.
        self._plain: list[bool] = [False] if copied is None else copied._plain
        self.counts: bool = counts_choices(agent) if copied is None else copied.counts
        # The encoder's rows are finite and of the right shape, so they need not be checked again.
        self.direct = agent.sees in ("features", "shared") and agent.plain_input

    def begin_again(self) -> None:
        """Discard the twin: the agent has learnt something since."""
        self._twin = None

    def draw(
        self, view: Any, arm_indices: list[int] | None, u: float, in_flight: InFlight | None = None, version: int = 0
    ) -> tuple[Floats, int, Any, Reservation | None]:
        """The distribution over the offered arms, the arm that ``u`` draws, the agent's note, and what counts it while
        it is under way, where choosing counts: ``version`` is the last event that the agent knows then.
        """
        agent = self._agent
        if self.counts and in_flight is not None:
            return self._draw_counted(in_flight, version, view, arm_indices, u)
        if self._plain[0]:
            known = self.direct and agent.n_arms in (None, len(view))
            p = agent._probabilities(view) if known else agent.probabilities(view)
            if arm_indices is not None:
                p = restricted(p, arm_indices)
            return p, draw(p, u), None, None
        with self._lock:
            # The draw is the agent's own, since it has something to note; a twin makes it, with randomness that is the
            # event's own, so that deciding never changes what has been learnt.
            if self._twin is None:
                self._twin = copied(agent)
            found = self._draw_from(self._twin, view, arm_indices, u)
        if found is None:
            return self.draw(view, arm_indices, u)
        return *found, None

    def _draw_counted(
        self, in_flight: InFlight, version: int, view: Any, arm_indices: list[int] | None, u: float
    ) -> tuple[Floats, int, Any, Reservation]:
        """Draw for an agent that counts its choices: decisions in flight count, whichever copy drew them."""
        with in_flight.lock:
            try:
                twin = in_flight.twin(self._agent, version)
                found = None if self._plain[0] else self._draw_from(twin, view, arm_indices, u)
                if found is None:
                    in_flight.begin_again()  # a choice without a note was another draw
                    twin = in_flight.twin(self._agent, version)
                    p = restricted(twin.probabilities(view), arm_indices)
                    found = p, draw(p, u), None
            except BaseException:
                in_flight.begin_again()
                raise
            p, arm, note = found
            choice = make_choice((arm if arm_indices is None else arm_indices[arm], p.item(arm), note, None))
            if note is None:
                record_choice(twin, view, choice)
            return p, arm, note, in_flight.hold(view, choice)

    def _draw_from(
        self, twin: Agent, view: Any, arm_indices: list[int] | None, u: float
    ) -> tuple[Floats, int, Any] | None:
        """The twin's draw; None if the agent notes nothing, now or later: then its distribution is enough."""
        agent = self._agent
        reseed(twin, int(u * 2.0**53))
        p = twin.probabilities(view)
        choice = twin.choose(view)
        if choice.note is None:
            self._plain[0] = True
            return None
        p = restricted(p, arm_indices)
        if arm_indices is not None and sorted(arm_indices) != list(range(agent._count_arms(view))):
            raise InvalidInput(f"{type(agent).__name__} needs all its arms in every request, got {len(arm_indices)}")
        arm = choice.arm if arm_indices is None else arm_indices.index(choice.arm)
        if choice.probability is None or abs(p[arm] - choice.probability) > 1e-9:
            raise InvalidInput(f"{type(agent).__name__} drew an arm with {choice.probability}, but says {p[arm]}")
        p[arm] = choice.probability
        return p, arm, choice.note
