"""Encodings of arms for a regression: own features, a (sparse) indicator, or the mean reward."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from armwise.core.agent import Floats
from armwise.core.seeds import row_hashes
from armwise.offline.logs.rows import LogBlock, ndim

_DENSE = 64  # arms up to which an indicator is a plain array
_SHRINK = 10.0  # rows of the overall mean that shrink the mean of an arm


def per_arm(rows: LogBlock) -> bool:
    """Return whether arms have features of their own."""
    return ndim(rows.contexts) == 3 or rows.arm_features is not None


def arm_inputs(rows: LogBlock, arms: Any) -> Floats:
    """Build input rows for a regressor: shared features, then the arm's features or its encoding."""
    n, arms = len(rows), np.broadcast_to(arms, (len(rows),))
    if ndim(rows.contexts) == 3:
        return rows.contexts[np.arange(n), arms]  # type: ignore[no-any-return]
    if rows.arm_features is None:
        own = np.eye(rows.n_arms)[arms]
    elif rows.arm_features.ndim == 2:
        own = rows.arm_features[arms]
    else:
        own = rows.arm_features[np.arange(n), arms]
    return np.hstack([rows.contexts, own]) if ndim(rows.contexts) == 2 else own


def encoding_of(model: Any, rows: LogBlock) -> Encoding:
    """Choose the encoding of arms for this model."""
    if per_arm(rows):
        return Encoding()
    if rows.n_arms <= _DENSE:
        return Indicator()
    return SparseIndicator() if _takes_sparse(model) else MeanReward()


def _takes_sparse(model: Any) -> bool:
    try:
        from sklearn.utils import get_tags
    except ImportError:  # before scikit-learn 1.6
        return False
    return hasattr(model, "__sklearn_tags__") and bool(get_tags(model).input_tags.sparse)


class Encoding:
    """A fitted model that predicts every arm; the base class predicts arm by arm with the arms' own features."""

    _model: Any

    def fit(self, model: Any, rows: LogBlock) -> Encoding:
        """Fit the model to these rows."""
        self._model = model.fit(self._inputs(rows), rows.rewards)
        return self

    def _inputs(self, rows: LogBlock) -> Any:
        return arm_inputs(rows, rows.arms)

    def predict(self, rows: LogBlock) -> Floats:
        """(n, K) expected rewards."""
        q = np.empty((len(rows), rows.n_arms))
        for arm in range(rows.n_arms):
            q[:, arm] = expected(self._model, arm_inputs(rows, arm))
        return q


class Indicator(Encoding):
    """An indicator column per arm."""

    def predict(self, rows: LogBlock) -> Floats:
        shared, q = _shared(rows), np.empty((len(rows), rows.n_arms))
        X = np.hstack([shared, np.zeros((len(rows), rows.n_arms))])
        for arm in range(rows.n_arms):
            X[:, shared.shape[1] + arm] = 1.0
            q[:, arm] = expected(self._model, X)
            X[:, shared.shape[1] + arm] = 0.0
        return q


class SparseIndicator(Encoding):
    """A sparse indicator; linear and logistic models predict all arms from one sum."""

    def _inputs(self, rows: LogBlock, arms: Any = None) -> Any:
        shared = _shared(rows)
        n, d = shared.shape
        arms = rows.arms if arms is None else arms
        columns = np.column_stack([np.broadcast_to(np.arange(d), (n, d)), d + arms])
        values = np.column_stack([shared, np.ones(n)])
        return sparse.csr_matrix(
            (values.ravel(), columns.ravel(), np.arange(0, n * (d + 1) + 1, d + 1)), shape=(n, d + rows.n_arms)
        )

    def predict(self, rows: LogBlock) -> Floats:
        q = self._in_one_sum(rows)
        if q is not None:
            return q
        q, X = np.empty((len(rows), rows.n_arms)), self._inputs(rows, np.zeros(len(rows), np.int64))
        d = X.shape[1] - rows.n_arms
        for arm in range(rows.n_arms):
            X.indices[d :: d + 1] = d + arm
            q[:, arm] = expected(self._model, X)
        return q

    def _in_one_sum(self, rows: LogBlock) -> Floats | None:
        """Shared part + arm's part, if some rows asked of the model itself say that this is what it does."""
        coefficients = np.asarray(getattr(self._model, "coef_", np.empty(0)), np.float64).ravel()
        shared, K = _shared(rows), rows.n_arms
        if coefficients.size != shared.shape[1] + K or not len(rows):
            return None
        start = shared @ coefficients[: -K or None] + float(np.ravel(self._model.intercept_)[0])
        table = np.asarray(start[:, None] + coefficients[-K:])
        some, arms = np.arange(min(20, len(rows))), np.arange(min(20, len(rows))) % K
        asked = expected(self._model, self._inputs(rows.take(some), arms))
        if np.allclose(table[some, arms], asked, rtol=1e-9, atol=1e-9):
            return table
        if hasattr(self._model, "classes_") and len(self._model.classes_) == 2:
            low, high = (float(c) for c in self._model.classes_)
            table = low + (high - low) * np.asarray(expit(table))
            if np.allclose(table[some, arms], asked, rtol=1e-9, atol=1e-9):
                return table
        return None


class MeanReward(Encoding):
    """One column: the arm's mean reward on the rows of the fit, shrunk towards that of all."""

    def fit(self, model: Any, rows: LogBlock) -> Encoding:
        # Each row is told the mean of other rows, in fifths: with its own reward in it, the model would trust it too
        # much, and with its own alone left out, it could read the reward off what is missing.
        fifth = row_hashes(0, len(rows), 0, "mean reward of an arm") % np.uint64(5)
        encoded = np.empty(len(rows))
        for f in range(5):
            mine = fifth == f
            encoded[mine] = _means(rows, ~mine)[rows.arms[mine]]
        self._means = _means(rows, np.ones(len(rows), bool))
        self._model = model.fit(np.column_stack([_shared(rows), encoded]), rows.rewards)
        return self

    def predict(self, rows: LogBlock) -> Floats:
        shared, q = _shared(rows), np.empty((len(rows), rows.n_arms))
        X = np.column_stack([shared, np.zeros(len(rows))])
        for arm in range(rows.n_arms):
            X[:, -1] = self._means[arm]
            q[:, arm] = expected(self._model, X)
        return q


def _means(rows: LogBlock, used: Any) -> Floats:
    """The mean reward of each arm in these rows, shrunk towards that of all."""
    arms, rewards, K = rows.arms[used], rows.rewards[used], rows.n_arms
    overall = float(rewards.mean()) if rewards.size else 0.0
    return np.asarray((np.bincount(arms, rewards, K) + _SHRINK * overall) / (np.bincount(arms, minlength=K) + _SHRINK))


def _shared(rows: LogBlock) -> Floats:
    return rows.contexts if ndim(rows.contexts) == 2 else np.empty((len(rows), 0))


def expected(model: Any, X: Any) -> Floats:
    """The model's expected reward: a classifier's mean over its classes, a regressor's answer."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X) @ np.asarray(model.classes_, np.float64)  # type: ignore[no-any-return]
    return np.asarray(model.predict(X), np.float64).reshape(X.shape[0])
