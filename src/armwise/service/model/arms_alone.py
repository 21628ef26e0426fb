"""The arms without the context's interactions: who decides while those explain nothing that chance would not.

Useless columns cost: every pair of a value and an arm has a weight of its own that must be tried and learnt. So beside
an agent over crossed rows stands the same ridge over rows without interactions, in which the context is the same for
all arms, and a test of what the interactions would add. All of it is sums over the decisions that were learnt: a
reward can be revised, what is old can fade, and the sums of several journals add up.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from armwise.core import saving
from armwise.core.agent import Floats
from armwise.core.capabilities.optimism import Optimism
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import ONE, RequestTokens
from armwise.models.ridge import Ridge
from armwise.native.decisions import learn_beside, revise_beside, surplus
from armwise.native.simd import aligned_zeros
from armwise.service.model.drawing.encoded import Lesson

MIN_DECISIONS = 2000  # before the tests are believed
# Decisions times the squared mean reward over its variance, and the sum of two tests in standard deviations. What
# matters grows as decisions do: where arms change places with a value of the context, at rates of 2 to 6 %, the sum is
# about 2 after 5,000 decisions and 12 after 13,000, and -3 on average where columns say nothing.
MIN_INFORMATION = 250.0
START, MAX_SUM = -0.5, 2.0  # the sum below which columns are held to say nothing, at ``MIN_INFORMATION`` and at most
MAX_DIM = 1024  # beyond, sums of as many squared numbers are not worth their memory
GROWTH = 1.1  # of the decisions between two looks


class ArmsAlone(saving.Saved):
    """A ridge over rows without interactions, and whether it decides."""

    _learnt = ("ridge", "crossed", "sums", "rewards", "due", "decides")

    def __init__(self, dim: int, lam: float) -> None:
        self.dim, self.lam = dim, lam
        self.ridge = Ridge(dim, lam)
        self.encoder = HashedRows(dim, interactions=False)
        self.crossed = aligned_zeros(dim, self.ridge.models.shape[2])  # rows with interactions times rows without
        # The squares of rows with interactions; those rows, and those without, times their rewards.
        self.sums = np.zeros((3, dim))
        self.rewards = np.zeros(3)  # their number, sum and sum of squares
        self.due = float(MIN_DECISIONS)  # the number at which the test is looked at again
        self.decides = False

    @classmethod
    def beside(cls, optimism: Optimism | None, encoder: HashedRows) -> ArmsAlone | None:
        """Make the companion of an agent that crosses contexts and arms, tries all arms for ever, and revises."""
        if optimism is None or optimism.epsilon <= 0.0 or optimism.ridge.counted:
            return None
        fits = encoder.interactions and encoder.dim <= MAX_DIM
        return cls(encoder.dim, optimism.ridge.lam) if fits else None

    def row(self, tokens: RequestTokens, scaling: Scaling) -> Floats:
        """The row without interactions of one arm."""
        return self.encoder.rows(tokens, scaling)

    def learn(self, lessons: list[Lesson]) -> None:
        """Learn the rewards of decisions, in order; one that cannot be learnt is passed over."""
        done = 0
        while done < len(lessons):
            done = learn_beside(lessons, done, self.ridge.models, self.crossed, self.sums, self.rewards, self.due, ONE)
            if self.rewards[0] >= self.due:
                self.test_interactions()

    def revise(self, lesson: Lesson, squares: float) -> None:
        """Change a reward that was learnt by that of ``lesson``, and the sum of squares by another."""
        revise_beside(lesson, squares, self.ridge.models, self.crossed, self.sums, self.rewards, ONE)

    def test_interactions(self) -> None:
        """Set ``decides`` by whether the interactions matter."""
        n, total, squares = self.rewards.tolist()
        self.due = max(float(MIN_DECISIONS), GROWTH * n)
        self.decides = False
        variance = (squares - _dot(self.ridge.theta[0], self.sums[2])) / max(n, 1.0)
        if n < MIN_DECISIONS or not variance > 0.0:
            return
        known = total * total / (n * variance)
        if known >= MIN_INFORMATION:
            found = surplus(self.ridge.models, self.crossed, self.sums, variance)
            self.decides = found < min(MAX_SUM, START + known / MIN_INFORMATION - 1.0)

    def fade(self, keep: float) -> None:
        """Let what was learnt so far count ``keep`` times as much as before."""
        self.ridge.fade(keep)
        for sums in (self.crossed, self.sums, self.rewards):
            sums *= keep
        self.test_interactions()

    def merge(self, other: ArmsAlone) -> None:
        """Add what another has learnt."""
        self.ridge.merge(other.ridge)
        self.crossed += other.crossed
        self.sums += other.sums
        self.rewards += other.rewards
        self.test_interactions()

    def copy(self) -> ArmsAlone:
        """A copy that shares nothing."""
        return copy.deepcopy(self)


def _dot(one: Floats, other: Floats) -> float:
    return math.fsum((one * other).tolist())
