"""Estimated propensities, and learning a policy from a log."""

# mypy: disable-error-code="arg-type, index, union-attr"

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import armwise as aw
from armwise.core.seeds import row_uniforms
from armwise.core.tools.threads import thread_pools
from armwise.offline import Log, PropensityModel, evaluate, fit
from armwise.offline.learning.fit_policy import ArmFeatures
from tests.offline.worlds import D, K, expected, logging, make, target, truth


def test_estimated_propensities_serve_as_well_as_the_true_ones():
    for seed in range(10):
        log, pi = make(4000, seed)
        hidden, _ = make(4000, seed, hidden=True)
        known = evaluate(log, pi, "ips")["ips"]
        estimated = evaluate(PropensityModel(seed=seed).fill(hidden), pi, "ips")["ips"]
        assert abs(estimated.value - known.value) < 2 * known.std_error


def test_ips_with_estimated_propensities_is_unbiased():
    # 200 logs; the mean of the estimates against the truth, two-sided at 1 %.
    found = []
    with thread_pools().limit(limits=1):  # problems this small only lose by threads
        for seed in range(200):
            hidden, pi = make(1500, 10_000 + seed, hidden=True)
            found.append(float(np.mean(_ips_scores(PropensityModel().fill(hidden), pi))))
    assert stats.ttest_1samp(found, truth()).pvalue > 0.01


def _ips_scores(log, pi):
    return pi[np.arange(len(log)), log.arms] / log.probabilities * log.rewards


def test_the_model_is_cross_fitted_calibrated_and_clipped():
    from sklearn.ensemble import RandomForestClassifier

    hidden, _ = make(3000, 3, hidden=True)
    true = logging(hidden.contexts)[np.arange(3000), hidden.arms]
    forest = RandomForestClassifier(30, min_samples_leaf=3, random_state=0)  # overconfident as it comes
    errors = {}
    for calibrate in (False, True):
        model = PropensityModel(forest, calibrate=calibrate, clip=0.02)
        log = model.fill(hidden)
        assert log.probabilities.min() >= 0.02
        table = model.calibration(bins=5)
        assert table.shape == (5, 3)
        assert table[:, 2].sum() == 3000 * K
        errors[calibrate] = np.abs(table[:, 0] - table[:, 1]).mean()
        assert np.corrcoef(log.probabilities, true)[0, 1] > 0.5
    assert errors[True] < errors[False]
    assert all(t > 1.05 or share > 0.05 for t, share in model.corrections)  # it was made less sure
    # Memorising rows would give every logged arm a probability near 1; other folds cannot.
    memory = PropensityModel(RandomForestClassifier(1, bootstrap=False, random_state=0), calibrate=False)
    assert memory.fill(hidden).probabilities.mean() < 0.6


def test_propensities_of_a_log_without_contexts_are_frequencies():
    rng = np.random.default_rng(4)
    arms = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    log = PropensityModel().fill(Log(arms=arms, rewards=np.zeros(3000), n_arms=3))
    for a, p in enumerate([0.6, 0.3, 0.1]):
        assert log.probabilities[arms == a].mean() == pytest.approx(p, abs=0.03)
    with pytest.raises(ValueError, match="too few"):
        PropensityModel(folds=3).fill(Log(arms=[0], rewards=[0.0], n_arms=2))
    with pytest.raises(ValueError, match="fill"):
        PropensityModel().calibration()


@pytest.mark.parametrize("method", ["ips", "dr"])
def test_fit_finds_a_good_policy_and_judges_it_honestly(method):
    log, _ = make(12_000, 5)
    fitted = fit(log, aw.LinearOracle(dim=D), method, seed=1)
    x = np.random.default_rng(6).normal(size=(200_000, D))
    q = expected(x)
    worth = q[np.arange(len(x)), fitted.policy.many(x)].mean()
    assert worth > 0.95 * q.max(axis=1).mean()
    assert worth > (target(x) * q).sum(axis=1).mean()
    assert fitted.low < worth < fitted.high
    assert fitted.n_train + fitted.n_test == 12_000
    assert fitted.estimate["snips"].n == fitted.n_test


def test_the_estimate_comes_from_rows_that_the_policy_never_saw():
    # Pure noise: the best of many policies looks good where it was chosen, and is worth 1/2 elsewhere.
    rng = np.random.default_rng(7)
    n = 600
    log = Log(contexts=rng.normal(size=(n, 2)), arms=rng.integers(0, 2, n), rewards=rng.integers(0, 2, n) * 1.0,
              probabilities=np.full(n, 0.5), n_arms=2)  # fmt: skip
    class_ = aw.FinitePolicies(
        [aw.Stump(f, t, a, 1 - a) for f in (0, 1) for t in np.linspace(-2, 2, 60) for a in (0, 1)]
    )
    chosen = [fit(log, class_, "ips", seed=s) for s in range(40)]
    assert np.mean([f.value for f in chosen]) == pytest.approx(0.5, abs=0.04)
    own = [evaluate(log, f.policy, "ips")["ips"].value for f in chosen]
    assert np.mean(own) > np.mean([f.value for f in chosen]) + 0.02


def test_fit_equals_the_definition():
    log, _ = make(500, 8)
    policies = [aw.Constant(a) for a in range(K)] + [
        aw.Linear(np.random.default_rng(s).normal(size=(K, D))) for s in range(20)
    ]
    fitted = fit(log, aw.FinitePolicies(policies), "ips", held_out=0.4, seed=3, warn=False)
    part = log  # after the estimate it is learnt again, from all rows
    totals = [sum(r / p for x, a, r, p in zip(part.contexts, part.arms, part.rewards, part.probabilities) if h(x) == a)
              for h in policies]  # fmt: skip
    assert fitted.policy is policies[int(np.argmax(totals))]


def test_fit_refuses_what_it_cannot_use():
    log, _ = make(100, 9)
    hidden, _ = make(100, 9, hidden=True)
    oracle = aw.LinearOracle(dim=D)
    for arguments, message in [((hidden, oracle), "no probabilities"), ((log, oracle, "snips"), "'ips' or 'dr'"),
                               ((log, "linear"), "argmax oracle")]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            fit(*arguments)
    with pytest.raises(ValueError, match="held_out"):
        fit(log, oracle, held_out=1.5)
    with pytest.raises(ValueError, match="contexts of shape"):
        fit(Log(arms=[0, 1], rewards=[0, 1], probabilities=[0.5, 0.5]), oracle)


def rare_world(n, seed):
    """Three arms; the logging policy plays the third, which is often best, with probability 0.004."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    q = 1 / (1 + np.exp(-x @ np.array([[1.0, 0, 0], [0, 1.0, 0], [-1, -1, 0.5]]).T))
    p = np.array([0.498, 0.498, 0.004])
    arms = rng.choice(3, n, p=p)
    rewards = (rng.random(n) < q[np.arange(n), arms]).astype(float)
    return Log(contexts=x, arms=arms, rewards=rewards, probabilities=p[arms], n_arms=3), q


def test_the_held_out_interval_covers_the_truth_when_an_arm_is_rare():
    # 200 logs; where the policy that was learnt plays the rare arm, the log warns. A normal interval around
    # weights clipped at 0.02 covers less than half. A failure means a bias in the held-out estimate, such as clipped
    # weights.
    points, q = rare_world(20_000, 1_000_000)
    honest, clipped = [], []
    with thread_pools().limit(limits=1):
        for seed in range(200):
            log, _ = rare_world(20_000, seed)
            fitted = fit(log, aw.LinearOracle(dim=3), clip=0.02, seed=seed, warn=False)
            played = fitted.policy.many(points.contexts)
            worth = q[np.arange(len(q)), played].mean()
            honest.append(fitted.low < worth < fitted.high)
            weak = ("effective sample size", "the weights average")  # the second where no rare row is held out
            plays_it = (played == 2).mean() > 0.02
            if plays_it:
                assert any(text in fitted.estimate.verdict for text in weak)
            if seed < 60:
                test = log.take(row_uniforms(0, 20_000, seed, "split") < 0.3)
                found = evaluate(test, fitted.policy, "dr", clip=0.02, interval="normal", seed=seed, warn=False)
                clipped.append(found["dr"].low < worth < found["dr"].high)
                if plays_it:
                    assert "of the weight away, which the interval does not know" in found.verdict
    assert np.mean(honest) >= 0.93
    assert np.mean(clipped) < 0.7  # which is why the verdict speaks


def test_a_clip_that_takes_little_says_nothing():
    log, pi = make(4000, 10)
    assert evaluate(log, pi, ["ips", "dr"], clip=1e-4).verdict == ""


def rings(n, seed):
    """Which of three arms pays depends on how far a context is from the middle: no linear rule finds it."""
    rng = np.random.default_rng(seed)
    x, arms = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    best = np.digitize((x**2).sum(axis=1), [0.8, 2.2])
    return Log(contexts=x, arms=arms, rewards=(arms == best) * 1.0, probabilities=1 / 3, n_arms=3), best


def test_the_default_learner_bends_where_that_earns_more_and_only_there():
    # A linear rule earns .5 here. A failure means that the choice of the learner does not look at what policies earn.
    log, _ = rings(3000, 1)
    fitted = fit(log)
    fresh, best = rings(4000, 2)
    assert (fitted.policy.many(fresh.contexts) == best).mean() > 0.9
    assert "radial features" in fitted.about
    straight, _ = make(3000, 5)  # where rewards are linear nothing is to be gained
    assert fit(straight, seed=1).learner == "logistic regression on the contexts"


def test_one_row_for_each_arm_is_learnt_without_radial_features():
    few = Log(contexts=np.eye(2).repeat(20, 0), arms=[0, 1] * 20, rewards=[1, 0] * 10 + [0, 1] * 10,
              probabilities=0.5, n_arms=2)  # fmt: skip
    assert fit(few, warn=False).policy.many(np.eye(2)).tolist() == [0, 1]


def test_the_page_of_a_fitted_policy_says_its_verdict_once(tmp_path):
    rng = np.random.default_rng(5)
    arms = (rng.random(400) < 0.05).astype(int)  # a rare arm that is the better one: few effective rows
    log = Log(
        contexts=rng.normal(size=(400, 1)), arms=arms, rewards=arms + 0.1 * rng.random(400),
        probabilities=np.where(arms == 1, 0.05, 0.95), n_arms=2,
    )  # fmt: skip
    fitted = fit(log, aw.FinitePolicies([aw.Constant(0), aw.Constant(1)]), "ips", warn=False)
    assert fitted.estimate.verdict
    fitted.report(tmp_path / "fitted.html")
    assert (tmp_path / "fitted.html").read_text().count('role="alert"') == 1


def test_the_arm_of_the_largest_linear_score_is_played():
    assert ArmFeatures(np.array([1.0])).many([[[0.2], [0.7]]]).tolist() == [1]
