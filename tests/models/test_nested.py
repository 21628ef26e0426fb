"""Nested models by hand: nothing learnt yet, arms that come and go."""

import numpy as np
import pytest

from armwise.models.nested import NestedModel, chosen


def test_what_is_said_before_the_first_reward():
    model = NestedModel(dim=1, n_arms=2, memory=64)
    assert model.scores(np.zeros(1)).tolist() == [np.inf, np.inf]  # arms that are untried come first
    assert model.estimates(np.zeros(1))[0].tolist() == [0.0, 0.0]
    assert (model.in_charge, model.shares, model.since_refit) == ("constant", {"constant": 0.0}, 0)
    assert (model.until_refit(), model.take_loss(), model.noise) == (1, 0.0, 0.5)
    assert (model.features, model.length_scale) == ([], None)


def test_rewards_that_are_all_the_same_have_a_range_of_one():
    model = NestedModel(dim=1, n_arms=2, memory=64)
    model.keep(np.zeros((1, 1)), np.zeros(1, np.int64), np.ones(1), np.zeros((1, 1)))
    model.refit()
    assert model.reward_range == (1.0, 2.0)


def test_arms_come_last_and_those_after_one_that_goes_move_down():
    model = NestedModel(dim=1, n_arms=2, memory=64)
    for x in (0.0, 1.0, 2.0):
        model.learn(np.array([x]), 1, x, np.array([x]))
    before = model.estimates(np.array([[2.0]]))[0]
    assert before.round(1).tolist() == [0.3, 0.8]
    model.add_model()
    assert np.isposinf(model.scores(np.zeros(1))).tolist() == [True, False, True]
    model.remove_model(0)
    assert model.estimates(np.array([[2.0]]))[0][0] == pytest.approx(before[1])
    assert np.isposinf(model.scores(np.zeros(1))).tolist() == [False, True]


def test_chosen_rows_go_to_one_model_or_to_their_arms():
    rounds, arms = np.array([[[1.0], [2.0]], [[3.0], [4.0]]]), np.array([1, 0])
    rows, models = chosen(rounds, arms, None)
    assert (rows.tolist(), models.tolist()) == ([[2.0], [3.0]], [0, 0])
    rows, models = chosen(rounds[:, :1], arms, 2)
    assert (rows.tolist(), models.tolist()) == ([[1.0], [3.0]], [1, 0])
