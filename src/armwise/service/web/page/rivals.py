"""Policies beside the one that decides: what each would have earned, as a running tally that keeps no decision."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import msgspec

from armwise.service.journal.events import Decision
from armwise.service.model.model import Model
from armwise.service.model.seen import offered, stack_of
from armwise.service.model.uplift import Uplift, Weighed

SLOWEST = 0.25  # seconds of processor time that a policy may take for a decision, before it is followed no longer
ENOUGH = 30  # effective decisions that an interval needs
LIVE = Weighed(1.0, 1.0)


class Made(NamedTuple):
    """What is remembered of a decision until its reward is known."""

    time: int
    arm: int
    p: float  # of the arm
    n_arms: int
    least: float  # the smallest of the arms' probabilities that is not 0
    drawable: int  # how many these are
    first: float  # the probability of the first arm


def made(time: int, decision: Decision) -> Made:
    """A journaled decision in a few numbers.

    >>> made(5, Decision(msgspec.Raw(b"{}"), [], [0.75, 0.25, 0.0], 1, 0, 1, 0.0)).drawable
    2
    """
    chances = [p for p in decision.p if p > 0.0]
    return Made(
        time, decision.arm, decision.p[decision.arm], len(decision.p), min(chances), len(chances), decision.p[0]
    )


def at_random(it: Made) -> Weighed:
    """The policy that plays every arm alike.

    >>> at_random(Made(0, 0, 0.9, 2, 0.1, 2, 0.9)).most
    5.0
    """
    share = 1.0 / it.n_arms
    return Weighed(share / it.p, share / it.least, it.drawable * share)


def the_first(it: Made) -> Weighed:
    """The policy that plays the caller's first arm: what was done before there was a service.

    >>> the_first(Made(0, 1, 0.1, 2, 0.1, 2, 0.9)).weight
    0.0
    """
    if it.first <= 0.0:
        return Weighed(0.0, 0.0, 0.0)
    return Weighed(float(it.arm == 0) / it.p, 1.0 / it.first)


class Tally:
    """What is known of one policy: how much more than the live one it would have earned per decision.

    >>> tally = Tally("at random", [0.0, 1.0])
    >>> tally.add(Weighed(0.5, 5.0), 1.0); tally.shown(1.0)["ess"]
    1.0
    """

    def __init__(self, name: str, ends: list[float]) -> None:
        self.name = name
        self.uplift = Uplift(*ends)  # of this policy over the live one
        self.unanswered, self.why = 0, ""
        self._weights = self._squares = self._missing = 0.0

    def add(self, policy: Weighed, reward: float) -> None:
        """A settled decision."""
        self.uplift.add(policy, LIVE, reward)
        self._weights += policy.weight
        self._squares += policy.weight**2
        self._missing += 1.0 - policy.covered

    def refuse(self, why: str) -> None:
        """A settled decision that the policy has no answer to."""
        self.unanswered, self.why = self.unanswered + 1, why

    def shown(self, mean: float) -> dict[str, Any]:
        """As the page shows it, beside the live policy's mean reward."""
        n = self.uplift.n
        ess = self._weights**2 / self._squares if self._squares else 0.0
        if not n:
            numbers: dict[str, Any] = {"value": None, "low": None, "high": None, "uplift": None}
        else:
            uplift, low, high = self.uplift.interval()
            numbers = {"value": mean + uplift, "low": low, "high": high, "uplift": uplift}
        return {"name": self.name, "n": n, "ess": ess, "warning": "; ".join(self._doubts(n, ess)), **numbers}

    def _doubts(self, n: int, ess: float) -> list[str]:
        doubts = []
        if self.unanswered:
            all_of_it = n + self.unanswered
            left = f"it could not answer {self.unanswered} of {all_of_it} decisions ({self.why}), which are left out"
            doubts.append(left)
        if n and self._missing / n > 0.001:
            doubts.append(f"{self._missing / n:.1%} of its decisions are arms that are never tried here")
        if n and ess < ENOUGH:
            doubts.append(f"too few decisions answer the question: effective sample size {ess:.0f} of {n}")
        return doubts


class Rival:
    """A policy that learns as it goes, from what the live one decided.

    >>> from armwise.service.journal.events import Creation
    >>> from armwise.service.model.build import build_model
    >>> rival = Rival("bold", build_model(Creation()), [0.0, 1.0])
    >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
    >>> rival.follow(asked, 1.0); rival.tally.uplift.n
    1
    """

    def __init__(self, name: str, model: Model, ends: list[float]) -> None:
        self.name, self._model, self.tally = name, model, Tally(name, ends)
        self.too_slow = 0.0  # seconds that it took

    def follow(self, decision: Decision, reward: float) -> None:
        """Judge a settled decision, then learn it."""
        if self.too_slow:
            self.tally.refuse(f"it takes {self.too_slow:.1f} s per decision, and is followed no longer")
            return
        model, started = self._model, time.thread_time()
        try:
            drawn = model.choose(bytes(decision.context), offered(decision), 0.5)
            model.scaler.take(stack_of(decision))
        except (ValueError, ArithmeticError) as error:  # other arms than it was made for, say
            self.tally.refuse(str(error) or type(error).__name__)
            return
        own, p = drawn.p.tolist(), decision.p
        ratios = [(mine, mine / theirs) for mine, theirs in zip(own, p) if theirs > 0.0]
        covered = min(sum(mine for mine, _ in ratios), 1.0)
        weight = own[decision.arm] / p[decision.arm]
        self.tally.add(Weighed(weight, max(ratio for _, ratio in ratios), covered), reward)
        model.learn(msgspec.structs.replace(decision, note=None, scaling=drawn.seen.scaling.journal), reward)
        took = time.thread_time() - started  # its own work: a busy machine is no fault of the policy
        self.too_slow = took if took > SLOWEST else 0.0
