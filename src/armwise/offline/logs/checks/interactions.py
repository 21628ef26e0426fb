"""Interactions: do the probabilities miss a bend, a product of two contexts, or what else a boosted tree finds?

If the probabilities are right, no function of the contexts predicts 1{arm = a} / p - 1. The square of each context,
steps at its quantiles and products of two or three are tried one by one; in logs of 5,000 rows or more a boosted tree
(where scikit-learn is installed, whose import costs more than the rest) is fitted to one half and judged on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from armwise.core.agent import Floats
from armwise.core.tools.threads import thread_pools
from armwise.offline.logs.checks.duplicates import MAX_SAMPLE
from armwise.offline.logs.rows import Ints, LogBlock

_CELLS = 5_000_000  # numbers of contexts kept at most
_MAX_PRODUCED, _MAX_OF_THREE = 64, 12  # columns whose products of two, and of three, are tried
_PRODUCT_ARMS, _TREE_ARMS = 8, 3  # the most frequent arms are judged
_FAR = 3.0  # standard deviations at which a context counts no more
_STEPS = (0.1, 0.25, 0.5, 0.75, 0.9)  # quantiles of a context at which steps are tried
_FALSE_ALARM = 0.004  # chance that bends, and that products speak against right probabilities
_PREDICTED = 4.5  # standard errors of a tree's predictions: 1/p has a long tail, which makes larger ones by chance
_PREDICTED_OF_TWO = 3.0  # likewise of two arms, whose residuals have no long tail
_TREE_ROWS = 5000  # from which on a tree is fitted, and up to which products of three are tried
_MIN_ROWS, _ENOUGH = 500, 30  # rows kept at least; effective rows of an arm that make half of a standard error sure


class RowSample:
    """Evenly spaced rows of a log with their contexts, arms and probabilities: at most 50,000."""

    def __init__(self, n_arms: int, name: Callable[[int], str]) -> None:
        self._n_arms, self._name = n_arms, name
        self._step, self._kept = 1, 0  # every so many rows, by their numbers in the log
        self._parts: list[tuple[Ints, Floats, Ints, Floats]] = []  # numbers, contexts, arms, probabilities
        self._verdict: str | None = None  # until more rows come

    def add(self, rows: LogBlock) -> None:
        """Take in a block of rows."""
        assert rows.probabilities is not None
        number = np.arange(rows.start, rows.start + len(rows))
        while True:
            kept = np.flatnonzero(number % self._step == 0)
            if self._kept + len(kept) <= self._most(rows.contexts.shape[1]):
                break
            self._thin(2 * self._step)
        self._verdict = None
        part = (number[kept], np.asarray(rows.contexts, np.float64)[kept], rows.arms[kept], rows.probabilities[kept])
        self._parts.append(part)
        self._kept += len(kept)

    @staticmethod
    def _most(d: int) -> int:
        return min(MAX_SAMPLE, max(_CELLS // max(d, 1), _MIN_ROWS))

    def _thin(self, step: int) -> None:
        self._step = step
        for i, part in enumerate(self._parts):
            kept = part[0] % step == 0
            self._parts[i] = (part[0][kept], part[1][kept], part[2][kept], part[3][kept])
        self._kept = sum(len(part[0]) for part in self._parts)

    def merge(self, later: RowSample) -> None:
        """Take in the rows that another has seen."""
        step = max(self._step, later._step)
        self._thin(step)
        later._thin(step)
        self._parts += later._parts
        self._verdict = None
        self._kept += later._kept
        while self._parts and self._kept > self._most(self._parts[0][1].shape[1]):
            self._thin(2 * self._step)

    def verdict(self) -> str:
        """The interactions that the probabilities miss, in words; empty if there is no evidence of any."""
        if self._verdict is None:
            self._verdict = self._found()
        return self._verdict

    def _found(self) -> str:
        if not self._parts:
            return ""
        _, X, arms, p = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        spread = X.std(axis=0)
        moving = np.flatnonzero(spread > 0)
        if not moving.size or len(X) < 2 * _ENOUGH:
            return ""
        often = np.argsort(-np.bincount(arms, minlength=self._n_arms), kind="stable")
        residuals = [(int(a), _residual(arms, p, int(a), self._n_arms)) for a in often[:_PRODUCT_ARMS]]
        residuals = residuals[:1] if self._n_arms == 2 else residuals
        some = moving[:_MAX_PRODUCED]
        Z = np.clip((X[:, some] - X[:, some].mean(axis=0)) / spread[some], -_FAR, _FAR)
        product = self._worst_bend(Z, some, residuals) or self._worst_product(Z, some, residuals)
        every, few = -(-len(X) // _TREE_ROWS), residuals[:_TREE_ARMS]
        product = product or self._worst_product(
            Z[::every, :_MAX_OF_THREE], some, [(arm, e[::every]) for arm, e in few], three=True
        )
        return product or self._tree(X[:, moving], few)

    def _worst_bend(self, Z: Floats, columns: Ints, residuals: list[tuple[int, Floats]]) -> str:
        worst, tests = (0.0, 0, 0), 0
        for j, z in enumerate(Z.T):
            steps = z[:, None] > np.unique(np.quantile(z, _STEPS))
            shapes = np.column_stack([z**2, steps])
            shapes = shapes - shapes.mean(axis=0)
            shapes = shapes[:, np.sqrt((shapes**2).mean(axis=0)) > 1e-6]
            fourth = shapes**4
            for arm, e in residuals:
                e2 = e**2
                second = (shapes**2).T @ e2
                variance = np.maximum(second, (shapes**2).mean(axis=0) * e2.sum())
                with np.errstate(invalid="ignore", divide="ignore"):
                    off = np.abs(shapes.T @ e) / np.sqrt(variance) / (1.0 + _ENOUGH * (fourth.T @ e2**2) / second**2)
                tests += len(off)
                worst = max(worst, (float(np.nan_to_num(off).max(initial=0.0)), j, arm))
        if worst[0] <= -float(ndtri(0.5 * _FALSE_ALARM / max(tests, 1))):
            return ""
        return (f"the probabilities miss how the arms depend on {self._name(int(columns[worst[1]]))}: weighted by 1/p, "
                f"its square or a step of it differs (arm {worst[2]}, {worst[0]:.0f} standard errors)")  # fmt: skip

    def _worst_product(self, Z: Floats, columns: Ints, residuals: list[tuple[int, Floats]], three: bool = False) -> str:
        n, d = Z.shape
        left: Floats = Z
        within: list[tuple[int, ...]] = [(i,) for i in range(d)]
        if three:
            one, other = np.triu_indices(d, 1)
            left, within = Z[:, one] * Z[:, other], list(zip(one.tolist(), other.tolist(), strict=True))
        wanted = np.array([[j > pair[-1] for j in range(d)] for pair in within], np.bool_)
        if not wanted.any():
            return ""
        mean, squares, of_left, worst = left.T @ Z / n, Z**2, left**2, (0.0, 0, 0, 0)
        spread = of_left.T @ squares / n - mean**2
        for arm, e in residuals:
            if not e.any():
                continue
            e2 = e**2
            total = left.T @ (Z * e[:, None]) - mean * e.sum()
            second = of_left.T @ (squares * e2[:, None])
            variance = second - 2.0 * mean * (left.T @ (Z * e2[:, None])) + mean**2 * e2.sum()
            # the spread that the product has in the whole log, where no row of the arm shows it
            variance = np.maximum(variance, spread * e2.sum())
            with np.errstate(invalid="ignore", divide="ignore"):
                effective = second**2 / ((of_left**2).T @ (squares * e2[:, None]) ** 2)  # rows with the variance
                z = np.where(variance > 1e-9 * n, total / np.sqrt(variance), 0.0) / (1.0 + _ENOUGH / effective)
            z = np.where(wanted, np.abs(np.nan_to_num(z)), 0.0)
            at, j = divmod(int(z.argmax()), d)
            worst = max(worst, (float(z[at, j]), at, j, arm))
        limit = -float(ndtri(0.5 * _FALSE_ALARM / (len(residuals) * np.count_nonzero(wanted))))
        if worst[0] <= limit:
            return ""
        names = " times ".join(self._name(int(columns[i])) for i in (*within[worst[1]], worst[2]))
        return (f"the probabilities miss an interaction: weighted by 1/p, the arms differ in {names} "
                f"(arm {worst[3]}, {worst[0]:.0f} standard errors)")  # fmt: skip

    def _tree(self, X: Floats, residuals: list[tuple[int, Floats]]) -> str:
        if len(X) < _TREE_ROWS:
            return ""
        try:
            from sklearn.ensemble import HistGradientBoostingRegressor
        except ImportError:
            return ""

        def tree() -> Any:
            return HistGradientBoostingRegressor(
                max_iter=15, max_leaf_nodes=16, learning_rate=0.4, early_stopping=False, random_state=0
            )

        limit = _PREDICTED_OF_TWO if self._n_arms == 2 else _PREDICTED
        for arm, e in residuals:
            with thread_pools().limit(limits=1):  # small fits, on one thread whatever runs beside them
                z = _held_out(X, e, tree) if e.any() else 0.0
            if z > limit:
                return (f"the probabilities miss how the arms depend on the contexts: a boosted tree predicts arm "
                        f"{arm} better, in rows that it did not see ({z:.0f} standard errors)")  # fmt: skip
        return ""


def _residual(arms: Ints, p: Floats, arm: int, n_arms: int) -> Floats:
    """A residual per row, of mean zero in every context if the probabilities are right (two arms: 1{arm} - p)."""
    played = arms == arm
    if n_arms == 2:
        return np.where(played, 1.0 - p, -(1.0 - p))
    return np.where(played, 1.0 / p, 0.0) - 1.0


def _held_out(X: Floats, e: Floats, model: Callable[[], Any]) -> float:
    """By how many standard errors a model of one half of the rows predicts those of the other, both ways."""
    even = np.arange(len(e)) % 2 == 0
    total = 0.0
    for fitted, asked in ((even, ~even), (~even, even)):
        scores = e[asked] * model().fit(X[fitted], e[fitted]).predict(X[asked])
        error = float(np.sqrt(scores @ scores))
        total += float(scores.sum()) / error if error > 0.0 else 0.0
    return total / math.sqrt(2.0)
