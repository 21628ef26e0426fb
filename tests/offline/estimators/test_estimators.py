"""Estimators against explicit loops over the rows, and what a target may be."""

# mypy: disable-error-code="arg-type, attr-defined, union-attr"

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.offline import DRos, Log, SwitchDR, compare, evaluate, scores
from armwise.offline.estimators.reward_models import CrossfitRidge
from tests.offline.worlds import K, expected, make

ALL = ["ips", "snips", "dm", "dr", "sndr", "switch-dr", "dros"]


class Model:
    """A reward model that is wrong on purpose."""

    def predict(self, contexts):
        return 0.2 + 0.5 * expected(contexts)


def by_hand(log, pi, q, clip=0.0, tau=3.0, lam=5.0):
    """The textbook sums, one row at a time."""
    total = dict.fromkeys(["wr", "w", "dm", "dr", "wd", "switch", "dros"], 0.0)
    for i in range(len(log)):
        arm, r = log.arms[i], log.rewards[i]
        w = pi[i, arm] / max(log.probabilities[i], clip)
        under = sum(pi[i, a] * q[i, a] for a in range(log.n_arms))
        error = r - q[i, arm]
        total["wr"] += w * r
        total["w"] += w
        total["dm"] += under
        total["dr"] += under + w * error
        total["wd"] += w * error
        total["switch"] += under + (w * error if w <= tau else 0.0)
        total["dros"] += under + lam * w / (w * w + lam) * error
    n = len(log)
    return {
        "ips": total["wr"] / n, "snips": total["wr"] / total["w"], "dm": total["dm"] / n, "dr": total["dr"] / n,
        "sndr": total["dm"] / n + total["wd"] / total["w"], "switch-dr": total["switch"] / n, "dros": total["dros"] / n,
    }  # fmt: skip


@pytest.mark.parametrize("clip", [None, 0.15])
def test_every_estimator_equals_its_sum_over_the_rows(clip):
    log, pi = make(500, seed=1)
    q = Model().predict(log.contexts)
    estimators = ["ips", "snips", "dm", "dr", "sndr", SwitchDR(tau=3.0), DRos(lam=5.0)]
    result = evaluate(log, pi, estimators, reward_model=Model(), clip=clip)
    for name, value in by_hand(log, pi, q, clip or 0.0).items():
        assert result[name].value == pytest.approx(value, rel=1e-12), name
    assert result["ips"].n == 500
    w = pi[np.arange(500), log.arms] / np.maximum(log.probabilities, clip or 0.0)
    assert result["ips"].ess == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-12)
    assert result.diagnostics.clipped == pytest.approx((log.probabilities < (clip or 0.0)).mean())


@pytest.mark.parametrize("name", ALL)
def test_scores_have_the_value_as_mean_and_the_standard_error_as_spread(name):
    log, pi = make(800, seed=2)
    result = evaluate(log, pi, name, reward_model=Model(), warn=False)[name]
    each = scores(log, pi, name, reward_model=Model())
    assert each.shape == (800,)
    assert each.mean() == pytest.approx(result.value, rel=1e-10)
    assert each.std(ddof=1) / np.sqrt(800) == pytest.approx(result.std_error, rel=1e-10)


def test_limits_of_the_tuned_estimators():
    log, pi = make(400, seed=3)
    plain = evaluate(log, pi, ["dm", "dr"], reward_model=Model())
    for estimator, limit in [(SwitchDR(tau=0.0), "dm"), (SwitchDR(tau=np.inf), "dr"), (DRos(lam=0.0), "dm"),
                             (DRos(lam=np.inf), "dr")]:  # fmt: skip
        value = evaluate(log, pi, [estimator], reward_model=Model())[estimator.name].value
        assert value == pytest.approx(plain[limit].value, rel=1e-12)


def test_a_tuned_estimator_chooses_from_its_grid_by_slope():
    log, pi = make(600, seed=4)
    chosen = evaluate(log, pi, "dros", reward_model=Model())["dros"]
    low, high, last = -np.inf, np.inf, None
    for lam in DRos.grid:  # from the least biased to the most
        each = scores(log, pi, DRos(lam=lam), reward_model=Model())
        half = 4.0 * each.std(ddof=1) / np.sqrt(600)
        low, high = max(low, each.mean() - half), min(high, each.mean() + half)
        if low > high:
            break
        last = lam
    assert chosen.parameter == last
    dr = evaluate(log, pi, "dr", reward_model=Model())["dr"]
    assert (chosen.low, chosen.high) == (min(dr.low, chosen.value), max(dr.high, chosen.value))  # DR's own interval
    assert chosen.value == pytest.approx(scores(log, pi, DRos(lam=chosen.parameter), reward_model=Model()).mean())


def test_the_default_model_is_a_ridge_fitted_on_the_other_folds():
    from armwise.offline.estimators.reward_models import CrossfitRidge, folds_of

    log, _ = make(300, seed=5)
    q = CrossfitRidge(lam=2.5, folds=3).fit(log).predict(log.rows)
    fold = folds_of(log.rows, 3)
    X = np.column_stack([np.ones(300), log.contexts])
    for i in range(0, 300, 17):
        train = fold != fold[i]
        mean = log.rewards[train].mean()
        for a in range(K):
            rows = train & (log.arms == a)
            A = X[rows].T @ X[rows] + 2.5 * np.eye(X.shape[1])
            theta = np.linalg.inv(A) @ X[rows].T @ (log.rewards[rows] - mean)
            assert q[i, a] == pytest.approx(mean + X[i] @ theta, rel=1e-9)


def test_ridge_on_features_of_arms_is_one_model():
    from armwise.offline.estimators.reward_models import CrossfitRidge, folds_of

    rng = np.random.default_rng(6)
    X, arms, rewards = rng.normal(size=(200, K, 2)), rng.integers(0, K, 200), rng.random(200)
    log = Log(contexts=X, arms=arms, rewards=rewards, n_arms=K)
    q = CrossfitRidge(lam=0.5, folds=2).fit(log).predict(log.rows)
    Z = np.column_stack([np.ones(200), X[np.arange(200), arms]])
    fold = folds_of(log.rows, 2)
    train = fold != fold[0]
    theta = np.linalg.solve(
        Z[train].T @ Z[train] + 0.5 * np.eye(3), Z[train].T @ (rewards[train] - rewards[train].mean())
    )
    np.testing.assert_allclose(q[0], rewards[train].mean() + theta[0] + X[0] @ theta[1:], rtol=1e-9)


def test_crossfitting_never_uses_the_row_itself():
    # A model that memorises its rows would give q = r on every logged arm if it had seen them: then DR equals DM.
    from sklearn.neighbors import KNeighborsRegressor

    log, pi = make(300, seed=7)
    noise = Log(log.contexts, log.arms, np.random.default_rng(0).random(300), log.probabilities, n_arms=K)
    result = evaluate(noise, pi, ["dm", "dr"], reward_model=KNeighborsRegressor(1))
    assert abs(result["dm"].value - result["dr"].value) > 1e-4


def test_a_target_in_every_form_gives_the_same_value():
    log, _ = make(300, seed=8)
    weights = np.random.default_rng(1).normal(size=(K, 3))
    policy = aw.Linear(weights)
    arms = policy.many(log.contexts)
    table = np.eye(K)[arms]
    value = evaluate(log, policy, ["ips", "dr"])
    for form in (
        table,
        arms,
        table.tolist(),
        lambda x: int(np.argmax(weights @ x)),
        lambda x: np.eye(K)[np.argmax(weights @ x)],
    ):
        again = evaluate(log, form, ["ips", "dr"])
        assert again["ips"].value == value["ips"].value
        assert again["dr"].value == pytest.approx(value["dr"].value, rel=1e-12)
    assert evaluate(log, np.full(K, 1 / K), "ips")["ips"].value == evaluate(log, aw.Uniform(K), "ips")["ips"].value


def test_a_frozen_agent_is_judged_by_its_probabilities_and_not_changed():
    log, _ = make(200, seed=9)
    agent = aw.LinUCB(dim=3, n_arms=K, alpha=0.5, seed=1)
    for i in range(100):
        agent.learn(log.contexts[i], aw.Choice(int(log.arms[i]), 0.5), log.rewards[i])
    before = saving.dumps(agent)
    table = np.stack([agent.probabilities(x) for x in log.contexts])
    assert evaluate(log, agent, "ips")["ips"].value == evaluate(log, table, "ips")["ips"].value
    assert saving.dumps(agent) == before
    exp3 = aw.Exp3(n_arms=K, gamma=0.2, seed=1)
    assert evaluate(log, exp3, "ips")["ips"].value == evaluate(log, aw.Uniform(K), "ips")["ips"].value


def test_arms_that_change_from_row_to_row():
    rng = np.random.default_rng(10)
    sizes = rng.integers(2, 6, 300)
    contexts = [rng.normal(size=(k, 2)) for k in sizes]
    arms, rewards = np.array([rng.integers(k) for k in sizes]), rng.random(300)
    log = Log(contexts=contexts, arms=arms, rewards=rewards, probabilities=1.0 / sizes)
    assert log.n_arms == 5
    assert log.available.sum() == sizes.sum()
    weights = np.array([-1.0, 0.5])
    value = np.mean([(np.argmax(x @ weights) == a) * k * r for x, a, k, r in zip(contexts, arms, sizes, rewards)])
    assert evaluate(log, aw.Linear(weights), "ips")["ips"].value == pytest.approx(value)
    uniform = evaluate(log, aw.Uniform(5), ["ips", "dm"])  # mass on arms that are not there goes to those that are
    assert uniform["ips"].value == pytest.approx(rewards.mean())
    agent = aw.LinUCB(dim=2, alpha=0.0)
    agent.learn(contexts[0], aw.Choice(0, 1.0), 1.0)
    greedy = np.mean([agent.probabilities(x)[a] * k * r for x, a, k, r in zip(contexts, arms, sizes, rewards)])
    assert evaluate(log, agent, "ips")["ips"].value == pytest.approx(greedy)


def test_shared_and_arm_features_together():
    rng = np.random.default_rng(11)
    shared, own = rng.normal(size=(200, 2)), rng.normal(size=(3, 1))
    log = Log(contexts=shared, arms=rng.integers(0, 3, 200), rewards=rng.random(200), probabilities=np.full(200, 1 / 3),
              n_arms=3, arm_features=own)  # fmt: skip
    X = log.rows.features()
    assert X.shape == (200, 3, 3)
    np.testing.assert_array_equal(X[7, 2], [*shared[7], *own[2]])
    agent = aw.LinUCB(dim=3, alpha=1.0)
    table = np.stack([agent.probabilities(x) for x in X])
    assert evaluate(log, agent, "ips")["ips"].value == evaluate(log, table, "ips")["ips"].value


def test_a_paired_comparison_is_the_difference_of_scores():
    log, pi = make(700, seed=12)
    other = np.full(K, 1 / K)
    for name in ("ips", "snips", "dr", "sndr"):
        found = compare(log, pi, other, name, reward_model=Model())
        one = scores(log, pi, name, reward_model=Model())
        two = scores(log, other, name, reward_model=Model())
        assert found.value == pytest.approx((one - two).mean(), rel=1e-9)
        assert found.std_error == pytest.approx((one - two).std(ddof=1) / np.sqrt(700), rel=1e-9)
        apart = np.hypot(found.first.std_error, found.second.std_error)
        assert found.std_error < apart or name == "ips"
    assert compare(log, pi, pi, "dr").p_value == 1.0
    assert "difference" in compare(log, pi, other, "dr").table()


@pytest.mark.parametrize("interval", ["auto", "normal", "bootstrap", "bernstein", "betting", "sequence"])
def test_every_interval_holds_its_value_for_every_estimator(interval):
    log, pi = make(3000, seed=13)
    result = evaluate(log, pi, ALL, interval=interval, resamples=200)
    for name in ALL:
        assert result[name].low <= result[name].value <= result[name].high, name
    wide = evaluate(log, pi, ALL, interval=interval, resamples=200, level=0.999)
    for name in ALL:
        assert wide[name].high - wide[name].low >= result[name].high - result[name].low, name
    difference = compare(log, pi, np.full(K, 1 / K), "dr", interval=interval, resamples=200)
    assert difference.low < difference.value < difference.high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimators": ["ipss"]}, "did you mean 'ips'"),
        ({"estimators": []}, "empty"),
        ({"estimators": ["ips", "ips"]}, "twice"),
        ({"clip": 2.0}, "clip"),
        ({"level": 1.5}, "level"),
        ({"interval": "exact"}, "interval is 'exact'"),
        ({"interval": "bernstein", "reward_range": (0.0, 0.5)}, "outside reward_range"),
        ({"reward_model": np.zeros((2, 2))}, "reward_model has shape"),
        ({"policy": np.zeros((100, K))}, "sum to 1"),
        ({"policy": np.zeros((3, K))}, "shape"),
        ({"policy": lambda x: K}, "arm"),
        ({"policy": "uniform"}, "policy must be"),
        ({"policy": aw.LinUCB(dim=3)}, "no features of the arms"),
        ({"policy": aw.Exp4(n_experts=2, n_arms=K, gamma=0.1)}, "advice"),
        ({"log": "log.csv"}, "log must be"),
    ],
)
def test_bad_input_is_refused_with_a_reason(change, message):
    log, pi = make(100, seed=14)
    arguments = {"log": log, "policy": pi, "estimators": ["ips", "dm"]} | change
    with pytest.raises(ValueError, match=message):
        evaluate(arguments.pop("log"), arguments.pop("policy"), **arguments)


def test_constant_rewards_have_no_spread_whatever_the_weights():
    # The delta method's variance is a difference of equal numbers here: rounding must not make it negative.
    for seed in range(20):
        log, pi = make(1000, seed=seed)
        same = Log(log.contexts, log.arms, np.full(1000, 0.7), log.probabilities, n_arms=K)
        found = evaluate(same, pi, ["snips", "sndr"], warn=False)
        for name in found:
            assert found[name].value == pytest.approx(0.7)
            assert found[name].std_error < 1e-8
            assert found[name].low < 0.7 < found[name].high  # a thousand equal rows leave about 3/n open


def test_a_log_without_probabilities_says_what_to_do():
    log, pi = make(100, seed=15, hidden=True)
    with pytest.raises(ValueError, match="PropensityModel"):
        evaluate(log, pi, ["ips"])
    result = evaluate(log, pi, ["dm"])
    assert np.isnan(result["dm"].ess)
    assert result.diagnostics is None
    assert result.to_dict()["estimates"]["dm"]["ess"] is None


def test_a_ridge_learns_from_the_first_rows_of_a_long_log(monkeypatch):
    # Rows that it has not learnt from need no folds; parts of the log learn from the same rows as the whole.
    monkeypatch.setattr("armwise.offline.estimators.reward_models._ROWS", 90)
    monkeypatch.setattr("armwise.offline.estimators.reward_models._PER_PARAMETER", 1)
    rng = np.random.default_rng(4)
    X, arms, y = rng.normal(size=(400, 2)), rng.integers(0, 3, 400), rng.random(400)
    log = Log(contexts=X, arms=arms, rewards=y, n_arms=3)
    model = CrossfitRidge().fit(log)
    q = model.predict(log.rows.take(slice(100, 400)))
    mean = y[:90].mean()
    for a in range(3):
        mine = arms[:90] == a
        Z = np.c_[np.ones(mine.sum()), X[:90][mine]]
        theta = np.linalg.solve(Z.T @ Z + np.eye(3), Z.T @ (y[:90][mine] - mean))
        np.testing.assert_allclose(q[:, a], mean + np.c_[np.ones(300), X[100:]] @ theta, atol=1e-12)
    short = CrossfitRidge().fit(Log(contexts=X[:90], arms=arms[:90], rewards=y[:90], n_arms=3))
    np.testing.assert_allclose(model.predict(log.rows.take(slice(0, 90))), short.predict(log.rows.take(slice(0, 90))))
    sums = CrossfitRidge().sums(log)
    assert sums.gram is not None and sums.gram[..., 0, 0].sum() == 90
