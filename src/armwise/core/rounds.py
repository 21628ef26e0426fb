"""Many rounds at once: the agent's own loop, and the object through which an agent does them faster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from armwise.core.choices import Choices, Floats, Played, joined
from armwise.core.inputs import MixedBlock, is_sparse

if TYPE_CHECKING:
    from armwise.core.agent import Agent

BACK_UP_ABOVE = 1e30  # a batch with larger numbers is learnt with a backup of the agent

A = TypeVar("A", bound="Agent", contravariant=True)


class Batches(Generic[A]):
    """Many rounds of an agent at once, with the bits of the loop; an agent declares one in ``Agent.batches``.

    Input is checked. A method does rounds from the front, as many as it can, and is asked again for the others; None
    leaves all of them to the agent's own ``_choose`` and ``_learn``. Nobody but the functions of this module calls
    them, and these count the rewards learnt.
    """

    def compiled(self, agent: A) -> bool:
        """Return whether ``block`` runs in compiled code, and holds no GIL between its rounds."""
        return False

    def choose(self, agent: A, contexts: Any, n: int) -> Choices | None:
        """Choose for all of ``n`` contexts."""
        return None

    def learn(self, agent: A, contexts: Any, choices: Choices, rewards: Floats) -> int | None:
        """Learn the first rewards; how many. With 0 the loop learns one."""
        return None

    def block(self, agent: A, contexts: Any, rewards: Floats) -> Played | None:
        """Choose and learn the first rounds, at least one."""
        return None


class CompiledBlocks(Batches[Any]):
    """Blocks of rounds that one kernel plays from beginning to end: ``kernel(agent, contexts, rewards)``."""

    def __init__(self, kernel: Callable[[Any, Any, Floats], tuple[Any, Any, Any]]) -> None:
        self._kernel = kernel

    def compiled(self, agent: Any) -> bool:
        return True

    def block(self, agent: Any, contexts: Any, rewards: Floats) -> Played:
        return Played(*self._kernel(agent, contexts, rewards))


def choose(agent: Agent, contexts: Any, n: int) -> Choices:
    """Choose for ``n`` checked contexts: an array, a list, or None where the agent sees nothing."""
    done = agent.batches.choose(agent, contexts, n) if agent.batches is not None and n else None
    return Choices.of(agent._choose(row(contexts, t)) for t in range(n)) if done is None else done


def learn(agent: Agent, contexts: Any, choices: Choices, rewards: Floats) -> None:
    """Learn checked rewards in order, and count them."""
    t, T, learnt = 0, len(rewards), None if agent.batches is None else 0
    while t < T:
        if learnt is not None and agent.batches is not None:
            before = agent._n_learnt
            learnt = agent.batches.learn(agent, rows(contexts, t, T), choices[t:] if t else choices, rewards[t:])
            agent._n_learnt = before + (learnt or 0)
            t += learnt or 0
        if t < T and not learnt:
            try:
                agent._learn(row(contexts, t), choices[t], rewards.item(t))
            except ValueError as error:  # what only learning itself can see
                error.add_note(f"row {t} was refused")
                raise
            agent._n_learnt += 1
            t += 1


def play(agent: Agent, contexts: Any, rewards: Floats, costs: Floats | None = None) -> Played:
    """Play a checked block of rounds; ``costs`` where the agent keeps account of them."""
    if isinstance(contexts, MixedBlock):
        parts = [(piece, rewards[now], None if costs is None else costs[now]) for now, piece in contexts.pieces()]
        return joined([play(agent, *part) for part in parts])
    played, t, T = [], 0, len(rewards)
    while t < T:
        before, done = agent._n_learnt, None
        if agent.batches is not None and not agent.n_costs:
            done = agent.batches.block(agent, rows(contexts, t, T), rewards[t:])
        if done is None:
            done = loop(agent, rows(contexts, t, T), rewards[t:], costs if costs is None else costs[t:])
        t += len(done.arms)
        agent._n_learnt = before + len(done.arms)
        played.append(done)
    return joined(played)


def loop(agent: Agent, contexts: Any, rewards: Floats, costs: Floats | None = None) -> Played:
    """Play a checked block round by round."""
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.full(T, np.nan), np.empty(T)
    paid = None if costs is None else costs.reshape(*rewards.shape, -1)
    for t in range(T):
        context = row(contexts, t)
        choice = agent._choose(context)
        arms[t] = arm = choice.arm
        if choice.probability is not None:
            probabilities[t] = choice.probability
        got[t] = reward = rewards.item(t, arm)
        if paid is not None:
            choice = choice._replace(cost=tuple(paid[t, arm].tolist()))
        agent._learn(context, choice, reward)
        agent._n_learnt += 1
    return Played(arms, probabilities, got)


def row(contexts: Any, t: int) -> Any:
    """The context of one round of a block."""
    return None if contexts is None else contexts[t]


def rows(contexts: Any, start: int, stop: int) -> Any:
    """The contexts of some rounds of a block."""
    return None if contexts is None else contexts[start:stop]


@contextmanager
def all_or_nothing(agent: Any, *numbers: Any) -> Iterator[None]:
    """Leave the agent as it was if a batch overflows in the middle: huge numbers are learnt with a backup at hand."""
    backup, learnt = copy.deepcopy(vars(agent)) if any(map(_may_overflow, numbers)) else None, agent._n_learnt
    try:
        yield
    except ValueError as error:
        if backup is not None:
            vars(agent).clear()
            vars(agent).update(backup)
        elif agent._n_learnt > learnt:
            error.add_note(f"the first {agent._n_learnt - learnt} rows of the block are learnt")
        raise


def _may_overflow(block: Any) -> bool:
    """Return whether numbers are so large that sums of their squares, over a small ridge, may overflow."""
    if isinstance(block, np.ndarray):
        return block.dtype.kind == "f" and block.size > 0 and bool(max(block.max(), -block.min()) > BACK_UP_ABOVE)
    if is_sparse(block):
        return _may_overflow(block.data)
    parts = getattr(block, "contexts", block)  # rows in a form of their own (MixedBlock, SparseBlock)
    return isinstance(parts, (list, tuple)) and any(map(_may_overflow, parts))
