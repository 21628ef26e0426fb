"""SpectralUCB against its definition: eigenvectors of the Laplacian as features, explicit inverse, full history."""

import math

import numpy as np
import pytest
from follow import same_future, ties
from scipy.sparse import csr_array

import armwise as aw
from armwise import persist
from armwise.linear.spectral import effective_dimension


def graph(rng, n, p=0.2):
    edges = np.triu(rng.random((n, n)) < p, 1) * rng.random((n, n))
    W = edges + edges.T
    return np.diag(W.sum(axis=1)) - W


class Naive:
    def __init__(self, laplacian, T, lam, delta, R, C):
        eigenvalues, self.Q = np.linalg.eigh(laplacian)
        self.V, self.b = np.diag(eigenvalues) + lam * np.eye(len(laplacian)), np.zeros(len(laplacian))
        d = max(
            d for d in range(1, len(laplacian) + 1) if (d - 1) * (eigenvalues[d - 1] + lam) <= T / math.log(1 + T / lam)
        )
        self.c = 2 * R * math.sqrt(d * math.log(1 + T / lam) + 2 * math.log(1 / delta)) + C

    def scores(self):
        inverse = np.linalg.inv(self.V)
        return self.Q @ inverse @ self.b + self.c * np.sqrt(np.einsum("ai,ij,aj->a", self.Q, inverse, self.Q))

    def learn(self, arm, reward):
        self.V += np.outer(self.Q[arm], self.Q[arm])
        self.b += reward * self.Q[arm]


@pytest.mark.parametrize("lam", [0.05, 3.0])
def test_every_round_as_the_definition_says(lam):
    rng, n = np.random.default_rng(1), 25
    laplacian = graph(rng, n)
    agent = aw.SpectralUCB(laplacian, 400, lam=lam, delta=0.1, noise=0.1, norm=0.5, seed=1)
    naive, waiting, f = Naive(laplacian, 400, lam, 0.1, 0.1, 0.5), [], rng.random(n)
    for _ in range(400):
        np.testing.assert_allclose(agent._scores(None), naive.scores(), rtol=1e-9)
        np.testing.assert_allclose(agent.probabilities(), ties(naive.scores()))
        choice = agent.choose()
        waiting.append((choice, float(f[choice.arm] + 0.1 * rng.normal())))
        while waiting and rng.random() > 0.5:
            choice, reward = waiting.pop(rng.integers(len(waiting)))
            agent.learn(None, choice, reward)
            naive.learn(choice.arm, reward)


def test_the_scores_do_not_drift():
    """20,000 updates from lam = 1e-4: still the direct solve to 1e-8."""
    rng, n = np.random.default_rng(2), 12
    laplacian = graph(rng, n, 0.5)
    agent = aw.SpectralUCB(laplacian, 20_000, lam=1e-4, noise=0.1, seed=1)
    played = agent.play(None, rng.random((20_000, n)))
    A = laplacian + 1e-4 * np.eye(n) + np.diag(np.bincount(played.arms, minlength=n))
    sums = np.bincount(played.arms, played.rewards, minlength=n)
    expected = np.linalg.solve(A, sums) + agent._c * np.sqrt(np.diag(np.linalg.inv(A)))
    np.testing.assert_allclose(agent._scores(None), expected, rtol=1e-8)


def test_play_equals_the_loop_and_a_reloaded_agent_goes_on():
    rng, n = np.random.default_rng(3), 10
    laplacian, rewards = graph(rng, n, 0.4), rng.random((200, n))
    agent = aw.SpectralUCB(csr_array(laplacian), 200, lam=0.5, seed=1)
    loop = agent.clone(seed=1)
    played = agent.play(None, rewards[:100])
    for t in range(100):
        choice = loop.choose()
        assert (choice.arm, choice.probability) == (played.arms[t], played.probabilities[t])
        loop.learn(None, choice, rewards[t, choice.arm])
    assert persist.dumps(agent) == persist.dumps(loop)
    same_future(agent, persist.loads(persist.dumps(agent)), None, rewards[100:])


def test_effective_dimension_by_its_definition():
    rng = np.random.default_rng(4)
    for _ in range(50):
        values, T, lam = rng.exponential(5.0, 30), int(rng.integers(1, 5000)), float(rng.exponential())
        by_hand = [d for d in range(1, 31) if (d - 1) * (np.sort(values)[d - 1] + lam) <= T / math.log(1 + T / lam)]
        assert effective_dimension(values, T, lam) == max(by_hand)


def test_a_smooth_world_is_learnt_within_the_bound():
    """Smooth rewards on a 60-node ring: regret below the bound, and below a quarter of uniform play's."""
    n, T, R, lam = 60, 2000, 0.1, 0.1
    ring = 100 * (2 * np.eye(n) - np.roll(np.eye(n), 1, axis=0) - np.roll(np.eye(n), -1, axis=0))
    f = 0.5 + 0.4 * np.cos(2 * np.pi * np.arange(n) / n)
    norm = math.sqrt(f @ (ring + lam * np.eye(n)) @ f)
    for seed in range(3):
        rewards = f + R * np.random.default_rng(seed).normal(size=(T, n))
        agent = aw.SpectralUCB(ring, T, lam=lam, delta=0.1, noise=R, norm=norm, seed=seed)
        played = agent.play(None, rewards)
        regret = float(T * f.max() - f[played.arms].sum())
        d = agent.effective_dimension
        assert regret < agent.theory.regret_bound(T=T, d=d, R=R, C=norm, lam=lam, delta=0.1)
        assert regret < 0.25 * T * (f.max() - f.mean())


@pytest.mark.parametrize(
    ("laplacian", "message"),
    [
        (np.ones(3), "laplacian must have shape"),
        (np.ones((2, 3)), "laplacian must have shape"),
        (np.zeros((0, 0)), "laplacian must have shape"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "laplacian must be finite"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "laplacian must be symmetric"),
        (-np.eye(2), "laplacian must have no negative eigenvalue"),
        ("graph", "laplacian must be an array of numbers"),
    ],
)
def test_a_matrix_that_is_no_laplacian_is_refused(laplacian, message):
    with pytest.raises(ValueError, match=message):
        aw.SpectralUCB(laplacian, 10)


@pytest.mark.parametrize(
    ("argument", "value"), [("horizon", 0), ("lam", 0.0), ("delta", 1.0), ("noise", -1), ("norm", np.inf)]
)
def test_bad_parameters_are_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        aw.SpectralUCB(np.eye(2), **({"horizon": 10} | {argument: value}))
