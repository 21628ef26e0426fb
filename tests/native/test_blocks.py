"""A block in compiled code is the loop: the same arms, the same probabilities, the same state to the bit."""

# mypy: disable-error-code="index"

from collections.abc import Callable

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.core.agent import joined
from armwise.models.ridge import Ridge
from armwise.native import truncated

K, D, T = 6, 5, 240
RNG = np.random.default_rng(7)
X = RNG.normal(size=(T, K, D)) / np.sqrt(D)
SHARED = RNG.normal(size=(T, D)) / np.sqrt(D)
REWARDS = X @ RNG.normal(size=D) + 0.1 * RNG.normal(size=(T, K))
CLICKS = (REWARDS > 0.3).astype(float)
GRADES = np.clip(REWARDS, 0.0, 1.0)
SHOP = X[0][np.random.default_rng(8).permuted(np.tile(np.arange(K), (T, 1)), axis=1)]  # six arms, shuffled
KEYS = [int(key) for key in RNG.integers(9, size=T)]
PRIOR = np.linspace(-0.4, 0.5, D)
SUBSPACE = np.linalg.qr(RNG.normal(size=(D, 2)))[0]
POLICIES = [*(lambda x, i=i: int(50 * abs(x[i])) % K for i in range(D)), lambda x: np.full(K, 1 / K)]
N = len(POLICIES)

CASES: dict[str, tuple[Callable[[], aw.Agent], object, np.ndarray]] = {
    "SupLinUCB": (lambda: aw.SupLinUCB(D, T, seed=1), X, REWARDS),
    "LinREL": (lambda: aw.LinREL(D, T, seed=1), X, REWARDS),
    "SupLinREL": (lambda: aw.SupLinREL(D, T, seed=1), X, REWARDS),
    "SupKernelUCB": (lambda: aw.SupKernelUCB(aw.kernels.RBF(), T, seed=1), SHOP, REWARDS),
    "SupKernelUCB, wide": (lambda: aw.SupKernelUCB(aw.kernels.RBF(), 20 * T, scale=0.1, seed=1), SHOP, REWARDS),
    "SupKernelUCB, changing arms": (lambda: aw.SupKernelUCB(aw.kernels.RBF(), T, seed=1), X[:60], REWARDS[:60]),
    "SupKernelUCB, a budget": (lambda: aw.SupKernelUCB(aw.kernels.RBF(), T, budget=9, seed=1), X, REWARDS),
    "SupKernelUCB, separate stages": (
        lambda: aw.SupKernelUCB(aw.kernels.RBF(), T, pooled=False, seed=1), SHOP, REWARDS,
    ),
    "CoFineUCB": (lambda: aw.CoFineUCB(D, SUBSPACE, seed=1), X, REWARDS),
    "LinREL, a prior mean": (lambda: aw.LinREL(D, T, prior_mean=PRIOR, seed=1), X, REWARDS),
    "SupLinREL, a prior mean": (lambda: aw.SupLinREL(D, T, prior_mean=PRIOR, seed=1), X, REWARDS),
    "CoFineUCB, a prior mean": (lambda: aw.CoFineUCB(D, SUBSPACE, prior_mean=PRIOR, seed=1), X, REWARDS),
    "EpsilonGreedy, a ridge": (lambda: aw.EpsilonGreedy(model=Ridge(D), epsilon=0.3, seed=1), X, REWARDS),
    "EpsilonGreedy, a ridge per arm": (
        lambda: aw.EpsilonGreedy(model=Ridge(D, n_models=K), decay=0.3, seed=1), SHARED, REWARDS,
    ),
    "EpsilonGreedy, a ridge that forgets": (
        lambda: aw.EpsilonGreedy(model=Ridge(D, lam=1.0, discount=0.9), seed=1), X, REWARDS,
    ),
    "Explore, LinUCB": (lambda: aw.Explore(aw.LinUCB(D), 0.2, seed=1), X, REWARDS),
    "Explore, LinThompson": (lambda: aw.Explore(aw.LinThompson(D), 0.2, seed=1), X, REWARDS),
    "Explore, LogisticThompson": (lambda: aw.Explore(aw.LogisticThompson(D), 0.2, seed=1), X, CLICKS),
    "LinThompson, wins of 3 draws": (lambda: aw.LinThompson(D, draws=3, seed=1), X, REWARDS),
    "LinThompson, exact chances": (lambda: aw.LinThompson(D, n_arms=K, draws=3, seed=1), SHARED, REWARDS),
    "LinThompson, two arms that fade": (
        lambda: aw.LinThompson(D, 0.3, 1.0, discount=0.9, draws=2, seed=1), X[:, :2], REWARDS[:, :2],
    ),
    "LogisticThompson, wins of 3 draws": (lambda: aw.LogisticThompson(D, draws=3, seed=1), X, CLICKS),
    "LogisticThompson, exact chances": (
        lambda: aw.LogisticThompson(K, draws=3, seed=1), np.tile(np.eye(K), (T, 1, 1)) * X[:, :, :1], CLICKS,
    ),
    "LogisticThompson, batches": (
        lambda: aw.LogisticThompson(D, batch_size=7, draws=3, seed=1), X[:, :2], CLICKS[:, :2],
    ),
    "Explore, UCB1": (lambda: aw.Explore(aw.UCB1(K), 0.2, seed=1), None, CLICKS),
    "Explore, SupLinUCB": (lambda: aw.Explore(aw.SupLinUCB(D, T), 0.2, seed=1), X, REWARDS),
    "Explore, SquareCB": (lambda: aw.Explore(aw.SquareCB(dim=D), 0.2, seed=1), X, CLICKS),
    "PolicyArms, Exp3": (lambda: aw.PolicyArms(aw.Exp3(N), POLICIES, K, seed=1), SHARED, CLICKS),
    "PolicyArms, UCB1": (lambda: aw.PolicyArms(aw.UCB1(N), POLICIES, seed=1), SHARED, CLICKS),
    "PolicyArms, EpsilonGreedy": (
        lambda: aw.PolicyArms(aw.EpsilonGreedy(N, 0.5, decay=0.3), POLICIES, K, seed=1), SHARED, CLICKS,
    ),
    "PolicyArms, BetaThompson": (lambda: aw.PolicyArms(aw.BetaThompson(N), POLICIES, K, seed=1), SHARED, CLICKS),
    "PolicyArms, BetaThompson, exact chances": (
        lambda: aw.PolicyArms(aw.BetaThompson(N, draws=2), POLICIES, K, seed=1), SHARED, CLICKS,
    ),
    "BetaThompson": (lambda: aw.BetaThompson(K, seed=1), None, CLICKS),
    "BetaThompson, exact chances": (lambda: aw.BetaThompson(K, (0.3, 2.0), draws=2, seed=1), None, GRADES),
    "PolicyArms, features": (
        lambda: aw.PolicyArms(aw.Exp3(2), [lambda x: int(x[:, 0].argmax()), lambda x: 0], sees="features", seed=1),
        X, CLICKS,
    ),
    "PerContext, UCB1": (lambda: aw.PerContext(aw.UCB1(K, seed=2), seed=1), KEYS, CLICKS),
    "PerContext, BetaThompson": (lambda: aw.PerContext(aw.BetaThompson(K, draws=2, seed=2), seed=1), KEYS, GRADES),
    "PerContext, Exp3": (lambda: aw.PerContext(aw.Exp3(K, seed=2), seed=1), KEYS, CLICKS),
}  # fmt: skip


def learnt(agent: aw.Agent) -> bytes:
    """All that it has learnt, to the byte; policies are functions, which no file can hold."""
    if isinstance(agent, aw.PolicyArms):
        return saving.dumps(agent.agent) + repr(agent._rng.bit_generator.state).encode()
    return saving.dumps(agent)


@pytest.mark.parametrize("name", CASES)
def test_a_block_is_the_loop(name):
    make, contexts, rewards = CASES[name]
    block, loop = make(), make()
    assert block.compiled
    n = len(rewards)
    parts = [
        block.play(contexts if contexts is None else contexts[now], rewards[now])
        for now in (slice(n // 3), slice(n // 3, n))
    ]
    played = joined(parts)
    for t in range(n):
        context = None if contexts is None else contexts[t]
        choice = loop.choose(context)
        assert choice.arm == played.arms[t], t
        assert choice.probability == played.probabilities[t] or (
            choice.probability is None and np.isnan(played.probabilities[t])
        ), t
        assert played.rewards[t] == rewards[t, choice.arm]
        loop.learn(context, choice, rewards[t, choice.arm])
    assert loop.t == block.t == n + 1
    assert learnt(loop) == learnt(block)


def test_rows_that_are_nearly_one_another_have_eigenvectors():
    """All but one eigenvalue are rounding. Steps that ask for their last digits do not end: a real set of collinear
    columns was refused as an overflow."""
    for seed in (45, 169):
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(10, 120)), int(rng.integers(3, 300))
        rows = rng.random((n, 1)) * (1.0 + 1e-8 * rng.normal(size=(n, d)))
        gram = rows.T @ rows
        basis, k, theta = truncated.decompose(gram, gram @ np.ones(d))
        assert k == d - 1
        np.testing.assert_allclose(gram @ theta, gram @ np.ones(d), rtol=1e-9)
        np.testing.assert_allclose(basis[:, :k].T @ basis[:, :k], np.eye(k), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 7, 40])
def test_eigenvectors_are_lapacks(d):
    rows = np.random.default_rng(d).normal(size=(max(1, d // 2), d))
    for gram in (
        rows.T @ rows,
        1e290 * np.eye(d),
        np.zeros((d, d)),
        np.diag(np.arange(d) / 2.0),
        1e-3 * np.ones((d, d)),
    ):
        b = gram @ np.ones(d)
        basis, k, theta = truncated.decompose(gram, b)
        values, vectors = np.linalg.eigh(gram)
        assert k == np.searchsorted(values, 1.0 - 1e-9)
        kept = vectors[:, k:] / np.sqrt(values[k:])
        inverse, size = kept @ kept.T, max(1.0, float(np.abs(values).max()))
        np.testing.assert_allclose(basis[:, k:] @ basis[:, k:].T, inverse, atol=1e-12 * max(1.0, np.abs(inverse).max()))
        np.testing.assert_allclose(basis[:, :k] @ basis[:, :k].T, vectors[:, :k] @ vectors[:, :k].T, atol=1e-12)
        np.testing.assert_allclose(theta, inverse @ b, atol=1e-11 * size * max(1.0, np.abs(inverse).max()))
