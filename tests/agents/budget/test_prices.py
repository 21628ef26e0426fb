"""The prices of LagrangeCB: those that trying every one of them would find, wherever the search begins."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.optimize import linprog

import armwise as aw
from armwise.agents.budget.dual import PricedRounds, minimum
from armwise.agents.budget.lagrange import _alike
from armwise.agents.budget.prices import PRICES, lowest

LAST = len(PRICES) - 1


def test_the_search_finds_what_trying_every_price_finds():
    """Costs that fall in a few steps, and stand still between them: from every first price, the same lowest one."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        costs = np.sort(rng.choice(rng.random(4), len(PRICES)))[::-1]
        target = float(rng.choice([*costs, -0.1, 1.1]))
        holds = np.flatnonzero(costs <= target)
        found = {lowest(costs.__getitem__, target, float(last)) for last in PRICES}
        assert found == {int(holds[0]) if holds.size else LAST}


class Falling:
    """Costs of 1 below a place and of 0 from there on, and which places were asked for."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.asked: list[int] = []

    def __call__(self, place: int) -> float:
        self.asked.append(place)
        return float(place < self.answer)


def test_few_prices_are_tried_near_the_last_one_and_none_twice():
    for last in range(LAST):
        for answer in range(LAST + 1):
            costs = Falling(answer)
            assert lowest(costs, 0.0, float(PRICES[last])) == answer
            assert len(set(costs.asked)) == len(costs.asked) <= 2 + 2 * np.ceil(np.log2(1 + abs(answer - last)))
            assert {answer - 1, answer} - {-1, LAST} <= set(costs.asked)


def taught(weighting, n_costs, seed):
    """An agent that has learnt from four contexts that recur, of two arms or three: the first costs less, or more."""
    rng = np.random.default_rng([7, seed])
    oracle = aw.LinUCB(2, alpha=1.0, lam=0.1)
    agent = aw.LagrangeCB(oracle, 100, [50.0, 20.0][:n_costs], weighting=weighting, seed=seed)
    different = [np.array([[rng.random(), a / n_arms] for a in range(n_arms)]) for n_arms in (2, 3, 3, 3)]
    for context in (different[i] for i in rng.integers(4, size=40)):
        choice = agent.choose(context)
        paid = rng.random(2) * [choice.arm, 0.6 * context[choice.arm, 0]]
        agent.learn(context, choice, rng.random() * (1 + choice.arm) / 3, paid[:n_costs].tolist())
    return agent


@pytest.mark.parametrize("weighting", ["gaps", "wins"])
def test_prices_are_those_of_trying_every_one(weighting):
    """The lowest price that holds the rate."""
    for seed in (0, 1):
        agent = taught(weighting, 1, seed)
        recent, (target,) = agent._forecast(), agent._allowed(41, 100)
        costs = agent._costs(recent)
        lowest_of_all = PRICES[next((place for place in range(LAST) if costs(place) <= target), LAST)]
        for first in PRICES[[0, 70]]:
            agent._prices[:] = first
            agent._solve(recent)
            assert agent._prices.tolist() == [lowest_of_all]


@pytest.mark.parametrize("weighting", ["gaps", "wins"])
def test_prices_of_two_resources_are_the_same_from_any_start(weighting):
    """From seven starts one price vector, at which inverse-gap weighting comes to each target, or nothing is paid."""
    for seed in range(4):
        agent = taught(weighting, 2, seed)
        recent, targets = agent._forecast(), agent._allowed(41, 100)
        found = []
        for first in ([0, 0], [1, 1], [1e3, 1e3], [0, 1e3], [1e3, 0], [1e-4, 10], [30, 0.1]):
            agent._prices = np.array(first, float)
            agent._solve(recent)
            found.append(agent._prices)
        np.testing.assert_allclose(found, np.tile(found[0], (7, 1)), rtol=1e-4, atol=1e-6)
        for i, target in enumerate(targets if weighting == "gaps" else []):
            left = target - agent._mean_cost(recent, agent._prices, i)
            assert left > -0.12 and min(left, agent._prices[i]) < 0.1


def test_the_dual_is_that_of_the_linear_program_where_gaps_count_much():
    rng = np.random.default_rng(5)
    for _ in range(5):
        rewards, costs = rng.random((6, 4)), rng.random((6, 2, 4))
        costs[:, :, 0] = 0.0  # of doing nothing
        targets, shares = np.array([0.2, 0.3]), np.full(6, 1 / 6)
        ours = minimum([PricedRounds(rewards, costs, shares)], targets, 1e5, 1e3, np.ones(2))
        wanted = linprog(
            -(shares[:, None] * rewards).ravel(),
            A_ub=(shares[:, None, None] * costs).transpose(1, 0, 2).reshape(2, -1), b_ub=targets,
            A_eq=np.kron(np.eye(6), np.ones(4)), b_eq=np.ones(6),
        )  # fmt: skip
        value = shares @ (rewards - np.einsum("i,nik->nk", ours, costs)).max(axis=1) + ours @ targets
        assert wanted.fun is not None and value == pytest.approx(-wanted.fun, abs=0.01)


@pytest.mark.parametrize("covering", [False, True])
def test_two_binding_resources_are_used_and_nearly_what_the_linear_program_earns_is_earned(covering):
    rewards = np.array([0.05, 0.45, 0.6, 0.8, 0.9])
    costs = np.array([[0.0, 0.0], [0.2, 0.6], [0.6, 0.2], [0.3, 0.9], [0.9, 0.5]])
    rates, T = np.array([0.3, 0.3]), 3000
    sign = -1.0 if covering else 1.0  # the second resource must come to its rate at least
    solved = linprog(-rewards, A_ub=costs.T * [[1.0], [sign]], b_ub=rates * [1.0, sign],
                    A_eq=np.ones((1, 5)), b_eq=[1.0])  # fmt: skip
    assert solved.fun is not None
    for seed in range(2):
        rng = np.random.default_rng(seed)
        paid = costs * rng.uniform(0.5, 1.5, (T, 5, 2))
        clicks = (rng.random((T, 5)) < rewards).astype(float)
        agent = aw.LagrangeCB(aw.SquareCB(1, n_arms=5), T, (rates * T).tolist(), covering=[False, covering], seed=seed)
        played = agent.play(np.ones((T, 1)), clicks, paid)
        assert played.costs is not None and rewards[played.arms].mean() > -0.95 * solved.fun
        spent = played.costs.sum(axis=0) / (rates * T)
        assert 0.95 < spent[0] < 1.03 and (spent[1] > 0.97 if covering else 0.9 < spent[1] < 1.03)


@pytest.mark.parametrize("weighting", ["gaps", "wins"])
def test_contexts_that_recur_count_as_often_as_they_came(weighting, monkeypatch):
    agent = taught(weighting, 1, 2)
    one_by_one = _alike([agent._estimated(context) for context in agent._recent], list(range(32)))
    with monkeypatch.context() as patched:
        asked = Mock(side_effect=agent._estimated)
        patched.setattr(agent, "_estimated", asked)
        recent = agent._forecast()
    assert asked.call_count == 4 and len(agent._recent) == 32
    for price in PRICES[::10]:
        assert agent._mean_cost(recent, np.array([price]), 0) == agent._mean_cost(one_by_one, np.array([price]), 0)
