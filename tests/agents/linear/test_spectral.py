"""SpectralUCB against its definition: eigenvectors of the Laplacian as features, explicit inverse, full history."""

# mypy: disable-error-code="misc"

import math

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array, eye_array, kron

import armwise as aw
from armwise.agents.linear.spectral import effective_dimension
from armwise.core import saving
from armwise.models.eigenbasis import smoothest
from tests.agents.linear.follow import same_future, ties


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
    agent = aw.SpectralUCB.theoretical(laplacian, 400, lam=lam, delta=0.1, noise=0.1, norm=0.5, seed=1)
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
    agent = aw.SpectralUCB.theoretical(laplacian, 20_000, lam=1e-4, noise=0.1, seed=1)
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
    assert saving.dumps(agent) == saving.dumps(loop)
    same_future(agent, saving.loads(saving.dumps(agent)), None, rewards[100:])


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
        agent = aw.SpectralUCB.theoretical(ring, T, lam=lam, delta=0.1, noise=R, norm=norm, seed=seed)
        played = agent.play(None, rewards)
        regret = float(T * f.max() - f[played.arms].sum())
        d = agent.effective_dimension
        assert regret < agent.theory.regret_bound(T=T, d=d, R=R, C=norm, lam=lam, delta=0.1)
        assert regret < 0.25 * T * (f.max() - f.mean())


def test_the_default_is_practical():
    """On a smooth world the paper's width explores nearly all the time; the default has a fifth of its regret."""
    n, T = 100, 1000
    ring = 10 * (2 * np.eye(n) - np.roll(np.eye(n), 1, axis=0) - np.roll(np.eye(n), -1, axis=0))
    f = 0.5 + 0.4 * np.cos(2 * np.pi * np.arange(n) / n)
    regrets = []
    for make in (aw.SpectralUCB, aw.SpectralUCB.theoretical):
        total = 0.0
        for seed in range(3):
            rewards = f + 0.3 * np.random.default_rng(seed).normal(size=(T, n))
            total += float(T * f.max() - f[make(ring, T, seed=seed).play(None, rewards).arms].sum())
        regrets.append(total / 3)
    assert regrets[0] < 0.2 * regrets[1]


def grid(side):
    """The Laplacian of a side by side grid, sparse."""
    line = diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side)).tolil()
    line[0, 0] = line[-1, -1] = 1.0
    return csr_array(kron(line, eye_array(side)) + kron(eye_array(side), line))


def random_regular(n, degree, seed=0):
    """The Laplacian of a random graph, whose factor would not be sparse."""
    rng = np.random.default_rng(seed)
    ends = np.concatenate([np.stack([np.arange(n), rng.permutation(n)]) for _ in range(degree // 2)], axis=1)
    adjacency = csr_array((np.ones(ends.shape[1]), tuple(ends)), shape=(n, n))
    adjacency = adjacency + adjacency.T
    return csr_array(diags_array(adjacency.sum(axis=1)) - adjacency)


@pytest.mark.parametrize("laplacian", [grid(20), random_regular(500, 6)], ids=["grid", "random"])
def test_a_sparse_graph_has_the_smoothest_eigenvectors(laplacian, monkeypatch):
    if laplacian.shape[0] == 500:
        monkeypatch.setattr("armwise.models.eigenbasis.MAX_ENVELOPE", 0.0)
    values, Q = smoothest(laplacian, 20)
    exact = np.linalg.eigvalsh(laplacian.toarray())[:20]
    assert np.abs(Q.T @ Q - np.eye(20)).max() < 1e-9
    assert np.abs(Q.T @ (laplacian @ Q) - np.diag(values)).max() < 1e-9
    assert (values >= exact - 1e-9).all()
    assert values == pytest.approx(exact, abs=1e-9 if laplacian.shape[0] == 400 else 0.2)


def test_the_reduced_basis_is_the_full_one_without_its_roughest_part():
    """With all eigenvectors the sparse graph plays as the dense one; with few, a smooth function is learnt as well."""
    laplacian, T, rng = grid(12), 300, np.random.default_rng(1)
    f = np.linalg.eigh(laplacian.toarray())[1][:, 1] * 5
    rewards = f + 0.1 * rng.normal(size=(T, 144))
    dense, sparse, few = (
        aw.SpectralUCB(matrix, T, noise=0.1, basis=basis, seed=1).play(None, rewards)
        for matrix, basis in ((laplacian.toarray(), None), (laplacian, 144), (laplacian, 12))
    )
    assert np.array_equal(dense.arms, sparse.arms)
    assert T * f.max() - f[few.arms].sum() <= T * f.max() - f[dense.arms].sum()


def test_a_large_graph_fits():
    """10,000 nodes as a sparse matrix: no (n, n) array is made, and a smooth function's best nodes are found."""
    laplacian, T = grid(100), 200
    place = np.arange(100) / 99
    f = (np.cos(np.pi * place)[:, None] + np.cos(np.pi * place)[None]).ravel() / 2
    agent = aw.SpectralUCB(laplacian, T, noise=0.1, basis=20, seed=1)
    assert agent._basis.shape == (10_000, 20)
    rng, got = np.random.default_rng(1), []
    for _ in range(T):
        choice = agent.choose()
        got.append(f[choice.arm])
        agent.learn(None, choice, float(f[choice.arm] + 0.1 * rng.normal()))
    assert np.mean(got[-50:]) > 0.9
    again = saving.loads(saving.dumps(agent))
    assert np.array_equal(again._scores(None), agent._scores(None))


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
    ("argument", "value"),
    [("horizon", 0), ("lam", 0.0), ("delta", 1.0), ("noise", -1), ("norm", np.inf), ("scale", -1), ("basis", 3)],
)
def test_bad_parameters_are_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        aw.SpectralUCB(np.eye(2), **({"horizon": 10} | {argument: value}))
