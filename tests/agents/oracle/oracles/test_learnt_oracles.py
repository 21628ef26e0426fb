"""Oracles that learn their policy: ridge against the formula, scikit-learn by weighting, saved without pickle."""

# mypy: disable-error-code="arg-type, misc, union-attr"

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import armwise as aw
from armwise.agents.oracle.oracles.sklearn_oracles import EstimatorPolicy, SklearnEstimator, _examples, _linear
from armwise.core import saving

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TRUE = RNG.normal(size=(4, 3))
R = X @ TRUE.T + 0.01 * RNG.normal(size=(60, 4))
ORACLES = {
    "linear": lambda: aw.LinearOracle(dim=3, lam=0.3),
    "classifier": lambda: aw.ClassifierOracle(LogisticRegression(), refit=1.5),
    "tree": lambda: aw.ClassifierOracle(DecisionTreeClassifier(max_depth=6, random_state=0)),
    "pipeline": lambda: aw.ClassifierOracle(make_pipeline(StandardScaler(), LogisticRegression()), refit=1.5),
    "bayes": lambda: aw.ClassifierOracle(GaussianNB()),
    "sgd classifier": lambda: aw.ClassifierOracle(SGDClassifier(random_state=0)),
    "regressor": lambda: aw.RegressorOracle(Ridge(alpha=0.1)),
    "sgd regressor": lambda: aw.RegressorOracle(SGDRegressor(random_state=0)),
}


@pytest.mark.parametrize("intercept", [True, False])
def test_linear_oracle_is_ridge_on_every_column(intercept):
    Z = np.column_stack([X, np.ones(60)]) if intercept else X
    theta = np.linalg.inv(0.3 * np.eye(Z.shape[1]) + Z.T @ Z) @ Z.T @ R
    oracle = aw.LinearOracle(dim=3, lam=0.3, intercept=intercept)
    for x, row in zip(X, R):
        oracle.update(x, row)
    for policy in (oracle.best(), oracle.argmax(X, R)):
        np.testing.assert_allclose(policy.weights, theta[:3].T, atol=1e-10)
        np.testing.assert_array_equal(policy.many(X), (Z @ theta).argmax(axis=1))


@pytest.mark.parametrize("name", ORACLES)
def test_argmax_finds_a_policy_close_to_the_best(name):
    policy = ORACLES[name]().argmax(X, R)
    reward = R[np.arange(60), policy.many(X)].mean()
    # Uniform arms earn R.mean(); the best possible is the mean of row maxima. Four fifths of the way is "found".
    assert reward > R.mean() + 0.8 * (R.max(axis=1).mean() - R.mean())


@pytest.mark.parametrize("name", ORACLES)
def test_row_by_row_saved_and_loaded_half_way(name):
    oracle, again = ORACLES[name](), None
    for i, (x, row) in enumerate(zip(X, R)):
        if i == 30:
            again = saving.loads(saving.dumps(oracle))
        oracle.update(x, row)
        if again is not None:
            again.update(x, row)
    np.testing.assert_array_equal(oracle.best().many(X), again.best().many(X))
    for x in X[:5]:
        np.testing.assert_array_equal(oracle.vote(x, 4), again.vote(x, 4))
        assert oracle.vote(x, 4)[oracle.best()(x)] == 1.0
    assert R[np.arange(60), oracle.best().many(X)].mean() > R.mean() + 0.5 * (R.max(axis=1).mean() - R.mean())


@pytest.mark.parametrize("name", ORACLES)
def test_a_policy_stays_what_it_was(name):
    oracle = ORACLES[name]()
    for x, row in zip(X[:30], R[:30]):
        oracle.update(x, row)
    policy = oracle.best()
    before = policy.many(X)
    for x, row in zip(X[30:], -R[30:]):
        oracle.update(x, row)
    np.testing.assert_array_equal(policy.many(X), before)
    saved = saving.loads(saving.dumps(policy))
    np.testing.assert_array_equal(saved.many(X), before)


@pytest.mark.parametrize("name", ORACLES)
def test_fresh_forgets(name):
    oracle = ORACLES[name]()
    first = oracle.fresh(4).vote(X[0], 4)
    for x, row in zip(X, R):
        oracle.update(x, row)
    np.testing.assert_array_equal(oracle.fresh(4).vote(X[0], 4), first)


def test_weighted_accuracy_is_the_reward():
    rewards = RNG.normal(size=(20, 3))
    rows, arms, weights = _examples(rewards)
    for _ in range(10):
        plays = RNG.integers(3, size=20)
        accuracy = weights[plays[rows] == arms].sum()
        np.testing.assert_allclose(accuracy, (rewards[np.arange(20), plays] - rewards.min(axis=1)).sum())


def test_one_class_or_no_reward_gives_a_constant_policy():
    oracle = aw.ClassifierOracle(LogisticRegression())
    assert oracle.argmax(X[:2], [[0.0, 1.0], [0.0, 2.0]])(X[0]) == 1
    assert oracle.argmax(X[:2], np.zeros((2, 2)))(X[0]) == 0
    oracle.update(X[0], [0.0, 0.0, 1.0])
    assert oracle.best()(X[5]) == 2


def test_refit_follows_its_factor():
    fits = []

    class Counting(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    oracle = aw.RegressorOracle(Counting(), n_arms=1, refit=2.0)
    for x in X[:20]:
        oracle.observe(x, 0, float(x[0]))
    assert fits == [1, 2, 4, 8, 16]
    with pytest.raises(ValueError, match="cannot be saved"):
        saving.dumps(oracle)


def test_regressor_learns_only_the_arm_that_was_played():
    oracle = aw.RegressorOracle(LinearRegression(), n_arms=2, refit=1.0)
    for x in X[:20]:
        oracle.observe(x, 1, float(x @ TRUE[0]))
    np.testing.assert_allclose(oracle.predict(X), np.column_stack([np.zeros(60), X @ TRUE[0]]), atol=1e-9)
    weighted = aw.RegressorOracle(LinearRegression(), n_arms=1, refit=1.0)
    for reward, weight in ((0.0, 1.0), (1.0, 3.0)):
        weighted.observe([0.0], 0, reward, weight)
    np.testing.assert_allclose(weighted.predict([[0.0]]), [[0.75]])


def test_estimators_without_weights():
    with pytest.raises(ValueError, match="sample_weight"):
        aw.ClassifierOracle(KNeighborsClassifier())
    oracle = aw.RegressorOracle(KNeighborsRegressor(n_neighbors=1))
    np.testing.assert_array_equal(oracle.argmax(X, R).many(X), R.argmax(axis=1))


def test_bad_arguments():
    for make in (
        lambda: aw.ClassifierOracle("tree"),
        lambda: aw.RegressorOracle(Ridge(), refit=0.5),
        lambda: aw.RegressorOracle(Ridge(), n_policies=0),
        lambda: aw.LinearOracle(dim=0),
        lambda: aw.LinearOracle(dim=2, lam=-1.0),
        lambda: aw.LinearOracle(dim=2).argmax(np.zeros((1, 3)), np.zeros((1, 2))),
        lambda: aw.LinearOracle(dim=2, n_arms=2).update(np.zeros(2), np.zeros(3)),
    ):
        with pytest.raises(ValueError):
            make()


def test_only_estimators_of_scikit_learn_are_loaded():
    with pytest.raises(ValueError, match="class of scikit-learn"):
        SklearnEstimator("os:system", {})
    with pytest.raises(ValueError, match="estimator of scikit-learn"):
        SklearnEstimator("sklearn.base:clone", {})


def test_a_linear_oracle_fits_the_arms_that_were_played_weighed_by_their_probability():
    rng = np.random.default_rng(5)
    oracle = aw.LinearOracle(dim=3, n_arms=2, lam=0.3, intercept=False)
    X, arms, p, rewards = rng.normal(size=(40, 3)), rng.integers(2, size=40), rng.uniform(0.1, 1, 40), rng.random(40)
    for x, arm, probability, reward in zip(X, arms, p, rewards):
        oracle._observe(x, int(arm), float(reward), float(probability))
    for arm in range(2):
        A, w = X[arms == arm], 1 / p[arms == arm]
        theta = np.linalg.solve(0.3 * np.eye(3) + (A.T * w) @ A, (A.T * w) @ rewards[arms == arm])
        np.testing.assert_allclose(oracle._estimates(np.eye(3))[:, arm], theta)
    played, table = oracle._estimates(np.eye(3)), rng.random((4, 2))
    for x, row in zip(X, table):  # a table of rewards adds its own fit
        oracle.update(x, row)
    dense = np.linalg.solve(0.3 * np.eye(3) + X[:4].T @ X[:4], X[:4].T @ table)
    np.testing.assert_allclose(oracle.best().weights.T, played + dense)


@pytest.mark.parametrize("make", [aw.EpochGreedy, aw.ILoveToConBandits, aw.OnlineCover])
def test_over_linear_policies_an_agent_learns_a_linear_world(make):
    """Three arms, 1,500 rounds, the last third: at least 0.9 of the mean reward of the best arm (any arm has 0.6).
    Less means that what was played teaches too little."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(1500, 5)), np.ones(1500)])
    means = 1 / (1 + np.exp(-2 * X @ rng.normal(size=(6, 3))))
    rewards = (rng.random(means.shape) < means).astype(float)
    earned = [make(aw.LinearOracle(6, intercept=False), 3, seed=s).play(X, rewards).arms for s in range(3)]
    last = [means[np.arange(1000, 1500), arms[1000:]].mean() / means[1000:].max(axis=1).mean() for arms in earned]
    assert min(last) > 0.9, last


@pytest.mark.parametrize(
    "model", [LinearRegression(), Ridge(), LogisticRegression(), SGDClassifier(random_state=0)], ids=repr
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_models_are_asked_without_checks_and_answer_the_same(model, n_classes):
    """To the last bit what scikit-learn's own predict says; and where rows are no numbers, its own complaint."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4))
    model.fit(X, rng.integers(n_classes, size=90) + 5)
    wrapped = SklearnEstimator.wrap(model)
    np.testing.assert_array_equal(wrapped.predict(X), model.predict(X))
    np.testing.assert_array_equal(wrapped.predict(X[:1]), model.predict(X[:1]))
    with pytest.raises(ValueError, match="NaN"):
        wrapped.predict(np.full((1, 4), np.nan))
    assert _linear(type(model)) is not None and _linear(type(GaussianNB())) is None and _linear(SGDRegressor) is None


def test_the_arm_that_is_predicted_most_is_played():
    up, down = (SklearnEstimator.wrap(LinearRegression().fit([[0.0], [1.0]], y)) for y in ([0, 1], [1, 0]))
    assert EstimatorPolicy([down, up]).many([[0.2], [0.8]]).tolist() == [0, 1]
