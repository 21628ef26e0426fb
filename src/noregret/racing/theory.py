"""The bound that belongs to an agent on a world: the theorem's function, filled with the constants of both."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from noregret.agent import Agent
from noregret.environments.base import Environment
from noregret.persist import Saved

_SPELLED = {"lam": "lam", "noise": "R", "norm": "S", "n_policies": "N", "n_experts": "N", "n_arms": "K", "dim": "d"}


def bound(agent: Agent, world: Environment, horizon: int) -> tuple[Callable[[int], float] | None, str]:
    """The agent's regret bound on this world as a function of T, or None with the reason why there is none.

    A bound is only given where its comparator is the world's own and all of its constants are known: a bound for
    linear worlds says nothing about a world that is not linear, which therefore does not state S or L.

    >>> import noregret as nr
    >>> curve, _ = bound(nr.Exp3(n_arms=5), nr.environments.Switching(n_arms=5), horizon=100)
    >>> round(curve(100))
    75
    >>> bound(nr.Exp3(n_arms=5), nr.environments.Linear(n_arms=5), horizon=100)[1]
    'its bound is against the best arm in hindsight, this world measures against the best arm of each round'
    """
    theory = getattr(agent, "theory", None)
    function = getattr(theory, "regret_bound", None)
    if theory is None or function is None:
        return None, "no bound with constants is known"
    if theory.comparator not in world.comparators:
        return None, f"its bound is against {theory.comparator}, this world measures against {world.comparator}"
    known: dict[str, Any] = {**_letters(agent), **world.constants(), "horizon": horizon}
    values, missing = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "T":
            continue
        if name in known:
            values[name] = known[name]
        elif parameter.default is inspect.Parameter.empty:
            missing.append(name)
    if missing:
        return None, f"its bound needs {', '.join(missing)}, which this agent on this world does not have"
    return (lambda T: float(function(T=T, **values))), ""


def _letters(thing: Saved) -> dict[str, Any]:
    """The constants an agent was made with, by the survey's letters; schedules and inner agents come first."""
    found: dict[str, Any] = {}
    for name, value in thing.params().items():
        if isinstance(value, Saved):
            found |= _letters(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[_SPELLED.get(name, name)] = value
    return found
