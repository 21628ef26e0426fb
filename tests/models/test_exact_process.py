"""The process over distinct rows, by hand; its likelihoods and scores are tested with Auto."""

import numpy as np
import pytest

from armwise.models.exact_process import DistinctRows

X = np.array([[0.0], [1.0], [2.0]])


def test_means_are_those_of_the_rows_and_deviations_shrink():
    process = DistinctRows(dim=1, most=8)
    assert not process.returns
    before = process.estimate(X)[1]
    assert before == pytest.approx([2**0.5] * 3)
    for arm, reward in ((0, 0.0), (1, 1.0), (2, 2.0), (0, 0.1)):
        process.learn(X, arm, reward)
    means, widths = process.estimate(X)
    assert means.round(1).tolist() == [0.0, 1.0, 2.0]
    assert (widths < before).all() and process.noise < 0.3


def test_it_is_full_of_all_rows_that_it_was_shown():
    process = DistinctRows(dim=1, most=2)
    process.learn(X[:2], 0, 0.5)
    assert not process.full
    process.learn(X, 0, 0.5)
    assert process.full


def test_a_row_without_a_reward_is_worth_more_to_know():
    process = DistinctRows(dim=1, most=8)
    process.learn(X[:2], 0, 0.5)
    tried, untried = process.scores(X[:2])
    assert tried < untried
