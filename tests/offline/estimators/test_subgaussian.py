"""Shrunk weights by hand."""

import numpy as np
import pytest

from armwise.offline.estimators.subgaussian import shrunk


def test_a_shrunk_weight_never_passes_its_limit():
    assert shrunk(np.array([0.0, 1.0, 9.0]), 0.5) == pytest.approx([0.0, 1.0, 1.8])
