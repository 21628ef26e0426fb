"""Values and costs from one log cover the truth, and so does the best mix that a budget allows."""

# mypy: disable-error-code="index, union-attr"

import numpy as np
import pytest

import armwise as aw

REWARDS, COSTS = np.array([0.5, 0.7, 0.8]), np.array([0.1, 0.5, 2.0])


def logged(n: int, seed: int, rewards=REWARDS, costs=COSTS) -> aw.offline.Log:
    rng = np.random.default_rng(seed)
    K = len(rewards)
    p = np.array([0.5, 0.3, 0.2]) if K == 3 else np.full(K, 1 / K)
    arms = rng.choice(K, n, p=p)
    earned = (rng.random(n) < rewards[arms]).astype(float)
    paid = costs[arms] * rng.uniform(0.5, 1.5, n)
    return aw.offline.Log(arms=arms, rewards=earned, probabilities=p[arms], n_arms=K, costs=paid)


def test_tables_of_arms_are_covered_and_the_front_is_right():
    """Of 2 x 3 x 20 intervals at 95 %, fewer than 106 covering would have probability below 1 %."""
    names = {"small": [1.0, 0, 0], "middle": [0, 1.0, 0], "large": [0, 0, 1.0]}
    covered = 0
    for seed in range(20):
        result = aw.offline.tradeoff(logged(1500, seed), names)
        for i, name in enumerate(names):
            judged = result[name]
            covered += judged.value.low <= REWARDS[i] <= judged.value.high
            covered += judged.cost.low <= COSTS[i] <= judged.cost.high
            assert judged.cost_per_reward.low < COSTS[i] / REWARDS[i] * 1.3
    assert covered >= 106, covered
    assert result.front == ["small", "middle", "large"]
    assert "cost per reward" in str(result)


def test_a_policy_with_few_rows_is_said_so_under_the_table():
    few = aw.offline.tradeoff(logged(100, 1), {"small": [1.0, 0, 0], "large": [0, 0, 1.0]})
    assert {each.split(":")[0] for each in few.weaknesses} == {"large"}
    assert str(few).endswith(few.weaknesses[-1]) and "<p>large: " in few._repr_html_()
    assert not aw.offline.tradeoff(logged(1500, 1), {"large": [0, 0, 1.0]}).weaknesses


def test_costs_with_a_long_tail_are_covered_by_few_rows():
    """Log-normal dollars and 32 rows that answer: normal intervals cover 82 % of the time, nearly all misses too low.

    Fewer than 126 of 150 covering would have probability below 1 % at the 91 % that these have (of 400 others).
    """
    truth, covered, normal = np.exp(0.5), 0, 0
    for seed in range(150):
        rng = np.random.default_rng([40, seed])
        arms = (rng.random(400) < 0.08).astype(int)
        log = aw.offline.Log(
            arms=arms, rewards=[0.5] * 400, probabilities=np.where(arms, 0.08, 0.92), n_arms=2,
            costs=np.exp(rng.standard_normal(400)),
        )  # fmt: skip
        cost = aw.offline.tradeoff(log, {"large": [0.0, 1.0]})["large"].cost
        covered += cost.low <= truth <= cost.high
        normal += abs(cost.value - truth) < 1.96 * cost.std_error
    assert covered >= 126 and covered > normal + 5, (covered, normal)
    same = aw.offline.Log(arms=[0, 1] * 9, rewards=[1.0] * 18, probabilities=[0.5] * 18, n_arms=2, costs=[1, 2] * 9)
    assert aw.offline.tradeoff(same, {"large": [0, 1]})["large"].cost_per_reward.high == 2.0


def test_a_policy_that_is_dearer_and_worse_is_off_the_front():
    log = logged(4000, 1)
    result = aw.offline.tradeoff(log, {"large": [0, 0, 1.0], "middle": [0, 1.0, 0], "waste": [0.6, 0.0, 0.4]})
    assert result.front == ["middle", "large"]


def test_the_best_mixture_covers_the_lp_optimum():
    """Also where eight arms are as good as each other and the optimum of the estimates is the luckiest of them.

    Of 40 intervals at 95 %, fewer than 33 covering would have probability below 0.1 %; those of a bootstrap of the LP,
    which flatters twice, cover 5 of the second 40.
    """
    alike = np.full(8, 0.8), np.linspace(0.5, 1.5, 8)
    for rewards, costs, rate in ((REWARDS, COSTS, 0.4), (*alike, 1.0)):
        each = {f"arm {k}": row for k, row in enumerate(np.eye(len(rewards)))}
        truth = aw.budget_optimum(rewards[None], costs[None], rate)
        covered = 0
        for seed in range(40):
            best = aw.offline.best_mixture(logged(600, seed, rewards, costs), each, rate)
            covered += best.low <= truth.value <= best.high
            assert best.low <= best.value <= best.high and sum(best.shares.values()) == pytest.approx(1.0)
        assert covered >= 33, covered


def test_a_mixture_is_not_sure_of_an_arm_with_three_good_answers():
    """Three rewards of 1 have no spread: an interval from the spread alone would be the point 1."""
    log = aw.offline.Log(
        arms=[0] * 57 + [1] * 3, rewards=[0.0, 1.0, 1.0] * 19 + [1.0] * 3, probabilities=[0.95] * 57 + [0.05] * 3,
        n_arms=2, costs=[1.0] * 60,
    )  # fmt: skip
    best = aw.offline.best_mixture(log, {"usual": [1.0, 0.0], "rare": [0.0, 1.0]}, 2.0)
    assert best.value == 1.0 and best.low < 0.75
    with pytest.raises(ValueError, match="'rare'"):
        aw.offline.best_mixture(log.take(range(57)), {"usual": [1.0, 0.0], "rare": [0.0, 1.0]}, 2.0)


def test_costs_go_with_their_rows():
    log = logged(10, 1)
    assert log.take([3, 5]).costs.tolist() == log.costs[[3, 5]].tolist()
    assert log.with_probabilities(log.probabilities).costs.tolist() == log.costs.tolist()
    assert log.part(2, 5).costs.tolist() == log.costs[2:5].tolist()
    with pytest.raises(ValueError, match="costs must be 10"):
        log.with_costs([1.0])
    with pytest.raises(ValueError, match="no costs"):
        aw.offline.tradeoff(aw.offline.Log(arms=[0], rewards=[1.0], probabilities=[0.5], n_arms=2), {})


def test_a_decider_s_log_has_its_costs():
    shop = aw.Decider(seed=1)
    for t in range(20):
        made = shop.decide({"hour": t % 3}, arms=["a", "b"])
        shop.reward(made, 1.0, cost=0.25)
    assert shop.log().costs.tolist() == [0.25] * 20


def test_a_table_in_whole_numbers_is_a_table():
    """[0, 1] for [0.0, 1.0]: shares of the two arms, since a log of 100 rows has 100 arms."""
    log = aw.offline.Log(
        arms=[0, 1] * 50, rewards=[0.0, 1.0] * 50, probabilities=[0.5] * 100, n_arms=2, costs=[0, 2] * 50
    )
    result = aw.offline.tradeoff(log, {"whole": [0, 1], "real": [0.0, 1.0]})
    assert result["whole"].value == result["real"].value and result["whole"].cost.value == 2.0
    with pytest.raises(ValueError, match="sum"):
        aw.offline.tradeoff(log, {"two": [1, 1]})


def test_the_tail_of_a_rare_arm_s_cost_is_looked_for_in_all_rows():
    """Every arm costs eleven times the usual in one of ten rows; some twenty rows of the rare arm seldom say how often.

    80 logs: with the rare arm's own rows alone 0.85 of the intervals of its dollars cover the truth, and of a table
    that mixes arms 0.93 (a normal interval: few of its many rows are dear). A failure means that intervals end too low.
    """
    rng, hits = np.random.default_rng(8), np.zeros(2)
    p, means = np.array([0.025, 0.925, 0.05]), np.array([0.03, 0.9, 15.0])
    table = np.array([0.3, 0.6, 0.1])
    for _ in range(80):
        arms = rng.choice(3, 800, p=p)
        paid = means[arms] * np.where(rng.random(800) < 0.1, 5.5, 0.5) * rng.uniform(0.5, 1.5, 800)
        log = aw.offline.Log(arms=arms, rewards=np.ones(800), probabilities=p[arms], n_arms=3, costs=paid)
        found = aw.offline.tradeoff(log, {"rare": [1.0, 0.0, 0.0], "table": table})
        for k, (name, truth) in enumerate((("rare", means[0]), ("table", float(table @ means)))):
            hits[k] += found[name].cost.low <= truth <= found[name].cost.high
    assert (hits >= 0.93 * 80).all(), hits
