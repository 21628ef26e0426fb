"""K-armed agents, step and block: one kernel for both lanes."""

from __future__ import annotations

import numpy as np

from armwise.numerics.choice import best_arms, draw, tied_probabilities
from armwise.numerics.jit import jit, jit_block
from armwise.numerics.weights import importance_weighted, mixed


@jit
def exp3_learn(log_weights: np.ndarray, gamma: float, arm: int, probability: float, reward: float) -> None:
    """w_a *= exp(gamma r_hat_a / K), in log space.

    >>> log_weights = np.zeros(2)
    >>> exp3_learn(log_weights, 0.5, 1, 0.5, 1.0)
    >>> log_weights
    array([0. , 0.5])
    """
    log_weights[arm] += gamma * importance_weighted(reward, probability) / log_weights.size


@jit_block
def exp3_play(
    log_weights: np.ndarray, gamma: float, rewards: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exp3 over a block of rounds: arms, probabilities, rewards.

    >>> exp3_play(np.zeros(1), 0.5, np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        p = mixed(log_weights, gamma)
        arm = draw(p, rng.random())
        arms[t], probabilities[t], got[t] = arm, p[arm], rewards[t, arm]
        exp3_learn(log_weights, gamma, arm, p[arm], rewards[t, arm])
    return arms, probabilities, got


@jit
def ucb1_scores(totals: np.ndarray, counts: np.ndarray, alpha: float) -> np.ndarray:
    """mean_a + alpha sqrt(2 ln t / n_a), infinite for an arm never learnt; t - 1 rewards are learnt.

    >>> ucb1_scores(np.array([1.0, 0.0]), np.array([1.0, 0.0]), 0.0)
    array([ 1., inf])
    """
    log_t = np.log(1.0 + counts.sum())
    scores = np.empty(counts.size)
    for arm in range(counts.size):
        if counts[arm] == 0.0:
            scores[arm] = np.inf
        else:
            scores[arm] = totals[arm] / counts[arm] + alpha * np.sqrt(2.0 * log_t / counts[arm])
    return scores


@jit_block
def ucb1_play(
    totals: np.ndarray, counts: np.ndarray, alpha: float, rewards: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """UCB1 over a block of rounds: arms, probabilities, rewards.

    >>> ucb1_play(np.zeros(1), np.zeros(1), 1.0, np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        best = best_arms(ucb1_scores(totals, counts, alpha))
        arm = best[0] if best.size == 1 else best[int(rng.random() * best.size)]
        arms[t], probabilities[t], got[t] = arm, 1.0 / best.size, rewards[t, arm]
        totals[arm] += rewards[t, arm]
        counts[arm] += 1.0
    return arms, probabilities, got


@jit
def greedy_mixed(totals: np.ndarray, counts: np.ndarray, epsilon: float) -> np.ndarray:
    """epsilon / K each, the rest on the arms with the best mean (0 for an arm never learnt).

    >>> greedy_mixed(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 0.2)
    array([0.9, 0.1])
    """
    means = np.zeros(counts.size)
    for arm in range(counts.size):
        if counts[arm] > 0.0:
            means[arm] = totals[arm] / counts[arm]
    return (1.0 - epsilon) * tied_probabilities(means) + epsilon / counts.size


@jit
def decayed(epsilon: float, decay: float, n_learnt: int) -> float:
    """epsilon_t = epsilon t^-decay, with t - 1 rewards learnt.

    >>> decayed(0.5, 1.0, 4)
    0.1
    """
    return float(epsilon * (n_learnt + 1.0) ** -decay)


@jit_block
def greedy_play(
    totals: np.ndarray,
    counts: np.ndarray,
    epsilon: float,
    decay: float,
    n_learnt: int,
    rewards: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Epsilon-greedy over a block of rounds: arms, probabilities, rewards.

    >>> greedy_play(np.zeros(1), np.zeros(1), 0.1, 0.0, 0, np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        p = greedy_mixed(totals, counts, decayed(epsilon, decay, n_learnt + t))
        arm = draw(p, rng.random())
        arms[t], probabilities[t], got[t] = arm, p[arm], rewards[t, arm]
        totals[arm] += rewards[t, arm]
        counts[arm] += 1.0
    return arms, probabilities, got


@jit
def beta_winner(successes: np.ndarray, failures: np.ndarray, rng: np.random.Generator) -> int:
    """The arm with the largest draw from its Beta(successes, failures).

    >>> beta_winner(np.array([1.0, 1e6]), np.array([1e6, 1.0]), np.random.default_rng(1))
    1
    """
    sampled = np.empty(successes.size)
    for arm in range(successes.size):
        sampled[arm] = rng.beta(successes[arm], failures[arm])
    best = best_arms(sampled)
    return int(best[0]) if best.size == 1 else int(best[int(rng.random() * best.size)])


@jit
def beta_frequencies(successes: np.ndarray, failures: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """How often each arm wins, over ``draws`` posterior draws.

    >>> beta_frequencies(np.array([1.0, 1e6]), np.array([1e6, 1.0]), 8, np.random.default_rng(1))
    array([0., 1.])
    """
    wins = np.zeros(successes.size)
    for _ in range(draws):
        wins[beta_winner(successes, failures, rng)] += 1.0
    return wins / draws


@jit
def beta_choose(successes: np.ndarray, failures: np.ndarray, draws: int, rng: np.random.Generator) -> tuple[int, float]:
    """The winner of one draw and NaN, or an arm drawn from the frequencies of several and its frequency.

    >>> beta_choose(np.array([1.0, 1e6]), np.array([1e6, 1.0]), 8, np.random.default_rng(1))
    (1, 1.0)
    """
    if draws == 1:
        return beta_winner(successes, failures, rng), np.nan
    p = beta_frequencies(successes, failures, draws, rng)
    arm = draw(p, rng.random())
    return arm, p[arm]


@jit_block
def beta_play(
    successes: np.ndarray, failures: np.ndarray, draws: int, rewards: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Beta Thompson sampling over a block of rounds: arms, probabilities (NaN if draws is 1), rewards.

    >>> beta_play(np.ones(1), np.ones(1), 2, np.ones((2, 1)), np.random.default_rng(1))
    (array([0, 0]), array([1., 1.]), array([1., 1.]))
    """
    T = len(rewards)
    arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
    for t in range(T):
        arm, p = beta_choose(successes, failures, draws, rng)
        arms[t], probabilities[t], got[t] = arm, p, rewards[t, arm]
        successes[arm] += rewards[t, arm]
        failures[arm] += 1.0 - rewards[t, arm]
    return arms, probabilities, got
