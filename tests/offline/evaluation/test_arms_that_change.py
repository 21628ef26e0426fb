"""Policies that are on offer in different rows: each is compared with what its own rows earned."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.offline import Log, evaluate


@pytest.fixture(scope="module")
def log() -> Log:
    """Good days offer a and b, bad ones b and c; b is the better arm on both, and a earns more than c ever could."""
    rng, n = np.random.default_rng(3), 4000
    good = np.arange(n) < n // 2
    arms = np.where(good, rng.integers(0, 2, n), rng.integers(1, 3, n))
    chance = np.where(good, 0.5, 0.1) + 0.2 * (arms == 1)
    offered = np.stack([good, np.ones(n, bool), ~good], 1)
    return Log(arms=arms, rewards=rng.random(n) < chance, probabilities=0.5, available=offered, n_arms=3,
               arm_names=["a", "b", "c"])  # fmt: skip


POLICIES = {"a": [1.0, 0.0, 0.0], "c": [0.0, 0.0, 1.0]}


def test_the_best_is_who_beats_its_own_rows_and_not_who_met_good_days(log: Log) -> None:
    """a earns 0.5 and c 0.1, and both earn 0.1 less than their days did: a was said to have earned most."""
    found = evaluate(log, POLICIES, "snips", baseline="logged", warn=False)
    assert found.apart and found.logged == pytest.approx(log.rewards.mean())
    assert found["a"].lift is not None and found["a"].lift.value == pytest.approx(-0.1, abs=0.03)
    text = found.text()
    assert "judged in the rows that offered it" in found.answer and "may be as good" in found.answer
    assert f"the log earned {log.rewards.mean():.4f}" in text
    assert text.count("in the rows that offered it") >= 2
    assert "each policy's own" in text and "on offer in 2,000 of 4,000 rows" in text
    alone = evaluate(log, POLICIES["a"], "snips", warn=False)
    assert "2,000 in which it was not on offer" in alone.text()


def test_values_of_different_rows_are_not_compared(log: Log) -> None:
    assert "do not compare" in evaluate(log, POLICIES, "snips", warn=False).answer
    everywhere = evaluate(log, {"b": [0.0, 1.0, 0.0], "uniform": [1 / 3] * 3}, "snips", warn=False)
    assert not everywhere.apart and "b would have earned most" in everywhere.answer
