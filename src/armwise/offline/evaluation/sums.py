"""The sums of a pass over a log or a part of it; merged parts equal one pass over all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from armwise.core.agent import Floats
from armwise.offline.intervals.intervals import Blocks, Clusters, Moments
from armwise.offline.results.diagnostics import Weighing


@dataclass
class Extremes:
    """The smallest and the largest value seen."""

    low: float = math.inf
    high: float = -math.inf

    def add(self, values: Any) -> None:
        """Take in some values."""
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def merge(self, other: Extremes) -> None:
        """Take in what another has seen."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


class Sums:
    """The sufficient statistics of an evaluation; block or cluster sums also give the skewness."""

    def __init__(self, n_arms: int, n_targets: int, *, clustered: bool = False) -> None:
        self.n, self.total = 0, 0.0
        self.rewards = Extremes()
        self.weighings = [Weighing(n_arms) for _ in range(n_targets)]
        self.q = [(Extremes(), Extremes()) for _ in range(n_targets)]  # of the model: logged arms, under the target
        self.moments = Moments(0)
        self.places: list[list[int]] = []  # of each pair's columns among the different ones
        self.columns: list[Extremes] = []
        self.blocks: Blocks | Clusters = Blocks(0)
        self._clustered = clustered

    def add(self, columns: Floats, rewards: Floats, clusters: Any = None) -> None:
        """Take in the columns and the rewards of some rows."""
        if not self.n:
            self._start(columns.shape[1])
        self.n, self.total = self.n + len(rewards), self.total + float(rewards.sum())
        self.rewards.add(rewards)
        self.moments.add(columns)
        if isinstance(self.blocks, Clusters):
            self.blocks.add(columns, clusters)
        else:
            self.blocks.add(columns)

    def add_extremes(self, columns: Floats) -> None:
        """Take in the smallest and largest number of each column."""
        for extremes, column in zip(self.columns, columns.T, strict=True):
            extremes.add(column)

    def _start(self, n_columns: int) -> None:
        self.moments = Moments(n_columns)
        self.columns = [Extremes() for _ in range(n_columns)]
        self.blocks = Clusters(n_columns) if self._clustered else Blocks(n_columns)

    def merge(self, later: Sums) -> None:
        """Take in the sums of the rows that come after these."""
        if not later.n:
            return
        if not self.n:
            self.__dict__.update(later.__dict__)
            return
        self.n, self.total = self.n + later.n, self.total + later.total
        self.rewards.merge(later.rewards)
        self.moments.merge(later.moments)
        self.blocks.merge(later.blocks)  # type: ignore[arg-type]
        for mine, other in zip(self.columns, later.columns, strict=True):
            mine.merge(other)
        for weighing, of_later in zip(self.weighings, later.weighings, strict=True):
            weighing.merge(of_later)
        for pair, of_later_pair in zip(self.q, later.q, strict=True):
            for mine, other in zip(pair, of_later_pair, strict=True):
                mine.merge(other)
