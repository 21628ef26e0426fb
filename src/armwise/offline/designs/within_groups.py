"""Tests of the assumption behind weights per group: arms of a group have equal rewards given the context."""

from __future__ import annotations

import numpy as np

from armwise.core.agent import Floats
from armwise.core.seeds import stream
from armwise.offline.designs.slot_interactions import p_value
from armwise.offline.logs.rows import Ints, LogBlock, ndim

MAX_ROWS = 50_000  # that are looked at
_SHUFFLES = 199
FALSE_ALARM, IN_DOUBT = 0.015, 0.2  # p-values below which the verdict speaks, and the interval is widened
_MIN_PER_COLUMN = 20  # rows of a group for each column of its own regression


class WithinGroups:
    """Collects a sample of rows, block by block, and compares the rewards of arms within their groups."""

    def __init__(self, of: Ints, n: int) -> None:
        self._of, self._step = of, -(-n // MAX_ROWS)
        self._seen = 0
        self._arms: list[Ints] = []
        self._rewards: list[Floats] = []
        self._contexts: list[Floats] = []

    def add(self, rows: LogBlock) -> None:
        """Add every k-th row of a block to the sample."""
        some = slice(-self._seen % self._step, None, self._step)
        self._seen += len(rows)
        self._arms.append(rows.arms[some])
        self._rewards.append(rows.rewards[some])
        self._contexts.append(rows.contexts[some] if ndim(rows.contexts) == 2 else np.empty((len(rows.arms[some]), 0)))

    def p_value(self, apart: Floats, seed: int = 0) -> float:
        """Test whether arms of a group earn the same.

        Two tests: sums of squares between arms, against rows that are shuffled within their groups, so that rare
        rewards and arms with a row or two need no limit of chi-square; and the mean of what the groups leave
        unexplained times ``apart``, by how much each row's weight by arms is above that by groups: the bias itself.
        """
        arms, rewards = np.concatenate(self._arms), np.concatenate(self._rewards)
        rest = _unexplained(rewards, np.concatenate(self._contexts), self._of[arms])
        return min(p_value(apart[:: self._step] * rest), self._between_arms(arms, rest, seed))

    def _between_arms(self, arms: Ints, rest: Floats, seed: int) -> float:
        order = np.argsort(self._of[arms], kind="stable")
        arms, rest = arms[order], rest[order]
        group = self._of[arms]
        K = len(self._of)
        counts = np.maximum(np.bincount(arms, minlength=K), 1)
        size = np.maximum(np.bincount(group), 1)
        scale = (np.bincount(group, rest**2) / size)[group]
        scaled = np.divide(rest, np.sqrt(scale), out=np.zeros_like(rest), where=scale > 0.0)

        def between(values: Floats) -> float:
            return float((np.bincount(arms, values, K) ** 2 / counts).sum())

        observed, rng, larger = between(scaled), stream(seed, "within groups of arms"), 0
        for _ in range(_SHUFFLES):
            # rows stay within their group: its number is the larger part of what is sorted by
            shuffled = scaled[np.argsort(group + rng.random(len(group)), kind="stable")]
            larger += between(shuffled) >= observed * (1.0 - 1e-9)
            if larger + 1 > IN_DOUBT * (_SHUFFLES + 1):
                return 1.0
        return (larger + 1) / (_SHUFFLES + 1)


def _unexplained(rewards: Floats, contexts: Floats, group: Ints) -> Floats:
    """Rewards less their mean in the group, and less a regression on contexts and their squares."""
    mean = np.bincount(group, rewards) / np.maximum(np.bincount(group), 1)
    rest = rewards - mean[group]
    if not contexts.shape[1]:
        return np.asarray(rest)
    Z = np.hstack([contexts, contexts**2])
    Z = (Z - Z.mean(axis=0)) / np.maximum(Z.std(axis=0), 1e-12)
    Z = np.hstack([np.ones((len(Z), 1)), Z])
    rest = rest - Z @ np.linalg.lstsq(Z, rest, rcond=1e-9)[0]
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(group))[:-1]):
        if len(rows) >= _MIN_PER_COLUMN * Z.shape[1]:
            rest[rows] -= Z[rows] @ np.linalg.lstsq(Z[rows], rest[rows], rcond=1e-9)[0]
        elif len(rows):
            rest[rows] -= rest[rows].mean()
    return np.asarray(rest)
