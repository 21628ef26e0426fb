"""Feature maps refuse what they would silently take for something else."""

from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.features.maps import median_distance


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"count": 2.7}, "count"),
        ({"count": "4"}, "count"),
        ({"length_scale": "x"}, "length_scale"),
        ({"seed": "a"}, "seed"),
        ({"seed": -1}, "seed"),
    ],
)
def test_fourier_names_the_argument(arguments: Any, named: str):
    with pytest.raises(ValueError, match=f"{named} must"):
        aw.features.Fourier(**arguments)


@pytest.mark.parametrize("texts", ["hello world", None, 3, b"x"])
def test_one_text_is_not_a_row_per_letter(texts: Any):
    with pytest.raises(ValueError, match="texts must be a list"):
        aw.features.hashed_text(texts)
    with pytest.raises(ValueError, match="seed must"):
        aw.features.hashed_text(["hello"], seed=2**70)


@pytest.mark.parametrize("size", [1e-200, 1e-9, 1.0, 1e9, 1e140])
def test_the_length_scale_follows_rows_of_any_size(size: float):
    rows = np.random.default_rng(1).normal(size=(60, 3))
    assert median_distance(size * rows) == pytest.approx(size * median_distance(rows), rel=1e-9)
    assert median_distance(np.full((4, 2), size)) == 1.0


def test_products_that_overflow_are_refused():
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 1.0]])
    cross = aw.features.Cross(2).fit(rows)
    with pytest.raises(ValueError, match="too large to be crossed"):
        cross.transform([[1e200, 1.0, 1e200]])
