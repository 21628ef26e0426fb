"""ILoveToConBandits against the naive coordinate descent over all rounds, and its constraints after each epoch."""

# mypy: disable-error-code="arg-type"

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import armwise as aw
from tests.agents.oracle.oracle_worlds import planted


class Naive:
    """Agarwal et al. 2014 in loops: every round kept, every policy asked, nothing updated incrementally."""

    def __init__(self, table, K, delta, taus):
        self.table, self.K, self.delta, self.taus = table, K, delta, set(taus)
        self.N = table.shape[1]
        self.Q, self.leader, self.mu, self.rounds, self.calls = np.zeros(self.N), 0, 1 / (2 * K), [], 0

    def probabilities(self, i):
        p = np.zeros(self.K)
        for h in range(self.N):
            p[self.table[i, h]] += self.Q[h]
        p[self.table[i, self.leader]] += 1 - self.Q.sum()
        return (1 - self.K * self.mu) * p + self.mu

    def learn(self, i, arm, reward, p):
        self.rounds.append((i, arm, reward / p))
        if len(self.rounds) in self.taus:
            self.solve(len(self.rounds))

    def solve(self, tau):
        K, N = self.K, self.N
        self.mu = min(1 / (2 * K), math.sqrt(math.log(16 * tau**2 * N / self.delta) / (K * tau)))
        R = [sum(e for i, a, e in self.rounds if self.table[i, h] == a) / tau for h in range(N)]
        self.leader, self.calls = int(np.argmax(R)), self.calls + 1
        b = (max(R) - np.array(R)) / (100 * self.mu)
        while True:
            total = sum(self.Q * (2 * K + b))
            if total > 2 * K:
                self.Q = self.Q * (2 * K / total)
            V, S = np.zeros(N), np.zeros(N)
            for i, _, _ in self.rounds:
                W = np.zeros(K)
                np.add.at(W, self.table[i], self.Q)
                W = (1 - K * self.mu) * W + self.mu
                V += 1 / W[self.table[i]] / tau
                S += 1 / W[self.table[i]] ** 2 / tau
            D = V - (2 * K + b)
            h, self.calls = int(np.argmax(D)), self.calls + 1
            if D[h] <= 0:
                return
            self.Q[h] += (V[h] + D[h]) / (2 * (1 - K * self.mu) * S[h])


@pytest.mark.parametrize(("epochs", "taus"), [(2.0, [1, 2, 4, 8, 16, 32, 64, 128, 256]), ([5, 40, 300], [5, 40, 300])])
def test_every_round_as_the_naive_descent(epochs, taus):
    world = planted(n_contexts=12, N=15, K=3, seed=1)
    agent = aw.ILoveToConBandits(
        aw.FinitePolicies(world.table), n_arms=3, delta=0.1, epochs=epochs, psi=100.0, scale=1.0, baseline=False, seed=1
    )
    naive = Naive(world.table, 3, 0.1, taus)
    contexts, rewards = world.rounds(320, seed=2)
    for x, row in zip(contexts, rewards):
        np.testing.assert_allclose(agent.probabilities(x), naive.probabilities(int(x[0])), atol=1e-9)
        choice = agent.choose(x)
        agent.learn(x, choice, row[choice.arm])
        naive.learn(int(x[0]), choice.arm, row[choice.arm], choice.probability)
    assert agent.oracle_calls == naive.calls
    assert agent.weights == pytest.approx({h: q for h, q in enumerate(naive.Q) if q > 0})


@pytest.mark.parametrize(("N", "K", "agree"), [(40, 2, 0.0), (200, 5, 0.0), (500, 10, 0.0), (200, 5, 0.8)])
def test_both_constraints_hold_after_each_epoch(N, K, agree):
    world = planted(n_contexts=60, N=N, K=K, seed=N, agree=agree)
    agent = aw.ILoveToConBandits.theoretical(aw.FinitePolicies(world.table), n_arms=K, seed=1)
    contexts, rewards = world.rounds(4096, seed=3)
    estimates = np.zeros((60, K))
    counts = np.zeros(60)
    for t, (x, row) in enumerate(zip(contexts, rewards), 1):
        choice = agent.choose(x)
        agent.learn(x, choice, row[choice.arm])
        counts[int(x[0])] += 1
        estimates[int(x[0]), choice.arm] += row[choice.arm] / choice.probability
        if t & (t - 1) == 0:
            Q = np.zeros(N)
            Q[list(agent.weights)] = list(agent.weights.values())
            assert Q.min() >= 0
            assert Q.sum() <= 1 + 1e-12
            R = np.take_along_axis(estimates, world.table, axis=1).sum(axis=0) / t
            b = (R.max() - R) / (100 * agent.mu)
            assert Q @ b <= 2 * K + 1e-9
            W = np.zeros((60, K))
            for h in agent.weights:
                W[np.arange(60), world.table[:, h]] += Q[h]
            V = (counts / t) @ np.take_along_axis(1 / ((1 - K * agent.mu) * W + agent.mu), world.table, axis=1)
            assert np.all(V - b <= 2 * K + 1e-9)
            assert agent.leader == np.flatnonzero(R.max() - R <= 1e-9)[0]
    assert len(agent.weights) <= agent.oracle_calls
    assert agent.leader == world.best


def test_oracle_calls_grow_like_the_root_of_the_rounds():
    """A failure would mean calls that grow with T itself (exponent 1): the benchmark fits it up to T = 50,000."""
    world = planted(n_contexts=100, N=300, K=5, seed=5)
    agent = aw.ILoveToConBandits.theoretical(aw.FinitePolicies(world.table), n_arms=5, seed=1)
    calls = []
    for block in range(2):
        agent.play(*world.rounds(500 if block == 0 else 7500, seed=block))
        calls.append(agent.oracle_calls)
    assert math.log(calls[1] / calls[0]) / math.log(16) < 0.7


@pytest.mark.parametrize(
    "oracle",
    [
        aw.LinearOracle(dim=2, lam=0.5),
        aw.ClassifierOracle(LogisticRegression()),
        aw.RegressorOracle(Ridge()),
    ],
    ids=["linear", "classifier", "regressor"],
)
def test_learnt_oracles_find_a_good_linear_policy(oracle):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1024, 2))
    rewards = 0.1 + 0.8 * (np.column_stack([X[:, 0], -X[:, 0], X[:, 1]]).argmax(axis=1)[:, None] == np.arange(3))
    agent = aw.ILoveToConBandits(oracle, n_arms=3, epochs=4.0, seed=1)
    agent.play(X, rewards)
    earned = rewards[np.arange(1024), agent.oracle._ask(agent.leader, X)].mean()
    assert earned > 0.75  # uniform arms earn 0.37, the best policy 0.9
    assert abs(sum(agent.weights.values())) <= 1 + 1e-12
    p = agent.probabilities(X[0])
    assert p.min() >= agent.mu
    assert abs(p.sum() - 1) < 1e-12


def test_bad_arguments():
    for make in (
        lambda: aw.ILoveToConBandits("tree", n_arms=2),
        lambda: aw.ILoveToConBandits([aw.Constant(0)], n_arms=0),
        lambda: aw.ILoveToConBandits([aw.Constant(0)], n_arms=2, delta=0.0),
        lambda: aw.ILoveToConBandits([aw.Constant(0)], n_arms=2, epochs=[3, 2]),
        lambda: aw.ILoveToConBandits(np.array([[0, 3]]), n_arms=2),
    ):
        with pytest.raises(ValueError):
            make()
