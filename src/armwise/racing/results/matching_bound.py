"""The bound that belongs to an agent on a world: the theorem's function, where its hypotheses hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from armwise.core.agent import Agent
from armwise.environments.environment import Environment

_WHATEVER_IS_EXPLORED = ("LinUCB",)  # whose proof does not ask how the arms were chosen
_LAST_T = 10**15  # a bound that is vacuous here is vacuous for good


@dataclass(frozen=True)
class Bound:
    """A theorem that applies: its curve up to the horizon, and what it says.

    ``at(T)`` is the bound of an agent made for T rounds; ``curve(T)`` that of this agent, which if it is made for one
    horizon is flat up to it: what is proved there holds, because regret only grows, before.

    >>> import armwise as aw
    >>> found = bound(aw.Exp3.theoretical(5, 100), aw.environments.Switching(n_arms=5), horizon=100)
    >>> round(found.curve(100)), found.vacuous_until, found.holds
    (75, None, 'in expectation')
    """

    curve: Callable[[int], float]
    at: Callable[[int], float]
    holds: str
    span: float
    horizon: int

    @property
    def vacuous_until(self) -> int | None:
        """The first T at which the bound is below T times the most a round can cost; None if it is below already.

        >>> import armwise as aw
        >>> bound(aw.Exp3.theoretical(5, 20), aw.environments.Switching(n_arms=5), horizon=20).vacuous_until
        56
        """
        if self.at(self.horizon) < self.span * self.horizon:
            return None
        low, high = self.horizon, 2 * self.horizon
        while self.at(high) >= self.span * high:
            if high > _LAST_T:
                return high
            low, high = high, 2 * high
        while high - low > max(1, low // 1000):
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle) >= self.span * middle else (low, middle)
        return high


def bound(agent: Agent, world: Environment, horizon: int, letters: Mapping[str, Any] | None = None) -> Bound | str:
    """The agent's regret bound on this world, or in one sentence why there is none.

    A bound is given only where its comparator is the world's own and the theorem's hypotheses hold for the parameters
    that the agent has and for what the world states of itself; ``letters`` adds what neither states.

    >>> import armwise as aw
    >>> bound(aw.Exp3(n_arms=5), aw.environments.Switching(n_arms=5), horizon=1000)
    'its bound asks for gamma = 0.0684 at T = 1,000 (Exp3.theoretical), and gamma is 0.1'
    >>> bound(aw.Exp3(n_arms=5), aw.environments.Linear(n_arms=5), horizon=100)
    'its bound is against the best arm in hindsight, this world measures against the best arm of each round'
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
    ):  # against what their best base competes with: the base's own bound checks that
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
    """The bound of an agent around another: the one inside must have its own."""
    function = agent.theory.regret_bound
    if type(agent).__name__ == "Explore":
        inner = type(agent.agent).__name__
        if inner not in _WHATEVER_IS_EXPLORED:
            return f"its bound is for an agent whose own holds whatever rounds are explored, and {inner}'s does not"
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
        return "each restart may fail with probability delta, and nothing here bounds how many there are"
    run_bound = own.at
    return _built(own, lambda T: float(function(T=T, bound=run_bound, first=first)), horizon)


def _best_base(agent: Any, world: Environment, horizon: int, letters: Mapping[str, Any] | None) -> dict[str, float]:
    """The least d with regret at most d sqrt(n) for all n up to the horizon, that a base's own theorem promises.

    The regret of n plays is at most the bound, and at most n times what a round can cost; between two powers of 2 the
    later bound and the earlier root hold. A bound in expectation says nothing of the run at hand. Corral counts what a
    base would have done in the other rounds too, so it needs a theorem that does not ask how the arms were chosen.
    """
    found = []
    for base in agent.agents:
        if type(agent).__name__ == "Corral" and type(base).__name__ not in _WHATEVER_IS_EXPLORED:
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


def _theoretical_horizon(cls: type[Agent]) -> bool:
    """Whether the theorem's setting of an agent is worked out for one horizon."""
    maker = getattr(cls, "theoretical", None)
    return maker is not None and "horizon" in inspect.signature(maker).parameters
