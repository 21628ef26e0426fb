"""Explore and Doubling around the agents of all rooms."""

import numpy as np
import pytest

import armwise as aw
from armwise.core.capabilities.counting import record_choice
from armwise.core.saving import dumps, loads
from armwise.theory.algorithm_table import agents
from armwise.theory.assumption_filter import verdicts

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
        # Arm 0 is free, as the null arm of HardStop is.
        cost = [0.1 * choice.arm] * agent.n_costs if agent.n_costs else None
        agent.learn(context, choice, float(rng.integers(2)), cost)
        if t == 6:
            agent = loads(dumps(agent))
    assert agent.t == agent.agent.t == 13


FEATURES = aw.features.Join([aw.features.Columns()]).fit(np.random.default_rng(0).random((50, D)))


def around_a_budget(name):
    dim = FEATURES.size if name == "Mapped" else D
    inside = aw.HardStop(aw.LinUCB(dim, n_arms=K, seed=1), budget=[10.0, 20.0], max_cost=1.0, fallback=0, seed=1)
    return aw.Mapped(inside, FEATURES) if name == "Mapped" else aw.Explore(inside, 0.5, seed=2)


@pytest.mark.parametrize("name", ["Explore", "Mapped"])
def test_costs_reach_the_budget_inside(name):
    agent, rng = around_a_budget(name), np.random.default_rng(1)
    assert agent.n_costs == 2
    contexts, rewards, costs = rng.random((20, D)), rng.random((20, K)), rng.random((20, K, 2)) * [[0.0], [0.2], [0.3]]
    paid = agent.play(contexts, rewards, costs).costs.sum(axis=0)
    choice = agent.choose(contexts[0])
    with pytest.raises(ValueError, match="cost is missing"):
        agent.learn(contexts[0], choice, 1.0)
    with pytest.raises(ValueError, match="cost must not be negative"):
        agent.learn(contexts[0], choice, 1.0, [-1.0, 0.0])
    agent.learn(contexts[0], choice, 1.0, [0.0, 0.0])
    np.testing.assert_allclose(agent.agent.spent, paid)
    assert (paid > 0).all()


@pytest.mark.parametrize("name", ["Explore", "Mapped"])
def test_a_choice_that_a_copy_made_sets_aside_what_that_choice_may_cost(name):
    agent, context = around_a_budget(name), np.full(D, 0.5)
    copies = [loads(dumps(agent)).clone(seed=seed) for seed in range(20)]
    choices = [copy.choose(context) for copy in copies]
    for choice in choices:
        record_choice(agent, context, choice)
    np.testing.assert_allclose(agent.agent.set_aside, np.sum([choice.note[0][:2] for choice in choices], axis=0))
    for choice in choices:
        agent.learn(context, choice, 0.0, [0.0, 0.0])
    np.testing.assert_allclose(agent.agent.set_aside, 0.0, atol=1e-12)


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
