"""A budget is used to the last bit that fits and never passed; an arm that is not there is not free."""

from fractions import Fraction

import numpy as np
import pytest

import armwise as aw
from armwise.agents.budget.accounts import ExactSums
from armwise.core.saving import dumps, loads


def decisions(agent, cost):
    """How many decisions are allowed before the budget is spent, each costing ``cost`` at once."""
    made = 0
    while True:
        try:
            choice = agent.choose()
        except aw.BudgetSpent:
            return made
        agent.learn(None, choice, 0.5, cost)
        made += 1


@pytest.mark.parametrize(
    ("budget", "cost", "allowed"),
    [
        (1.0, 1.0, 1),
        (2.0, 1.0, 2),
        (5.0, 1.0, 5),
        (10.0, 1.0, 10),
        (1.0, 0.25, 4),
        (1.0, 0.5, 2),
        (100.0, 0.1, 999),  # the double 0.1 is above a tenth: a thousand of them are more than 100
        (0.3, 0.1, 2),
        (0.9, 0.3, 3),  # the double 0.3 is below three tenths, and three of them fit in the double 0.9
        (1e150, 5e149, 2),
        (5e-324, 5e-324, 1),
    ],
)
def test_what_fits_exactly_is_allowed_and_nothing_more(budget, cost, allowed):
    assert decisions(aw.HardStop(aw.UCB1(1), budget, cost), cost) == allowed
    assert allowed * Fraction(cost) <= Fraction(budget) < (allowed + 1) * Fraction(cost)


def test_costs_set_aside_fill_the_budget_to_the_brim():
    agent = aw.HardStop(aw.UCB1(2, seed=1), [1.0, 2.0], [[0.25, 0.5], [0.25, 0.5]], seed=1)
    choices = [agent.choose() for _ in range(4)]
    with pytest.raises(aw.BudgetSpent, match=r"\[1.0, 2.0\] set aside"):
        agent.choose()
    agent.learn(None, choices[0], 0.5, [0.0, 0.0])
    agent.choose()
    with pytest.raises(aw.BudgetSpent):
        agent.choose()


def test_a_horizon_of_the_fallback_may_take_the_whole_budget():
    agent = aw.HardStop(aw.UCB1(2, seed=1), 2.5, [0.25, 0.75], fallback=0, horizon=10, seed=1)
    for _ in range(10):
        agent.learn(None, agent.choose(), 0.5, 0.25)
    assert agent.spent.tolist() == [2.5]
    with pytest.raises(aw.BudgetSpent, match="horizon of 10 decisions is over"):
        agent.choose()
    with pytest.raises(ValueError, match="cannot be promised"):
        aw.HardStop(aw.UCB1(2), np.nextafter(2.5, 0.0), [0.25, 0.75], fallback=0, horizon=10)


def test_no_path_overspends_by_a_single_bit():
    """Costs of all sizes, at once, late and lost, with a save in the middle; summed as fractions."""
    for seed in range(20):
        rng, paid, waiting = np.random.default_rng(seed), Fraction(0), []
        agent = aw.HardStop(aw.UCB1(3, seed=seed), 1.7, [0.1, 0.3, 0.7], seed=seed)
        for t in range(200):
            try:
                choice = agent.choose()
                cost = [0.1, 0.3, 0.7][choice.arm] * float(rng.choice([1.0, 1e-3, 1e-17, rng.random()]))
                paid += Fraction(cost)
                waiting.append((choice, cost))
            except aw.BudgetSpent:
                pass
            while waiting and rng.random() < 0.5:
                done, cost = waiting.pop(rng.integers(len(waiting)))
                if rng.random() < 0.95:
                    agent.learn(None, done, 0.5, cost)
            if t == 100:
                agent = loads(dumps(agent))
        assert paid <= Fraction(1.7)


def test_sums_are_those_of_fractions():
    rng = np.random.default_rng(1)
    values = rng.normal(size=200) * 10.0 ** rng.integers(-320, 150, 200)
    sums = ExactSums(1)
    for value in values:
        sums.add([value])
    exact = sum(map(Fraction, values.tolist()), Fraction(0))
    assert sums.rounded.tolist() == [float(exact)] == loads(dumps(sums)).rounded.tolist()
    for limit in (0.0, 1.0, 1e150, float(exact)):
        (rest,) = sums.rest([limit]).tolist()
        assert Fraction(rest) <= Fraction(limit) - exact < Fraction(float(np.nextafter(rest, np.inf)))
        assert sums.fits([limit]) == (exact <= Fraction(limit))


def test_a_cost_above_its_maximum_by_the_last_bit_is_told():
    agent = aw.HardStop(aw.UCB1(1), 10.0, 0.3)
    with pytest.warns(RuntimeWarning, match="more than its max_cost"):
        agent.learn(None, agent.choose(), 0.5, 0.1 + 0.2)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda arm: aw.HardStop(aw.LinUCB(3, seed=1), 10.0, 1.0, fallback=arm, seed=1), "fallback"),
        (lambda arm: aw.HardStop(aw.LinUCB(3, seed=1), 10.0, np.ones(12), arm, horizon=9, seed=1), "fallback"),
        (lambda arm: aw.Pacing(aw.LinUCB(3, seed=1), 0.5, cheap=arm, seed=1), "cheap"),
        (lambda arm: aw.Conservative(aw.LinUCB(3, seed=1), arm, 0.1, seed=1), "baseline"),
    ],
    ids=["HardStop", "HardStop, an arm each", "Pacing", "Conservative"],
)
@pytest.mark.parametrize(("arm", "n_arms"), [(2, 2), (7, 3)])
def test_a_round_without_the_arm_that_the_promise_needs_is_refused(make, name, arm, n_arms):
    """The last arm on offer must not be taken for it: HardStop would give it away for nothing, 50 of a budget of 10."""
    agent, X = make(arm), np.eye(3)[:n_arms]
    before = dumps(agent)
    for refused in (agent.choose, agent.probabilities):
        with pytest.raises(ValueError, match=f"{name} is arm {arm}, but this round has arms 0 to {n_arms - 1}"):
            refused(X)
    with pytest.raises(ValueError, match=f"{name} is arm {arm}"):
        agent.play(np.tile(X, (5, 1, 1)), np.full((5, n_arms), 0.5), np.full((5, n_arms), 1.0))
    assert dumps(agent) == before
    agent.choose(np.eye(3)[np.arange(arm + 1) % 3])  # a round that has it


def test_a_reward_that_is_delivered_twice_releases_its_own_reserve_alone():
    agent = aw.HardStop(aw.UCB1(2, seed=1), 2.0, 1.0, None, seed=1)
    first, second = agent.choose(), agent.choose()
    for _ in range(3):
        agent.learn(None, first._replace(cost=(0.1,)), 1.0)
    assert agent.set_aside.tolist() == [1.0]  # the second's, whose cost is to come
    assert agent.spent.tolist() == [0.1]  # one decision has one cost, however often it is delivered
    again = aw.HardStop(aw.UCB1(2, seed=1), 2.0, 1.0, None, seed=1)
    for choice in (first, second):
        again.record_choice(None, choice)
    assert again.set_aside.tolist() == [2.0]
    with pytest.raises(aw.BudgetSpent):
        again.choose()
    agent.learn(None, second._replace(cost=(1.0,)), 1.0)
    assert agent.set_aside.tolist() == [0.0]


def test_a_choice_that_another_agent_made_is_paid():
    """Who learns from another's choices has entered none of them."""
    agent, other = (aw.HardStop(aw.UCB1(2, seed=1), 2.0, 0.5, None, seed=1) for _ in range(2))
    choices = [agent.choose() for _ in range(3)]
    for choice in choices:
        other.learn(None, choice._replace(cost=(0.25,)), 1.0)
    assert other.spent.tolist() == [0.75] and other.set_aside.tolist() == [0.0]


def test_the_budget_holds_where_rewards_come_late_and_again():
    """One delivery in three is a second one, of a decision drawn by chance: no path overspends, and all is counted."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        agent = aw.HardStop(aw.UCB1(3, seed=seed), 20.0, 1.0, 0, seed=seed)
        made, waiting, spent = [], [], 0.0
        for _ in range(200):
            choice = agent.choose()
            cost = 0.0 if choice.arm == 0 else float(rng.integers(1, 65)) / 64
            spent += cost
            made.append((choice._replace(cost=(cost,)), float(rng.random())))
            waiting.append(made[-1])
            while waiting and rng.random() < 0.5:
                agent.learn(None, *waiting.pop(int(rng.integers(len(waiting)))))
            delivered = [each for each in made if each not in waiting]
            if delivered and rng.random() < 0.3:
                agent.learn(None, *delivered[int(rng.integers(len(delivered)))])
        for late in waiting:
            agent.learn(None, *late)
        assert agent.spent[0] == spent <= 20.0 and agent.set_aside[0] == 0.0


def test_a_conservative_agents_account_is_the_same_after_a_replay():
    """Refused choices were guessed from the baseline's arm, which is safe, so a replay counted none of them."""

    def make():
        return aw.Conservative(aw.UCB1(n_arms=3, seed=1), baseline=1, alpha=0.2, seed=1)

    live, again, rng = make(), make(), np.random.default_rng(1)
    for _ in range(800):
        choice = live.choose()
        reward = float(rng.random() < [0.3, 0.5, 0.6][choice.arm])
        live.learn(None, choice, reward)
        again.record_choice(None, choice)
        again.learn(None, choice, reward)
    assert 0.0 < live.baseline_share < 1.0 and again.baseline_share == live.baseline_share
    np.testing.assert_array_equal(again._balance, live._balance)
