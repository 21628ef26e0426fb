"""The database of a decision: rendezvous hashing over the sets of databases."""

from __future__ import annotations

from armwise.service.journal.members import Members


def test_an_added_database_takes_ids_from_the_others_and_moves_no_other():
    two = Members(1, [("a", "b")], {"a": "host/a", "b": "host/b"})
    three = two.joined({"c": "host/c"})
    assert (three.epoch, three.newest, three.names["c"]) == (2, ("a", "b", "c"), "host/c")
    keys = [f"e{k}" for k in range(300)]
    moved = [key for key in keys if three.owner(key) != two.owner(key)]
    assert {three.owner(key) for key in moved} == {"c"} and 60 < len(moved) < 140


def test_a_decision_is_looked_for_in_its_newest_home_first():
    members = Members(2, [("a",), ("a", "b")], {})
    key = next(key for key in map(str, range(100)) if members.owner(key) == "b")
    assert members.homes(key) == ["b", "a"]
    kept = next(key for key in map(str, range(100)) if members.owner(key) == "a")
    assert members.homes(kept) == ["a"]


def test_a_single_database_has_no_sets():
    assert Members(0, [], {}).newest == ()
