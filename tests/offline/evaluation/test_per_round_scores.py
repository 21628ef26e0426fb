"""Names and scores of designs with one score per round."""

import numpy as np
import pytest

from armwise.offline.evaluation.per_round_scores import known_estimators, ratio, title


def test_linearised_scores_have_the_ratio_as_their_mean():
    assert ratio(np.array([1.0, 2.0]), np.array([1.0, 1.0])) == pytest.approx([1.0, 2.0])


def test_policies_have_a_display_name():
    assert title(5.5) == "always 5.5"
    assert title(max) == "max"
    assert title(np.array([0.1, 0.2])) == "a policy given as an array"


def test_one_name_is_a_list_of_one():
    assert known_estimators("sips", ("sips", "iips")) == ["sips"]
