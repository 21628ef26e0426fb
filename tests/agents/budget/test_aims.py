"""LagrangeCB with something known beforehand, and an aim below its budget: room for costs with long tails."""

import numpy as np
import pytest

import armwise as aw

LIST = np.array([0.02, 0.5, 1.0])


def agent_of(T, rate, seed, **options):
    """Three arms over a constant: prices by the chance to be the best."""
    oracle = aw.LinUCB(3, alpha=1.0, lam=1.0)
    return aw.LagrangeCB(oracle, T, rate * T, weighting="wins", expected_costs=LIST, seed=seed, **options)


def tailed(T, seed):
    """Rounds in which costs have a long tail, and the cheap arm is much worse than the others."""
    rng = np.random.default_rng([6, seed])
    rewards = np.clip(rng.normal([0.6, 0.9, 0.91], 0.1, (T, 3)), 0.0, 1.0)
    return np.tile(np.eye(3), (T, 1, 1)), rewards, LIST * rng.lognormal(-0.32, 0.8, (T, 3))


def test_the_last_decisions_do_not_pay_for_every_tail():
    """Rate 0.6, where the cheap arm is not needed: a budget of 0.576 without room plays it ten times as often."""
    T, cheap = 600, {"room": 0, "none": 0}
    spent: dict[str, list[float]] = {"room": [], "none": []}
    for seed in range(12):
        for name, budget, aim in (("room", 0.6, 0.96), ("none", 0.96 * 0.6, 1.0)):
            agent = agent_of(T, budget, seed, prior=[0.6, 0.9, 0.9], aim=aim)
            played = agent.play(*tailed(T, seed))
            cheap[name] += int((played.arms[T // 2 :] == 0).sum())
            spent[name].append(played.costs.mean() / 0.6)
    assert max(spent["room"]) <= 1.0
    assert abs(np.mean(spent["room"]) - np.mean(spent["none"])) < 0.015  # the room is not a larger budget
    assert cheap["room"] < 0.5 * cheap["none"], cheap


def test_an_aim_of_all_is_the_budget_as_it_was():
    """What is allowed per decision is then all that is left per decision that is left, over and under the budget."""
    for cost in (0.1, 3.0):
        agent = agent_of(20, 0.7, 1)
        for _ in range(12):
            agent.learn(np.eye(3), agent.choose(np.eye(3)), 0.5, cost)
        assert agent._allowed(12, 20) == pytest.approx(max((20 - 12 * cost / 0.7) / 8, 0.0))


def test_what_is_above_the_aim_is_made_up_for_slowly_and_what_is_above_the_budget_at_once():
    agent = agent_of(800, 1.0, 1, aim=0.97)
    for done, spent, allowed in (
        (400, 400.0, 0.97 - 12 / 400),  # over the aim: within what is left
        (780, 770.0, 0.97 - 13.4 / 100),  # an eighth of the horizon, although 20 are left
        (780, 750.0, 0.97 + 6.6 / 20),  # under it: by the end
        (795, 799.0, 1 / 5),  # more than the budget has left: by the end
        (780, 900.0, 0.0),
    ):
        agent._spent[:] = spent
        assert agent._allowed(done, 800) == pytest.approx(allowed), (done, spent)


def test_where_costs_must_be_covered_an_aim_asks_for_no_less():
    agent = aw.LagrangeCB(aw.SquareCB(2, n_arms=2), 100, [10.0, 5.0], covering=[False, True], aim=0.5, seed=1)
    assert agent._allowed(0, 100).tolist() == [0.5, 1.0]


def test_arms_that_are_expected_to_be_worse_are_tried_less():
    """The budget pays for the dearest arm always: how often the worst one is played depends on what was expected."""
    cheap = {}
    for name, prior in (
        ("alike", 0.9),
        ("dearer is better", [0.6, 0.9, 0.95]),
        ("cheaper is better", [0.95, 0.9, 0.6]),
    ):
        cheap[name] = sum(
            int((agent_of(200, 2.0, seed, prior=prior).play(*tailed(200, seed)).arms == 0).sum()) for seed in range(10)
        )
    assert 2 * cheap["dearer is better"] < cheap["alike"] < cheap["cheaper is better"], cheap


def test_what_was_expected_wrongly_is_forgotten():
    """The best arm was expected to be the worst: it is found, and played in most of the last rounds."""
    for seed in range(5):
        played = agent_of(600, 2.0, seed, prior=[0.9, 0.9, 0.6]).play(*tailed(600, seed))
        assert (played.arms[300:] == 0).mean() < 0.05


def test_little_is_tried_when_little_is_left():
    """The same estimates, early and at the end of a period: the arm that looks worse has less chance at the end."""
    agent = agent_of(1000, 2.0, 1, prior=[0.5, 0.6, 0.7])
    outcomes, widths = agent._estimated(np.eye(3))
    agent._errors[:] = 1.0, 25.0
    p = [agent._weighted(outcomes, widths, np.zeros(1), t) for t in (1, 500, 1000, 1001)]
    assert p[0][0] > p[1][0] > p[2][0] and p[3].tolist() == p[0].tolist()


@pytest.mark.parametrize("prior", [1.5, -0.1, [0.5, 2.0], [0.5, float("nan")], [[0.5]], [], "high"])
def test_a_prior_that_is_none(prior):
    with pytest.raises(ValueError, match="prior"):
        aw.LagrangeCB(aw.SquareCB(2, n_arms=2), 100, 10.0, prior=prior)


def test_a_prior_for_other_arms():
    with pytest.raises(ValueError, match="prior must be"):
        aw.LagrangeCB(aw.SquareCB(2, n_arms=2), 100, 10.0, prior=[0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="prior has 2 numbers, and expected_costs names 3 arms"):
        agent_of(100, 1.0, 1, prior=[0.1, 0.2])
    agent = aw.LagrangeCB(aw.SquareCB(2), 100, 10.0, prior=[0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="prior names 3 arms, and this round has 2"):
        agent.probabilities(np.ones((2, 2)))
    assert agent.clone(seed=2).prior.tolist() == [0.1, 0.2, 0.3]
    for aim in (0.0, 1.2):
        with pytest.raises(ValueError, match="aim"):
            agent_of(100, 1.0, 1, aim=aim)


@pytest.mark.parametrize(
    ("oracle", "why"),
    [
        (lambda: aw.LogisticThompson(3), "estimates chances"),
        (lambda: aw.BetaThompson(3), "estimates chances"),
        (lambda: aw.PerContext(aw.UCB1(3)), "reads keys"),
    ],
)
def test_an_oracle_that_cannot_regress_costs_is_refused_when_it_is_made(oracle, why):
    """They were taken, and failed inside the first round, or learnt costs as if they were chances."""
    with pytest.raises(ValueError, match=f"oracle must regress .*{why}"):
        aw.LagrangeCB(oracle(), 100, 50.0)


@pytest.mark.parametrize(("given", "message"), [
    ({"expected_costs": [0.0, np.nan]}, "expected_costs must be finite numbers"),
    ({"expected_costs": [0.0, np.inf]}, "expected_costs must be finite numbers"),
    ({"covering": "no"}, "covering must be True or False, or 1, one per resource"),
    ({"covering": None}, "covering must be True or False"),
    ({"covering": [True, False]}, "covering must be True or False"),
])  # fmt: skip
def test_what_cannot_be_is_refused_by_its_name(given, message):
    with pytest.raises(ValueError, match=message):
        aw.LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=100, budget=10.0, **given)
