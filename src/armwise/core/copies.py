"""Many copies of one agent, no two of which draw the same."""

from __future__ import annotations

import copy
import io
import pickle
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from armwise.core import saving
from armwise.core.agent import Agent

# What copies share: the generators, most of what a copy would cost; of the others deepcopy makes no copy either.
_SHARED = (
    np.random.Generator, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.ModuleType, type,
    property, weakref.ref,
)  # fmt: skip


def copies(agent: Agent) -> Iterator[Agent]:
    """Copies without end. Each agent inside draws from a stream that goes on from copy to copy, and not from its own.

    Generators that are no agent's are shared, and go on drawing.

    >>> import armwise as aw
    >>> agent = aw.UCB1(n_arms=3, seed=1)
    >>> twins = copies(agent)
    >>> next(twins).learn(None, aw.Choice(0, 1.0), 1.0)
    >>> next(twins).t, agent.t
    (1, 1)
    """
    inside = list(_inside(agent))
    agents = [thing for thing in inside if isinstance(thing, Agent)]
    # New streams for each copy would make it cost half as much again.
    streams = [np.random.default_rng([11, place]) for place in range(len(agents))]
    make = _copier((agent, agents), [thing for thing in inside if isinstance(thing, np.random.Generator)])
    while True:
        twin, found = make()
        for each, stream in zip(found, streams):
            each._rng = stream
        yield twin


def _inside(agent: Agent) -> Iterator[Any]:
    """The agent and what it is made of."""
    seen, queue = set(), [agent]
    while queue:
        thing = queue.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, (Agent, saving.Saved)):
            queue.extend(vars(thing).values())
        elif isinstance(thing, dict):
            queue.extend(thing.values())
        elif isinstance(thing, (list, tuple)):
            queue.extend(thing)


def _copier(thing: Any, generators: list[np.random.Generator]) -> Callable[[], Any]:
    """What makes a copy: from one pickle, which is much faster, or by ``deepcopy`` where something has no pickle."""
    packed = io.BytesIO()
    pickler = _Pickler(packed)
    try:
        pickler.dump(thing)
    except (pickle.PicklingError, TypeError, AttributeError):
        memo = {id(each): each for each in generators}
        return lambda: copy.deepcopy(thing, memo.copy())
    return lambda: _Unpickler(packed.getvalue(), pickler.shared).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.shared: list[Any] = []

    def persistent_id(self, thing: Any) -> int | None:
        if not isinstance(thing, _SHARED):
            return None
        self.shared.append(thing)
        return len(self.shared) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, packed: bytes, shared: list[Any]) -> None:
        super().__init__(io.BytesIO(packed))
        self.shared = shared

    def persistent_load(self, place: Any) -> Any:
        return self.shared[place]
