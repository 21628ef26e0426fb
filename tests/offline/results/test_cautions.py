"""Findings, the most important first."""

from armwise.offline.results.cautions import merged, without_answer


def test_findings_that_differ_in_numbers_alone_are_one():
    assert merged([("north", "9 of 9 rows"), ("south", "8 of 8 rows")]) == ["north: 9 of 9 rows (also south)"]


def test_the_finding_that_leaves_no_answer():
    found = without_answer(["this log cannot answer the question: 3 of 500", "heavy tail"])
    assert found == "this log cannot answer the question: 3 of 500"
