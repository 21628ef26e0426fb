"""Fixed policies and the one reading of their answers."""

import subprocess
import sys

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.policies import distribution, distributions


def test_linear_is_the_argmax_of_its_scores_in_both_views():
    rng = np.random.default_rng(1)
    W, b, contexts = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=(200, 3))
    policy = aw.Linear(W, bias=b)
    expected = [max(range(4), key=lambda a: W[a] @ x + b[a]) for x in contexts]
    assert policy.many(contexts).tolist() == expected == [policy(x) for x in contexts]
    X = rng.normal(size=(200, 5, 3))
    per_arm = aw.Linear(W[0])
    assert per_arm.many(X).tolist() == [int(np.argmax([x @ W[0] for x in rows])) for rows in X]
    assert per_arm(X[0]) == per_arm.many(X[:1])[0]


@pytest.mark.parametrize("kind", ["classifier", "regressor", "named"])
def test_tree_plays_what_scikit_learn_predicts(kind):
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 4)).round(1)  # repeated values: thresholds fall between single-precision numbers
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 2] * X[:, 3] > 0.1)
    fresh = rng.normal(size=(500, 4)).round(1)
    if kind == "regressor":
        fitted = DecisionTreeRegressor(random_state=0, max_depth=6).fit(X, np.eye(4)[y])
        tree, expected = aw.Tree.from_sklearn(fitted), fitted.predict(fresh).argmax(axis=1)
    elif kind == "named":
        names = np.array(["a", "b", "c", "d"])
        fitted = DecisionTreeClassifier(random_state=0, max_depth=6).fit(X, names[y])
        tree = aw.Tree.from_sklearn(fitted, arms=[3, 2, 1, 0])
        expected = 3 - np.searchsorted(names, fitted.predict(fresh))
        with pytest.raises(ValueError, match="arms="):
            aw.Tree.from_sklearn(fitted)
    else:
        fitted = DecisionTreeClassifier(random_state=0).fit(X, y)
        tree, expected = aw.Tree.from_sklearn(fitted), fitted.predict(fresh)
    assert tree.many(fresh).tolist() == expected.tolist() == [tree(x) for x in fresh]


def test_a_saved_tree_needs_no_scikit_learn(tmp_path):
    from sklearn.tree import DecisionTreeClassifier

    fitted = DecisionTreeClassifier(random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    path = tmp_path / "tree.aw"
    saving.save(aw.Tree.from_sklearn(fitted), path)
    code = (
        f"import sys; sys.modules['sklearn'] = None; import armwise as aw; "
        f"print(aw.load({str(path)!r}).many([[0.0], [1.1], [5.0]]).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0, 1, 0]"


EVERY = [
    aw.Constant(1),
    aw.Uniform(3),
    aw.Linear(np.arange(6.0).reshape(3, 2), bias=[1.0, 0.0, 0.5]),
    aw.Stump(feature=1, threshold=0.25, low=2, high=0),
    aw.Tree([0, 0, 0], [0.1, 0, 0], [1, -1, -1], [2, -1, -1], [0, 2, 1]),
]


@pytest.mark.parametrize("policy", EVERY, ids=lambda p: type(p).__name__)
def test_every_policy_saves_and_answers_blocks_as_single_contexts(policy):
    contexts = np.random.default_rng(3).normal(size=(50, 2))
    again = saving.loads(saving.dumps(policy))
    table = distributions(policy, contexts, 3)
    assert np.array_equal(table, distributions(again, contexts, 3))
    assert np.array_equal(table, [distribution(policy, x, 3) for x in contexts])
    assert np.array_equal(table, distributions(lambda x: policy(x), contexts, 3))
    assert np.allclose(table.sum(axis=1), 1.0)
    assert distributions(policy, contexts[:0], 3).shape == (0, 3)


def test_an_agent_is_a_policy_too_and_stays_as_it_was():
    agent = aw.Exp3(n_arms=2, gamma=0.1, seed=1)
    agent.play(None, np.tile([0.0, 1.0], (50, 1)))
    before = saving.dumps(agent)
    assert np.array_equal(distributions(agent, [None, None], 2), [agent.probabilities()] * 2)
    assert saving.dumps(agent) == before


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda x: 3, "arm 3"),
        (lambda x: -1, "arm -1"),
        (lambda x: 1.5, "integer"),
        (lambda x: "left", "expected an arm"),
        (lambda x: [0.5, 0.6, 0.1], "sums to 1"),
        (lambda x: [np.nan, 0.5, 0.5], "sums to 1"),
        (lambda x: [1.5, -0.5, 0.0], "non-negative"),
        (lambda x: [0.5, 0.5], "3 arms"),
        (lambda x: [[1.0], [1.0, 2.0]], "expected an arm"),
        (7, "not a policy"),
        (aw.Constant(4), "arm 4"),
        (aw.Uniform(4), "3 arms"),
    ],
)
def test_a_wrong_answer_names_the_policy_and_what_was_expected(policy, message):
    for ask in (lambda: distribution(policy, [0.0], 3), lambda: distributions(policy, [[0.0]], 3)):
        with pytest.raises(ValueError, match=message):
            ask()


@pytest.mark.parametrize(
    "make",
    [
        lambda: aw.Constant(-1),
        lambda: aw.Uniform(0),
        lambda: aw.Linear([[np.inf, 1.0]]),
        lambda: aw.Linear([1.0, 2.0], bias=[1.0]),
        lambda: aw.Linear(np.zeros((1, 1, 1))),
        lambda: aw.Stump(feature=0, threshold=np.nan),
        lambda: aw.Tree([0], [0.0], [0], [0], [0]),  # a node that is its own child
        lambda: aw.Tree([0], [0.0, 1.0], [-1], [-1], [0]),
        lambda: aw.Tree([0], [0.0], [-1], [-1], [-3]),
        lambda: aw.Tree.from_sklearn("a tree"),
        lambda: aw.Linear([[1.0, 2.0]])([1.0]),
        lambda: aw.Stump(feature=3, threshold=0.0)([1.0]),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(ValueError):
        make()
