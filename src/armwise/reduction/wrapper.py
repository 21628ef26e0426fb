"""What agents around another agent share: they read and check as it does, and draw from a stream of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.agent import Agent, Choice, Seed
from armwise.streams import purpose_seed


def own_stream(seed: Seed) -> Seed:
    """A seed for a wrapper, independent of an agent inside that was given the same one.

    >>> own_stream(1).entropy
    1
    """
    if isinstance(seed, np.random.Generator):
        return seed.spawn(1)[0]
    return purpose_seed(seed, "wrapper")


def teach(agent: Agent, context: Any, choice: Choice, reward: float) -> None:
    """``learn`` on input that was checked already.

    >>> import armwise as aw
    >>> agent = aw.UCB1(n_arms=2)
    >>> teach(agent, None, Choice(0, 1.0), 1.0)
    >>> agent.t
    2
    """
    agent._learn(context, choice, reward)
    agent._n_learnt += 1


def expect_agent(name: str, value: Any) -> Agent:
    """The agent itself, or a ValueError that names the argument.

    >>> expect_agent("agent", 3)
    Traceback (most recent call last):
    ...
    ValueError: agent must be an armwise agent, got int 3
    """
    if not isinstance(value, Agent):
        raise ValueError(f"{name} must be an armwise agent, got {type(value).__name__} {value!r:.80}")
    return value


class Wrapper(Agent):
    """An agent that sees what the agent inside it (``_inner``) sees, and refuses what that one refuses."""

    _inner: Agent

    def _around(self, inner: Agent) -> None:
        self._inner = inner
        self.sees, self.reward_range, self.dim = inner.sees, inner.reward_range, inner.dim
        self.n_arms, self.n_experts = inner.n_arms, inner.n_experts

    def _read(self, context: Any) -> Any:
        return self._inner._read(context)

    def _read_block(self, contexts: Any, T: int) -> Any:
        return self._inner._read_block(contexts, T)

    def _count_arms(self, context: Any) -> int:
        return self._inner._count_arms(context)

    def _check_choice(self, choice: Any, n_arms: int) -> None:
        self._inner._check_choice(choice, n_arms)
