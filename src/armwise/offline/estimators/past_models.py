"""Reward models fitted on past rows only: each row is predicted from earlier rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.estimators.arm_inputs import arm_inputs, per_arm
from armwise.offline.logs.rows import LogBlock, ndim

_GROWTH, _FIRST = 1.1, 16  # a model is fitted again whenever the past has grown by a tenth


def predicted_from_the_past(rows: LogBlock, lam: float = 1.0) -> Floats:
    """(n, K) expected rewards, row t's from rows before it: a ridge per arm, or one on the features of the arms."""
    if not len(rows):
        return np.empty((0, rows.n_arms))
    if per_arm(rows):
        return _one_ridge(rows, lam)
    return _ridgeper_arm(rows, lam) if ndim(rows.contexts) == 2 else _running_means(rows)


def _running_means(rows: LogBlock) -> Floats:
    """The mean reward of each arm so far, and one more row of the mean over all arms."""
    n, K = len(rows), rows.n_arms
    played = np.zeros((n + 1, K))
    played[np.arange(1, n + 1), rows.arms] = 1.0
    counts = played.cumsum(axis=0)[:-1]
    played[np.arange(1, n + 1), rows.arms] = rows.rewards
    sums = played.cumsum(axis=0)[:-1]
    overall = sums.sum(axis=1) / np.maximum(np.arange(n), 1)
    return np.asarray((sums + overall[:, None]) / (counts + 1.0))


def _blocks(n: int) -> list[tuple[int, int]]:
    """Return the blocks (start, end) that share a model; the first has no rows before it."""
    ends = [0, min(_FIRST, n)]
    while ends[-1] < n:
        ends.append(min(n, max(ends[-1] + 1, int(ends[-1] * _GROWTH))))
    return list(pairwise(ends))


def _ridgeper_arm(rows: LogBlock, lam: float) -> Floats:
    n, K = len(rows), rows.n_arms
    X = np.column_stack([np.ones(n), rows.contexts])
    d = X.shape[1]
    gram, moment, q = np.zeros((K, d, d)), np.zeros((K, d)), np.zeros((n, K))
    mean = 0.0
    for start, end in _blocks(n):
        if start:
            mean = float(rows.rewards[:start].mean())
            centred = moment - mean * gram[:, 0]  # an arm without rows answers the mean reward
            theta = np.linalg.solve(gram + lam * np.eye(d), centred[..., None])[..., 0]
            q[start:end] = mean + X[start:end] @ theta.T
        for arm in np.unique(rows.arms[start:end]):
            part = X[start:end][rows.arms[start:end] == arm]
            gram[arm] += part.T @ part
            moment[arm] += part.T @ rows.rewards[start:end][rows.arms[start:end] == arm]
    return _within(q, rows.rewards)


def _one_ridge(rows: LogBlock, lam: float) -> Floats:
    n, K = len(rows), rows.n_arms
    X = np.column_stack([np.ones(n), arm_inputs(rows, rows.arms)])
    gram, moment, q = np.zeros((X.shape[1],) * 2), np.zeros(X.shape[1]), np.zeros((n, K))
    for start, end in _blocks(n):
        if start:
            theta = np.linalg.solve(gram + lam * np.eye(len(gram)), moment)
            q[start:end] = rows.take(slice(start, end)).features() @ theta[1:] + theta[0]
        gram += X[start:end].T @ X[start:end]
        moment += X[start:end].T @ rows.rewards[start:end]
    return _within(q, rows.rewards)


def _within(q: Floats, rewards: Floats) -> Floats:
    """Predictions inside the range of the rewards so far: a young model does not run away."""
    low, high = np.minimum.accumulate(rewards), np.maximum.accumulate(rewards)
    low, high = np.r_[0.0, low[:-1]], np.r_[0.0, high[:-1]]
    return np.asarray(np.clip(q, np.minimum(low, 0.0)[:, None], np.maximum(high, 0.0)[:, None]))
