"""Exponential weights over experts (survey 5), step and block: one kernel for both lanes."""

from __future__ import annotations

import numpy as np

from armwise.numerics.choice import draw
from armwise.numerics.jit import jit, jit_block
from armwise.numerics.weights import importance_weighted, normalised


@jit
def advised(log_weights: np.ndarray, advice: np.ndarray, floor: float) -> np.ndarray:
    """p_j = (1 - K floor) sum_i q_i advice_ij + floor: the experts' vote, with a floor under every arm.

    >>> advised(np.zeros(2), np.array([[1.0, 0.0], [1.0, 0.0]]), 0.1)
    array([0.9, 0.1])
    """
    N, K = advice.shape
    q = normalised(log_weights)
    p = np.zeros(K)
    for i in range(N):
        for j in range(K):
            p[j] += q[i] * advice[i, j]
    for j in range(K):
        p[j] = (1.0 - K * floor) * p[j] + floor
    return p


@jit
def recentre(log_weights: np.ndarray) -> None:
    """Take out the largest: only differences matter, and near 0 they keep all their digits for ever.

    >>> log_weights = np.array([7.0, 9.0])
    >>> recentre(log_weights)
    >>> log_weights
    array([-2.,  0.])
    """
    log_weights -= log_weights.max()


@jit
def exp4_learn(
    log_weights: np.ndarray, advice: np.ndarray, gamma: float, arm: int, probability: float, reward: float
) -> None:
    """w_i *= exp(gamma y_i / K), y_i the estimated reward of expert i's advice (Algorithm 12).

    >>> log_weights = np.zeros(2)
    >>> exp4_learn(log_weights, np.eye(2), 0.5, 1, 0.5, 1.0)
    >>> log_weights
    array([-0.5,  0. ])
    """
    N, K = advice.shape
    step = gamma / K * importance_weighted(reward, probability)
    for i in range(N):
        log_weights[i] += step * advice[i, arm]
    recentre(log_weights)


@jit
def exp4p_learn(
    log_weights: np.ndarray,
    advice: np.ndarray,
    p_min: float,
    bonus: float,
    p: np.ndarray,
    arm: int,
    probability: float,
    reward: float,
) -> None:
    """w_i *= exp(p_min / 2 (y_i + bonus v_i)), v_i = sum_j advice_ij / p_j (Algorithm 13).

    >>> log_weights = np.zeros(2)
    >>> exp4p_learn(log_weights, np.eye(2), 0.5, 0.0, np.array([0.5, 0.5]), 1, 0.5, 1.0)
    >>> log_weights
    array([-0.5,  0. ])
    """
    N, K = advice.shape
    r_hat = importance_weighted(reward, probability)
    for i in range(N):
        v = 0.0
        for j in range(K):
            if advice[i, j] > 0.0:
                v += advice[i, j] / p[j]
        log_weights[i] += 0.5 * p_min * (advice[i, arm] * r_hat + bonus * v)
    recentre(log_weights)


@jit_block
def exp4_play(
    log_weights: np.ndarray, gamma: float, advice: np.ndarray, rewards: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exp4 over a block of rounds: arms, probabilities, rewards.

    >>> exp4_play(np.zeros(1), 0.5, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T, K = rewards.shape
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        p = advised(log_weights, advice[t], gamma / K)
        arm = draw(p, rng.random())
        arms[t], probabilities[t], got[t] = arm, p[arm], rewards[t, arm]
        exp4_learn(log_weights, advice[t], gamma, arm, p[arm], rewards[t, arm])
    return arms, probabilities, got


@jit_block
def exp4p_play(
    log_weights: np.ndarray,
    p_min: float,
    bonus: float,
    advice: np.ndarray,
    rewards: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exp4P over a block of rounds: arms, probabilities, rewards.

    >>> exp4p_play(np.zeros(1), 0.5, 0.1, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        p = advised(log_weights, advice[t], p_min)
        arm = draw(p, rng.random())
        arms[t], probabilities[t], got[t] = arm, p[arm], rewards[t, arm]
        exp4p_learn(log_weights, advice[t], p_min, bonus, p, arm, p[arm], rewards[t, arm])
    return arms, probabilities, got


@jit
def voted(log_weights: np.ndarray, votes: np.ndarray, p_min: float, K: int) -> np.ndarray:
    """``advised`` where expert i puts all on arm votes[i]: O(N) instead of O(N K), for very many experts.

    >>> voted(np.zeros(4), np.array([0, 1, 1, 1]), 0.1, 2)
    array([0.3, 0.7])
    """
    q = normalised(log_weights)
    p = np.zeros(K)
    for i in range(votes.size):
        p[votes[i]] += q[i]
    for j in range(K):
        p[j] = (1.0 - K * p_min) * p[j] + p_min
    return p


@jit
def voted_learn(
    log_weights: np.ndarray,
    votes: np.ndarray,
    p_min: float,
    bonus: float,
    p: np.ndarray,
    arm: int,
    probability: float,
    reward: float,
) -> None:
    """``exp4p_learn`` where expert i puts all on arm votes[i]: y_i is r_hat on the played arm, v_i is 1 / p.

    >>> log_weights = np.zeros(2)
    >>> voted_learn(log_weights, np.array([0, 1]), 0.5, 0.0, np.array([0.5, 0.5]), 1, 0.5, 1.0)
    >>> log_weights
    array([-0.5,  0. ])
    """
    step = 0.5 * p_min * bonus / p
    step[arm] += 0.5 * p_min * importance_weighted(reward, probability)
    for i in range(votes.size):
        log_weights[i] += step[votes[i]]
    recentre(log_weights)


@jit_block
def voted_play(
    log_weights: np.ndarray,
    p_min: float,
    bonus: float,
    votes: np.ndarray,
    rewards: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exp4P on votes (T, N) over a block of rounds: arms, probabilities, rewards.

    >>> voted_play(np.zeros(1), 0.5, 0.1, np.zeros((2, 1), np.int64), np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T, K = rewards.shape
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        p = voted(log_weights, votes[t], p_min, K)
        arm = draw(p, rng.random())
        arms[t], probabilities[t], got[t] = arm, p[arm], rewards[t, arm]
        voted_learn(log_weights, votes[t], p_min, bonus, p, arm, p[arm], rewards[t, arm])
    return arms, probabilities, got
