"""Numbers and warnings as text."""

from types import SimpleNamespace as Of

from armwise.offline.results.terminal import ends_of, number, warning_block


def test_numbers_are_brief():
    assert number(0.00455288) == "0.004553"
    assert number(0.5) == "0.5000"
    assert number(1234.5) == "1,234.5"
    assert number(float("nan")) == "-"


def test_ends_have_as_many_places_as_their_width_needs():
    assert ends_of(Of(value=0.5, low=0.4, high=0.6)) == "0.4000 to 0.6000"
    assert ends_of(Of(value=0.0, low=0.0, high=0.0249)) == "0.00000 to 0.02490"


def test_warnings_are_numbered():
    assert warning_block(["Too few rows."]) == ["", "WARNING", "  1. Too few rows."]
