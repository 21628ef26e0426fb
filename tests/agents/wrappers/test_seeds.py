"""A wrapper's seed settles everything: the agent inside draws from a stream that the seed begins."""

# mypy: disable-error-code="attr-defined"

import numpy as np
import pytest

import armwise as aw

ROWS = np.random.default_rng([3, 99]).normal(size=(60, 3, 3))
POLICIES = [lambda x: 0, lambda x: 1]

AROUND = {
    "Explore": lambda seed: aw.Explore(aw.LinThompson(3), 0.1, seed=seed),
    "PolicyArms": lambda seed: aw.PolicyArms(aw.Exp3(2), POLICIES, 2, seed=seed),
    "PerContext": lambda seed: aw.PerContext(aw.Exp3(2), seed=seed),
    "Doubling": lambda seed: aw.Doubling("Exp3.theoretical", {"n_arms": 2}, seed=seed),
    "Advised": lambda seed: aw.Advised(aw.Exp4(2, 2), POLICIES, seed=seed),
    "Explore of PolicyArms": lambda seed: aw.Explore(aw.PolicyArms(aw.Exp3(2), POLICIES, 2), 0.1, seed=seed),
}


def arms(agent):
    contexts = {"features": ROWS, "shared": ROWS[:, 0], "key": ["a"] * 60, "nothing": None}[agent.sees]
    rewards = np.full((60, 3 if agent.sees == "features" else 2), 0.5)
    return agent.play(contexts, rewards).arms.tolist()


@pytest.mark.parametrize("name", AROUND)
def test_the_same_seed_plays_the_same_arms_and_another_seed_others(name):
    make = AROUND[name]
    assert arms(make(1)) == arms(make(1))
    assert len({tuple(arms(make(seed))) for seed in range(4)}) == 4
    assert arms(make(np.random.SeedSequence(5))) == arms(make(np.random.SeedSequence(5)))
    assert arms(make(np.random.default_rng(5))) == arms(make(np.random.default_rng(5)))


def test_the_agent_inside_has_a_stream_of_its_own():
    """Neither the wrapper's stream nor a user's: equal streams would make exploring and choosing move together."""
    agent = AROUND["Explore"](1)
    streams = [agent._rng, agent.agent._rng, np.random.default_rng(1)]
    assert len({rng.random() for rng in streams}) == 3


def test_an_agent_that_was_given_a_seed_keeps_it():
    inside = aw.LinThompson(3, seed=4)
    aw.Explore(inside, 0.1, seed=1)
    assert inside._rng.random() == aw.LinThompson(3, seed=4)._rng.random()
