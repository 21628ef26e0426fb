"""Many copies of one agent, no two of which draw the same."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from armwise.core import saving
from armwise.core.agent import Agent


def copies(agent: Agent) -> Iterator[Agent]:
    """Copy an agent again and again. The agents inside a copy draw from streams that continue from copy to copy.

    Generators that belong to no agent are shared, and continue drawing.
    """
    inside = list(_inside(agent))
    agents = [thing for thing in inside if isinstance(thing, Agent)]
    shared = {id(thing): thing for thing in inside if isinstance(thing, np.random.Generator)}
    # New streams for each copy would make it cost half as much again.
    streams = [np.random.default_rng([11, place]) for place in range(len(agents))]
    while True:
        twin, found = copy.deepcopy((agent, agents), shared.copy())
        for each, stream in zip(found, streams):
            each._rng = stream
        yield twin


def _inside(agent: Agent) -> Iterator[Any]:
    """Yield the agent and all its parts."""
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
