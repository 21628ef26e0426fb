"""A policy's scores on the log of an adaptive agent: weights, their reliability, and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri

from armwise.core.agent import Floats
from armwise.offline.intervals.bounded import Bets, betting
from armwise.offline.intervals.intervals import freedom
from armwise.offline.results.diagnostics import VERY_FEW, rare_rewards

FEW = 30  # effective rows below which a normal interval is unreliable
_HANDFUL = 20  # rows, fewer than which may well have one reward
_CAUTION = 20.0  # the weights that first bets reckon with: no look at the log may change it
MIN_FREEDOM = 30.0  # of the variance, before which no interval at all times begins
FALSE_ALARMS = 0.005  # false-alarm rate of the "no chance" warning over all policies together
_PARTS = 4  # of a log, in which the mean is compared
_OWN = 10  # rows of a part with these decisions, and degrees of freedom of its variance, below which it is left out
_NEVER = 0.05  # expected number of draws of decisions that are as good as never taken
_NOTABLE = 0.25  # share of such decisions above which an interval that allows for them is not enough
_MOVED = 1e-3  # p-value of "the mean is the same in all parts" below which it moved


@dataclass(frozen=True, eq=False)
class Scores:
    """One policy's scores and weights in the order of the rounds."""

    table: Floats  # (n, K) or (1, K): the policy's probabilities
    G: Floats
    w: Floats  # importance weights
    h: Floats  # adaptive weights: each known before its round
    rewards: Floats
    reward_range: tuple[float, float] | None  # None: the rewards are unbounded
    no_chance: float  # share of the policy's decisions that the agent is known not to have been able to take
    hardly: float  # share of those that it would not have taken in a log of this length, almost surely

    @property
    def value(self) -> float:
        """The weighted mean of the scores."""
        return float(self.h @ self.G / self.h.sum())

    @property
    def influence(self) -> Floats:
        """Return each round's contribution to the error of the value."""
        return np.asarray(self.h * (self.G - self.value) / self.h.sum())

    @property
    def ess(self) -> float:
        """Return the effective sample size of the weights."""
        return float(self.w.sum() ** 2 / max((self.w**2).sum(), np.finfo(float).tiny))

    @property
    def worth(self) -> float:
        """The effective rows of weights like these that average 1, as they should.

        Whether a normal interval is trusted must not depend on how often chance took these decisions: where it did so
        seldom, the other interval covers almost always, and one of the two by turns covers too often.
        """
        return float(len(self.w) * self.w.sum() / max((self.w**2).sum(), np.finfo(float).tiny))

    @property
    def doubtful(self) -> bool:
        """Return whether a normal interval is unreliable: it needs overlap for every arm and many effective rows."""
        return self.short or self._too_heavy or bool(self._rare) or self.worth < FEW

    def weaknesses(self, policies: int = 1, *, likely: bool = False) -> list[str]:
        """Return warnings about this policy's numbers.

        That the weights average less than 1 by chance is one thing for an interval, which then has to be another one,
        and another for an alarm: over all ``policies`` of a healthy log there may hardly ever be one. An interval that
        knows the limits of the rewards (``likely``) holds with far fewer rows, and where weights are missing: its width
        says how few rows there are.
        """
        n, found, sure = len(self.w), list[str](), float(ndtri(1.0 - FALSE_ALARMS / policies))
        mean, error = float(self.w.mean()), self._error
        least = float(1.0 / self.w.max()) if self.w.max() > 0 else 0.0
        if not self.w.any():
            found.append("the agent never took these decisions, so nothing says what they earn")
        elif self.hardly > _NOTABLE or (self.no_chance > 0.001 and not likely):
            found.append(
                f"the agent gave {max(self.hardly, self.no_chance):.0%} of these decisions (almost) no chance, so that "
                "nothing says what they earn (put an Explore around the agent)"
            )
        elif self._below_one(sure) and not likely:
            found.append(
                f"the weights average {mean:.3g}, not 1 ({(1 - mean) / max(error, 1e-12):.1f} standard errors below): "
                "in some rounds the agent gave these decisions (almost) no chance; none was taken with a probability "
                f"below {least:.2g} (put an Explore around the agent)"
            )
        elif self._too_heavy:
            found.append(f"the weights average {mean:.3g}, not 1: the logged probabilities are wrong")
        used = self.rewards[self.w > 0]
        # with limits, rewards that hardly differ are no fault, and a handful of rows has a wide interval anyway
        if not likely or (len(used) >= _HANDFUL and used.min() == used.max()):
            found += rare_rewards(used, VERY_FEW)
        if self.w.any() and (n if likely else self.worth) < FEW:
            found.append(
                f"too few rows answer the question: effective sample size {self.worth:,.0f} of {n:,} (decisions taken "
                f"with probabilities down to {least:.2g}; an Explore around the agent raises them)"
            )
        return found

    @property
    def short(self) -> bool:
        """Whether the weights seem to average less than 1: some decisions had (almost) no chance."""
        return self.no_chance > 0.001 or self._below_one(2.0)

    def _below_one(self, errors: float) -> bool:
        return float(self.w.mean()) < 1 - max(errors * self._error, 0.02)

    @property
    def _too_heavy(self) -> bool:
        return float(self.w.mean()) > 1 + max(4 * float(self.w.std()) / math.sqrt(len(self.w)), 0.02)

    @property
    def _rare(self) -> list[str]:
        return rare_rewards(self.rewards[self.w > 0])

    @property
    def _error(self) -> float:
        """The standard error of the mean of weights like these that average 1: what chance alone would explain."""
        mean, second = float(self.w.mean()), float((self.w**2).mean())
        return math.sqrt(max(second / mean - 1.0, 0.0) / len(self.w)) if mean > 0 else 0.0

    @property
    def moved(self) -> bool:
        """Whether the policy's mean reward is not the same in all rounds, beyond chance.

        In quarters of the log (where they have rows enough), and as a mean over all rounds against the weighted one.
        """
        means, errors = [], []
        for part, w in zip(np.array_split(self.G, _PARTS), np.array_split(self.w, _PARTS), strict=True):
            # without rows of its own a part has the model's guess, which hardly varies
            if len(part) >= FEW and freedom(part) >= _OWN and np.count_nonzero(w) >= _OWN:
                means.append(float(part.mean()))
                errors.append(float(part.var(ddof=1)) / len(part))
        p = 1.0
        if len(means) > 1:
            precision = 1.0 / np.maximum(errors, np.finfo(float).tiny)
            middle = float(precision @ means / precision.sum())
            p = float(chdtrc(len(means) - 1, precision @ (np.array(means) - middle) ** 2))
        shift = self.h / self.h.sum() - 1.0 / len(self.h)
        error = float(np.linalg.norm(shift * (self.G - self.value)))
        if error > 1e-12 * max(1.0, abs(self.value)):
            p = min(p, 2.0 * float(ndtr(-abs(float(shift @ self.G)) / error)))
        return p < _MOVED

    def betting(self, level: float) -> tuple[float, float]:
        """The betting interval from w r and w (high - r): right for any length and any probabilities, zero too.

        A decision that had no chance takes from both means, which moves the lower end down and the upper end up.
        """
        if self.reward_range is None:
            return -math.inf, math.inf
        low, high = self.reward_range
        above, below = self.w * (self.rewards - low), self.w * (high - self.rewards)
        return betting(above, below, low, high, level, scale=float(self.table.shape[1]))

    def last(self, interval: str, level: float) -> tuple[float, float]:
        """The ends of the time-uniform interval after the last round."""
        low, high = self.path(interval, level)
        return float(low[-1]), float(high[-1])

    def path(self, interval: str, level: float) -> tuple[Floats, Floats]:
        """The ends of the time-uniform interval after each round."""
        if interval == "sequence":
            assert self.reward_range is not None
            return self._sequence(level, *self.reward_range)
        centre, spread, known = running(self.h, self.G)
        # A model that has hardly seen a reward yet hardly varies: the rewards themselves must vary, too.
        known = np.minimum(known, running(self.w, self.rewards)[2])
        rounds = np.arange(1, len(self.h) + 1)
        # The boundary is that of a known variance: it begins when the variance is known well enough, not at a row.
        half = mixture_boundary(spread, rounds, level) * np.sqrt(1.0 + 8.0 / np.maximum(known, 1.0)) / np.cumsum(self.h)
        half[(known < MIN_FREEDOM) | (rounds < FEW)] = np.inf
        return centre - half, centre + half

    def _sequence(self, level: float, low: float, high: float) -> tuple[Floats, Floats]:
        """The confidence sequence of bets on w r and on w (high - r), cautious from the first row on."""
        bets = Bets(low, high, level, scale=_CAUTION)
        bets.add(self.w * (self.rewards - low), self.w * (high - self.rewards))
        return bets.path()


def hardly_tried(mass: Floats, chance: Floats, n: int) -> float:
    """The share of decisions that an agent would take, in all n rounds together, less than ``_NEVER`` times.

    ``mass`` is the policy's on them, ``chance`` at most the agent's.
    """
    order = np.argsort(chance)
    order = order[mass[order] > 0.0]
    return float(mass[order[np.cumsum(chance[order]) < _NEVER]].sum() / n)


def mixture_boundary(variance: Any, rounds: Any, level: float, tuned_for: int = 1000) -> Floats:
    """Robbins' normal mixture: what a martingale with this intrinsic time crosses, ever, with probability 1 - level.

    sqrt((V + rho) ln((V + rho) / (rho (1 - level)^2))), where rho makes it narrowest after ``tuned_for`` rounds: a
    number that no look at the data may change (Robbins 1970; Waudby-Smith et al. 2024 for estimated variances).
    """
    V, log = np.asarray(variance, np.float64), -2.0 * math.log(1.0 - level)
    rho = np.maximum(V / rounds * tuned_for / (log + math.log1p(log)), np.finfo(float).tiny)
    return np.asarray(np.sqrt((V + rho) * (np.log((V + rho) / rho) + log)))


def running(weights: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """After each row: the weighted mean, the sum of squares of weight (value - mean), and its degrees of freedom."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nan_to_num(np.cumsum(weights * values) / np.cumsum(weights))
    pilot = float(values[:FEW].mean())  # sums of powers about a number near the mean lose fewer digits
    v, m = values - pilot, mean - pilot
    second = [np.cumsum(weights**2 * v**k) for k in range(3)]
    fourth = [np.cumsum(weights**4 * v**k) for k in range(5)]
    squares = np.maximum(second[2] - 2 * m * second[1] + m**2 * second[0], 0.0)
    quartic = fourth[4] - 4 * m * fourth[3] + 6 * m**2 * fourth[2] - 4 * m**3 * fourth[1] + m**4 * fourth[0]
    some = squares > 1e-9 * second[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = quartic / squares**2 - 1.0 / np.arange(1, len(values) + 1)
    return mean, squares, np.where(some, 2.0 / np.maximum(np.where(some, relative, 1.0), 1e-12), 0.0)


def recent(values: Floats, prior: Any) -> Floats:
    """The mean of the last half of the rows before each row, and of some rows of a prior: known before the row."""
    n, weight = len(values), 20.0
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])
    end = np.arange(n)
    start = end // 2
    fading = weight * np.minimum(1.0, 40.0 / np.maximum(end, 1))  # the prior counts less and less
    sums = total[end] - total[start] + fading[:, None] * np.broadcast_to(prior, values.shape)
    return np.asarray(sums / (end - start + fading)[:, None])
