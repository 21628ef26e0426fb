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
SPECIAL = {"CoFineUCB": "subspace", "SpectralUCB": "laplacian", "CGPUCB": "context_kernel", "VE": "policy_class"}


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
