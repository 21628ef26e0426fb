"""What an account of amounts refuses."""

import pytest

from armwise.agents.budget.accounts import amounts, offered, refuse_negative


def test_a_negative_cost_is_named():
    with pytest.raises(ValueError, match=r"cost must not be negative, got -1\.0"):
        refuse_negative("cost", (0.5, -1.0))


def test_a_fallback_that_is_not_offered_is_named():
    with pytest.raises(ValueError, match="fallback is arm 2, but this round has arms 0 to 1: offer it in every"):
        offered("fallback", 2, 2)


def test_one_amount_is_one_resource():
    assert amounts("budget", 3) == (3.0,)
    assert amounts("budget", [1.0, 2.0]) == (1.0, 2.0)
