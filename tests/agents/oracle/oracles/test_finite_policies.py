"""The explicit class: exact, incremental, the same from callables and from a table, clear about bad policies."""

# mypy: disable-error-code="arg-type, misc"

import numpy as np
import pytest

import armwise as aw
from armwise.agents.oracle.oracles.finite_policies import as_oracle
from armwise.core import saving


def brute_force(policies, contexts, rewards):
    return [sum(row[policy(x)] for x, row in zip(contexts, rewards)) for policy in policies]


@pytest.fixture
def stumps():
    rng = np.random.default_rng(0)
    return [aw.Stump(int(rng.integers(3)), rng.normal(), *map(int, rng.integers(4, size=2))) for _ in range(50)]


def test_argmax_and_totals_are_the_brute_force_ones(stumps):
    rng = np.random.default_rng(1)
    contexts, rewards = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    oracle = aw.FinitePolicies(stumps)
    totals = brute_force(stumps, contexts, rewards)
    assert oracle.argmax(contexts, rewards) == int(np.argmax(totals))
    for x, row in zip(contexts, rewards):
        oracle.update(x, row)
    np.testing.assert_allclose(oracle.totals, totals, rtol=0, atol=1e-12)
    assert oracle.best() == int(np.argmax(totals))


def test_table_and_callables_answer_alike(stumps):
    rng = np.random.default_rng(2)
    contexts, rewards = rng.normal(size=(30, 3)), rng.random((30, 4))
    table = np.column_stack([stump.many(contexts) for stump in stumps])
    explicit, tabular = aw.FinitePolicies(stumps), aw.FinitePolicies(table)
    rows = np.arange(30.0)[:, None]
    assert explicit.argmax(contexts, rewards) == tabular.argmax(rows, rewards)
    np.testing.assert_array_equal(explicit.act(7, contexts), tabular.act(7, rows))
    plain = aw.FinitePolicies([lambda x, s=s: s(x) for s in stumps])
    np.testing.assert_array_equal(plain.act(7, contexts), explicit.act(7, contexts))
    assert tabular.policies.dtype == np.uint8


def test_policies_that_tie_share_the_vote():
    oracle = aw.FinitePolicies([aw.Constant(0), aw.Constant(1), aw.Constant(1), aw.Constant(2)])
    oracle.update([0.0], [0.0, 1.0, 1.0])
    np.testing.assert_allclose(oracle.vote(np.zeros(1), 3), [0, 2 / 3, 1 / 3])
    oracle.update([0.0], [0.0, 0.5, 0.6])
    np.testing.assert_allclose(oracle.vote(np.zeros(1), 3), [0, 0, 1])


def test_fresh_forgets_and_shares_the_table():
    oracle = aw.FinitePolicies(np.array([[0, 1]]))
    oracle.update([0.0], [0.0, 1.0])
    again = oracle.fresh(n_arms=2)
    assert again.best() == 0
    assert oracle.best() == 1
    assert again.policies is oracle.policies
    with pytest.raises(ValueError, match="made for 2 arms"):
        again.fresh(n_arms=3)


def test_save_and_load_keep_the_totals(stumps):
    for policies, context in ((stumps, np.zeros(3)), (np.array([[0, 1], [1, 0]]), np.zeros(1))):
        oracle = aw.FinitePolicies(policies)
        oracle.update(context, [0.25, 1.0, 0.5, 0.0])
        again = saving.loads(saving.dumps(oracle))
        np.testing.assert_array_equal(again.totals, oracle.totals)
        np.testing.assert_array_equal(again.recommendations(context), oracle.recommendations(context))


def test_a_callable_that_cannot_be_saved_says_so():
    with pytest.raises(ValueError, match=r"policies\[0\] cannot be saved: function"):
        saving.dumps(aw.FinitePolicies([lambda x: 0]))


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([], "empty"),
        ([3], r"policies\[0\] must be a function"),
        (np.zeros((2, 2)), "integer array"),
        (np.zeros(3, int), "integer array"),
        (np.array([[-1, 0]]), "arms -1 to 0"),
    ],
)
def test_bad_classes_are_refused(policies, message):
    with pytest.raises(ValueError, match=message):
        aw.FinitePolicies(policies)


@pytest.mark.parametrize("answer", [0.5, [0.5, 0.5], "up", -1, 7, None])
def test_a_policy_must_answer_one_arm(answer):
    oracle = aw.FinitePolicies([aw.Constant(0), lambda x: answer], n_arms=2)
    with pytest.raises(ValueError, match=r"policies\[1\] answered"):
        oracle.recommendations(np.zeros(2))


@pytest.mark.parametrize("context", [[0.5], [-1.0], [2.0], [0.0, 1.0], [np.nan]])
def test_a_context_of_a_table_is_a_row_number(context):
    oracle = aw.FinitePolicies(np.array([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="context"):
        oracle.update(context, [0.0, 1.0])
    assert not oracle.totals.any()


@pytest.mark.parametrize(
    ("contexts", "rewards"),
    [
        (np.zeros((2, 1)), np.zeros((3, 2))),
        (np.zeros((2, 1)), np.zeros(2)),
        (np.zeros((2, 1)), np.full((2, 2), np.nan)),
        (np.zeros(2), np.zeros((2, 2))),
        (np.zeros((2, 1)), np.zeros((2, 0))),
    ],
)
def test_bad_tables_of_rewards_are_refused(contexts, rewards):
    with pytest.raises(ValueError, match=r"rewards|contexts"):
        aw.FinitePolicies([aw.Constant(0)]).argmax(contexts, rewards)


def test_what_is_no_oracle_is_refused():
    with pytest.raises(ValueError, match="oracle must be an oracle"):
        as_oracle("tree")
