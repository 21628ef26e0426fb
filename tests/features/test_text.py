"""Texts: hashed into rows by an object that is saved, and refused by maps of numbers with a word about what to do."""

from typing import Any

import numpy as np
import pytest

from armwise.core import saving
from armwise.features import Bins, Columns, HashedText, Scale, hashed_text

TEXTS = ["the cat sat down", "the cat sat up", "green ideas sleep furiously", ""]


def test_hashed_text_as_an_object_is_the_function_also_after_a_file() -> None:
    text = HashedText(dim=64, seed=7)
    out = text.transform(TEXTS)
    assert out.shape == (4, text.size) and np.array_equal(out, hashed_text(TEXTS, size=64, seed=7))
    again = saving.loads(saving.dumps(text))
    assert np.array_equal(again.transform(TEXTS), out) and again.seed == 7
    assert not np.array_equal(HashedText(dim=64).transform(TEXTS), out)


@pytest.mark.parametrize(("arguments", "named"), [({"dim": 0}, "dim"), ({"dim": 2.5}, "dim"), ({"seed": "a"}, "seed")])
def test_what_it_is_made_with_is_checked(arguments: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"{named} must"):
        HashedText(**arguments)


@pytest.mark.parametrize("rows", [[["red"], ["blue"]], [[1.0, "red"]], np.array([["a", 2.0]], object), ["red", "blue"]])
def test_text_in_columns_is_refused_with_what_to_do(rows: Any) -> None:
    for mapping in (Columns(), Bins(), Scale()):
        with pytest.raises(ValueError, match=r"number the categories.*features\.Encoder"):
            mapping.fit(rows)
    with pytest.raises(ValueError, match=r"features\.Encoder"):
        Columns().fit([[0.0, 1.5], [1.0, 2.5]]).transform(rows)


def test_other_rows_that_are_none_keep_their_message() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        Columns().fit([[1.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="array of numbers"):
        Columns().fit([[None]])
