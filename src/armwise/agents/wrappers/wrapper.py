"""Common base of agents around another agent: two streams, its own and that of the agent inside, and the teaching."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import Agent, Choice, Seed
from armwise.core.seeds import purpose_seed


def _stream(seed: Seed, purpose: str) -> Seed:
    return seed.spawn(1)[0] if isinstance(seed, np.random.Generator) else purpose_seed(seed, purpose)


class Wrapper(Agent):
    """An agent around others: its seed begins a stream of its own, and one for each agent inside that has no seed."""

    _inside: Any  # the agent, with whatever it is capable of; None where there are several

    def __init__(self, inside: Agent | None = None, *, seed: Seed = None) -> None:
        super().__init__(seed=_stream(seed, "wrapper"))
        self.seed, self._inside = seed, inside
        if seed is not None and inside is not None and inside.seed is None:
            inside._reseed(_stream(seed, "inside a wrapper"))

    def _reseed(self, seed: Seed) -> None:
        Wrapper.__init__(self, self._inside, seed=seed)


def teach(agent: Agent, context: Any, choice: Choice, reward: float) -> None:
    """``learn`` on input that was checked already."""
    agent._learn(context, choice, reward)
    agent._n_learnt += 1


def expect_agent(name: str, value: Any) -> Agent:
    """The agent itself, or a ValueError that names the argument."""
    if not isinstance(value, Agent):
        raise ValueError(f"{name} must be an armwise agent, got {type(value).__name__} {value!r:.80}")
    return value
