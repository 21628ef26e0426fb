"""Requests of the engine: the order of arms, the random number of an id, and the slots of lists."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from armwise.agents.ranking.lists import Offer
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.ids import Ids, chances
from armwise.service.engine.requests.draw import answer, drawn, order_of, undrawn, uniform
from armwise.service.engine.requests.ranking import (
    check_list_rewards,
    is_whole,
    open_arms,
    read_list_rewards,
    read_ranking,
    slot_number,
    with_position,
)
from armwise.service.engine.requests.slots import (
    SlotsRequest,
    decision_of,
    offered_by_slot,
    shown_arm,
    slot_id,
    slot_of,
)
from armwise.service.journal.events import Creation, Decision, Row
from armwise.service.journal.writes import Write, Written
from armwise.service.model.build import build_model

TWO = read_arms([b'"a"', b'"b"'])


def test_ids_begin_with_their_time_and_end_with_chance() -> None:
    one, two = Ids().fresh(1), Ids().fresh(1)
    assert one[:12] == two[:12] == "000000000001" and one != two
    assert len(one) == 32
    assert [len(each) for each in chances(2)] == [20, 20]


def test_the_random_number_of_an_id_never_changes() -> None:
    """A journal replays with it: another hash would draw other arms for the same ids."""
    assert uniform(b"secret", "shop", "e1") == 0.4446430623055688


def test_offered_arms_come_before_excluded_ones() -> None:
    assert order_of(["a", "b", "c"], ["a"]) == [1, 2, 0]


def test_an_excluded_arm_has_no_chance_and_stays_in_the_answer() -> None:
    model = build_model(Creation())
    assert drawn(model, b"{}", TWO, ["a"], 0.5)[0].p == [1.0]
    assert undrawn(model, b"{}", TWO, ["a"], False).p == [0.0]
    body = b'{"context":{},"arms":["b","a"],"p":[1.0],"arm":0,"version":3,"window":1,"default":0.0,"order":[1,0]}'
    assert answer(Written(Row(9, 0, "shop", "decision", "e1", body))).probabilities == [("a", 0.0), ("b", 1.0)]


def test_a_slot_sees_its_position_and_not_the_arms_above_it() -> None:
    asked = read_ranking(b'{"hour": 9}', TWO, 2)
    assert asked.contexts[1] == b'[{"hour": 9},{"slot":{"position":"2"}}]'
    assert asked.free([0]).tolist() == [False, True]
    assert with_position(b"{}", 0) == b'[{},{"slot":{"position":"1"}}]'


def test_a_pinned_arm_is_alone_in_its_slot_and_in_no_other() -> None:
    assert open_arms(3, 2, Offer(pinned={1: 0}), [2]).tolist() == [True, False, False]
    assert open_arms(3, 2, Offer(pinned={1: 0}), []).tolist() == [False, True, True]


def test_each_slot_offers_what_those_above_it_left() -> None:
    asked = SlotsRequest([b"{}"] * 2, ["0", "1"], TWO, lambda above: np.array([0 not in above, True]), "")
    assert [arms.ids for arms in offered_by_slot(asked, ["a", "b"])] == [("a", "b"), ("b",)]


def test_rewards_of_a_list_name_arms_slots_or_all_slots() -> None:
    assert read_list_rewards(["a", "b"], {"b": 1}) == [(1, 1.0)]
    assert read_list_rewards(["a", "b"], {0: 0.5}) == [(0, 0.5)]
    assert read_list_rewards(["a"], [1]) == [(0, 1.0)]
    assert check_list_rewards({"b": np.int64(1), 0: 0.5}) == {"b": 1.0, 0: 0.5}
    assert check_list_rewards([None, 1]) == [None, 1.0]
    with pytest.raises(InvalidInput):
        read_list_rewards(["a"], {"c": 1})


def test_slots_are_whole_numbers_as_json_writes_them() -> None:
    assert is_whole(np.int64(2)) and not is_whole(True) and not is_whole(2.0)
    assert (slot_number("12"), slot_number("01"), slot_number("-1")) == (12, None, None)


def test_the_id_of_a_slot_gives_its_position() -> None:
    assert slot_id("e1", 2) == "e1\x1f2"
    assert (slot_of(slot_id("e1", 2)), slot_of("e1")) == (3, 0)


def test_a_write_has_its_decision_and_a_decision_its_arm() -> None:
    decision = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
    write = Write("shop", "e1", decision, names=("a",))
    assert decision_of(write) == decision and shown_arm(write) == "a"
    decision.order, write.names = [1, 0], ("a", "b")  # "a" was excluded
    assert shown_arm(write) == "b"
