"""CoFineUCB against its formulas with explicit inverses and the full history."""

# mypy: disable-error-code="misc"

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from tests.agents.linear.follow import follow, regret, same_future, ties, unit_rows


class Naive:
    def __init__(self, U, lam, lam_coarse, alpha, alpha_coarse):
        self.U, self.lam, self.lam_coarse, self.alpha, self.alpha_coarse = U, lam, lam_coarse, alpha, alpha_coarse
        self.rows, self.rewards = [], []

    def decide(self, X):
        d, k = self.U.shape
        D, c = np.array(self.rows).reshape(-1, d), np.array(self.rewards)
        Z = D @ self.U
        M_coarse = np.linalg.inv(self.lam_coarse * np.eye(k) + Z.T @ Z)
        M = np.linalg.inv(self.lam * np.eye(d) + D.T @ D)
        w_coarse = M_coarse @ Z.T @ c
        w = M @ (D.T @ c + self.lam * self.U @ w_coarse)
        pulled = X @ M @ self.U
        fine = np.sqrt(np.einsum("ai,ij,aj->a", X, M, X))
        coarse = np.sqrt(np.einsum("ai,ij,aj->a", pulled, M_coarse, pulled))
        return ties(X @ w + self.alpha * fine + self.alpha_coarse * self.lam * coarse), None

    def learn(self, x, note, reward):
        self.rows.append(x)
        self.rewards.append(reward)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_every_round_as_the_formulas_say(k):
    U = np.random.default_rng(k).normal(size=(5, k))
    settings = {"lam": 0.3, "lam_coarse": 2.0, "alpha": 0.4, "alpha_coarse": 0.7}
    follow(aw.CoFineUCB(5, U, **settings, scale=1.0, seed=1), Naive(U, **settings), 5)


def test_learn_subspace_by_its_definition():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 40)) + 0.1 * rng.normal(size=(6, 40))
    U = aw.CoFineUCB.learn_subspace(W, k=2)
    U0 = np.linalg.svd(W)[0][:, :2]
    W0 = U0.T @ W
    expected = U0 @ np.linalg.cholesky(2 / np.trace(W0 @ W0.T) * W0 @ W0.T)
    assert U.shape == (6, 2)
    np.testing.assert_allclose(U @ U.T, expected @ expected.T, atol=1e-10)  # the signs of singular vectors are free
    assert np.trace(U.T @ U) == pytest.approx(2.0)


def test_saved_and_loaded_it_goes_on_the_same():
    rng = np.random.default_rng(3)
    agent = aw.CoFineUCB(4, rng.normal(size=(4, 2)), 0.5, seed=1)
    contexts, rewards = unit_rows(rng, 600, 4).reshape(200, 3, 4), rng.random((200, 3))
    contexts[:, 1] = contexts[:, 0]
    agent.play(contexts[:100], rewards[:100])
    same_future(agent, saving.loads(saving.dumps(agent)), contexts[100:], rewards[100:])


def test_a_right_subspace_helps_and_the_bound_holds():
    """theta* in a 1-dimensional subspace of R^20: CoFineUCB pays less than LinUCB, and both less than the bound."""
    T, K, dim = 1500, 10, 20
    for seed in range(1, 4):
        theta = unit_rows(np.random.default_rng(seed), 1, dim)[0]  # as the world draws it
        agent = aw.CoFineUCB(dim, theta[:, None], alpha=0.2, alpha_coarse=0.2, scale=1.0, seed=seed)
        mine = regret(agent, seed, T=T, K=K, dim=dim)
        assert mine < 0.7 * regret(aw.LinUCB(dim, alpha=0.2, lam=1.0, seed=seed), seed, T=T, K=K, dim=dim)
        bound = agent.theory.regret_bound(
            T=T, d=dim, L=1.0, U=1.0, lam=1.0, lam_coarse=1.0, alpha=0.2, alpha_coarse=0.2
        )
        assert mine < bound


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("dim", 0),
        ("dim", 5),
        ("lam", 0.0),
        ("lam_coarse", -1.0),
        ("alpha", np.nan),
        ("alpha_coarse", -1),
        ("subspace", np.ones(3)),
        ("subspace", np.ones((2, 1))),
        ("subspace", np.full((3, 1), np.nan)),
        ("subspace", "U"),
    ],
)
def test_bad_parameters_are_named(argument, value):
    name = "subspace" if (argument, str(value)) == ("dim", "5") else argument  # a row too few
    with pytest.raises(ValueError, match=f"^{name} must "):
        aw.CoFineUCB(**({"dim": 3, "subspace": np.ones((3, 1))} | {argument: value}))


@pytest.mark.parametrize(
    ("profiles", "k", "message"),
    [
        (np.ones(3), 1, "profiles must be a matrix"),
        (np.ones((3, 2)), 3, "k must be at most 2"),
        (np.ones((3, 2)), 0, "k must be a whole number"),
        (np.ones((3, 4)), 2, "profiles span fewer than 2 directions"),
        (np.full((3, 4), np.inf), 1, "profiles must be finite"),
    ],
)
def test_bad_profiles_are_named(profiles, k, message):
    with pytest.raises(ValueError, match=message):
        aw.CoFineUCB.learn_subspace(profiles, k)


def test_the_default_earns_what_the_subspace_is_worth():
    """A world whose theta lies near a subspace that past users show: the old ridges of 1 lost as much as LinUCB did."""
    world = aw.environments.Hierarchical(dim=30, subspace_dim=4, residual=0.1)
    U, regret = aw.CoFineUCB.learn_subspace(world.profiles(100), 4), {"cofine": 0.0, "linucb": 0.0}
    for seed in range(10, 14):
        block = next(world.blocks(1000, seed=seed))
        for name, agent in (("cofine", aw.CoFineUCB(30, U, seed=seed)), ("linucb", aw.LinUCB(30, seed=seed))):
            arms = agent.play(block.view("features"), block.rewards).arms
            regret[name] += (block.expected.max(axis=1) - block.expected[np.arange(len(arms)), arms]).sum()
    assert regret["cofine"] < 0.5 * regret["linucb"]
