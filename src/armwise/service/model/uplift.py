"""The difference between two policies' rewards per decision, with an interval that is valid at any time.

Two policies are judged on the same log by inverse propensities, w_i = pi_i(arm) / p(arm), where p is what the arm was
drawn with. The term of a decision with reward r in [0, 1],

    x = (w_1 - w_2) r - b_1 (w_1 - c_1) + b_2 (w_2 - c_2) - (1 - c_2),

has the uplift as its expectation whatever happened before, for any b_1, b_2 that the past decides: weights have the
mean c, the probability that a policy gives to arms which could have been drawn. Where that is 1 nothing is unknown;
else the rest counts as earning nothing for the first and everything for the second. Both b are near the mean reward,
which takes most of the variance away, and moved so far to their safe sides, 0 and 1, as keeps x above -(C + 1), however
large the weights may be; only that side matters for a lower end. The upper end is the lower end of the two policies
exchanged.

The estimate is the difference of the two self-normalised means, sum(w r) / sum(w): each lies among the rewards, as what
a policy earns does, where the mean of the terms may not.

Intervals are the empirical-Bernstein confidence sequence of Howard, Ramdas, McAuliffe, Sekhon (2021), Theorem 4, with
their stitched boundary (10): it holds at all times at once, for the mean uplift so far, where policies learn too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from armwise.core.agent import Floats

C = 4.0  # rewards' ranges that one decision may speak against an uplift
ETA, POWER, ZETA = 2.0, 1.4, 3.105547  # of the stitched boundary: the epochs' ratio, h(k) = (k + 1)^s zeta(s)
K1, K2 = (ETA**0.25 + ETA**-0.25) / np.sqrt(2.0), (np.sqrt(ETA) + 1.0) / 2.0
BEGIN = 50.0  # the variance (in squared ranges) from which on the boundary of an uplift is meant to be narrow
BEGIN_MEAN = 5.0  # the same of a mean: rare clicks have little variance


def boundary(variance: Floats | float, scale: float, delta: float, begin: float = BEGIN) -> Floats:
    """A bound on a sum of deviations, each above -scale, at all times, with probability 1 - ``delta``."""
    v = np.maximum(variance, begin)
    level = POWER * np.log(np.log(v / begin) / np.log(ETA) + 1.0) + np.log(ZETA / delta)
    found: Floats = np.sqrt(K1**2 * v * level + (K2 * scale * level) ** 2) + K2 * scale * level
    return found


class Weights(NamedTuple):
    """A policy in n decisions: its weights, the largest they could have been, its probability of arms with a chance."""

    weight: Floats
    most: Floats
    covered: Floats


def uplift_interval(
    first: Weights, second: Weights, rewards: Floats, low: float, high: float, delta: float = 0.05
) -> tuple[float, float, float]:
    """What the first of two policies earns more than the second per decision, and the ends that hold it at all times
    but for a chance of ``delta``; decisions in the order of their time, rewards in [low, high].
    """
    n, width = len(rewards), high - low
    (below, room_below), (above, room_above) = (
        _side(*pair, (rewards - low) / width, delta / 2.0) for pair in ((first, second), (second, first))
    )
    least, most = max(below / n - room_below, -1.0), min(room_above - above / n, 1.0)
    middle = min(max(_self_normalised(first, rewards) - _self_normalised(second, rewards), width * least), width * most)
    return middle, width * least, width * most


def _self_normalised(policy: Weights, rewards: Floats) -> float:
    """A policy's reward per decision; without a decision of it, the mean of all."""
    return float(np.average(rewards, weights=policy.weight if policy.weight.any() else None))


def uplift_terms(one: Weights, two: Weights, gained: Floats) -> Floats:
    """The terms x of the lower end, rewards in [0, 1]."""
    centre = _before(gained, 0.5)
    b1 = np.minimum(centre, C / np.maximum(one.most, C))
    b2 = np.maximum(centre, 1.0 - C / np.maximum(two.most, C))
    known = b1 * (one.weight - one.covered) - b2 * (two.weight - two.covered) + (1.0 - two.covered)
    terms: Floats = (one.weight - two.weight) * gained - known
    return terms


def _side(one: Weights, two: Weights, gained: Floats, delta: float) -> tuple[float, float]:
    """The sum of the terms of one end, and how far their mean may be from what was expected."""
    x = uplift_terms(one, two, gained)
    predicted = np.zeros_like(x)
    predicted[1:] = np.clip(x.cumsum()[:-1] / np.arange(1, len(x)), -1.0, 1.0)
    squares = float(((x - predicted) ** 2).sum())
    return float(x.sum()), float(boundary(squares, C + 2.0, delta)) / len(x)


def running_means(
    values: Floats, at: np.ndarray, low: float, high: float, delta: float = 0.05
) -> tuple[Floats, Floats, Floats]:
    """The means of the values up to each index in ``at``, and the two ends that hold, at all times but for a chance of
    ``delta``, the mean of what was expected of them; values in [low, high], in the order of their time.
    """
    x = (np.asarray(values, np.float64) - low) / (high - low)
    n, mean = at + 1.0, x.cumsum()[at] / (at + 1.0)
    squares = ((x - _before(x, 0.5)) ** 2).cumsum()[at]
    room = boundary(squares, 1.0, delta / 2.0, BEGIN_MEAN) / n
    width = high - low
    return low + width * mean, low + width * np.maximum(mean - room, 0.0), low + width * np.minimum(mean + room, 1.0)


def _before(values: Floats, begin: float) -> Floats:
    """The mean of the values before each, where ``begin`` counts as one."""
    total = values.cumsum()
    return (begin + np.concatenate([[0.0], total[:-1]])) / np.arange(1.0, len(values) + 1.0)
