"""Counterfactual policies on the live page: the estimated reward of each on the same decisions."""

from __future__ import annotations

import collections
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from armwise.core.agent import Floats
from armwise.service.journal.events import Decision
from armwise.service.log.earnings import Interval
from armwise.service.model.drawing.encoded import offered, stack_of
from armwise.service.model.model import DrawRequest, Model
from armwise.service.model.uplift import Weights, uplift_interval

MAX_SECONDS = 0.25  # seconds of CPU time per decision above which a policy is dropped
MIN_SAMPLE_SIZE = 30  # effective sample size that an interval needs
MAX_UNKNOWN = 0.05  # share of uncovered decisions above which only bounds are shown
MAX_JUDGED = 50_000  # decisions kept per policy


def shown(name: str, policy: Weights, rewards: Floats, ends: list[float]) -> dict[str, Any]:
    """Return a policy's estimated difference to the live policy, as the page shows it."""
    n = len(rewards)
    ess = float(policy.weight.sum() ** 2 / (policy.weight**2).sum()) if policy.weight.any() else 0.0
    numbers: dict[str, Any] = {"value": None, "low": None, "high": None, "uplift": None}
    if n:
        uplift, low, high = uplift_interval(policy, Weights(*np.ones((3, n))), rewards, *ends)
        numbers |= {"low": low, "high": high}
        if unknown_of(policy) <= MAX_UNKNOWN:  # otherwise the estimate would be the middle of the bounds
            value = min(max(float(rewards.mean()) + uplift, ends[0]), ends[1])
            numbers |= {"value": value, "uplift": uplift}
    return {"name": name, "n": n, "ess": ess, "warning": "; ".join(_doubts(policy, n, ess)), **numbers}


def unknown_of(policy: Weights) -> float:
    """Return the share of a policy's decisions whose arm the log could not show."""
    return float((1.0 - policy.covered).mean()) if len(policy.covered) else 0.0


def over(interval: Interval, policy: Weights) -> dict[str, Any]:
    """Return the live policy's difference to another policy, as the page shows it."""
    numbers = interval._asdict() | {"warning": ""}
    if interval.n and unknown_of(policy) > MAX_UNKNOWN:
        numbers |= {"value": None, "warning": _doubts(policy, interval.n, float(MIN_SAMPLE_SIZE))[0]}
    return numbers


def _doubts(policy: Weights, n: int, ess: float) -> list[str]:
    doubts = []
    missing = unknown_of(policy)
    if missing > 0.001:
        doubts.append(f"{missing:.1%} of its decisions are arms that are never tried here")
    if n and ess < MIN_SAMPLE_SIZE:
        doubts.append(f"too few decisions answer the question: effective sample size {ess:.0f} of {n}")
    return doubts


class Rival:
    """A policy that learns from the live policy's decisions and is evaluated on them (by journal and seq)."""

    def __init__(self, name: str, model: Model) -> None:
        self.name, self._model = name, model
        self.too_slow = 0.0  # CPU seconds used
        self._unanswered, self._why = 0, ""
        self._judged: collections.deque[tuple[float, float, float]] = collections.deque(maxlen=MAX_JUDGED)
        self._rewards: collections.deque[tuple[tuple[int, int], float]] = collections.deque(maxlen=MAX_JUDGED)

    def follow(self, key: tuple[int, int], decision: Decision, reward: float) -> None:
        """Evaluate the policy on a decision and its reward, then learn from it."""
        if self.too_slow:
            return self._refuse(f"it takes {self.too_slow:.1f} s per decision, and is followed no longer")
        model, started = self._model, time.thread_time()
        try:
            [drawn] = model.decide([DrawRequest(bytes(decision.context), offered(decision), 0.5)])
            model.scaler.take(stack_of(decision))
        except (
            ValueError,
            ArithmeticError,
        ) as error:  # for example a fixed set of arms that the decision does not have
            return self._refuse(str(error) or type(error).__name__)
        own, p = drawn.p.tolist(), decision.p
        ratios = [(mine, mine / theirs) for mine, theirs in zip(own, p) if theirs > 0.0]
        covered = min(sum(mine for mine, _ in ratios), 1.0)
        weight = own[decision.arm] / p[decision.arm]
        self._judged.append((weight, max(ratio for _, ratio in ratios), covered))
        self._rewards.append((key, reward))
        model.learn(msgspec.structs.replace(decision, note=None, scaling=drawn.seen.scaling.packed), reward)
        took = time.thread_time() - started  # CPU time, so that a busy machine does not drop the policy
        self.too_slow = took if took > MAX_SECONDS else 0.0
        return None

    def _refuse(self, why: str) -> None:
        self._unanswered, self._why = self._unanswered + 1, why

    def shown(self, worth: Mapping[tuple[int, int], float], ends: list[float]) -> dict[str, Any]:
        """Return the row that the page shows, by what decisions are worth now: a late reward counts as elsewhere."""
        weight, most, covered = np.array(self._judged).reshape(-1, 3).T
        rewards = np.array([worth.get(key, reward) for key, reward in self._rewards])
        found = shown(self.name, Weights(weight, most, covered), rewards, ends)
        if self._unanswered:
            n = self._unanswered
            left = f"it could not answer {n} of {len(rewards) + n} decisions ({self._why}), which are left out"
            found["warning"] = "; ".join(filter(None, [left, found["warning"]]))
        return found
