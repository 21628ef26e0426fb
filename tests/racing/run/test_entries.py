"""Agents by name: each is made to fit a world, or says what the world does not give."""

# mypy: disable-error-code="attr-defined, union-attr"

import numpy as np
import pytest

import armwise as aw
from armwise.racing.run.entries import ALIASES, enter, entrants

WORLDS = {
    "shared": aw.environments.Planted(n_policies=5, n_arms=3, dim=4),
    "features": aw.environments.Linear(n_arms=3, dim=4),
    "key": aw.environments.Tabular(n_contexts=4, n_arms=3),
    "advice": aw.environments.Experts(n_experts=4, n_arms=3),
    "costs": aw.environments.Budgeted(n_arms=3, dim=4, rate=0.2),
}
SPECIAL = {"CoFineUCB": "subspace", "SpectralUCB": "laplacian", "CGPUCB": "context_kernel", "VE": "policy_class",
           "D3RB": "agents", "ED2RB": "agents", "Corral": "agents"}  # fmt: skip
BUDGETED = {"HardStop": "budget", "LagrangeCB": "budget", "LinCBwK": "budget", "Pacing": "rate"}


@pytest.mark.parametrize("name", entrants())
@pytest.mark.parametrize("kind", list(WORLDS))
def test_every_agent_enters_every_world_or_says_why_not(name, kind):
    world = WORLDS[kind]
    lacking = SPECIAL if kind == "costs" else SPECIAL | BUDGETED
    if name in lacking:
        with pytest.raises(ValueError, match=f"{name} needs {lacking[name]}=..., which {type(world).__name__}"):
            enter(name, world, 400)
        return
    agent = enter(name, world, 400)
    block = next(world.blocks(30, seed=1))
    assert len(agent.play(block.view(agent.sees), block.rewards, block.costs).arms) == 30


@pytest.mark.parametrize("name", sorted(BUDGETED))
def test_a_world_with_costs_gives_the_budget(name):
    # Seeds 1 to 4: 0.84 to 1.01 of the budget, and LinUCB alone 2.2 to 3.1: an agent without the budget fails here.
    world, T = WORLDS["costs"], 2000
    agent, spent = enter(name, world, T).clone(seed=1), 0.0
    for block in world.blocks(T, seed=1):
        spent += agent.play(block.view(agent.sees), block.rewards, block.costs).costs.sum()
    assert 0.8 < spent / (world.rate * T) < (1.0 + 1e-9 if name == "HardStop" else 1.05)


@pytest.mark.parametrize("name", sorted(BUDGETED))
def test_a_table_of_costs_says_what_each_arm_can_cost(name):
    rng = np.random.default_rng(1)
    world = aw.environments.Table(
        rng.random((50, 3)), rng.random((50, 3)) * [3.0, 0.2, 1.0], rng.random((50, 2)), rate=0.4
    )
    agent = enter(name, world, 100)
    block = next(world.blocks(100, seed=1))
    assert len(agent.play(block.view(agent.sees), block.rewards, block.costs).arms) == 100
    assert getattr(agent, "fallback", getattr(agent, "cheap", 1)) == 1


def test_a_graph_gives_its_laplacian():
    world = aw.environments.Graph(n_arms=16, kind="grid")
    assert enter("SpectralUCB", world, 100).n_arms == 16


def test_aliases_are_agents():
    assert set(ALIASES.values()) <= set(entrants())


def test_entries_are_those_that_a_user_would_build():
    linear, disjoint = aw.environments.Linear(10, 20), aw.environments.Linear(5, 4, disjoint=True)
    assert repr(enter("SquareCB", linear, 5_000)) == repr(aw.SquareCB(20))
    assert repr(enter("SquareCB", disjoint, 5_000)) == repr(aw.SquareCB(4, n_arms=5))
    assert [enter("EpsilonGreedy", world, 100).sees for world in (linear, disjoint)] == ["features", "shared"]
    assert enter("EpsilonGreedy", WORLDS["advice"], 100).sees == "nothing"
    policies = enter("PolicyElimination", disjoint, 400).policies.policies
    X = next(disjoint.blocks(50, seed=1)).view("shared")
    assert len({tuple(int(policy(x)) for x in X) for policy in policies}) > 15  # they differ in what they do
