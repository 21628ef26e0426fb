"""One policy's scores on the log of an agent that adapts: their weights, when these can be trusted, their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.evaluation.diagnostics import rare_rewards
from armwise.offline.intervals.bounded import betting
from armwise.offline.intervals.intervals import ConfidenceSequence

FEW = 30  # effective rows below which no normal interval is to be relied on


@dataclass(frozen=True)
class Scores:
    """One policy's scores and weights in the order of the rounds."""

    table: Floats  # (n, K) or (1, K): what the policy plays
    G: Floats
    w: Floats  # importance weights
    h: Floats  # adaptive weights: each known before its round
    rewards: Floats
    reward_range: tuple[float, float] | None  # None: the rewards have no known limits
    no_chance: float  # share of the policy's decisions that the agent could not have taken; NaN if unknown

    @property
    def value(self) -> float:
        """The weighted mean of the scores."""
        return float(self.h @ self.G / self.h.sum())

    @property
    def influence(self) -> Floats:
        """What each round adds to the value's error."""
        return np.asarray(self.h * (self.G - self.value) / self.h.sum())

    @property
    def ess(self) -> float:
        """The effective number of rows behind the weights."""
        return float(self.w.sum() ** 2 / max((self.w**2).sum(), np.finfo(float).tiny))

    @property
    def worth(self) -> float:
        """The effective rows of weights like these that average 1, as they should.

        Whether a normal interval is trusted must not depend on how often chance took these decisions: where it did so
        seldom, the other interval covers almost always, and one of the two by turns covers too often.
        """
        return float(len(self.w) * self.w.sum() / max((self.w**2).sum(), np.finfo(float).tiny))

    def weaknesses(self) -> list[str]:
        """Why a normal interval is not to be trusted here: it needs a chance for every arm, and many effective rows."""
        n, found = len(self.w), []
        mean, error, own = float(self.w.mean()), self._error, float(self.w.std()) / math.sqrt(n)
        least = float(1.0 / self.w.max()) if self.w.max() > 0 else 0.0
        if self.no_chance > 0.001:
            found.append(
                f"the agent gave {self.no_chance:.1%} of these decisions no chance, so nothing says what they earn"
            )
        elif not self.w.any():
            found.append("the agent never took these decisions, so nothing says what they earn")
        elif self.short:
            found.append(
                f"the weights average {mean:.3g}, not 1 ({(1 - mean) / max(error, 1e-12):.1f} standard errors below): "
                "in some rounds the agent gave these decisions (almost) no chance; none was taken with a probability "
                f"below {least:.2g} (put an Explore around the agent)"
            )
        elif mean > 1 + max(4 * own, 0.02):
            found.append(f"the weights average {mean:.3g}, not 1: the logged probabilities are wrong")
        found += rare_rewards(self.rewards[self.w > 0])
        if self.w.any() and self.worth < FEW:
            found.append(
                f"too few rows answer the question: effective sample size {self.worth:,.0f} of {n:,} (decisions taken "
                f"with probabilities down to {least:.2g}; an Explore around the agent raises them)"
            )
        return found

    @property
    def short(self) -> bool:
        """Whether the weights certainly average less than 1: some decisions had (almost) no chance."""
        return self.no_chance > 0.001 or float(self.w.mean()) < 1 - max(2 * self._error, 0.02)

    @property
    def _error(self) -> float:
        """The standard error of the mean of weights like these that average 1: what chance alone would explain."""
        mean, second = float(self.w.mean()), float((self.w**2).mean())
        return math.sqrt(max(second / mean - 1.0, 0.0) / len(self.w)) if mean > 0 else 0.0

    def betting(self, level: float) -> tuple[float, float]:
        """The betting interval from w r and w (high - r): right for any length and any probabilities, zero too.

        A decision that had no chance takes from both means, which moves the lower end down and the upper end up.
        """
        if self.reward_range is None:
            return -math.inf, math.inf
        low, high = self.reward_range
        above, below = self.w * (self.rewards - low), self.w * (high - self.rewards)
        return betting(above, below, low, high, level, scale=float(self.table.shape[1]))

    def path(self, interval: str, level: float) -> tuple[Floats, Floats]:
        """The ends of the time-uniform interval after each round."""
        if interval == "sequence":
            assert self.reward_range is not None
            low, high = self.reward_range
            # The guess of the largest weight must not come from the data.
            return ConfidenceSequence(level, low, high, float(self.table.shape[1])).update(self.rewards, self.w)
        total = np.cumsum(self.h)
        centre = np.cumsum(self.h * self.G) / total
        # The intrinsic time with the mean of each moment; before two rounds there is none.
        spread = np.cumsum((self.h * self.G) ** 2) - 2 * centre * np.cumsum(self.h**2 * self.G)
        spread = np.maximum(spread + centre**2 * np.cumsum(self.h**2), 0.0)
        half = mixture_boundary(spread, np.arange(1, len(total) + 1), level) / total
        half[: min(FEW, len(half))] = np.inf
        return centre - half, centre + half


def mixture_boundary(variance: Any, rounds: Any, level: float, tuned_for: int = 1000) -> Floats:
    """Robbins' normal mixture: what a martingale with this intrinsic time crosses, ever, with probability 1 - level.

    sqrt((V + rho) ln((V + rho) / (rho (1 - level)^2))), where rho makes it narrowest after ``tuned_for`` rounds: a
    number that no look at the data may change (Robbins 1970; Waudby-Smith et al. 2024 for estimated variances).

    >>> mixture_boundary(np.array([100.0]), np.array([1000]), 0.95).round(2)
    array([30.35])
    """
    V, log = np.asarray(variance, np.float64), -2.0 * math.log(1.0 - level)
    rho = np.maximum(V / rounds * tuned_for / (log + math.log1p(log)), np.finfo(float).tiny)
    return np.asarray(np.sqrt((V + rho) * (np.log((V + rho) / rho) + log)))


def recent(values: Floats, prior: Any) -> Floats:
    """The mean of the last half of what came before each row, and of some rows of a prior: known before the row.

    >>> recent(np.array([[1.0], [3.0], [3.0]]), prior=2.0).ravel().round(3).tolist()
    [2.0, 1.952, 2.048]
    """
    n, weight = len(values), 20.0
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])
    end = np.arange(n)
    start = end // 2
    fading = weight * np.minimum(1.0, 40.0 / np.maximum(end, 1))  # the prior counts less and less
    sums = total[end] - total[start] + fading[:, None] * np.broadcast_to(prior, values.shape)
    return np.asarray(sums / (end - start + fading)[:, None])
