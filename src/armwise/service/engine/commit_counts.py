"""Counts of what this process committed, per application and arm, for its metrics; bounded in size."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from armwise.service.journal.events import Decision, Expiry, Reward, Row
from armwise.service.journal.writes import Write

MAX_ARMS = 50  # per application that are counted by their names, those that come first; the others together
MAX_REMEMBERED = 20_000  # decisions whose arms are known when their rewards come; at times twice as many
OTHER, UNKNOWN = "(other)", "(unknown)"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # seconds of a commit


class CommitCounts:
    """Decisions, rewards and windows that closed."""

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.rewards: Counter[tuple[str, str]] = Counter()
        self.values: dict[tuple[str, str], float] = {}
        self.late: Counter[str] = Counter()
        self.expired: Counter[str] = Counter()
        self._arms: dict[str, set[str]] = {}
        self._arm_of: dict[int, str] = {}

    def take(self, committed: Sequence[tuple[Row, Write]]) -> None:
        """Count what was committed."""
        for row, write in committed:
            event = row.at_hand
            if isinstance(event, Decision):
                arm = UNKNOWN
                if write.names:
                    arm = write.names[event.order[event.arm] if event.order else event.arm]
                    known = self._arms.setdefault(row.app, set())
                    if len(known) < MAX_ARMS:
                        known.add(arm)
                    elif arm not in known:
                        arm = OTHER
                self._arm_of[row.seq] = arm
                self.decisions[row.app, arm] += 1
            elif isinstance(event, Reward):
                arm = self._arm_of.get(event.decision, UNKNOWN)
                self.rewards[row.app, arm] += 1
                self.values[row.app, arm] = self.values.get((row.app, arm), 0.0) + event.value
                self.late[row.app] += event.late
            elif isinstance(event, Expiry):
                self.expired[row.app] += 1
        if (more := len(self._arm_of) - MAX_REMEMBERED) > MAX_REMEMBERED:  # as in ``Learner._fold``
            self._arm_of = dict(itertools.islice(self._arm_of.items(), more, None))
