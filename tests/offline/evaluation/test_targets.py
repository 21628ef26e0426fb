"""Policies in one form: arms, or distributions over them."""

import numpy as np
import pytest

from armwise.offline.evaluation.targets import Always, Target, unsupported
from armwise.offline.logs.log import Log


def test_an_arm_is_named_by_its_label():
    log = Log(arms=[5, 7], rewards=[1, 0], probabilities=0.5)
    assert Target(Always(1), log).answers(log.rows).tolist() == [1, 1]
    assert Target(Always(1), log).name == "always 7"


def test_a_function_is_a_table_of_its_answers():
    log = Log(contexts=[[0.2], [0.9]], arms=[0, 0], rewards=[1, 1], n_arms=2)
    assert np.array_equal(Target(lambda x: int(x[0] > 0.5), log).table(log.rows), [[1.0, 0.0], [0.0, 1.0]])


def test_arms_that_could_not_be_drawn_are_unsupported():
    log = Log(arms=[0, 0], rewards=[1, 1], probabilities=[1.0, 0.5], n_arms=2)
    assert unsupported(log.rows, np.array([[0.25, 0.75], [0.25, 0.75]])) == pytest.approx(0.75)
