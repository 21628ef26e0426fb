"""The arms of a request: read, counted, refused."""

import pytest

from armwise.features.encoding.arms import check_id, check_ids, read_arm, read_arms
from armwise.features.encoding.tokens import InvalidInput


def test_arms_are_journaled_as_one_array():
    assert bytes(read_arms([b'"one"', b'"other"']).journal) == b'["one","other"]'


def test_arms_keep_their_own_text():
    assert read_arms([b'"a"', b'{"id": "b"}']).text == b'["a",{"id": "b"}]'


def test_arms_are_picked_in_the_order_asked():
    assert read_arms([b'"a"', b'"b"']).picked([1]).ids == ("b",)


def test_keys_of_arms_are_counted():
    assert read_arms([b'"a"', b'{"id": "b"}']).n_keys == 1


def test_an_arm_is_an_id_or_an_object():
    assert read_arm(b'"salad"').features.n_keys == 0
    with pytest.raises(InvalidInput, match=r"an arm: Expected `str \| object`, got `int`"):
        read_arm(b"7")


def test_an_empty_id_is_refused():
    with pytest.raises(InvalidInput, match="the event id must have 1 to 256 characters, got 0"):
        check_id("the event id", "")


def test_two_arms_of_one_id_are_refused():
    with pytest.raises(InvalidInput, match="two arms have the id 'a'"):
        read_arms([b'"a"', b'{"id": "a"}'])


def test_no_arms_are_refused():
    with pytest.raises(InvalidInput, match="arms must not be empty"):
        check_ids([])


def test_the_digest_of_arms_is_of_what_they_say():
    spaced = read_arms([b'{ "id":"a", "features": {"x": 1, "y": 2}}'])
    ordered = read_arms([b'{"features": {"y": 2, "x": 1}, "id": "a"}'])
    assert spaced.digest == ordered.digest
    assert spaced.digest != read_arms([b'{"id": "a", "features": {"x": 1, "y": 3}}']).digest
