"""The rounds so far, beside a sum over all of them."""

import numpy as np

from armwise.agents.oracle.history import History
from armwise.core import saving


def test_history_adds_up_rounds_that_look_alike():
    rng = np.random.default_rng(3)
    rows, arms, estimates = rng.integers(3, size=(300, 2)).astype(np.uint8), rng.integers(2, size=300), rng.random(300)
    history = History(n_arms=2)
    for row, arm, estimate in zip(rows, arms, estimates):
        history.add(row, int(arm), estimate)
    history = saving.loads(saving.dumps(history))
    for row, n, gains in zip(history.seen, history.counts, history.gains):
        same = (rows == row).all(axis=1)
        assert n == same.sum()
        np.testing.assert_allclose(gains, [estimates[same & (arms == a)].sum() for a in (0, 1)])
    assert len(history.seen) == 9
    assert history.n == 300
    history.add(rows[0], 0, 1.0)
    assert len(history.seen) == 9
