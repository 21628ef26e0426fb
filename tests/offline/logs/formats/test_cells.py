"""Numbers, shares and words in the cells of a table."""

import math

import numpy as np
import pytest

from armwise.offline.logs.formats.cells import has_decimal_commas, number, outcome, outcomes, shown, words_as_outcomes


def test_yes_is_1_and_no_is_0():
    assert outcome("Yes") == pytest.approx(1.0)
    assert outcome("n") == 0.0
    assert outcome("maybe") is None


def test_a_cell_that_is_no_number_is_named_with_its_column():
    found = outcomes("reward", "click", np.array(["1", "no", "high", "0"], object))
    assert found[0] == pytest.approx([1.0, 0.0, np.nan, 0.0], nan_ok=True)
    assert found[1] == {2: "reward is 'high' in column 'click', expected a number"}


def test_decimal_commas_are_recognised():
    assert has_decimal_commas(["0,5", "1,25", "x"])
    assert not has_decimal_commas(["a, b"])


def test_the_reading_of_words_is_told():
    assert words_as_outcomes(np.array(["yes", "no", "no"], object)) == "yes = 1, no = 0"
    assert words_as_outcomes(np.array(["50%"], object)) == "50% = 0.5"


def test_cells_are_quoted_once():
    assert shown(["b", "a", "b"]) == "'a', 'b'"


def test_cells_are_numbers_shares_or_empty():
    assert (number("2.5"), number("50 %"), number("yes")) == (2.5, 0.5, None)
    empty = number("")
    assert empty is not None and math.isnan(empty)
