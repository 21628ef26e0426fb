"""The arms of a request: read, counted, refused."""

import pytest

from armwise.features.encoding.arms import check_id, check_ids, read_arm, read_arms
from armwise.features.encoding.from_python import arm_to_json, read_named_arms
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


def test_the_digest_sees_every_arm_name_and_value_and_the_order_of_arms():
    def of(*features):
        return read_arms([b'{"id": "%d", "features": %b}' % each for each in enumerate(features)]).digest

    sets = [(b'{"x": 1}', b'{"y": 2}'), (b'{"y": 2}', b'{"x": 1}'), (b'{"x": 1, "y": 2}', b"{}"), (b"{}", b"{}"),
            (b'{"x": 2}', b'{"y": 1}'), (b'{"x": "1"}', b'{"y": 2}'), (b'{"x": true}', b'{"y": 2}'),
            (b'{"x": "true"}', b'{"y": 2}'), (b'{"x": 1}', b'{"y": 2, "z": 0}'), (b'{"x": 1}',)]  # fmt: skip
    assert len({of(*each) for each in sets}) == len(sets)
    assert of(b'{"x": 1}') == of(b'{"x": 1.0}')


def test_arms_of_python_are_picked_and_compared_without_their_json():
    """As those of the same arms as JSON; with JSON written for each list, one of 1,000 arms took twice its time."""
    arms = ["a", {"id": "b", "price": 3.0, "colour": "red"}, {"id": "c"}, {"id": "d", "price": 4}]
    named, read = read_named_arms(arms), read_arms([arm_to_json(arm) for arm in arms])
    for positions in ([0, 1, 2, 3], [3, 1], [2], [0, 3, 1]):
        ours, theirs = named.picked(positions), read.picked(positions)
        assert (ours.ids, ours.tail, ours.digest) == (theirs.ids, theirs.tail, theirs.digest)
    assert named.digest == read.digest and named._raws is None and not named._text
    twice = named.picked([3, 1, 0]).picked([1, 2])
    assert (list(map(bytes, twice.raws)), twice.n_keys) == ([arm_to_json(arms[1]), b'"a"'], read.picked([1, 0]).n_keys)
    assert twice.text == read.picked([1, 0]).text
