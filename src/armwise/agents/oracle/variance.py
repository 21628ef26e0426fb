"""Distributions over an explicit class under which no policy's estimate varies much: the two convex problems.

P is a distribution over N policies, W'(x, a) = (1 - K mu) W_P(x, a) + mu the arms drawn from it, and
v_P(h) = mean_x 1 / W'(x, h(x)) bounds the variance of h's estimated reward.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats
from armwise.native.policies import arm_masses, policy_totals

_HALVINGS = 7  # of the leader's share: within 1 %
_ENOUGH = math.sqrt(2.0)  # times K: half way, in ratio, between what exists (K) and what is asked for (2K)


def smoothed(masses: NDArray[Any], mu: float) -> Floats:
    """(1 - K mu) W + mu: every arm keeps a probability of at least mu."""
    W: Floats = (1.0 - masses.shape[-1] * mu) * masses + mu
    return W


class Sample:
    """Contexts that stand for their distribution: what policies recommend in the distinct ones, and their shares."""

    def __init__(self, table: np.ndarray, counts: Floats, n_arms: int) -> None:
        self.table, self.n_arms = np.ascontiguousarray(table), n_arms  # as the kernels read it, once
        self.shares = counts / counts.sum()
        self.n_policies = table.shape[1]

    def smoothed(self, P: Floats, mu: float) -> Floats:
        """W'(x, a), one row a distinct context: O(J N)."""
        return smoothed(arm_masses(self.table, P, self.n_arms), mu)

    def variances(self, P: Floats, mu: float) -> Floats:
        """v_P(h) of every policy: O(J N)."""
        return policy_totals(self.table, self.shares[:, None] / self.smoothed(P, mu))


def spread(sample: Sample, mu: float, start: Floats) -> tuple[Floats, float]:
    """A distribution P with v_P(h) <= sqrt(2) K for every policy h, and its largest v_P.

    P(h) <- P(h) v_P(h) / sum(P v_P) climbs mean_x sum_a ln W'(x, a), whose gradient is proportional to v_P. Since
    sum(P v_P) <= K and ln v_P(h) is convex in P, the mean of the first k iterates has
    v(h) <= K exp(ln(1 / P_1(h)) / k): never more than 2 log2(1 / min P_1) steps, each O(J N).
    """
    limit, P, total, k = _ENOUGH * sample.n_arms, start, np.zeros_like(start), 0
    while True:
        v = sample.variances(P, mu)
        if v.max() <= limit:
            return P, float(v.max())
        total, k = total + P, k + 1
        P = P * v / (P @ v)
        if k % 4 == 0:
            mean = total / k
            largest = float(sample.variances(mean, mu).max())
            if largest <= limit:
                return mean, largest


def tilted(sample: Sample, mu: float, leader: int, start: Floats) -> tuple[Floats, float]:
    """The most of ``leader`` in a mixture with v_P(h) <= 2K for every h, and the mixture's largest v_P.

    v_P is convex in P, so that along the line from ``spread`` to the leader the constraint holds up to one point,
    which is halved for; a tenth is left for mu to fall by before P has to be found again.
    """
    # Half of a uniform start keeps every 1 / P_1(h) below 2N, which bounds the number of steps.
    even, limit = 0.5 * start + 0.5 / start.size, 2.0 * sample.n_arms / 1.1
    P, largest = spread(sample, mu, even)
    share, step, base = 0.0, 0.5, P
    for _ in range(_HALVINGS):
        trial = (1.0 - share - step) * base
        trial[leader] += share + step
        worst = float(sample.variances(trial, mu).max())
        if worst <= limit:
            share, P, largest = share + step, trial, worst
        step *= 0.5
    return P, largest


def violation(gaps: Floats, v: Floats, flat: float, c: float) -> float:
    """max over distributions Q of v.Q - max(flat, c (gaps.Q)^2), exactly.

    Only the point (gaps.Q, v.Q) matters, and for a given gap the largest v.Q lies on the upper hull of the N points;
    along an edge of it the difference is concave, so its largest value is at an end, at the parabola's own slope,
    or where the parabola leaves the flat part. O(N ln N).
    """
    x, y = _upper_hull(gaps, v)
    corner = math.sqrt(flat / c) if c > 0.0 else math.inf
    slopes = np.diff(y) / np.diff(x)
    tangent = np.clip(slopes / (2 * c), x[:-1], x[1:]) if c > 0.0 else x[:0]
    at = np.concatenate([x, tangent, np.clip([corner], x[0], x[-1])])
    difference = np.interp(at, x, y) - np.maximum(flat, c * at**2)
    return float(difference.max())


def _upper_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners of the upper hull, from left to right, x strictly increasing (Andrew's monotone chain)."""
    order = np.lexsort((-y, x))
    hull: list[tuple[float, float]] = []
    for point in zip(x[order].tolist(), y[order].tolist()):
        if hull and point[0] == hull[-1][0]:
            continue
        while len(hull) > 1 and _turns_left(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    corners = np.array(hull)
    return corners[:, 0].copy(), corners[:, 1].copy()


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
