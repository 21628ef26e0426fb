"""What the service must know of an agent beyond its contract, through all the agents that it is made of."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from armwise.agent import Agent
from armwise.linear.linucb import LinUCB
from armwise.reduction.explore import Explore


def within(agent: Agent) -> list[Agent]:
    """An agent and all agents inside it.

    >>> import armwise
    >>> len(within(armwise.Explore(armwise.LinUCB(dim=2), epsilon=0.1)))
    2
    """
    found, waiting = [], [agent]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.append(each)
            values = [v for value in vars(each).values() for v in (value if isinstance(value, list) else [value])]
            waiting += [v for v in values if isinstance(v, Agent)]
    return found


def copied(agent: Agent) -> Agent:
    """An equal agent that shares nothing with it.

    A generator that is copied by itself first asks the system for a seed, for nothing: that gives the interpreter away,
    and a learner beside busy deciders waits for milliseconds to have it back.

    >>> import armwise
    >>> agent = armwise.LinUCB(dim=2, seed=3)
    >>> copied(agent)._rng.random() == agent._rng.random()
    True
    """
    memo: dict[int, Any] = {}
    for each in within(agent):
        drawing: Any = each._rng.bit_generator
        fresh = type(drawing)(copy.deepcopy(drawing.seed_seq))
        fresh.state = drawing.state
        memo[id(each._rng)] = np.random.Generator(fresh)
    return copy.deepcopy(agent, memo)


def reseed(agent: Agent, seed: int) -> None:
    """Give an agent, and the agents within it, the randomness of one event.

    >>> import armwise
    >>> agent = armwise.LinUCB(dim=2)
    >>> reseed(agent, 5)
    >>> agent._rng.random() == np.random.default_rng([0, 5]).random()
    True
    """
    for place, each in enumerate(within(agent)):
        each._rng = np.random.default_rng([place, seed])


def optimist(agent: Agent) -> int:
    """Whether one compiled call can decide for an agent over named arms: 2 of ``Explore`` around a ``LinUCB`` over the
    arms' features, 1 of a ``LinUCB`` itself, 0 of any other.

    >>> import armwise
    >>> optimist(armwise.Explore(armwise.LinUCB(dim=2, lam=1.0), epsilon=0.1)), optimist(armwise.SquareCB(dim=2))
    (2, 0)
    """
    inner = agent.agent if type(agent) is Explore else agent
    plain = type(inner) is LinUCB and inner.n_arms is None and inner.lam is not None and not inner._model.forgets
    return 0 if not plain else 2 if inner is not agent else 1
