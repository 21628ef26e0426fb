"""Build agents from their names for a given world: ``armwise race --agents linucb,thompson``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import armwise as aw
from armwise.agents.ranking.ranker import Ranker
from armwise.core.agent import Agent, Sees
from armwise.environments.environment import Environment
from armwise.environments.lists import ListWorld
from armwise.models.ridge import Ridge
from armwise.policies import Constant, Linear

# Short names that the command line accepts.
_BY_HORIZON = ("Exp3", "Exp4")  # their exploration depends on the horizon
ALIASES: dict[str, str] = {"thompson": "LinThompson", "ts": "LinThompson", "ucb": "UCB1", "iltcb": "ILoveToConBandits"}
_DIRECTIONS = 20  # linear policies in a policy class, beside the constant ones
_COMPOSED = ("Advised", "Conservative", "Doubling", "Explore", "HybridLinUCB", "Mapped", "PerContext", "PolicyArms")
_BUDGETED = {"HardStop": "budget", "LagrangeCB": "budget", "LinCBwK": "budget", "Pacing": "rate"}
_FOURIER = 64  # random features of Mapped


def entrants(world: Environment | None = None) -> list[str]:
    """List the agents that can be built by name; on worlds of lists the rankers too."""
    found, kinds = [], (Agent, Ranker) if world is not None and world.n_slots is not None else (Agent,)
    for name in aw.__all__:
        try:
            thing = getattr(aw, name)
        except ModuleNotFoundError:
            continue
        if inspect.isclass(thing) and issubclass(thing, kinds) and not inspect.isabstract(thing):
            found.append(name)
    return found


def enter(name: str, world: Environment, horizon: int) -> Agent:
    """Build an agent of this class with the world's dimension, number of arms and horizon.

    >>> enter("LinUCB", aw.environments.Linear(n_arms=5, dim=4), horizon=100)
    LinUCB(dim=4, ...)
    """
    cls = getattr(aw, name)
    make: Callable[..., Agent] = cls.theoretical if name in _BY_HORIZON else cls
    if name in _COMPOSED:
        return _composed(name, world, horizon)
    if name in _BUDGETED:
        return _budgeted(name, world, horizon)
    disjoint = _disjoint(world)
    if name == "EpsilonGreedy" and world.native in ("features", "shared"):  # with a model of the features
        dim = world.width("shared" if disjoint else "features")
        return aw.EpsilonGreedy(model=Ridge(dim, n_models=world.n_arms if disjoint else 1))
    agent: Agent = _built(cls, world, horizon, make)
    return agent


def enter_ranker(name: str, world: ListWorld, horizon: int) -> Ranker:
    """Build a ranker of this class for a world of lists, or one that lets an agent of this class fill slot by slot."""
    cls = getattr(aw, name)
    if issubclass(cls, Ranker) and name != "SlotBySlot":
        ranker: Ranker = _built(cls, world, horizon)
        return ranker
    agent = enter("SquareCB" if name == "SlotBySlot" else name, world, horizon)
    blind = agent.sees == "nothing" and world.users == "position-based"
    return aw.SlotBySlot(agent, "semi-bandit" if blind else world.users)


def _disjoint(world: Environment) -> bool:
    """Whether arms have no rows of their own; slots of lists need them, since they leave fewer arms."""
    return world.native != "features" and world.n_slots is None


def _built(cls: Any, world: Environment, horizon: int, make: Callable[..., Any] | None = None) -> Any:
    make, disjoint = make or cls, _disjoint(world)
    values: dict[str, Any] = {}
    names = inspect.signature(make).parameters
    for each in names.values():
        needed = each.default is inspect.Parameter.empty
        if each.name == "dim":
            one_each = names.get("n_arms")  # an agent with one model per arm reads the shared context
            shared = cls.sees == "shared" or (one_each is not None and (disjoint or one_each.default is one_each.empty))
            values["dim"] = world.width("shared" if shared else "features")
        elif each.name == "n_arms" and (needed or "dim" not in names or (cls.sees == "features" and disjoint)):
            values["n_arms"] = world.n_arms
        elif each.name == "n_slots":
            values["n_slots"] = world.n_slots
        elif each.name == "laplacian" and hasattr(world, "laplacian"):
            values["laplacian"] = world.laplacian
        elif each.name in _FILL and (needed or each.name == "noise"):
            values[each.name] = _FILL[each.name](world, horizon)
        elif needed and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise ValueError(
                f"{cls.__name__} needs {each.name}=..., which {type(world).__name__} does not give: use aw.race, in "
                "Python"
            )
    return make(**values)


def _policies(world: Environment) -> list[Any]:
    """The world's own policies, or constant policies and linear ones in random directions."""
    own = list(getattr(world, "policies", None) or [])
    if own:
        return own
    constants: list[Any] = [Constant(arm) for arm in range(world.n_arms)]
    if world.native not in ("features", "shared"):
        return constants
    rng, d = np.random.default_rng(0), world.width("shared")
    return constants + [Linear(rng.standard_normal((world.n_arms, d))) for _ in range(_DIRECTIONS)]


def _contexts(world: Environment) -> Any:
    if hasattr(world, "contexts"):
        return world.contexts(1000, seed=0)
    return next(world.blocks(1000, seed=0)).view("shared")


def _oracle(world: Environment) -> Any:
    if hasattr(world, "policies"):
        return list(world.policies)
    return aw.LinearOracle(world.width("shared"), world.n_arms)


_FILL: dict[str, Callable[[Environment, int], Any]] = {
    "horizon": lambda world, T: T,
    "n_experts": lambda world, T: world.width("advice"),
    "policies": lambda world, T: _policies(world),
    "oracle": lambda world, T: _oracle(world),
    "contexts": lambda world, T: _contexts(world),
    "kernel": lambda world, T: aw.kernels.RBF(),
    "noise": lambda world, T: getattr(world, "noise", 0.5) or 0.01,
}


def _composed(name: str, world: Environment, horizon: int) -> Agent:
    """Build agents that wrap another agent, or that need columns in a certain order."""
    K, policies, wide = world.n_arms, _policies(world), world.width("features")
    agents: dict[str, Callable[[], Agent]] = {
        "PerContext": lambda: aw.PerContext(aw.Exp3.theoretical(K, horizon)),
        "PolicyArms": lambda: aw.PolicyArms(aw.Exp3.theoretical(len(policies), horizon), policies, K),
        "Doubling": lambda: aw.Doubling("Exp3.theoretical", {"n_arms": K}),
        "Explore": lambda: aw.Explore(enter("LinUCB", world, horizon), epsilon=0.05),
        "Advised": lambda: aw.Advised(aw.Exp4.theoretical(len(policies), K, horizon), policies),
        "Conservative": lambda: aw.Conservative(enter("LinUCB", world, horizon), baseline=0, alpha=0.1),
        "Mapped": lambda: _mapped(world),
        # Half of the columns are shared, so that the model contains both shared and per-arm weights.
        "HybridLinUCB": lambda: aw.HybridLinUCB(wide, K, shared=max(1, wide // 2)),
    }
    return agents[name]()


def _mapped(world: Environment) -> Agent:
    """Build LinUCB over random features whose scales are fitted on other rounds than the race's."""
    sees: Sees = "features" if world.native == "features" else "shared"
    rows = next(world.blocks(1000, seed=0)).view(sees).reshape(-1, world.width(sees))
    features = aw.features.Join([aw.features.Fourier(_FOURIER)]).fit(rows)
    return aw.Mapped(aw.LinUCB(features.size, n_arms=None if sees == "features" else world.n_arms), features)


def _budgeted(name: str, world: Environment, horizon: int) -> Agent:
    """Build agents with a budget, at the rate that the world measures regret against."""
    rate = world.constants().get("rate")
    if rate is None:
        raise ValueError(
            f"{name} needs {_BUDGETED[name]}=..., which {type(world).__name__} does not give: race it in a world with "
            "costs and a rate, such as Budgeted"
        )
    table = getattr(world, "costs", None)
    most = np.ones(world.n_arms) if table is None else np.max(table, axis=0)  # the largest cost of each arm
    cheap = world.constants().get("null_arm", int(np.argmin(most)))
    if table is None:
        most[cheap] = 0.0
    inside, budget = enter("LinUCB", world, horizon), rate * horizon
    agents: dict[str, Callable[[], Agent]] = {
        "HardStop": lambda: aw.HardStop(inside, budget, most, cheap, horizon=horizon),
        "Pacing": lambda: aw.Pacing(inside, rate, cheap),
        "LagrangeCB": lambda: aw.LagrangeCB(enter("SquareCB", world, horizon), horizon, budget),
        "LinCBwK": lambda: aw.LinCBwK(inside.dim or 1, horizon, budget, n_arms=inside.n_arms, max_cost=most.max()),
    }
    return agents[name]()
