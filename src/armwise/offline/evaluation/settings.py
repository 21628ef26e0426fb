"""The validated settings of an evaluation, and the inputs of its estimators for a block of rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armwise.core.agent import Floats, count, fraction, positive
from armwise.offline.estimators.estimators import Estimator, Facts
from armwise.offline.evaluation.targets import of_logged
from armwise.offline.intervals import intervals
from armwise.offline.logs.log import BATCH, Log
from armwise.offline.logs.rows import LogBlock


@dataclass(frozen=True)
class Logged(Estimator):
    """The logged policy's value: the mean reward, for any target."""

    name: ClassVar[str] = "logged"
    needs_weights: ClassVar[bool] = False

    def columns(self, facts: Facts) -> list[Floats]:
        return [facts.rewards]


class EvaluationSettings:
    """The settings of an evaluation, checked once."""

    def __init__(
        self, log: Log, clip: float | None, interval: str, level: float, reward_range: tuple[float, float] | None,
        max_weight: float | None, folds: int, cap: float | None = None, clustered: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(log, Log):
            raise ValueError(f"log must be an armwise.offline.Log, got {type(log).__name__}")
        if interval not in intervals.INTERVALS:
            raise ValueError(f"interval is {interval!r}, expected one of {', '.join(intervals.INTERVALS)}")
        count("folds", folds, least=2)
        self.log, self.interval, self.level, self.clustered = log, interval, fraction("level", level), clustered
        self.clip = None if clip is None else fraction("clip", clip, one=True)
        self.cap = None if cap is None else positive("cap", cap)
        self.stated_range = reward_range is not None or interval in ("bernstein", "betting", "sequence")
        self.low, self.high = (float(end) for end in reward_range) if reward_range is not None else (0.0, 1.0)
        if not self.low < self.high:
            raise ValueError(f"reward_range must be (low, high) with low < high, got {reward_range}")
        self.in_order = interval in ("betting", "sequence")  # rows one after the other
        if clustered and interval not in ("auto", "normal", "cressie-read", "bootstrap"):
            raise ValueError(f"cluster= goes with interval 'cressie-read', 'normal' or 'bootstrap', got {interval!r}")
        self.given_weight = None if max_weight is None else positive("max_weight", max_weight)
        self.max_weight = self.given_weight or self._largest_weight()  # None: known when every row was seen

    def _largest_weight(self) -> float | None:
        limits = [1.0 / self.clip] if self.clip is not None else []
        limits += [self.cap] if self.cap is not None else []
        if limits:
            return min(limits)
        if not self.log.has_probabilities:
            return 1.0
        if not self.in_order:
            return None
        return 1.0 / min(float(rows.probabilities.min()) for rows in self.log.batches(contexts=False))  # type: ignore[union-attr]

    def on(self, part: Log) -> EvaluationSettings:
        """The same settings for a part of the log."""
        other = copy.copy(self)
        other.log = part
        return other

    def batches(self, contexts: bool, extra: tuple[str, ...] = ()) -> Iterable[LogBlock]:
        size = max(1, min(BATCH, 16_000_000 // self.log.n_arms))
        return self.log.batches(size, contexts=contexts, extra=extra)

    def facts(self, rows: LogBlock, answers: np.ndarray, q: Floats | None) -> tuple[Facts, Floats]:
        """Return the estimators' inputs for these rows, and the weights before clipping."""
        rewards = rows.rewards
        if self.stated_range and len(rows) and not (rewards.min() >= self.low and rewards.max() <= self.high):
            row = int(np.argmax((rewards < self.low) | (rewards > self.high)))
            raise ValueError(
                f"{rows.place(row)}: the reward is {rewards[row]}, outside reward_range ({self.low:g}, "
                f"{self.high:g}), which the interval rests on: give reward_range=(low, high)"
            )
        weights = raw = np.ones(len(rows))
        if rows.probabilities is not None:
            target = of_logged(answers, rows.arms)
            weights = raw = target / rows.probabilities
            if self.clip is not None:
                weights = target / np.maximum(rows.probabilities, self.clip)
            if self.cap is not None:
                weights = np.minimum(weights, self.cap)
            if self.given_weight is not None and len(rows) and weights.max() > self.given_weight * (1.0 + 1e-9):
                row = int(weights.argmax())
                raise ValueError(
                    f"{rows.place(row)}: the weight is {weights[row]:g}, above max_weight "
                    f"({self.given_weight:g}), which the interval rests on: leave max_weight out, or give the largest "
                    "that is possible"
                )
        if q is None:
            return Facts(rewards, weights), raw
        every = np.arange(len(rows))
        under_target = q[every, answers] if answers.ndim == 1 else np.einsum("nk,nk->n", answers, q)
        return Facts(rewards, weights, q[every, rows.arms], under_target), raw
