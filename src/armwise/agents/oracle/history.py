"""The rounds so far, without repetition."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.core.saving import Saved


class History(Saved):
    """The rounds so far, without repetition: distinct rows, the count of each, and the total r / p of each arm there.

    Everything that the agents compute is a sum over rounds, so rounds that look alike to the oracle add up. A round
    costs one hash of its row; memory is one row a *distinct* context (N bytes for an explicit class of N policies).
    """

    _learnt = ("seen", "counts", "gains", "n")

    def __init__(self, n_arms: int) -> None:
        self.n_arms, self.n = n_arms, 0
        self._size, self._places = 0, dict[bytes, int]()
        self._rows: np.ndarray = np.empty((0, 0))
        self._tallies = np.empty((0, 1 + n_arms))  # how often, then the arms' totals

    def add(self, row: np.ndarray, arm: int, estimate: float) -> None:
        """One more round: what was seen, the arm that was played, and r / p."""
        key = row.tobytes()
        at = self._places.get(key)
        if at is None:
            at = self._places[key] = self._size
            if at == len(self._rows):
                self._grow(row)
            self._rows[at], self._tallies[at] = row, 0.0
            self._size += 1
        self._tallies[at, 0] += 1.0
        self._tallies[at, 1 + arm] += estimate
        self.n += 1

    def _grow(self, row: np.ndarray) -> None:
        capacity = max(64, 2 * self._size)
        rows, tallies = np.empty((capacity, row.size), row.dtype), np.empty((capacity, 1 + self.n_arms))
        if self._size:
            rows[: self._size], tallies[: self._size] = self._rows[: self._size], self._tallies[: self._size]
        self._rows, self._tallies = rows, tallies

    @property
    def seen(self) -> np.ndarray:
        """The distinct rows."""
        return self._rows[: self._size]

    @property
    def counts(self) -> Floats:
        """The count of each distinct row."""
        return self._tallies[: self._size, 0]

    @property
    def gains(self) -> Floats:
        """The total r / p of each arm at each distinct row."""
        return self._tallies[: self._size, 1:]

    def _restore(self, state: dict[str, Any]) -> None:
        self.n, self._size = state["n"], len(state["seen"])
        self._rows, self._tallies = state["seen"], np.column_stack([state["counts"], state["gains"]])
        self._places = {row.tobytes(): at for at, row in enumerate(self._rows)}
