"""Model-free tests of whether the reward of a slot depends on the arms of other slots.

Rows weighted by 1 / p of the whole ranking are those of a log that drew every ranking equally often, whatever the
context: there the arms of the other slots have nothing to do with the context, so that a slot's reward beyond the mean
of its own arm is uncorrelated with them, unless they matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import fdtrc, stdtr

from armwise.core.agent import Floats
from armwise.offline.evaluation.per_round_scores import effective_size
from armwise.offline.intervals.intervals import freedom
from armwise.offline.logs.rows import Ints
from armwise.offline.logs.slate_log import SlateLog

IN_DOUBT = 0.35  # p-value of an assumption below which the interval reaches over one that does without it
_NO_SIGN = 0.99  # p-value that stands for larger ones, whose cotangent has no limit
MIN_ROWS = 100  # effective rows below which nothing is tested
_GOOD = 6.0  # share of the level of tests that others have 1 of
MAX_ARMS = 20  # whose effects on other slots are tested one by one


def p_value(numbers: Floats) -> float:
    """The two-sided p-value of a mean of 0 (Student's, with the degrees of freedom of their variance)."""
    n, spread = len(numbers), float(numbers.std(ddof=1))
    if not spread > 1e-12 * float(np.abs(numbers).max(initial=0.0)):
        return 1.0
    return 2.0 * float(stdtr(freedom(numbers), -abs(float(numbers.mean())) / spread * math.sqrt(n)))


def shared_level(found: list[tuple[float, float]]) -> float:
    """The p-value of several tests that share the level: (share, p-value) each, by Cauchy's combination.

    Several small ones count for more than the smallest alone; valid however they depend on each other (Liu & Xie 2020).
    """
    made = [(share, p) for share, p in found if p < 1.0]  # 1 is the answer of a test that could not be made
    total = sum(share for share, _ in made)
    sign = sum(share / total / math.tan(math.pi * min(max(p, 1e-15), _NO_SIGN)) for share, p in made)
    return math.atan2(1.0, sign) / math.pi if made else 1.0


class Interactions:
    """The rewards of slots (or of whole rankings) by their own arm, and what the arms of other slots add."""

    def __init__(self, log: SlateLog) -> None:
        self._log = log
        self._rewards = rewards = np.broadcast_to(
            log.rewards if log.rewards.ndim == 2 else log.totals[:, None], log.actions.shape
        ) * log.present  # fmt: skip
        weights = np.prod(1.0 / log.probabilities, axis=1)
        self._weights = weights / weights.mean()
        self._tested = effective_size(weights) >= MIN_ROWS and log.n_slots > 1
        arms = log.actions[log.present]
        each = np.repeat(self._weights[:, None], log.n_slots, axis=1)[log.present]
        total = np.maximum(np.bincount(arms, each, log.n_arms), 1e-300)
        self._worth = np.bincount(arms, each * rewards[log.present], log.n_arms) / total  # of each arm, in any slot

    def p_value(self, name: str) -> float:
        """The p-value of an estimator's assumption: "iips", "rips" or "pi"."""
        if not self._tested:
            return 1.0
        if name == "pi":
            columns = np.sum(list(self._sums()), axis=0)
            return shared_level([(1.0, p_value(column)) for column in columns.T])
        below = np.sum(list(self._others(below=True)), axis=0)
        above = np.sum(list(self._others(below=False)), axis=0) if name == "iips" else np.zeros_like(below)
        both = above + below
        sides = (above, below, both) if name == "iips" else (below,)
        # how good the other arms are is what matters in most logs, so it has most of the level
        found = [*((_GOOD / len(sides), p_value(side[:, 0])) for side in sides), (1.0, p_value(both[:, 1]))]
        found += [(1.0, _hotelling(both[:, 2:]))] if both.shape[1] > 2 else []
        return shared_level(found)

    def _others(self, below: bool) -> Iterator[Floats]:
        """For each slot: its reward beyond its own arm's mean, times how good and which the arms above or below are."""
        log, n = self._log, len(self._log)
        by_arm = log.n_arms <= MAX_ARMS
        for slot in range(log.n_slots):
            there = log.present[:, slot]
            own = np.where(there, log.actions[:, slot], 0)
            worth, same, counts = np.zeros(n), np.zeros(n), np.zeros((n, log.n_arms if by_arm else 1))
            for m in range(slot + 1, log.n_slots) if below else range(slot):
                arms = np.where(log.present[:, m], log.actions[:, m], 0)
                worth += log.present[:, m] * self._worth[arms]
                same += log.present[:, m] & (arms == own)
                if by_arm:
                    counts[np.arange(n), arms] += log.present[:, m]
            features = np.column_stack([worth * self._worth[own], same, counts[:, 1:]])
            rest = self._beyond(self._rewards[:, slot], own, there)
            yield (self._weights * rest)[:, None] * self._beyond(features, own, there)

    def _sums(self) -> Iterator[Floats]:
        """For each pair of slots: the total beyond a sum over the slots, times what no sum has."""
        log = self._log
        total = log.totals
        rest = total - np.average(total, weights=self._weights)
        for slot in range(log.n_slots):
            own = np.where(log.present[:, slot], log.actions[:, slot], 0)
            rest = self._beyond(rest, own, log.present[:, slot])
        for one in range(log.n_slots):
            for other in range(one):
                there = log.present[:, one] & log.present[:, other]
                a, b = (np.where(there, log.actions[:, slot], 0) for slot in (one, other))
                features = np.column_stack([self._worth[a] * self._worth[b], a == b]).astype(np.float64)
                for _ in range(2):  # what a sum has is taken away
                    features = self._beyond(self._beyond(features, a, there), b, there)
                yield (self._weights * rest)[:, None] * features

    def _beyond(self, values: Floats, arms: Ints, there: np.ndarray) -> Floats:
        """Values less the weighted mean of their row's arm; 0 where the slot is empty."""
        K, w = self._log.n_arms, self._weights * there
        total = np.maximum(np.bincount(arms, w, K), 1e-300)
        columns = values[:, None] if values.ndim == 1 else values
        means = np.stack([np.bincount(arms, w * column, K) / total for column in columns.T], axis=1)
        rest = (columns - means[arms]) * there[:, None]
        return np.asarray(rest[:, 0] if values.ndim == 1 else rest)


def _hotelling(columns: Floats) -> float:
    """The p-value of means of 0 of all columns."""
    n, mean = len(columns), columns.mean(axis=0)
    covariance = np.atleast_2d(np.cov(columns.T))
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
    d = int(kept.sum())
    if not d or n <= 10 * d:
        return 1.0
    statistic = n * float((((mean @ vectors)[kept]) ** 2 / values[kept]).sum())
    return float(fdtrc(d, n - d, statistic * (n - d) / (d * (n - 1.0))))
