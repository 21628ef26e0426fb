"""Estimated propensities for logs that do not say with which probability their arms were drawn (Strehl et al. 2010)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from armwise.core.agent import Floats, count, fraction
from armwise.core.tools.extras import needs
from armwise.offline.estimators.reward_models import _fresh, folds_of
from armwise.offline.logs.log import Log
from armwise.offline.logs.row_progress import bar
from armwise.offline.logs.rows import LogBlock, ndim


class PropensityModel:
    """P(arm | context) by any scikit-learn classifier: cross-fitted, calibrated, never below ``clip``.

    Each row's probability comes from a classifier that saw only the other folds. Calibration has two numbers, found by
    maximum likelihood on rows held out: a temperature T (probabilities to the power 1/T) and a share of uniform
    exploration, which most logging policies have and most classifiers cannot express. It never turns the order of the
    arms, and leaves alone a classifier that is right. ``clip`` is Strehl's tau, by default 1/(20 K). Fitted in memory.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> p = 1 / (1 + np.exp(-x[:, 0]))
    >>> arms = (rng.random(2000) < p).astype(int)
    >>> log = PropensityModel().fill(Log(contexts=x, arms=arms, rewards=np.zeros(2000), n_arms=2))
    >>> bool(np.abs(log.probabilities - np.where(arms, p, 1 - p)).mean() < 0.03)
    True
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        folds: int = 5,
        calibrate: bool = True,
        clip: float | None = None,
        seed: int = 0,
    ) -> None:
        self.classifier, self.calibrate, self.seed = classifier, calibrate, seed
        self.folds = count("folds", folds, least=2)
        self.clip = None if clip is None else fraction("clip", clip)
        self.probabilities: Floats | None = None  # (n, K) after fill
        self.corrections: list[tuple[float, float]] = []  # (temperature, uniform share) of each fold

    def fill(self, log: Log, *, cluster: Any = None, progress: bool = False) -> Log:
        """The same log with estimated probabilities of its arms (``progress`` draws a bar over its rows).

        ``cluster`` (a column's name, or an array with one value per row) keeps the rows of a user in one fold.
        """
        rows = log.rows
        together = log.column(cluster) if isinstance(cluster, str) else cluster
        fold = folds_of(rows, self.folds, self.seed, together)
        if min(np.bincount(fold, minlength=self.folds)) == 0:
            raise ValueError(f"the log has {len(rows)} rows, too few for {self.folds} folds")
        with bar(log, 1, progress) as advance:
            raw = self._crossfitted(rows, fold, advance)
        self.corrections = [(1.0, 0.0)] * self.folds
        table = raw.copy()
        if self.calibrate:
            for f in range(self.folds):  # the correction of a fold is found without it
                others = fold != f
                self.corrections[f] = _correction(raw[others], rows.arms[others])
                table[~others] = _corrected(raw[~others], *self.corrections[f])
        if rows.available is not None:
            table = np.where(rows.available, table, 0.0)
            table /= table.sum(axis=1, keepdims=True)
        self.probabilities, self._arms = table, rows.arms
        least = 1.0 / (20.0 * log.n_arms) if self.clip is None else self.clip
        return log.with_probabilities(np.maximum(table[np.arange(len(rows)), rows.arms], least), self._name())

    def _name(self) -> str:
        return "a logistic model of the arms" if self.classifier is None else type(self.classifier).__name__

    def _crossfitted(self, rows: LogBlock, fold: np.ndarray, advance: Any) -> Floats:
        X = _scaled(inputs(rows))  # a column in dollars beside one in [0, 1] makes the fit take for ever
        table = np.zeros((len(rows), rows.n_arms))
        for f in range(self.folds):
            there = fold == f
            seen = np.unique(rows.arms[~there])
            if seen.size == 1:  # nothing to tell apart
                table[there, seen[0]] = 1.0
                advance(int(there.sum()))
                continue
            model = self._default() if self.classifier is None else _fresh(self.classifier)
            model.fit(X[~there], rows.arms[~there])
            table[np.ix_(np.flatnonzero(there), np.asarray(model.classes_, np.int64))] = model.predict_proba(X[there])
            advance(int(there.sum()))
        return table

    @staticmethod
    def _default() -> Any:
        with needs("offline"):
            from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)

    def calibration(self, bins: int = 10) -> Floats:
        """Return a calibration table: (mean prediction, observed frequency, count) per decile.

        >>> rng = np.random.default_rng(0)
        >>> model = PropensityModel()
        >>> x, arms = rng.normal(size=(3000, 1)), rng.integers(0, 2, 3000)
        >>> _ = model.fill(Log(contexts=x, arms=arms, rewards=np.zeros(3000)))
        >>> predicted, observed, n = model.calibration(bins=2)[0]
        >>> bool(abs(predicted - observed) < 0.03)
        True
        """
        if self.probabilities is None:
            raise ValueError("there is nothing to judge yet: call fill(log) first")
        hits = np.zeros(self.probabilities.shape)
        hits[np.arange(len(hits)), self._arms] = 1.0
        predicted = self.probabilities.ravel()
        order = np.argsort(predicted, kind="stable")
        parts = [part for part in np.array_split(order, bins) if part.size]
        return np.array([[predicted[p].mean(), hits.ravel()[p].mean(), p.size] for p in parts])


def inputs(rows: LogBlock) -> Floats:
    """Return the inputs of the propensity model, one vector per row."""
    parts = [] if ndim(rows.contexts) < 2 else [rows.contexts.reshape(len(rows), -1)]
    if ndim(rows.contexts) == 1:
        keys, which = np.unique(rows.contexts, return_inverse=True)
        parts.append(np.eye(len(keys))[which])
    if rows.arm_features is not None and rows.arm_features.ndim == 3:
        parts.append(rows.arm_features.reshape(len(rows), -1))
    return np.hstack(parts) if parts else np.zeros((len(rows), 1))


def _scaled(X: Floats) -> Floats:
    """Columns with mean 0 and standard deviation 1 (constant ones become 0)."""
    spread = X.std(axis=0)
    scaled: Floats = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


def _corrected(table: Floats, temperature: float, uniform: float) -> Floats:
    powered: Floats = np.maximum(table, 1e-12) ** (1.0 / temperature)
    powered *= (1.0 - uniform) / powered.sum(axis=1, keepdims=True)
    powered += uniform / table.shape[1]
    return powered


def _correction(table: Floats, arms: np.ndarray) -> tuple[float, float]:
    """The temperature and the uniform share with the largest likelihood of the logged arms."""
    n, K = table.shape
    logs = np.ascontiguousarray(np.log(np.maximum(table, 1e-12)).T)  # (K, n): sums over few arms run along the rows
    played = arms * n + np.arange(n)
    own_log, softmax = logs.reshape(-1)[played], np.empty_like(logs)

    def loss(z: Floats) -> tuple[float, Floats]:
        power, uniform = np.exp(-z[0]), expit(z[1])
        np.exp(np.multiply(logs, power, out=softmax), out=softmax)
        total = softmax.sum(axis=0)
        np.divide(softmax, total, out=softmax)
        own, mean_log = softmax.reshape(-1)[played], np.einsum("kn,kn->n", softmax, logs)
        p = (1.0 - uniform) * own + uniform / K
        by_power = np.mean((1.0 - uniform) * own * (own_log - mean_log) / p)
        by_uniform = np.mean((1.0 / K - own) / p)
        return -float(np.log(p).mean()), np.array([by_power * power, -by_uniform * uniform * (1.0 - uniform)])

    found = minimize(loss, [0.0, -3.0], jac=True, method="L-BFGS-B", bounds=[(-2.0, 2.0), (-15.0, 15.0)])
    return float(np.exp(found.x[0])), float(expit(found.x[1]))
