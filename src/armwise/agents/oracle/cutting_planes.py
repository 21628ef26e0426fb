"""RandomizedUCB's optimisation problem, solved by cutting planes and columns (survey 4.3.2, Algorithm 9)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from armwise.agents.oracle.variance import Sample, spread, violation
from armwise.core.agent import Floats
from armwise.core.tools.extras import needs
from armwise.native.policies import policy_totals

_NEW_CUTS, _COLUMNS = 16, 16  # how many of each are added at once
_MAX_CUTS = 400  # then those that do not bind are dropped
_WORKING_SET = 256  # policies that a line search looks at
_CENTRE = 0.01  # share of the centre in the point that a line search starts from


class Cut(NamedTuple):
    """The tangent of one policy's constraint: -slope . (mass on what it plays) - z tilt <= rhs, scaled to slope 1."""

    acts: np.ndarray
    slope: Floats
    tilt: float
    rhs: float


class LeastGap:
    """min_P P.gaps such that v_P.Q <= max(4K, c (gaps.Q)^2) for every distribution Q over the policies.

    The points (gaps.Q, v_P.Q) fill a convex set and must stay under a convex curve, hence under a line: the condition
    says that v_P(h) <= 4K + z (gaps(h) / x0 - 1) for all h and some z >= 0, where x0 is the gap at which the curve
    leaves 4K. (Steeper lines, tangent to the parabola, would have v_P < 1 at gap 0, and v_P is at least 1.) So the
    problem is convex in (P, z). A linear program over the cuts so far proposes (P, z); the segment from a feasible
    point to it meets the boundary where the next cuts are made, and the policies of negative reduced cost join.

    ``P`` is feasible at every moment; ``gap`` bounds how much better the optimum can be. A step costs O(J N) for J
    distinct contexts and N policies, and a small linear program.
    """

    def __init__(
        self, sample: Sample, gaps: Floats, mu: float, c: float, start: Floats | None = None, tolerance: float = 1e-3
    ) -> None:
        self.sample, self.gaps, self.mu, self.c, self.tolerance = sample, gaps, mu, c, tolerance
        self.flat = 4.0 * sample.n_arms
        self._tilt = gaps / math.sqrt(self.flat / c) - 1.0 if c > 0.0 else np.full(gaps.size, -1.0)
        N, leader = gaps.size, int(gaps.argmin())
        self.P = self._leader = np.zeros(N)
        self._leader[leader] = 1.0
        self.lower, self.steps = float(gaps.min()), 0
        self._start = np.full(N, 1.0 / N) if start is None else 0.5 * start + 0.5 / N
        self._z = 0.0
        self._names = [-1, leader]  # the columns of the linear program: the centre, then single policies
        self._acts = np.ascontiguousarray(sample.table[:, [leader]].T)  # what each of these policies plays
        self._cuts: list[Cut] = []
        self._A = np.empty((0, len(self._names)))  # a row for each cut

    @property
    def gap(self) -> float:
        return float(self.P @ self.gaps) - self.lower

    def violation(self, P: Floats) -> float:
        """By how much P breaks its worst constraint, exactly; negative inside."""
        return violation(self.gaps, self.sample.variances(P, self.mu), self.flat, self.c)

    def solve(self, max_steps: int = 300) -> LeastGap:
        """Until the gap is at most the tolerance, or after ``max_steps``."""
        if 1.0 / self.mu <= self.flat or self.violation(self.P) <= 0.0:
            return self  # the leader alone will do
        K, mu = self.sample.n_arms, self.mu
        self._centre, _ = spread(self.sample, mu, self._start)
        self._centre_masses = (self.sample.smoothed(self._centre, mu) - mu) / (1.0 - K * mu)
        self.P = self._centre
        while self.gap > self.tolerance and self.steps < max_steps:
            self._step()
            self.steps += 1
        return self

    def _step(self) -> None:
        out, z_out = self._propose()
        base = (1.0 - _CENTRE) * self.P + _CENTRE * self._centre
        z_base = (1.0 - _CENTRE) * self._z
        share = self._reach(base, z_base, out, z_out)
        P, z = base + share * (out - base), z_base + share * (z_out - z_base)
        if P @ self.gaps < self.P @ self.gaps:
            self.P, self._z = P, z
        # Cut a little beyond the boundary, so that the cut removes more than the one point.
        beyond = min(1.0, share + 0.05 * (1.0 - share))
        self._cut(base + beyond * (out - base), z_base + beyond * (z_out - z_base))
        self._cut(out, z_out, most=2)

    # ------------------------------------------------------------------ the linear program

    def _propose(self) -> tuple[Floats, float]:
        """Solve over the cuts and columns so far, add columns, and raise the lower bound."""
        if not self._cuts:
            return self._leader, 0.0
        while True:
            found = self._linear_program()
            prices = -found.ineqlin.marginals
            reduced = self.gaps - float(found.eqlin.marginals[0]) - self._worth(prices)
            # Weak duality: no distribution can do better than this, whatever the columns still missing.
            self.lower = max(self.lower, float(found.fun) + min(0.0, float(reduced.min())))
            new = [int(h) for h in np.argsort(reduced)[:_COLUMNS] if reduced[h] < -1e-9 and int(h) not in self._names]
            if not new or found.fun - self.lower < 0.1 * self.gap:
                break
            self._names += new
            acts = np.ascontiguousarray(self.sample.table[:, new].T)
            self._acts = np.concatenate([self._acts, acts])
            self._A = np.column_stack([self._A, [_agreement(acts, cut.acts, cut.slope) for cut in self._cuts]])
        P = found.x[0] * self._centre
        np.add.at(P, self._names[1:], found.x[1:-1])
        if len(self._cuts) > _MAX_CUTS:
            keep = np.union1d(np.argsort(-prices, kind="stable")[:100], np.arange(len(prices) - 100, len(prices)))
            self._cuts, self._A = [self._cuts[i] for i in keep], self._A[keep]
        return P / P.sum(), float(found.x[-1])

    def _linear_program(self) -> Any:
        with needs():
            from scipy.optimize import linprog  # slow to import

        costs = np.array([self._centre @ self.gaps, *self.gaps[self._names[1:]], 0.0])
        n = costs.size - 1
        cuts, limits = np.column_stack([self._A, [-cut.tilt for cut in self._cuts]]), [cut.rhs for cut in self._cuts]
        bounds = [(0.0, None)] * n + [(0.0, self.flat)]
        found = linprog(costs, cuts, limits, np.append(np.ones(n), 0.0)[None], [1.0], bounds)
        if found.status != 0:
            raise RuntimeError(f"the linear program of RandomizedUCB could not be solved: {found.message}")
        return found

    def _worth(self, prices: Floats) -> Floats:
        """The relaxation of the binding cuts by each policy, at their prices: one pass over the table."""
        rewards = np.zeros((len(self.sample.table), self.sample.n_arms))
        rows = np.arange(len(rewards))
        for price, cut in zip(prices, self._cuts):
            if price > 0.0:
                rewards[rows, cut.acts] += price * cut.slope
        return policy_totals(self.sample.table, rewards)

    # ------------------------------------------------------------------ the curved constraints

    def _limits(self, z: float) -> Floats:
        return self.flat + z * self._tilt

    def _reach(self, base: Floats, z_base: float, out: Floats, z_out: float) -> float:
        """The largest feasible step from base towards out; policies that both ends satisfy hold all the way."""
        sample, mu = self.sample, self.mu
        excess = sample.variances(out, mu) - self._limits(z_out)
        watched = np.argsort(-excess)[:_WORKING_SET]
        watched = watched[excess[watched] > 0.0]
        if not watched.size:
            return 1.0
        W_base, W_out = sample.smoothed(base, mu), sample.smoothed(out, mu)
        low_limit, high_limit = self._limits(z_base), self._limits(z_out)
        share = 1.0
        while True:
            share = self._bisect(W_base, W_out, low_limit, high_limit, watched, share)
            v = policy_totals(sample.table, sample.shares[:, None] / (W_base + share * (W_out - W_base)))
            broken = v - (low_limit + share * (high_limit - low_limit))
            if broken.max() <= 0.0:
                return share
            watched = np.union1d(watched, np.argsort(-broken)[:_WORKING_SET])

    def _bisect(
        self, W_base: Floats, W_out: Floats, low_limit: Floats, high_limit: Floats, watched: Any, high: float
    ) -> float:
        table = np.ascontiguousarray(self.sample.table[:, watched])
        low, low_limit, high_limit = 0.0, low_limit[watched], high_limit[watched]
        shares = self.sample.shares[:, None]
        for _ in range(20):
            middle = 0.5 * (low + high)
            v = policy_totals(table, shares / (W_base + middle * (W_out - W_base)))
            if np.all(v <= low_limit + middle * (high_limit - low_limit)):
                low = middle
            else:
                high = middle
        return low

    def _cut(self, P: Floats, z: float, most: int = _NEW_CUTS) -> None:
        """Linearise the constraints that bind most at (P, z): v_P(h) is convex, so a tangent never cuts too much."""
        sample, K = self.sample, self.sample.n_arms
        W = sample.smoothed(P, self.mu)
        masses, inverse = (W - self.mu) / (1.0 - K * self.mu), 1.0 / W
        v = policy_totals(sample.table, sample.shares[:, None] * inverse)
        excess = v - self._limits(z)
        rows = np.arange(len(W))
        for h in np.argsort(-excess)[:most]:
            if excess[h] < -0.02 * self.flat:
                break
            acts = sample.table[:, h]
            slope = (1.0 - K * self.mu) * sample.shares * inverse[rows, acts] ** 2
            # v_P(h) + slope . (masses - new masses) <= flat + z tilt(h)
            rhs = self.flat - float(v[h]) - float(slope @ masses[rows, acts])
            scale = float(slope.sum())  # up to 1 / mu^2, which a linear program would not like
            slope, rhs = slope / scale, rhs / scale
            self._cuts.append(Cut(acts, slope, float(self._tilt[h]) / scale, rhs))
            row = [-float(slope @ self._centre_masses[rows, acts]), *_agreement(self._acts, acts, slope)]
            self._A = np.vstack([self._A, row])


def _agreement(policies: np.ndarray, acts: np.ndarray, slope: Floats) -> list[float]:
    """The place in a cut of each of some policies, given by what they play: -slope . (where it is what the cut's does).

    Each is a product of its own, so that its bits do not depend on how many there are.
    """
    return [-float(slope @ same) for same in (policies == acts).astype(float)]
