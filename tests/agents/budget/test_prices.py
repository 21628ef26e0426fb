"""The prices of LagrangeCB: those that trying every one of them would find, wherever the search begins."""

from unittest.mock import Mock

import numpy as np
import pytest

import armwise as aw
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


@pytest.mark.parametrize(("n_costs", "turns"), [(1, 1), (2, 4)])
@pytest.mark.parametrize("weighting", ["gaps", "wins"])
def test_prices_are_those_of_trying_every_one(weighting, n_costs, turns):
    """Resource after resource, in turns: the lowest price that holds the rate at the prices of the others."""
    for seed in (0, 1):
        agent = taught(weighting, n_costs, seed)
        recent, targets = agent._forecast(), agent._allowed(41, 100)
        for first in PRICES[[0, 70]]:
            prices = np.full(n_costs, first)
            for i in [*range(n_costs)] * turns:
                costs = agent._costs(recent, prices.copy(), i)
                prices[i] = PRICES[next((place for place in range(LAST) if costs(place) <= targets[i]), LAST)]
            agent._prices[:] = first
            agent._solve(recent)
            assert agent._prices.tolist() == prices.tolist()


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
