"""Columns by name, and words among numbers."""

import numpy as np
import pytest

from armwise.offline.logs.columns import StringColumn, check_column, nearest


def test_a_missing_column_names_the_nearest():
    with pytest.raises(ValueError, match=r"there is no column 'rewrd': did you mean 'reward'\?"):
        check_column("rewrd", ["arm", "reward"])


def test_the_same_word_is_nearer_than_its_spelling():
    assert nearest("age", ["message", "age (years)"]) == "age (years)"
    assert nearest("rewrd", ["arm", "reward"]) == "reward"


def test_a_few_words_among_numbers_are_categories():
    column = StringColumn()
    column.add(np.array([*map(str, range(30)), "unknown"], object))
    assert column.is_numbers and column.categories == ["unknown"]
    numbers, words = column.encoded(np.array(["4", "unknown"], object))
    assert (numbers.tolist(), words.tolist()) == ([4.0, 14.5], [0.0, 1.0])
