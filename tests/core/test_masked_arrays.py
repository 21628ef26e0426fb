"""Masked arrays are refused wherever an array comes in: NumPy would read the values that the mask hides."""

import numpy as np
import pytest

import armwise as aw

MASKED = np.ma.masked_equal([[1.0, 2.0], [3.0, -9.0]], -9.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: aw.LinUCB(2).choose(MASKED),
        lambda: aw.LinUCB(2).probabilities([MASKED[0], MASKED[1]]),
        lambda: aw.LinUCB(2).learn(MASKED, aw.Choice(0, 1.0), 1.0),
        lambda: aw.LinUCB(2).play(MASKED[None], np.ones((1, 2))),
        lambda: aw.LinUCB(2).play(np.ones((2, 2, 2)), MASKED),
        lambda: aw.LinUCB(2, n_arms=2).choose(MASKED[1]),
        lambda: aw.UCB1(2).learn(None, aw.Choice(0, 1.0), np.ma.masked),  # type: ignore[arg-type]
        lambda: aw.Exp4(2, 2).choose(MASKED),
        lambda: aw.Advised(aw.Exp4(1, 2), [lambda x: 0]).choose(MASKED[1]),
        lambda: aw.LinearOracle(2, 2).argmax(MASKED, np.ones((2, 2))),
        lambda: aw.CoFineUCB(2, MASKED),
        lambda: aw.LogisticThompson(2).choose(MASKED),
    ],
)
def test_a_masked_array_is_refused_by_name(call):
    with pytest.raises(ValueError, match=r"(is|holds) a masked array, whose mask would be ignored"):
        call()


def test_unmasked_data_in_a_masked_array_is_refused_too():
    """Whether anything is masked may change from batch to batch; the type says that it can."""
    with pytest.raises(ValueError, match="masked array"):
        aw.LinUCB(2).choose(np.ma.array([[1.0, 2.0]]))
