"""Detect drift: decisions earn less than the model expects, by more than its usual optimism.

d_t is what was expected of a decision minus what it earned, in ranges of the rewards. Where nothing changes, its
conditional mean stays below 0 or its mean so far (an agent picks the arms that it overestimates, less so as it learns)
plus an allowance. While that holds, each

    R_t = (R_{t-1} + 1) (1 + lam (d_t - mean_{t-1} - allowance))

is a Shiryaev-Roberts e-detector (Shin, Ramdas, Rinaldo 2024): its mean grows by at most 1 per decision, so that it
takes ``MIN_BETWEEN_FALSE_ALARMS`` decisions in the mean, or more, until a false alarm. Several lam are averaged, since
nobody knows how large a change will be. Decisions are taken in the order they were made, whenever their rewards come:
clicks come at once, their lack when the window closes.
"""

from __future__ import annotations

import math

from armwise.core.saving import Saved

BETS = (0.1, 0.25, 0.6)  # below 1 / (the largest of -(d - mean - allowance))
MIN_BETWEEN_FALSE_ALARMS = 20_000.0  # decisions until a false alarm, in the mean, at least
WARM_UP = 50  # decisions that only say what is usual
MAX_USUAL_DRIFT = 0.05  # ranges of the rewards that are no drift worth an alarm
KEEP = 0.02  # of what was learnt before an alarm
MAX_ALARMS = 16  # that are remembered
MAX_OPEN = 256  # decisions whose rewards are waited for; those made meanwhile are not watched
LATE = 60_000  # milliseconds after its deadline for which a decision is waited for


class DriftDetector(Saved):
    """Compares what decisions earn with what the model expected."""

    _saved_as = "Drift"
    _learnt = ("n", "mean", "reward", "detectors", "alarms", "open", "earned")

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0  # of d, since the last alarm
        self.reward = 0.5  # the mean one, for an agent that predicts none
        self.detectors = [0.0] * len(BETS)
        self.alarms: list[list[float]] = []  # the event and the share that was kept, the newest last
        self.open: dict[int, tuple[float | None, int]] = {}  # by decision, in order: what is expected, and until when
        self.earned: dict[int, float] = {}  # of these, what some have earned

    def copy(self) -> DriftDetector:
        """A copy that shares no mutable state."""
        twin = DriftDetector()
        twin.n, twin.mean, twin.reward = self.n, self.mean, self.reward
        twin.detectors, twin.alarms = list(self.detectors), list(self.alarms)
        twin.open, twin.earned = dict(self.open), dict(self.earned)
        return twin

    @property
    def room(self) -> bool:
        """Whether the next decision will be watched."""
        return len(self.open) < MAX_OPEN

    def watch(self, decision: int, expected: float | None, deadline: int) -> None:
        """Watch a new decision."""
        self.open[decision] = expected, deadline

    def watch_if_room(self, decision: int, expected: float | None, deadline: int, now: int) -> None:
        """Watch a new decision, or, where too many are open, stop waiting for those that are overdue."""
        if len(self.open) < MAX_OPEN:
            self.open[decision] = expected, deadline
        else:
            self.overdue(now)

    def overdue(self, now: int) -> None:
        """Stop waiting for decisions whose outcome will never come, for example because their log was deleted."""
        while self.open and (first := next(iter(self.open))) not in self.earned:
            if self.open[first][1] + LATE >= now:
                return
            del self.open[first]

    def settle(self, decision: int, reward: float, ends: list[float]) -> bool:
        """Take in the reward of a decision as the agent takes it; True raises the alarm. ``ends`` are what rewards were
        between, and grow with it while decisions are watched.
        """
        if not self.open:
            return False
        if not ends[0] <= reward <= ends[1]:
            ends[:] = [min(ends[0], reward), max(ends[1], reward)]
        if decision not in self.open:
            return False
        low, high = ends
        if not self.earned and decision == next(iter(self.open)):
            return self.add(self.open.pop(decision)[0], reward, low, high)
        self.earned[decision] = reward
        alarm = False
        while self.open and (first := next(iter(self.open))) in self.earned:
            alarm |= self.add(self.open.pop(first)[0], self.earned.pop(first), low, high)
        return alarm

    def sound(self, version: int, kept: float) -> None:
        """Record an alarm at an event, from which earlier rewards count ``kept`` times as much."""
        self.alarms = [*self.alarms, [version, kept]][-MAX_ALARMS:]

    def faded(self, decision: int, before: float, after: float) -> float:
        """The outcome to learn of a decision whose assumed reward (``before``) has faded since."""
        for alarm, kept in self.alarms:
            after = before + kept * (after - before) if decision <= alarm else after
        return after

    @property
    def evidence(self) -> float:
        """The distance to a drift alarm, from 0 (no sign of drift) to 1 (the alarm)."""
        total = sum(self.detectors) / len(BETS)
        return min(math.log1p(total) / math.log1p(MIN_BETWEEN_FALSE_ALARMS), 1.0)

    def add(self, expected: float | None, reward: float, low: float, high: float) -> bool:
        """Take in a reward in [low, high] and its expectation; True raises the alarm."""
        width = high - low
        earned = (reward - low) / width
        earned = 0.0 if earned < 0.0 else 1.0 if earned > 1.0 else earned
        hoped = self.reward if expected is None else (expected - low) / width
        hoped = 0.0 if hoped < 0.0 else 1.0 if hoped > 1.0 else hoped
        d = hoped - earned
        n, mean = self.n, self.mean
        if n >= WARM_UP:
            # That it expects too little, as of what it does not know yet, is no promise; the mean is not known exactly.
            usual = 0.0 if mean < 0.0 else 0.5 if mean > 0.5 else mean
            surprise = d - usual - MAX_USUAL_DRIFT - 0.5 / math.sqrt(n)
            detectors = self.detectors
            for k, bet in enumerate(BETS):
                detectors[k] = (detectors[k] + 1.0) * (1.0 + bet * surprise)
            if sum(detectors) >= MIN_BETWEEN_FALSE_ALARMS * len(BETS):
                self.n, self.mean, self.detectors = 0, 0.0, [0.0] * len(BETS)
                return True
        self.n = n + 1
        self.mean = mean + (d - mean) / (n + 1)
        self.reward += 0.01 * (earned - self.reward)
        return False
