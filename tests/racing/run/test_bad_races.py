"""A race that is asked for wrongly, or whose world is wrong, says what is wrong with which argument."""

from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.environments import Block, Environment

WORLD = aw.environments.Switching(3)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"agents": aw.UCB1(3)}, "agents must be a dict of name: agent, or a list of agents, got UCB1"),
        ({"agents": "UCB1"}, "agents must be a dict"),
        ({"agents": {1: aw.UCB1(3)}}, "agents must have names, got 1"),
        ({"agents": {"": aw.UCB1(3)}}, "agents must have names, got ''"),
        ({"world": aw.environments.Switching}, "world must be an environment, or several in a dict or a list, got"),
        ({"world": None}, "world must be an environment"),
        ({"seeds": "ab"}, "seeds must be a whole number >= 1, got str 'ab'"),
        ({"seeds": [-1]}, "a seed must be a whole number >= 0, got int -1"),
        ({"metrics": [len]}, "metrics must be a dict of name: function, got list"),
        ({"metrics": {"clicks": 3}}, "metrics must be a dict of name: function"),
        ({"metrics": {"regret": lambda stretch: stretch.rewards}}, r"names of recorded columns, got \['regret'\]"),
        ({"callbacks": [3]}, "callbacks must be a list of functions"),
    ],
)
def test_a_wrong_argument_is_named(asked, message):
    with pytest.raises(ValueError, match=message):
        aw.race(**{"agents": [aw.UCB1(3)], "world": WORLD, "horizon": 10, "seeds": 1} | asked)


def test_seeds_of_numpy_are_plain_numbers():
    assert [type(seed) for seed in aw.race([aw.UCB1(3)], WORLD, horizon=5, seeds=np.arange(2)).seeds] == [int, int]


class Own(Environment):
    """A world whose blocks are what a function of the horizon says."""

    def __init__(self, blocks, n_arms=3):
        self.blocks_made, self.n_arms = blocks, n_arms

    def _blocks(self, horizon, rng):
        return self.blocks_made(horizon)

    def params(self):
        return {}


def yields(*blocks):
    yield from blocks


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (lambda T: yields(Block({}, np.ones((T - 4, 3)))), "Own._blocks ended 4 rounds before the horizon, 10"),
        (lambda T: yields(Block({}, np.ones((T + 2, 3)))), "Own._blocks must yield 10 rounds in all, got 2 more"),
        (lambda T: yields(Block({}, np.ones((T, 4)))), "Own.n_arms is 3, and its rewards have 4"),
        (lambda T: [Block({}, np.ones((T, 3)))], "Own._blocks must yield blocks, got list"),
        (lambda T: yields(np.ones((T, 3))), "Own._blocks must yield blocks, got ndarray"),
    ],
)
def test_a_world_of_ones_own_that_is_wrong_says_so(blocks, message):
    with pytest.raises(aw.racing.RaceError, match=message):
        aw.race([aw.UCB1(3)], Own(blocks), horizon=10, seeds=1)


@pytest.mark.parametrize("n_arms", [0, None, "3"])
def test_a_world_without_arms_is_refused(n_arms):
    with pytest.raises(ValueError, match=r"Own.n_arms must be a whole number >= 1"):
        aw.race([aw.UCB1(3)], Own(lambda T: yields(), n_arms), horizon=10, seeds=1)


MASKED = np.ma.masked_array(np.ones((3, 2)), [[True, False]] * 3)


@pytest.mark.parametrize(
    ("views", "tables", "message"),
    [
        ({}, {"rewards": MASKED}, "rewards is a masked array"),
        ({}, {"rewards": np.ones((3, 2)), "expected": MASKED}, "expected is a masked array"),
        ({"shared": MASKED}, {"rewards": np.ones((3, 2))}, "shared is a masked array"),
        ({"shared": np.ones((4, 2))}, {"rewards": np.ones((3, 2))}, r"shared must be of the same 3 rounds .* \(4, 2\)"),
        ({"features": np.ones((3, 5, 2))}, {"rewards": np.ones((3, 2))}, "features must be of the same 3 rounds and 2"),
        ({"sharde": np.ones((3, 2))}, {"rewards": np.ones((3, 2))}, "views are shared, features, key, advice, got 'sh"),
        ({}, {"rewards": np.ones((3, 2)), "expected": np.ones((2, 2))}, "expected must have the shape of rewards"),
        ({}, {"rewards": np.ones((3, 2)), "expected": np.full((3, 2), np.nan)}, "expected must be finite"),
        ({}, {"rewards": np.ones((0, 2))}, "rewards must have a row per round"),
        ({}, {"rewards": [["a", "b"]]}, "rewards must be an array of numbers"),
    ],
)
def test_a_block_that_does_not_fit_together_is_refused(views, tables, message):
    with pytest.raises(ValueError, match=message):
        Block(views, **tables)


def test_a_block_takes_lists_and_whole_numbers():
    rows: Any = [[1, 0], [0, 1]]
    assert Block({}, rows).competitors.tolist() == [[1.0], [1.0]]
