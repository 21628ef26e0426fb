"""Reward models for DM and the doubly robust estimators, always cross-fitted."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from armwise.core.agent import Floats, count, positive
from armwise.core.seeds import row_hashes
from armwise.core.tools.extras import needs
from armwise.offline.estimators.arm_inputs import arm_inputs, encoding_of, per_arm
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import Ints, LogBlock, by_group, ndim

_CHUNK = 8192  # rows whose features stay in the cache
_ROWS = 1 << 17  # a ridge learns from this many rows of a longer log, or from _PER_PARAMETER for each of its parameters
_PER_PARAMETER = 100


class RewardModel(Protocol):
    """The interface of a reward model: the expected reward of every arm in these rows."""

    def predict(self, rows: LogBlock) -> Floats:
        """(n, K) expected rewards."""


def folds_of(rows: LogBlock, folds: int, seed: int = 0, cluster: Any = None) -> Ints:
    """The fold of each row: a hash of its number, or of its cluster, the same in every pass over a streamed log.

    ``cluster`` is the name of a column or an array with one value for each row of the log: rows of one cluster share
    their fold, so that no model has seen another row of the cluster that it is asked about.
    """
    if cluster is None:
        return (row_hashes(rows.start, len(rows), seed, "fold") % np.uint64(folds)).astype(np.int64)
    return (cluster_uniforms(cluster_values(cluster, rows), seed, "fold") * folds).astype(np.int64)


def cluster_values(cluster: Any, rows: LogBlock) -> Any:
    """The cluster of each of these rows, from a column's name or an array for the whole log."""
    if not isinstance(cluster, str):
        return np.asarray(cluster)[rows.start : rows.start + len(rows)]
    assert rows.extra is not None
    return rows.extra[cluster]


def cluster_uniforms(values: Any, seed: int, what: str) -> Floats:
    """For each row a number in [0, 1) that its cluster decides."""
    labels, which = np.unique(np.asarray(values), return_inverse=True)
    keys = [hashlib.blake2b(f"{seed}/{what}/{label}".encode(), digest_size=7).digest() for label in labels.tolist()]
    return (np.array([int.from_bytes(key, "big") for key in keys], np.float64) / 2.0**56)[which.ravel()]


class RidgeSums:
    """X'X and X'y of the rows of each fold and model, whose sums over parts of a log are those of the log."""

    gram: Floats | None = None  # (folds, models, d, d)
    moment: Floats | None = None  # (folds, models, d)

    def add(self, X: Floats, rewards: Floats, folds: Ints, models: Ints, shape: tuple[int, int]) -> None:
        """Take in rows; ``shape`` is (number of folds, number of models)."""
        if self.gram is None or self.moment is None:
            dim = X.shape[1]
            self.gram, self.moment = np.zeros((*shape, dim, dim)), np.zeros((*shape, dim))
        group = folds * shape[1] + models
        if X.shape[1] == 1:  # the 1 alone: no context
            size = shape[0] * shape[1]
            self.gram += np.bincount(group, minlength=size).reshape(self.gram.shape)
            self.moment += np.bincount(group, rewards, size).reshape(self.moment.shape)
            return
        order = by_group(group, shape[0] * shape[1])
        X, rewards, group = X.take(order, axis=0), rewards[order], group[order]
        starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        for start, end in zip(starts, np.r_[starts[1:], len(group)], strict=True):
            part, place = X[start:end], divmod(int(group[start]), shape[1])
            self.gram[place] += part.T @ part
            self.moment[place] += part.T @ rewards[start:end]

    def merge(self, other: RidgeSums) -> None:
        """Take in the rows that another has seen."""
        if other.gram is None or other.moment is None:
            return
        if self.gram is None or self.moment is None:
            self.gram, self.moment = other.gram, other.moment
            return
        self.gram, self.moment = self.gram + other.gram, self.moment + other.moment


class CrossfitRidge:
    """Ridge regression from sums that stream: one model an arm on shared contexts, one for all on features of arms.

    A row is predicted by the sums of the other folds; an arm without data by the mean reward. Of a log with millions of
    rows the first 131,072 are enough (more where there are many arms and features): what more rows would
    tell the model is far below the noise of the rewards, and whatever the model says leaves DR unbiased.

    >>> log = Log(contexts=[[1.0], [2.0]] * 50, arms=[0, 1] * 50, rewards=[1.0, 4.0] * 50, n_arms=2)
    >>> CrossfitRidge().fit(log).predict(log.rows)[:2].round(1)
    array([[1. , 3.3],
           [0.2, 4. ]])
    """

    def __init__(self, lam: float = 1.0, folds: int = 3, seed: int = 0) -> None:
        self.lam, self.folds, self.seed = positive("lam", lam), count("folds", folds, least=2), seed
        self._theta: Floats | None = None  # (folds, models, d)
        self._whole = np.empty(0)  # (models, d), for rows that no fold has learnt from
        self._cluster: Any = None

    def over_clusters(self, cluster: Any) -> CrossfitRidge:
        """The same with folds of whole clusters: a column's name, or an array with one value per row."""
        self._cluster = cluster
        return self

    def fit(self, log: Log, progress: Any = None) -> CrossfitRidge:
        """One pass over the log."""
        return self.solve(self.sums(log, progress))

    def sums(self, log: Log, progress: Any = None) -> RidgeSums:
        """The sums of a log, or of a part of it."""
        sums, seen = RidgeSums(), 0
        for rows in log.batches(extra=(self._cluster,) if isinstance(self._cluster, str) else ()):
            enough = self._enough(rows)  # counted over the whole log, so that its parts learn from the same rows
            for first in range(0, min(len(rows), enough - rows.start), _CHUNK):
                part = rows.take(slice(first, min(first + _CHUNK, enough - rows.start)))
                X, models = self._logged(part)
                sums.add(X, part.rewards, folds_of(part, self.folds, self.seed, self._cluster), models,
                         (self.folds, 1 if per_arm(part) else part.n_arms))  # fmt: skip
            seen += len(rows)
            if progress is not None:
                progress(len(rows))
            if rows.start + len(rows) >= enough:
                break
        if progress is not None and log.counted:
            progress(len(log) - seen)
        return sums

    def _enough(self, rows: LogBlock) -> int:
        X, _ = self._logged(rows.take(slice(0, 1)))
        parameters = int(X.shape[1]) * (1 if per_arm(rows) else rows.n_arms)
        return max(_ROWS, _PER_PARAMETER * parameters)

    def solve(self, sums: RidgeSums) -> CrossfitRidge:
        """Solve for the models of these sums."""
        if sums.gram is None or sums.moment is None:
            raise ValueError("the log is empty: there is nothing to fit a reward model to")
        gram, moment = sums.gram, sums.moment
        self._whole = self._solved(gram.sum(axis=0)[None], moment.sum(axis=0)[None])[0]
        # each fold learns from the others
        self._theta = self._solved(gram.sum(axis=0) - gram, moment.sum(axis=0) - moment)
        return self

    def _solved(self, gram: Floats, moment: Floats) -> Floats:
        rows = gram[..., 0, 0].sum(axis=1)  # the first feature is 1
        mean = moment[..., 0].sum(axis=1) / np.maximum(rows, 1.0)
        moment = moment - mean[:, None, None] * gram[..., 0]  # shrink towards the mean reward, not towards zero
        penalised = gram + self.lam * np.eye(gram.shape[-1])
        theta = np.asarray(np.linalg.solve(penalised, moment[..., None])[..., 0], np.float64)
        theta[..., 0] += mean[:, None]
        return theta

    def predict(self, rows: LogBlock) -> Floats:
        """(n, K) expected rewards, each row by the model of its fold."""
        assert self._theta is not None, "fit comes first"
        beyond = self._cluster is None and rows.start >= self._enough(rows)  # rows that no model has learnt from
        if not per_arm(rows) and ndim(rows.contexts) == 2 and beyond:
            q = rows.contexts @ self._whole[:, 1:].T
            q += self._whole[:, 0]
            return np.asarray(q)
        fold = folds_of(rows, self.folds, self.seed, self._cluster)
        if not per_arm(rows) and ndim(rows.contexts) == 2 and self._theta[..., 0].size <= 128:
            return self._all_models(np.asarray(rows.contexts), fold, rows.n_arms)
        if not per_arm(rows) and ndim(rows.contexts) != 2:
            return np.take(self._theta[..., 0], fold, axis=0)
        q = np.empty((len(rows), rows.n_arms))
        for f in range(self.folds):
            mine, theta = np.flatnonzero(fold == f), self._theta[f]
            if per_arm(rows):
                q[mine] = rows.take(mine).features() @ theta[0, 1:] + theta[0, 0]
            else:
                q[mine] = rows.contexts[mine] @ theta[:, 1:].T + theta[:, 0]
        return q

    def _all_models(self, contexts: Floats, fold: Ints, K: int) -> Floats:
        """With few models it is faster to ask all of them than to pick out the rows of each."""
        assert self._theta is not None
        theta = self._theta.reshape(self.folds * K, -1)
        slopes, offsets = np.ascontiguousarray(theta[:, 1:].T), theta[:, 0]
        q = np.empty((len(contexts), K))
        for start in range(0, len(contexts), _CHUNK // 2):
            part = slice(start, min(start + _CHUNK // 2, len(contexts)))
            every = contexts[part] @ slopes
            every += offsets
            places = np.arange(part.stop - start) * self.folds + fold[part]
            np.take(every.reshape(-1, K), places, axis=0, out=q[part])
        return q

    def _logged(self, rows: LogBlock) -> tuple[Floats, Ints]:
        """The features of each row's arm with a leading 1, and which model learns from the row."""
        one = np.ones((len(rows), 1))
        if per_arm(rows):
            return np.hstack([one, arm_inputs(rows, rows.arms)]), np.zeros(len(rows), np.int64)
        return np.hstack([one, rows.contexts] if ndim(rows.contexts) == 2 else [one]), rows.arms


class Crossfit:
    """Any scikit-learn regressor, or classifier of the rewards, fitted in memory on the other folds.

    Its inputs are the shared features and the arm's own features. Where arms have none, they are an indicator of the
    arm: sparse for more than 64 arms; a model that takes no sparse input is then told the arm's mean reward on the rows
    it is fitted to, shrunk towards that of all, instead.

    >>> from sklearn.linear_model import LinearRegression
    >>> log = Log(contexts=[[1.0], [2.0]] * 50, arms=[0, 1] * 50, rewards=[1.0, 4.0] * 50, n_arms=2)
    >>> Crossfit(LinearRegression()).fit(log).predict(log.rows).shape
    (100, 2)
    """

    def __init__(self, regressor: Any, folds: int = 3, seed: int = 0) -> None:
        self.regressor, self.folds, self.seed = regressor, count("folds", folds, least=2), seed
        self._fitted: list[Any] = []
        self._cluster: Any = None

    def over_clusters(self, cluster: Any) -> Crossfit:
        """The same with folds of whole clusters: a column's name, or an array with one value per row."""
        self._cluster = cluster
        return self

    def fit(self, log: Log, progress: Any = None) -> Crossfit:
        """Fit one model a fold, on the rows of the others."""
        rows = log.rows
        if isinstance(self._cluster, str):
            rows = replace(rows, extra={self._cluster: log.column(self._cluster)})
        fold = folds_of(rows, self.folds, self.seed, self._cluster)
        self._fitted = []
        for f in range(self.folds):
            others = np.flatnonzero(fold != f)
            if not others.size:
                raise ValueError(f"the log has {len(rows)} rows, too few for {self.folds} folds")
            self._fitted.append(encoding_of(self.regressor, rows).fit(_fresh(self.regressor), rows.take(others)))
            if progress is not None:
                progress(int(np.count_nonzero(fold == f)))
        return self

    def predict(self, rows: LogBlock) -> Floats:
        """(n, K) expected rewards, each row by the model of its fold."""
        fold = folds_of(rows, self.folds, self.seed, self._cluster)
        q = np.empty((len(rows), rows.n_arms))
        for f, model in enumerate(self._fitted):
            mine = np.flatnonzero(fold == f)
            if mine.size:
                q[mine] = model.predict(rows.take(mine))
        return _finite(q, rows.start)


def _finite(q: Floats, start: int) -> Floats:
    """The same expected rewards, if all of them are numbers; ``start`` is the number of their first row."""
    if not np.isfinite(q).all():
        row, arm = np.argwhere(~np.isfinite(q))[0]
        raise ValueError(f"reward_model, row {start + row}, arm {arm}: {q[row, arm]}, expected finite numbers")
    return q


def _fresh(model: Any) -> Any:
    if hasattr(model, "get_params"):
        with needs("offline"):
            from sklearn.base import clone

        return clone(model)
    return copy.deepcopy(model)


class Given:
    """A model fitted elsewhere (``predict(contexts) -> (n, K)``), or an (n, K) array of its predictions."""

    def __init__(self, model: Any, log: Log) -> None:
        self._model, self._table = model, None
        if not hasattr(model, "predict"):
            self._table = np.asarray(model, np.float64)
            if self._table.shape != (len(log), log.n_arms):
                raise ValueError(
                    f"reward_model has shape {self._table.shape}, expected ({len(log)}, {log.n_arms}): an expected "
                    "reward for every arm in every row"
                )
            _finite(self._table, 0)

    def predict(self, rows: LogBlock) -> Floats:
        """(n, K) expected rewards."""
        if self._table is not None:
            return self._table[rows.start : rows.start + len(rows)]
        contexts = rows.contexts if rows.contexts is not None else np.empty((len(rows), 0))
        q = np.asarray(self._model.predict(contexts), np.float64)
        if q.shape != (len(rows), rows.n_arms):
            raise ValueError(
                f"reward_model.predict answered an array of shape {q.shape}, expected ({len(rows)}, {rows.n_arms})"
            )
        return _finite(q, rows.start)


def fitted_model(
    model: Any, log: Log, folds: int, seed: int, progress: Any = None, cluster: Any = None
) -> RewardModel:  # fmt: skip
    """Convert ``reward_model=``: None (a cross-fitted ridge), a regressor to cross-fit, or a fitted model.

    ``cluster`` (a column's name, or an array with one value per row) keeps the rows of a cluster in one fold.
    """
    if model is None:
        return CrossfitRidge(folds=folds, seed=seed).over_clusters(cluster).fit(log, progress)
    if isinstance(model, (CrossfitRidge, Crossfit)):
        return model.over_clusters(cluster).fit(log, progress)
    if hasattr(model, "fit") and hasattr(model, "predict"):
        return Crossfit(model, folds, seed).over_clusters(cluster).fit(log, progress)
    return Given(model, log)
