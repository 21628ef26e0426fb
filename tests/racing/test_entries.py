"""Agents by name: each is made to fit a world, or says what the world does not give."""

import pytest

import armwise as aw
from armwise.racing.entries import ALIASES, enter, entrants

WORLDS = {
    "shared": aw.environments.Planted(n_policies=5, n_arms=3, dim=4),
    "features": aw.environments.Linear(n_arms=3, dim=4),
    "key": aw.environments.Tabular(n_contexts=4, n_arms=3),
    "advice": aw.environments.Experts(n_experts=4, n_arms=3),
}
SPECIAL = {"CoFineUCB": "subspace", "SpectralUCB": "laplacian", "CGPUCB": "context_kernel", "VE": "policy_class",
           "D3RB": "agents", "ED2RB": "agents", "Corral": "agents"}  # fmt: skip


@pytest.mark.parametrize("name", entrants())
@pytest.mark.parametrize("kind", list(WORLDS))
def test_every_agent_enters_every_world_or_says_why_not(name, kind):
    world = WORLDS[kind]
    if name in SPECIAL:
        with pytest.raises(ValueError, match=f"{name} needs {SPECIAL[name]}=..., which {type(world).__name__}"):
            enter(name, world, 400)
        return
    agent = enter(name, world, 400)
    block = next(world.blocks(30, seed=1))
    assert len(agent.play(block.view(agent.sees), block.rewards).arms) == 30


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
