"""The uplift's interval holds at all times at once, under adaptivity, whatever the weights."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.service.model.uplift import Uplift, Weighed


def watched(seed: int, n: int = 400, floor: float = 0.02) -> tuple[int, int, Uplift]:
    """Two policies that change with what was drawn, on a log that adapts too; how often each end was wrong."""
    rng = np.random.default_rng(seed)
    pays, K = np.array([0.1, 0.3, 0.5, 0.2]), 4
    uplift, truth, best, wrong = Uplift(), 0.0, 0, [0, 0]
    chance = rng.random((n, 2)).tolist()
    for t in range(n):
        one, two = np.full(K, 0.05), np.full(K, 1.0 / K)
        one[best] += 0.8
        p = np.full(K, floor)
        p[best] += 1.0 - K * floor
        arm = min(int(np.searchsorted(np.cumsum(p), chance[t][0])), K - 1)
        reward = float(chance[t][1] < pays[arm])
        if reward and t % 7 == 0:
            best = arm
        first, second = (Weighed(float(pi[arm] / p[arm]), float((pi / p).max())) for pi in (one, two))
        truth += float(one @ pays - two @ pays)
        uplift.add(first, second, reward)
        if t % 5 == 4:
            _, low, high = uplift.interval(delta=0.2)
            wrong[0] += truth / (t + 1) < low
            wrong[1] += truth / (t + 1) > high
    return wrong[0], wrong[1], uplift


def test_the_interval_holds_at_all_times() -> None:
    """With a level of 80 % at most 20 % of the runs may ever leave it; fixed-time intervals leave it in more than half.

    A failure would mean terms that are biased, or a boundary for one time only.
    """
    runs = [watched(seed)[:2] for seed in range(60)]
    assert sum(low + high > 0 for low, high in runs) <= 12


def test_terms_have_the_uplift_as_their_mean() -> None:
    """Both ends' terms, over the arms' own probabilities: equal to the uplift exactly, however large the weights."""
    pays, p = np.array([0.2, 0.9, 0.4]), np.array([0.98, 0.01, 0.01])
    one, two = np.array([0.1, 0.8, 0.1]), np.array([0.3, 0.2, 0.5])
    sums = np.zeros(2)
    for arm in range(3):
        for reward in (0.0, 1.0):
            chance = p[arm] * (pays[arm] if reward else 1.0 - pays[arm])
            uplift = Uplift()
            weighed = [Weighed(pi[arm] / p[arm], (pi / p).max()) for pi in (one, two)]
            uplift.add(weighed[0], weighed[1], reward)
            sums += chance * np.array(uplift.sums)
            assert min(uplift.sums) >= -5.0  # which the boundary is made for
    assert sums == pytest.approx([(one - two) @ pays, (two - one) @ pays])


def test_what_could_not_be_drawn_widens_the_interval() -> None:
    """The second policy plays an arm that is never drawn: nothing says that the first is better."""
    uplift = Uplift()
    for k in range(2000):
        uplift.add(Weighed(1.0, 1.0), Weighed(0.0, 0.0, covered=0.0), float(k % 2))
    _, low, high = uplift.interval()
    assert low < -0.4
    assert high > 0.4


def test_rewards_have_any_range() -> None:
    one, two = Uplift(), Uplift(-10.0, 30.0)
    rng = np.random.default_rng(5)
    for _ in range(500):
        right = rng.random() < 0.5
        first, second = Weighed(2.0 * right, 2.0), Weighed(2.0 * (not right), 2.0)
        reward = float(rng.random() < (0.7 if right else 0.2))
        one.add(first, second, reward)
        two.add(first, second, 40.0 * reward - 10.0)
    assert two.interval() == pytest.approx([40.0 * end for end in one.interval()])
    assert one.interval()[1] > 0.2
