"""Questions about an agent and all agents inside it, beyond the contract."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from armwise.core.agent import Agent
from armwise.core.capabilities.counting import choosing_changes


def within(agent: Agent) -> list[Agent]:
    """An agent and all agents inside it."""
    found, waiting = [], [agent]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.append(each)
            values = [v for value in vars(each).values() for v in (value if isinstance(value, list) else [value])]
            waiting += [v for v in values if isinstance(v, Agent)]
    return found


def copied(agent: Agent) -> Agent:
    """A copy of an agent that shares nothing with it.

    A generator that is copied by itself first asks the system for a seed, for nothing: that gives the interpreter away,
    and a learner beside busy deciders waits for milliseconds to have it back.
    """
    memo: dict[int, Any] = {}
    for each in within(agent):
        drawing: Any = each._rng.bit_generator
        fresh = type(drawing)(copy.deepcopy(drawing.seed_seq))
        fresh.state = drawing.state
        memo[id(each._rng)] = np.random.Generator(fresh)
    return copy.deepcopy(agent, memo)


def reseed(agent: Agent, seed: int) -> None:
    """Seed an agent, and the agents inside it, from one event."""
    for place, each in enumerate(within(agent)):
        each._rng = np.random.default_rng([place, seed])


def counts_choices(agent: Agent) -> bool:
    """Return whether choosing changes the agent or one inside it, as a budget does."""
    return any(map(choosing_changes, within(agent)))
