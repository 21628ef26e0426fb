"""Synthetic logs with known truth for the tests of the offline room."""

from __future__ import annotations

from functools import cache

import numpy as np

from armwise.offline import Log

K, D = 4, 3
_MAKER = np.random.default_rng(12345)
REWARD_WEIGHTS = _MAKER.normal(size=(K, D))
LOG_WEIGHTS = 0.7 * _MAKER.normal(size=(K, D))
TARGET_WEIGHTS = REWARD_WEIGHTS + 0.3 * _MAKER.normal(size=(K, D))


def softmax(scores):
    columns = np.ascontiguousarray(np.moveaxis(scores, -1, 0))  # there are few arms: sums of long columns are faster
    p = np.exp(columns - columns.max(axis=0))
    return np.ascontiguousarray(np.moveaxis(p / p.sum(axis=0), 0, -1))


def expected(x):
    """The expected reward of every arm."""
    return 1.0 / (1.0 + np.exp(-x @ REWARD_WEIGHTS.T))


def logging(x):
    """The logging policy: a softmax with a floor of 0.05 an arm."""
    return 0.8 * softmax(x @ LOG_WEIGHTS.T) + 0.05


def target(x):
    """The policy that is judged: a sharper softmax."""
    return softmax(2.0 * x @ TARGET_WEIGHTS.T)


def draw_arms(p, rng):
    u, below, arms = rng.random(p.shape[:-1]), np.zeros(p.shape[:-1]), np.zeros(p.shape[:-1], np.int64)
    for arm in range(p.shape[-1] - 1):
        below += p[..., arm]
        arms += below < u
    return arms


def make(n, seed, hidden=False):
    """A log, and the target's probabilities in its rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    p = logging(x)
    arms = draw_arms(p, rng)
    rows = np.arange(n)
    rewards = (rng.random(n) < expected(x)[rows, arms]).astype(float)
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=None if hidden else p[rows, arms], n_arms=K)
    return log, target(x)


@cache
def truth():
    """The target's value, by integration over two million contexts, of which a part at a time stays in the cache."""
    rng, total, parts = np.random.default_rng(99), 0.0, 200
    for _ in range(parts):
        x = rng.normal(size=(2_000_000 // parts, D))
        total += float((target(x) * expected(x)).sum())
    return total / 2_000_000
