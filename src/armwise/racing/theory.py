"""The bound that belongs to an agent on a world: the theorem's function, filled with the constants of both."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from armwise.agent import Agent
from armwise.environments.base import Environment
from armwise.persist import Saved

_SPELLED = {"noise": "R", "norm": "S", "n_policies": "N", "n_experts": "N", "n_arms": "K", "dim": "d"}
_AROUND_EXP3 = ("PerContext", "PolicyArms")


def bound(
    agent: Agent, world: Environment, horizon: int, letters: Mapping[str, float] | None = None
) -> tuple[Callable[[int], float] | None, str]:
    """The agent's regret bound on this world as a function of T, or None with the reason why there is none.

    A bound is only given where its comparator is the world's own and all of its constants are known: a bound for
    linear worlds says nothing about a world that is not linear, which therefore does not state S or L; and only to an
    agent that is tuned as the theorem asks. ``letters`` adds constants that neither states.

    >>> import armwise as aw
    >>> curve, _ = bound(aw.Exp3.tuned(5, 100), aw.environments.Switching(n_arms=5), horizon=100)
    >>> round(curve(100))
    75
    >>> bound(aw.Exp3(n_arms=5), aw.environments.Switching(n_arms=5), horizon=100)[1]
    'its bound is for the tuned agent: Exp3.tuned'
    >>> bound(aw.Exp3(n_arms=5), aw.environments.Linear(n_arms=5), horizon=100)[1]
    'its bound is against the best arm in hindsight, this world measures against the best arm of each round'
    """
    theory = getattr(agent, "theory", None)
    function = getattr(theory, "regret_bound", None)
    if theory is None or function is None:
        return None, "no bound with constants is known"
    inner: Any = getattr(agent, "agent", None) or getattr(agent, "_inner", None)
    if "bound" in inspect.signature(function).parameters and isinstance(inner, Agent):  # it is built on another's
        own, reason = bound(inner, world, getattr(agent, "horizon", horizon), letters)
        if own is None:
            return None, reason
        known = {**_letters(agent), **(letters or {}), "bound": lambda T: own(T)}
    elif theory.comparator not in world.comparators:
        return None, f"its bound is against {theory.comparator}, this world measures against {world.comparator}"
    elif type(agent).__name__ in _AROUND_EXP3 and type(inner).__name__ != "Exp3":
        return None, "its bound is for Exp3 inside"
    elif not _tuned(agent, horizon):
        return None, f"its bound is for the tuned agent: {type(agent).__name__}.tuned"
    else:
        known = {**_letters(agent), **world.constants(), **(letters or {})}
    values, missing = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "T" or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if name in known:
            values[name] = known[name]
        elif parameter.default is inspect.Parameter.empty:
            missing.append(name)
    if missing:
        return None, f"its bound needs {', '.join(missing)}, which this agent on this world does not state"
    if "horizon" in agent.params() or hasattr(type(agent), "tuned"):
        # Tuned to one horizon: what is proved is what holds there, and (regret only grows) before it.
        return (lambda T: float(function(T=max(T, horizon), **values))), ""
    return (lambda T: float(function(T=T, **values))), ""


def _tuned(agent: Agent, horizon: int) -> bool:
    """False if the class says how to tune an agent to the horizon and this one is tuned otherwise."""
    make = getattr(type(agent), "tuned", None)
    if make is None:
        return True
    given = {name: value for name, value in agent.params().items() if name in inspect.signature(make).parameters}
    try:
        return bool(make(**given | {"horizon": horizon}).params() == agent.params())
    except ValueError:  # there is no tuning for an agent made like this one
        return False


def _letters(thing: Saved) -> dict[str, Any]:
    """The constants an agent was made with, by the survey's letters; those of its schedules too."""
    found: dict[str, Any] = {}
    for name, value in thing.params().items():
        if isinstance(value, Saved) and not isinstance(value, Agent):
            found |= _letters(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[_SPELLED.get(name, name)] = value
    return found
