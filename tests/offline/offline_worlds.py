"""Synthetic logs with known truth for the tests of the offline room."""

from __future__ import annotations

import numpy as np

from armwise.offline import Log

K, D = 4, 3
_MAKER = np.random.default_rng(12345)
REWARD_WEIGHTS = _MAKER.normal(size=(K, D))
LOG_WEIGHTS = 0.7 * _MAKER.normal(size=(K, D))
TARGET_WEIGHTS = REWARD_WEIGHTS + 0.3 * _MAKER.normal(size=(K, D))


def softmax(scores):
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


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
    arms = (p.cumsum(axis=-1) < rng.random(p.shape[:-1])[..., None]).sum(axis=-1)
    return np.minimum(arms, p.shape[-1] - 1)


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


def truth():
    """The target's value, by integration over two million contexts."""
    x = np.random.default_rng(99).normal(size=(2_000_000, D))
    return float((target(x) * expected(x)).sum(axis=1).mean())
