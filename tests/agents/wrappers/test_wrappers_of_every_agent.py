"""Every wrapper around every agent: refused when made, in words, or whole: choosing, learning, playing, saving.

A wrapper that works with the rows must not hand its own form of them to an agent that reads them another way.
"""

import inspect

import numpy as np
import pytest

import armwise as aw
from armwise.core.agent import Agent
from armwise.core.saving import dumps, loads
from armwise.theory.algorithm_table import agents
from armwise.theory.assumption_filter import verdicts

K, D, N, T = 3, 4, 5, 500
FEATURES = aw.features.Columns().fit(np.random.default_rng(0).random((50, D // 2)))  # D columns come out
POLICIES = [aw.Constant(i % K) for i in range(K)]

WRAPPERS = {
    "Explore": lambda a: aw.Explore(a, 0.5),
    "HardStop": lambda a: aw.HardStop(a, [1000.0] * (a.n_costs or 1), 1.0, 0),
    "Pacing": lambda a: aw.Pacing(a, 0.5, 0),
    "Conservative": lambda a: aw.Conservative(a, 0, 0.1),
    "Mapped": lambda a: aw.Mapped(a, FEATURES),
    "PerContext": aw.PerContext,
    "PolicyArms": lambda a: aw.PolicyArms(a, POLICIES, n_arms=K),
    "Advised": lambda a: aw.Advised(a, [aw.Constant(i % K) for i in range(N)]),
    "Corral": lambda a: aw.Corral([a, a.clone(seed=5)], horizon=T),
    "D3RB": lambda a: aw.D3RB([a, a.clone(seed=5)]),
    "ED2RB": lambda a: aw.ED2RB([a, a.clone(seed=5)]),
    "Doubling": lambda a: aw.Doubling(lambda horizon: a.clone()),
}
EVERY = sorted(agents())


def make(name: str) -> Agent:
    agent: Agent = eval(verdicts(n_arms=K, dim=D, n_policies=N, horizon=T)[name].call, {"aw": aw, "np": np})
    return agent.clone(seed=3)


def accepts(wrapper: str, agent: Agent) -> bool:
    if wrapper == "Mapped":
        return agent.sees in ("features", "shared")
    if wrapper == "Conservative":
        return agent.sees in ("nothing", "features", "shared")
    if wrapper in ("PerContext", "PolicyArms"):
        return agent.sees == "nothing" and agent.n_arms is not None
    if wrapper == "Advised":
        return agent.sees == "advice"
    return True


def context_for(agent: Agent, rng: np.random.Generator):
    d = agent.dim or D
    views = {
        "nothing": lambda: None,
        "features": lambda: np.c_[np.full(K, 0.5), rng.random((K, d - 1))] / 2,
        "shared": lambda: rng.random(d) / 2,
        "key": lambda: int(rng.integers(3)),
        "advice": lambda: rng.dirichlet(np.ones(K), size=N),
    }
    return views[agent.sees]()


def test_every_agent_that_takes_another_is_here():
    """LagrangeCB has tests of its own: what it takes is a model, not an agent."""
    takes = {
        name for name in EVERY if {"agent", "agents", "make"} & set(inspect.signature(getattr(aw, name)).parameters)
    }
    assert takes | {"Doubling"} == set(WRAPPERS)


@pytest.mark.parametrize("wrapper", sorted(WRAPPERS))
@pytest.mark.parametrize("name", EVERY)
def test_a_wrapper_works_with_the_agents_that_it_accepts(wrapper, name):
    inside = make(name)
    if not accepts(wrapper, inside):
        with pytest.raises(ValueError, match="agent must"):
            WRAPPERS[wrapper](inside)
        return
    agent, rng = WRAPPERS[wrapper](inside), np.random.default_rng(1)
    agent = agent if wrapper == "Doubling" else agent.clone(seed=4)
    for t in range(6):
        context = context_for(agent, rng)
        p = agent.probabilities(context)
        choice = agent.choose(context)
        assert p.sum() == pytest.approx(1.0) and (choice.probability is None or 0.0 < choice.probability <= 1.0)
        cost = [0.1 * choice.arm] * agent.n_costs if agent.n_costs else None
        agent.learn(context, choice, float(rng.integers(2)), cost)
        if t == 3 and wrapper != "Doubling":
            agent = loads(dumps(agent))
    contexts = [context_for(agent, rng) for _ in range(5)]
    K_now = len(p)
    costs = np.zeros((5, K_now, agent.n_costs)) if agent.n_costs else None
    played = agent.play(
        None if agent.sees == "nothing" else contexts if agent.sees == "key" else np.array(contexts),
        rng.integers(2, size=(5, K_now)).astype(float),
        costs,
    )
    assert agent.t == 12 and len(played.arms) == 5


def test_mapped_rows_reach_an_agent_as_its_own_would():
    """Mapped around LogisticThompson is LogisticThompson over mapped rows, to the bit."""
    rng = np.random.default_rng(2)
    rows, rewards = rng.random((40, K, 2)), rng.integers(2, size=(40, K)).astype(float)
    fourier = aw.features.Fourier(7).fit(rows.reshape(-1, 2))
    inside, plain = aw.LogisticThompson(7, seed=1), aw.LogisticThompson(7, seed=1)
    agent = aw.Mapped(inside, fourier)
    mapped = fourier.transform(rows.reshape(-1, 2)).reshape(40, K, 7)
    np.testing.assert_array_equal(agent.play(rows, rewards).arms, plain.play(mapped, rewards).arms)
    for X, Z in zip(rows, mapped):
        assert agent.choose(X) == plain.choose(Z)
    np.testing.assert_array_equal(inside.m, plain.m)


def test_a_promise_over_an_agent_that_reads_sparse_rows():
    from scipy.sparse import csr_array

    agent, other = (aw.Conservative(aw.LogisticThompson(D, seed=1), 0, 0.9, noise=0.1, seed=1) for _ in range(2))
    rng = np.random.default_rng(3)
    for _ in range(30):
        X = rng.random((K, D)) * (rng.random((K, D)) < 0.5)
        choice = agent.choose(X)
        assert other.choose(csr_array(X)) == choice
        agent.learn(X, choice, 1.0)
        other.learn(csr_array(X), choice, 1.0)
    assert dumps(agent) == dumps(other) and agent.baseline_share < 1.0


def test_a_promise_takes_the_width_of_the_first_context():
    agent = aw.Conservative(aw.LinUCB(n_arms=K, seed=1), 0, 0.5, seed=1)
    agent.learn(np.ones(2), agent.choose(np.ones(2)), 1.0)
    assert agent.dim == loads(dumps(agent)).dim == 2
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        agent.choose(np.ones(3))
    with pytest.raises(ValueError, match="made with n_arms"):
        aw.Conservative(aw.PolicyArms(aw.UCB1(2), [lambda x: 0, lambda x: 1]), 0, 0.1)
    with pytest.raises(ValueError, match=r"PerContext\(Conservative"):
        aw.Conservative(aw.PerContext(aw.UCB1(2)), 0, 0.1)
    with pytest.raises(ValueError, match=r"Conservative\(Advised"):
        aw.Conservative(aw.Exp4(2, 2), 0, 0.1)
