"""Betting, row by row and at once."""

import numpy as np

from armwise.offline.intervals.bounded import Bets, betting


def test_the_path_of_bets_ends_at_their_ends():
    bets = Bets(0.0, 1.0)
    bets.add(np.ones(50), np.zeros(50))
    low, high = bets.path()
    assert low.shape == (50,)
    assert low[-1] == bets.low
    assert low[10] < low[40]
    assert float(high[-1]) == 1.0


def test_betting_at_once_is_betting_row_by_row():
    x = np.tile([1.0, 0.0, 0.0, 1.0, 0.0], 200)
    bets = Bets(0.0, 1.0, n=1000)
    bets.add(x, 1.0 - x)
    ends = betting(x, 1.0 - x, 0.0, 1.0)
    assert abs(ends[0] - bets.low) < 0.003
    assert abs(ends[1] - bets.high) < 0.003
