"""Explore and Doubling around the agents of all rooms."""

import numpy as np
import pytest

import armwise as aw
from armwise.guide import agents, verdicts
from armwise.persist import dumps, loads

K, D, N, T = 3, 4, 5, 500


def make(name, seed):
    agent = eval(verdicts(n_arms=K, dim=D, n_policies=N, horizon=T)[name].call, {"aw": aw, "np": np})
    return agent.clone(seed=seed)


def context_for(agent, rng):
    # CGPUCB wants the same first column in every row; nobody else minds.
    views = {
        "nothing": lambda: None,
        "features": lambda: np.c_[np.full(K, 0.5), rng.random((K, D - 1))] / 2,
        "shared": lambda: rng.random(D) / 2,
        "key": lambda: int(rng.integers(3)),
        "advice": lambda: rng.dirichlet(np.ones(K), size=N),
    }
    return views[agent.sees]()


@pytest.mark.parametrize("name", sorted(agents()))
def test_explore_reports_what_it_draws_from_around_every_agent(name):
    rng = np.random.default_rng(1)
    agent = aw.Explore(make(name, seed=2), 0.5, seed=2)
    for t in range(12):
        context = context_for(agent, rng)
        inside, p = agent.agent.probabilities(context), agent.probabilities(context)
        np.testing.assert_allclose(p, 0.5 * inside + 0.5 / p.size)
        choice = agent.choose(context)
        assert choice.probability is None or choice.probability == pytest.approx(p[choice.arm])
        agent.learn(context, choice, float(rng.integers(2)))
        if t == 6:
            agent = loads(dumps(agent))
    assert agent.t == agent.agent.t == 13


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Exp3.theoretical", {"n_arms": K}),
        ("Exp4.theoretical", {"n_experts": N, "n_arms": K}),
        ("Exp4P", {"n_experts": N, "n_arms": K, "delta": 0.1}),
        ("SupLinUCB", {"dim": D, "delta": 0.1}),
        ("LinREL", {"dim": D, "delta": 0.1}),
        ("SupLinREL", {"dim": D, "delta": 0.1}),
    ],
)
def test_doubling_runs_every_agent_that_asks_for_the_horizon(name, arguments):
    rng = np.random.default_rng(1)
    agent, waiting = aw.Doubling(name, arguments, seed=2), []
    first = agent.horizon
    assert first == (8 if name == "Exp4P" else 1)  # Exp4P refuses fewer than K ln N = 4.8 rounds
    for t in range(60):
        context = context_for(agent, rng)
        p = agent.probabilities(context)
        choice = agent.choose(context)
        assert choice.probability == pytest.approx(p[choice.arm])
        waiting.append((context, choice))
        if len(waiting) > 5:
            context, choice = waiting.pop(int(rng.integers(6)))
            agent.learn(context, choice, float(rng.integers(2)))
        if t == 30:
            agent = loads(dumps(agent))
    runs = int(np.log2(agent.horizon / first))
    assert first * (2**runs - 1) <= agent.t - 1 < first * (2 ** (runs + 1) - 1)
