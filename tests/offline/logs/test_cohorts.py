"""Which decisions of a log are judged."""

from armwise.offline.logs.cohorts import before_unknown, broken_promise, cohort, duration, late_rewards


def test_decisions_before_the_first_unknown_outcome():
    assert before_unknown([3.0, 2.0, 1.0], [True, False, True]).rows.tolist() == [True, False, False]


def test_a_promise_that_is_kept_says_nothing():
    assert broken_promise(0) == ""


def test_a_late_reward_is_told():
    assert late_rewards(1).startswith("1 decision was rewarded after it was closed")
    assert late_rewards(0) == ""


def test_durations_have_a_readable_unit():
    assert duration(0.25) == "0.25 s"
    assert duration(90) == "90 s"
    assert duration(5400) == "1.5 h"
    assert duration(7 * 86400) == "7 days"


def test_a_cohort_is_as_old_as_its_horizon():
    ages, windows, came, missing = [9.0, 5.0, 1.0], [60.0] * 3, [False, True, True], [False] * 3
    found = cohort(ages, windows, came, missing, horizon=5.0)
    assert found.rows.tolist() == [True, True, False]
    said = "what 2 decisions earned within 5 s, rewarded or not; 1 left out as younger than 5 s"
    assert str(cohort(ages, windows, came, missing)) == said
