"""Follow an agent round by round beside a naive reference that keeps the whole history and inverts matrices."""

import numpy as np


def unit_rows(rng, K, d):
    X = rng.normal(size=(K, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def ties(scores):
    """Uniform over the scores within 1e-9 of the largest: the reference's own rounding differs from the agent's."""
    best = scores >= scores.max() - 1e-9
    return best / best.sum()


def follow(agent, reference, dim, *, rounds=300, seed=0, noise=0.1, delay=0.5):
    """The agent's distribution, arm and note equal the reference's every round.

    K changes every round; rewards come late (a share ``delay`` of the rounds brings none) and in shuffled order.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=dim) / np.sqrt(dim)
    waiting = []
    for _ in range(rounds):
        X = unit_rows(rng, rng.integers(1, 7), dim)
        expected, note = reference.decide(X)
        np.testing.assert_allclose(agent.probabilities(X), expected, atol=1e-12)
        choice = agent.choose(X)
        assert choice.probability == expected[choice.arm]
        assert choice.note == note
        waiting.append((X, choice, float(X[choice.arm] @ theta + noise * rng.normal())))
        while waiting and rng.random() > delay:
            X, choice, reward = waiting.pop(rng.integers(len(waiting)))
            agent.learn(X, choice, reward)
            reference.learn(X[choice.arm], choice.note, reward)


def regret(agent, world_seed, *, T, K, dim, noise=0.1):
    """Regret of a run on a linear world with unit vectors for features and ||theta|| = 1/2."""
    rng = np.random.default_rng(world_seed)
    theta = unit_rows(rng, 1, dim)[0] / 2
    X = unit_rows(rng, T * K, dim).reshape(T, K, dim)
    means = X @ theta
    played = agent.play(X, means + noise * rng.normal(size=(T, K)))
    return float((means.max(axis=1) - means[np.arange(T), played.arms]).sum())


def same_future(agent, other, contexts, rewards):
    """Both play the same arms with the same probabilities from here on."""
    mine, theirs = agent.play(contexts, rewards), other.play(contexts, rewards)
    np.testing.assert_array_equal(mine.arms, theirs.arms)
    np.testing.assert_array_equal(mine.probabilities, theirs.probabilities)
