"""Problems of rows, and arms by name or place."""

import numpy as np

from armwise.offline.logs.rows import LogBlock, _grouped, by_group, not_an_arm, padded, places_of, problems, row_numbers


def test_the_same_problem_of_several_rows_is_one_line():
    found = _grouped(["row 1: reward is nan", "row 2: arm is 9", "row 3: reward is nan"])
    assert found == ["row 1: reward is nan (also row 3)", "row 2: arm is 9"]


def test_a_mask_is_its_row_numbers():
    assert row_numbers(np.array([False, True, True]), 3).tolist() == [1, 2]


def test_rows_by_group_keep_their_order():
    assert by_group(np.array([1, 0, 1, 0]), 2).tolist() == [1, 3, 0, 2]


def test_an_empty_arm_has_no_place():
    assert places_of(np.array([5.0, 7.0, np.nan]), [5, 7], ids=True)[0].tolist() == [0, 1, -1]


def test_half_an_arm_is_named():
    found = not_an_arm(1.5)
    assert found == "arm is 1.5, expected a whole number or a name (give texts, if such numbers are names)"


def test_arm_sets_of_different_sizes_are_padded():
    X, there = padded([np.ones((1, 2)), np.ones((3, 2))])
    assert X.shape == (2, 3, 2)
    assert there.tolist() == [[True, False, False], [True, True, True]]


def test_a_probability_of_0_is_named_with_its_row():
    found = problems(LogBlock(arms=np.array([0, 1]), rewards=np.ones(2), n_arms=2, probabilities=np.array([0.5, 0.0])))
    assert found == ["row 1: probability is 0.0, expected a number in (0, 1]"]
