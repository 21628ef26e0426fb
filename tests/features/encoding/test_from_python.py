"""What Python says of a context or an arm, as JSON."""

import datetime

import pytest

from armwise.features.encoding.from_python import arm_to_json, read_context, read_named_arms, to_json, to_plain


def test_a_context_is_its_json_and_tokens():
    assert read_context({"hour": 9})[0] == b'{"hour":9}'


def test_named_arms_are_ids_or_dictionaries():
    assert read_named_arms(["a", {"id": "b", "price": 3}]).ids == ("a", "b")


def test_gaps_are_null_and_a_list_has_no_names():
    assert (
        to_json("context", {"device": "phone", "hour": 21, "gap": float("nan")})
        == b'{"device":"phone","hour":21,"gap":null}'
    )
    with pytest.raises(ValueError, match="context must have names: a dictionary, a dataclass, or a row of a"):
        to_json("context", [1, 2])


def test_a_date_becomes_its_parts():
    assert to_plain("x", {"when": datetime.date(2026, 11, 16)}) == {
        "when": {"year": 2026, "month": "11", "day": 16, "weekday": "Monday"}
    }


def test_other_names_of_an_arm_are_its_features():
    assert arm_to_json("red") == b'"red"'
    assert arm_to_json({"id": "blue", "price": 3}) == b'{"id":"blue","features":{"price":3}}'
