"""The parts of an exported policy."""

import pytest

from armwise.core.policy_document import arm_names, column_names, finite, put


def test_a_folder_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match=r"/no/such/folder/policy\.json cannot be written: there is no folder"):
        put("/no/such/folder/policy.json", "{}")


def test_columns_without_names_are_numbered():
    assert column_names(2, None) == ["x0", "x1"]


def test_arms_without_names_are_numbered():
    assert arm_names(2, None) == ["0", "1"]
    assert arm_names(None, None) is None


def test_a_number_that_json_has_not_is_refused():
    with pytest.raises(ValueError, match="the policy has a number that is not finite: inf"):
        finite(float("inf"))
