"""Policies and fitted models are asked once per round, in ``play`` once per block: the same arms for fewer calls."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import armwise as aw

X = np.random.default_rng(0).standard_normal((200, 2))
REWARDS = np.column_stack([X[:, 0] > 0, X[:, 0] <= 0]).astype(float)


class Counted:
    def __init__(self, sign):
        self.sign, self.single, self.blocks = sign, 0, 0

    def __call__(self, x):
        self.single += 1
        return int(self.sign * x[0] > 0)

    def many(self, contexts):
        self.blocks += 1
        return (self.sign * contexts[:, 0] > 0).astype(int)


def loop(agent):
    arms = []
    for x, rewards in zip(X, REWARDS, strict=True):
        choice = agent.choose(x)
        agent.learn(x, choice, float(rewards[choice.arm]))
        arms.append(choice.arm)
    return arms


def cover(policies):
    return aw.OnlineCover(policies, n_arms=2, seed=1)


def arms(policies):
    return aw.PolicyArms(aw.Exp3(n_arms=2, gamma=0.2, seed=1), policies, n_arms=2, seed=1)


@pytest.mark.parametrize("make", [cover, arms])
def test_policies_are_asked_once(make):
    policies = [Counted(1.0), Counted(-1.0)]
    one_by_one = loop(make(policies))
    assert max(policy.single + policy.blocks for policy in policies) <= len(X)
    policies = [Counted(1.0), Counted(-1.0)]
    np.testing.assert_array_equal(make(policies).play(X, REWARDS).arms, one_by_one)
    assert [(policy.single, policy.blocks) for policy in policies] == [(0, 1), (0, 1)]


class Tree(DecisionTreeRegressor):  # type: ignore[misc]
    calls = 0

    def predict(self, X, check_input=True):
        Tree.calls += 1
        return super().predict(X, check_input)


def test_a_regressor_predicts_in_blocks_between_refits():
    def make():
        return aw.SquareCB(dim=2, n_arms=2, regressor=Tree(max_depth=3, random_state=0), refit=2.0, seed=1)

    Tree.calls = 0
    one_by_one = loop(make())
    row_by_row = Tree.calls
    Tree.calls = 0
    np.testing.assert_array_equal(make().play(X, REWARDS).arms, one_by_one)
    assert row_by_row > 350 and Tree.calls < 40  # two arms: about 9 fits and 200 / 64 blocks each
