"""The regret bound of an agent on a world: the theorem's function, if its hypotheses hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from armwise.environments.environment import Environment
from armwise.racing.run.heat import Player

_ANY_EXPLORATION = ("LinUCB",)  # agents whose proof holds however the arms were chosen
MAX_T = 10**15  # a bound that is vacuous at this horizon is called vacuous


@dataclass(frozen=True)
class Bound:
    """A theorem that applies: its curve up to the horizon, and its words.

    ``at(T)`` is the bound of an agent made for T rounds. ``curve(T)`` is the bound of this agent: if the agent is made
    for one horizon, its bound there holds for every earlier round too, because regret only grows.
    """

    curve: Callable[[int], float]
    at: Callable[[int], float]
    holds: str
    span: float
    horizon: int

    @property
    def vacuous_until(self) -> int | None:
        """The first T at which the bound is below T times the largest regret of a round; None if it already is."""
        if self.at(self.horizon) < self.span * self.horizon:
            return None
        low, high = self.horizon, 2 * self.horizon
        while self.at(high) >= self.span * high:
            if high > MAX_T:
                return high
            low, high = high, 2 * high
        while high - low > max(1, low // 1000):
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle) >= self.span * middle else (low, middle)
        return high


def bound(agent: Player, world: Environment, horizon: int, letters: Mapping[str, Any] | None = None) -> Bound | str:
    """Return the agent's regret bound on this world, or one sentence that says why there is none.

    A bound exists only if it is against the world's comparator and the theorem's hypotheses hold for the agent's
    parameters and for what the world states about itself. ``letters`` adds constants that neither states.
    """
    theory = getattr(agent, "theory", None)
    if theory is None or theory.regret_bound is None:
        return "no bound with constants is known"
    name = type(agent).__name__
    if name in ("Doubling", "Explore"):
        return _around(agent, world, horizon, letters)
    comparators = world.comparators
    if name in (
        "D3RB",
        "ED2RB",
        "Corral",
    ):  # their comparator is the one of their best base, whose own bound is checked against the world
        letters = {**_best_base(agent, world, horizon, letters), **(letters or {})}
        comparators = (*comparators, theory.comparator)
    if theory.comparator not in comparators:
        return f"its bound is against {theory.comparator}, this world measures against {world.comparator}"
    if theory.hypotheses is None:
        return "its class does not state the hypotheses of its bound (Theory.hypotheses)"
    known = theory.hypotheses(agent, {"span": world.span, **world.constants(), **(letters or {})}, horizon)
    if isinstance(known, str):
        return known
    failing = known.pop("failing", known.get("delta"))

    def at(T: int) -> float:
        filled = {name: value(T) if callable(value) and name != "schedule" else value for name, value in known.items()}
        return float(theory.regret_bound(T=T, **filled))

    made_for_one_horizon = "horizon" in agent.params() or _theoretical_horizon(type(agent))
    curve = (lambda T: at(max(T, horizon))) if made_for_one_horizon else at
    holds = f"with probability {1 - failing:.4g}" if theory.high_probability and failing else "in expectation"
    return Bound(curve, at, holds, world.span, horizon)


def _around(agent: Any, world: Environment, horizon: int, letters: Mapping[str, Any] | None) -> Bound | str:
    """The bound of a wrapper: the agent inside must have a bound of its own."""
    function = agent.theory.regret_bound
    if type(agent).__name__ == "Explore":
        inner = type(agent.agent).__name__
        if inner not in _ANY_EXPLORATION:
            return f"its bound needs an inner agent whose bound holds however arms are explored, and {inner}'s does not"
        own = bound(agent.agent, world, horizon, letters)
        if isinstance(own, str):
            return own
        inner_bound = own.at
        return _built(own, lambda T: float(function(T=T, epsilon=agent.epsilon, bound=inner_bound)), horizon)
    first = last = agent.first_horizon
    while 2 * last - first < horizon:  # runs of first x 1, 2, 4, ... cover 2 last - first rounds
        last *= 2
    own = bound(agent.made_for(first), world, first, letters)
    at_the_end = bound(agent.made_for(last), world, last, letters)  # made for its horizon there too
    if isinstance(own, str) or isinstance(at_the_end, str):
        return own if isinstance(own, str) else str(at_the_end)
    if agent.made_for(first).theory.high_probability:
        return "each restart may fail with probability delta, and the number of restarts has no bound here"
    run_bound = own.at
    return _built(own, lambda T: float(function(T=T, bound=run_bound, first=first)), horizon)


def _best_base(agent: Any, world: Environment, horizon: int, letters: Mapping[str, Any] | None) -> dict[str, float]:
    """The least d for which a base's theorem gives regret at most d sqrt(n) for all n up to the horizon.

    The regret of n plays is at most the bound, and at most n times the largest regret of a round; between two powers
    of 2, the bound at the later and the root at the earlier one hold. A bound in expectation does not bound a single
    run. Corral also counts rounds in which the base did not play, so its bases need a theorem that holds however the
    arms were chosen.
    """
    found = []
    for base in agent.agents:
        if type(agent).__name__ == "Corral" and type(base).__name__ not in _ANY_EXPLORATION:
            continue
        own = bound(base, world, horizon, letters)
        if isinstance(own, str) or not own.holds.startswith("with probability"):
            continue
        ends = [min(2 << k, horizon) for k in range(horizon.bit_length())]
        worst = max(min(own.curve(n), own.span * n) / max(1.0, n / 2) ** 0.5 for n in ends)
        found.append((worst, 1.0 - float(own.holds.removeprefix("with probability "))))
    return dict(zip(("d_star", "failing"), min(found))) if found else {}


def _built(own: Bound, at: Callable[[int], float], horizon: int) -> Bound:
    return Bound(at, at, own.holds, own.span, horizon)


def _theoretical_horizon(cls: type[Player]) -> bool:
    """Return whether the theorem's parameters depend on the horizon."""
    maker = getattr(cls, "theoretical", None)
    return maker is not None and "horizon" in inspect.signature(maker).parameters
