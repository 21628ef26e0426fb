"""Balance: do the arms, weighted by their probabilities, have the contexts of the whole log? Is one an outcome?

If the probabilities are right, (1{arm = a} / p - 1) x has mean zero for every context moment x and arm a. A moment that
is off says that the probabilities are wrong, or that the column was written after the arm was played.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from armwise.core.agent import Floats
from armwise.offline.logs.checks.interactions import RowSample
from armwise.offline.logs.rows import LogBlock, by_group, ndim

_FULL = 1 << 16  # rows that all count; of those after them one run of 4,096 in 16 does
_CHUNK = 8192  # rows whose moments stay in the cache
_OFF = 5.5  # standard errors; with thousands of moments one in a thousand logs reaches this by chance
_FAR = 3.0  # standard deviations at which a context counts no more, so that no single row decides
_ENOUGH = 30  # effective rows of an arm below which it is not judged
_SAME = 0.95  # correlation of "is not zero" with the reward's: then the column is the reward by another name
_MIN_ROWS, _NEVER = 20, math.log(1e-9)  # rows, and the chance, at which "only where the reward is" is no accident


class Balance:
    """Streamed moments of the contexts by arm; ``names`` are those of the context's columns."""

    def __init__(self, n_arms: int, names: Sequence[str] | None = None) -> None:
        self._n_arms, self._names = n_arms, names
        self._centre: Floats | None = None
        self._n = 0
        self._worst: list[tuple[str, float, int]] | None = None  # until more rows come
        self._sample = RowSample(n_arms, self.name)

    def add(self, rows: LogBlock) -> None:
        """Take in a block of rows (those without shared contexts or probabilities say nothing)."""
        if ndim(rows.contexts) != 2 or rows.probabilities is None or not rows.contexts.shape[1] or not len(rows):
            return
        if rows.available is not None or rows.support is not None:
            return
        self.start(rows)
        self._sample.add(rows)
        rows = _counted(rows)
        if not len(rows):
            return
        self._worst = None
        for first in range(0, len(rows), _CHUNK):
            self._add(rows.take(slice(first, first + _CHUNK)))
        self._n += len(rows)

    def _add(self, rows: LogBlock) -> None:
        assert rows.probabilities is not None
        n, d = rows.contexts.shape
        powers = np.empty((n, 3 * d))  # row after row, as the sparse product reads it
        z, squares = powers[:, :d], powers[:, d : 2 * d]
        np.clip((rows.contexts - self._centre) / self._scale, -_FAR, _FAR, out=z)
        np.square(z, out=squares)
        np.square(squares, out=powers[:, 2 * d :])
        inverse = 1.0 / rows.probabilities
        excess = (inverse - 1.0) ** 2 - 1.0  # the square of a row's factor, beyond that of rows with other arms
        order = by_group(rows.arms, self._n_arms)
        ends = np.concatenate([[0], np.bincount(rows.arms, minlength=self._n_arms).cumsum()])
        by_arm: list[Any] = [csr_array((w[order], order, ends), shape=(self._n_arms, n)) for w in (inverse, excess)]
        weighted, exceeding = (by_arm[0] @ powers)[:, : 2 * d], by_arm[1] @ powers
        weights = [np.bincount(rows.arms, each, minlength=self._n_arms)[:, None] for each in (inverse, excess)]
        for sums, values in zip(
            self._by_arm, (weights[0], weighted, weights[1], exceeding[:, : 2 * d], exceeding[:, d:]), strict=True
        ):
            sums += values
        total = powers.sum(axis=0)
        self._all += np.stack([total[: 2 * d], total[d:]])
        self._against_reward(rows)

    def start(self, rows: LogBlock) -> None:
        """Scale the contexts as in these rows, the first of the log: what is merged must be scaled alike."""
        if self._centre is not None or ndim(rows.contexts) != 2 or not len(rows):
            return
        self._centre, spread = rows.contexts.mean(axis=0), rows.contexts.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        d, K = 2 * rows.contexts.shape[1], self._n_arms
        self._all = np.zeros((2, d))
        self._by_arm = [np.zeros((K, 1)), np.zeros((K, d)), np.zeros((K, 1)), np.zeros((K, d)), np.zeros((K, d))]
        self._reward = np.zeros((4, d // 2))  # rows where both, the column, the reward are not zero; all rows

    def merge(self, other: Balance) -> None:
        """Take in the rows that another, scaled alike, has seen."""
        self._sample.merge(other._sample)
        if not other._n:
            return
        self._worst = None
        for mine, theirs in zip(self._by_arm, other._by_arm, strict=True):
            mine += theirs
        self._all += other._all
        self._reward += other._reward
        self._n += other._n

    def _against_reward(self, rows: LogBlock) -> None:
        """Count where a column and the reward are not zero: a column that agrees is the reward by another name."""
        there, paid = (rows.contexts != 0.0).astype(np.float64), rows.rewards != 0.0
        of_rows = np.stack([paid, np.ones(len(rows))]) @ there  # whole numbers: exact in any order
        self._reward[:2] += of_rows
        self._reward[2:] += [[np.count_nonzero(paid)], [len(rows)]]

    def errors(self) -> Floats:
        """(K, 2 d): by how many standard errors each moment (the columns, then their squares) is off, for each arm."""
        if not self._n:
            return np.zeros((self._n_arms, 0))
        weight, weighted, e0, e1, e2 = self._by_arm
        mean, second = self._all / self._n
        # sum of (1{a}/p - 1)(z - mean) and of its square
        total = weighted - weight * mean
        square = self._n * (second - mean**2) + e2 - 2.0 * mean * e1 + mean**2 * e0
        # an arm without any of a rare value has no spread of its own: then what the whole log's spread makes of 1/p
        square = np.maximum(square, (e0 + weight) * (second - mean**2))
        # of 1/p over an arm's rows: the sum, and from excess = 1/p^2 - 2/p the sum of squares
        effective = weight**2 / np.maximum(e0 + 2.0 * weight, 1e-300)
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.where(square > 1e-9 * self._n, total / np.sqrt(square), 0.0)
            z = z / (1.0 + _ENOUGH / effective)  # few rows estimate their own spread badly
        return np.where(effective >= _ENOUGH, z, 0.0)

    def worst(self) -> list[tuple[str, float, int]]:
        """For each column the largest error over arms and moments, with its arm; the worst first."""
        if self._worst is None:
            z = np.abs(self.errors())
            d = z.shape[1] // 2
            both = np.maximum(z[:, :d], z[:, d:])
            found = [(self.name(j), float(both[:, j].max()), int(both[:, j].argmax())) for j in range(d)]
            self._worst = sorted(found, key=lambda item: -item[1])
        return list(self._worst)

    def name(self, column: int) -> str:
        """Return the name of a context's column."""
        return self._names[column] if self._names and column < len(self._names) else f"context {column}"

    def copies(self) -> list[str]:
        """Columns that are zero where the reward is and not zero where it is not: outcomes, whatever their name."""
        if not self._n:
            return []
        both, there, paid, n = self._reward
        with np.errstate(invalid="ignore", divide="ignore"):
            phi = (both / n - there * paid / n**2) / np.sqrt(there / n * (1 - there / n) * paid / n * (1 - paid / n))
        return [self.name(int(j)) for j in np.flatnonzero(np.abs(np.nan_to_num(phi)) > _SAME)]

    def implying(self) -> list[str]:
        """Columns that are not zero only where the reward is not, too often for chance: a purchase implies a visit."""
        return [] if not self._n else self._nested(self._reward[1], self._reward[2])

    def needed(self) -> list[str]:
        """Columns without which there never is a reward, too often for chance: no purchase without a visit."""
        return [] if not self._n else self._nested(self._reward[2], self._reward[1])

    def _nested(self, inner: Floats, outer: Floats) -> list[str]:
        """Columns where all rows of the one are rows of the other as well, which chance does not explain."""
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.nan_to_num(inner * np.log(outer / self._reward[3]))
        found = (self._reward[0] == inner) & (inner >= _MIN_ROWS) & (chance < _NEVER)
        return [self.name(int(j)) for j in np.flatnonzero(found)]

    def unequal(self) -> list[str]:
        """Columns that differ between arms by more than chance explains, the worst first."""
        return [name for name, z, _ in self.worst() if z > _OFF]

    def verdicts(self) -> list[str]:
        """Return warnings about the probabilities or about a column."""
        found = []
        copies = self.copies()
        if copies:
            found.append(
                f"{listed(copies)} nearly determine{'s' if len(copies) == 1 else ''} the reward: an outcome is no "
                "context, leave it out of contexts"
            )
        implying = [name for name in self.implying() if name not in copies]
        if implying:
            found.append(
                f"{listed(implying)}: not zero only where the reward is not: an outcome is no context, leave it out "
                "of contexts"
            )
        off = [(name, z, arm) for name, z, arm in self.worst() if z > _OFF and name not in (*copies, *implying)]
        if off:
            shown = listed([f"{name} (arm {arm}, {z:.0f} standard errors)" for name, z, arm in off])
            found.append(
                f"the arms, weighted by 1/p, differ in {shown}: the probabilities are wrong, or the column is an "
                "outcome, known only after the arm was played"
            )
        return found

    def missed(self) -> list[str]:
        """Interactions that the probabilities miss, where single columns are balanced: a slower search."""
        found = "" if self.verdicts() else self._sample.verdict()
        return [found] if found else []


def _counted(rows: LogBlock) -> LogBlock:
    """Return the counted rows, by their numbers in the log."""
    if rows.start + len(rows) <= _FULL:
        return rows
    number = np.arange(rows.start, rows.start + len(rows))
    return rows.take(np.flatnonzero((number < _FULL) | ((number >> 12) % 16 == 0)))


def listed(names: list[str], most: int = 4) -> str:
    """List some names and the number of others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
