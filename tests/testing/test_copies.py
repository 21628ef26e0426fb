"""Copies of an agent are what deepcopy makes, with other streams, whatever the agent is made of."""

from __future__ import annotations

import copy
import threading
from itertools import islice
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.testing.checks import Case, rounds_for, run, state
from armwise.testing.copies import _inside, copies
from tests.cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_copies_are_the_agent_and_share_nothing_that_learns(case: Case) -> None:
    agent = case.make(1)
    data = rounds_for(agent, 26, seed=1)
    run(agent, data, 0, 20)
    expected, before = copy.deepcopy(agent), state(agent)
    for place, each in enumerate(thing for thing in _inside(expected) if isinstance(thing, aw.Agent)):
        each._rng = np.random.default_rng([11, place])
    first, second = islice(copies(agent), 2)
    assert run(first, data, 20) == run(expected, data, 20)
    assert second.t == agent.t == 21
    if case.saves:
        assert state(agent) == before


class Closed(aw.UCB1):
    """It holds what no pickle holds: a lambda, a local class, and a generator of its own."""

    def __init__(self, n_arms: int, *, seed: Any = None) -> None:
        super().__init__(n_arms, seed=seed)

        class Local:
            pass

        self.rule, self.kind, self.thing = lambda: 1, Local, Local()
        self.mine = np.random.default_rng(1)
        self.again = self.thing


class Lock:
    """What copies itself, and has no pickle."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Lock:
        return Lock()


def test_functions_classes_and_generators_are_shared_and_other_things_are_not() -> None:
    agent = Closed(3, seed=1)
    for locked in (False, True):  # with an attribute that copies itself, and without
        if locked:
            agent.held = Lock()  # type: ignore[attr-defined]
        first, second = islice(copies(agent), 2)
        for twin in (first, second):
            assert isinstance(twin, Closed)
            assert twin.rule is agent.rule and twin.kind is agent.kind and twin.mine is agent.mine
            assert twin.thing is twin.again is not agent.thing and twin._rng is not agent._rng
        assert first._rng.random() != second._rng.random()


def test_every_agent_inside_has_a_stream_of_its_own() -> None:
    agent = aw.Explore(aw.UCB1(3, seed=1), 0.5, seed=1)
    agent.agent._rng = agent._rng
    (twin,) = islice(copies(agent), 1)
    assert isinstance(twin, aw.Explore)
    assert len({id(each._rng) for each in (agent, twin, twin.agent)}) == 3
