"""Ranges of rows over several pieces."""

from armwise.offline.logs.row_ranges import overlapping


def test_pieces_that_hold_a_range_of_rows():
    assert list(overlapping([("a", 10), ("b", 10), ("c", 10)], 5, 12)) == [("a", 5, 10), ("b", 0, 2)]
