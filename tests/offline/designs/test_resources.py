"""Costs in several resources, from a decision to the answer; and questions about budgets that have no answer."""

from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.offline import Log, best_mixture, tradeoff

ARMS = {"small": [1.0, 0.0, 0.0], "middle": [0.0, 1.0, 0.0], "large": [0.0, 0.0, 1.0]}
REWARDS = np.array([0.5, 0.7, 0.8])
COSTS = np.array([[0.1, 3.0], [0.5, 2.0], [2.0, 1.0]])  # dollars, seconds


def logged(n: int, seed: int) -> Log:
    rng = np.random.default_rng(seed)
    p = np.array([0.5, 0.3, 0.2])
    arms = rng.choice(3, n, p=p)
    paid = COSTS[arms] * rng.uniform(0.5, 1.5, (n, 2))
    earned = (rng.random(n) < REWARDS[arms]).astype(float)
    return Log(arms=arms, rewards=earned, probabilities=p[arms], n_arms=3, costs=paid)


def test_a_log_takes_a_row_of_costs_per_decision():
    log: Any = logged(10, 1)
    assert log.costs.shape == (10, 2)
    assert log.take([3, 5]).costs.tolist() == log.costs[[3, 5]].tolist()
    assert log.part(2, 5).costs.tolist() == log.costs[2:5].tolist()
    assert log.with_costs(log.costs[:, :1]).costs.shape == (10,)
    assert next(log.decisions())["cost"] == log.costs[0].tolist()
    for wrong in (np.ones((9, 2)), np.ones((10, 0)), np.ones((10, 2, 2)), np.full((10, 2), np.nan)):
        with pytest.raises(ValueError, match="costs must be 10 finite numbers"):
            log.with_costs(wrong)


def test_costs_survive_a_file(tmp_path):
    log = logged(10, 1)
    log.to_dsjson(tmp_path / "log.dsjson")
    np.testing.assert_array_equal(Log.from_dsjson(tmp_path / "log.dsjson").costs, log.costs)
    some = log.with_costs(log.costs)
    assert some.costs is not None
    some.costs[3] = np.nan  # of a decision that nobody said the cost of
    some.to_dsjson(tmp_path / "some.dsjson")
    np.testing.assert_array_equal(Log.from_dsjson(tmp_path / "some.dsjson").costs, some.costs)


AGENT = {"class": "LagrangeCB", "oracle": {"class": "SquareCB"}, "horizon": 100, "budget": [20.0, 30.0]}


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_what_a_decider_paid_is_in_its_log(where, tmp_path):
    agent = {"class": "Explore", "agent": AGENT, "epsilon": 0.5}
    with aw.Decider(*([] if where == "memory" else [tmp_path / "d"]), agent=agent, seed=1) as decider:
        for t in range(40):
            made = decider.decide({"hour": t % 3}, arms=["a", "b"])
            decider.reward(made.id, 0.5, cost=[0.1, 0.2] if made.arm == "a" else [0.3, 0.4])
        log = decider.log()
        assert log.costs is not None and log.costs.shape == (40, 2)
        assert log.costs[log.arms == 0].tolist() == [[0.1, 0.2]] * int((log.arms == 0).sum())
        assert next(log.decisions())["cost"] in ([0.1, 0.2], [0.3, 0.4])
        result = tradeoff(log, {"a": [1.0, 0.0], "b": [0.0, 1.0]}, resources=["dollars", "seconds"])
    assert [each.value for each in result["b"].costs] == pytest.approx([0.3, 0.4])
    assert "dollars per reward" in str(result) and "seconds" in result._repr_html_()


def test_the_service_writes_them_as_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    from armwise.service.log.export_journal import pieces

    with aw.Decider(tmp_path / "d", agent=AGENT, seed=1) as decider:
        for t in range(3):
            decider.reward(decider.decide({"hour": t}, arms=["a", "b"]).id, 0.5, cost=[0.1, 0.2 * t])
        engine: Any = decider._backend.engine
        (tmp_path / "log.parquet").write_bytes(b"".join(pieces(engine.open_journal(), "default", "parquet")))
    np.testing.assert_array_equal(
        Log.from_parquet(tmp_path / "log.parquet").costs, [[0.1, 0.0], [0.1, 0.2], [0.1, 0.4]]
    )


def test_each_resource_has_its_columns_and_covers_the_truth():
    """Of 3 x 2 x 20 intervals of costs at 95 %, fewer than 106 covering would have probability below 1 %."""
    covered = 0
    for seed in range(20):
        result = tradeoff(logged(1500, seed), ARMS)
        for i, name in enumerate(ARMS):
            for j in range(2):
                cost = result[name].costs[j]
                covered += cost.low <= COSTS[i, j] <= cost.high
    assert covered >= 106, covered
    assert result.resources == ["cost 1", "cost 2"] and "cost 2 per reward" in str(result)
    assert result.front == ["small", "middle", "large"]  # each is better than the others in something
    assert len(result.plot().axes) == 2
    with pytest.raises(ValueError, match="2 resources"):
        _ = result["small"].cost
    with pytest.raises(ValueError, match="resources must be 2 names"):
        tradeoff(logged(100, 1), ARMS, resources=["dollars"])


def test_one_column_of_costs_is_one_number_per_row():
    log = logged(300, 2)
    assert log.costs is not None
    one, column = (tradeoff(log.with_costs(costs), ARMS) for costs in (log.costs[:, 0], log.costs[:, :1]))
    assert str(one) == str(column)


def test_a_mix_keeps_to_the_rate_of_every_resource_and_covers_the_optimum():
    """40 intervals at 95 %: fewer than 33 covering would have probability below 0.1 %."""
    rates, covered = [0.6, 2.2], 0
    truth = aw.budget_optimum(REWARDS[None], COSTS[None], rates).value
    for seed in range(40):
        best = best_mixture(logged(600, seed), ARMS, rates)
        covered += best.low <= truth <= best.high
        assert best.low <= best.value <= best.high <= 1.0
    assert covered >= 33, covered


def test_what_has_no_answer_is_refused():
    log = Log(arms=[0, 1] * 50, rewards=[0.0, 1.0] * 50, probabilities=[0.5] * 100, n_arms=2, costs=[0.01, 2] * 50)
    both = {"first": [1.0, 0.0], "second": [0.0, 1.0]}
    for rate in (-1.0, 1e-6):
        with pytest.raises(ValueError, match=r"no mix keeps to it, since the cheapest of these policies costs \[0.01"):
            best_mixture(log, both, rate)
    assert best_mixture(log, both, 0.01).value == 0.0  # just the cheapest
    no_rates: list[Any] = [np.nan, "x", [1.0, 2.0]]
    for rate in no_rates:
        with pytest.raises(ValueError, match="rate must be"):
            best_mixture(log, both, rate)
    with pytest.raises(ValueError, match="level must"):
        best_mixture(log, both, 1.0, level=2)
    nothing: list[Any] = ["x", {}, [both]]
    for policies in nothing:
        for asked in (lambda given: tradeoff(log, given), lambda given: best_mixture(log, given, 1.0)):
            with pytest.raises(ValueError, match="policies must be a dictionary"):
                asked(policies)


def test_rewards_between_0_and_1_give_an_interval_between_them():
    log = Log(arms=[0] * 9 + [1], rewards=[1.0] * 10, probabilities=[0.9] * 9 + [0.1], n_arms=2, costs=[1.0] * 10)
    best = best_mixture(log, {"usual": [1.0, 0.0], "rare": [0.0, 1.0]}, 2.0)
    assert 0.0 <= best.low <= best.value <= best.high <= 1.0


def test_an_optimum_of_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="rewards must be finite"):
        aw.budget_optimum([[np.nan, 1.0]], [[0.0, 1.0]], 0.5)
    with pytest.raises(ValueError, match="costs must be finite"):
        aw.budget_optimum([[0.0, 1.0]], [[0.0, np.inf]], 0.5)
    for rate in (np.nan, [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="rate must be"):
            aw.budget_optimum([[0.0, 1.0]], [[0.0, 1.0]], rate)
