"""LogisticThompson against SciPy's optimiser, batch by batch, and against its own dense self on sparse rows."""

# mypy: disable-error-code="arg-type"

import copy

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, lil_matrix, random_array

import armwise as aw
from armwise.core import saving
from armwise.core.agent import Choice
from tests.agents.linear.follow import same_future


def sigmoid(s):
    return 1.0 / (1.0 + np.exp(-s))


class Naive:
    """Algorithm 5 with dense vectors: each batch by a general-purpose minimiser, from scratch."""

    def __init__(self, dim, lam, batch_size):
        self.m, self.q, self.size, self.batch = np.zeros(dim), np.full(dim, lam), batch_size, []

    def learn(self, x, reward):
        self.batch.append((x, reward))
        if len(self.batch) == self.size:
            X, r = np.array([x for x, _ in self.batch]), np.array([r for _, r in self.batch])
            # A reward between 0 and 1 is a pair of labels y = +1 and y = -1 of weights r and 1 - r.
            Xs, y, weight = np.vstack([X, X]), np.repeat([1.0, -1.0], len(r)), np.concatenate([r, 1 - r])

            def loss(w):
                margin = y * (Xs @ w)
                value = 0.5 * self.q @ (w - self.m) ** 2 + weight @ np.logaddexp(0.0, -margin)
                return value, self.q * (w - self.m) - Xs.T @ (weight * y * sigmoid(-margin))

            def curvature(w):
                p = sigmoid(X @ w)
                return np.diag(self.q) + (X.T * (p * (1 - p))) @ X

            best = minimize(loss, self.m, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-11})
            p = sigmoid(X @ best.x)
            self.m, self.q = best.x, self.q + (X**2).T @ (p * (1 - p))
            self.batch = []


@pytest.mark.parametrize("batch_size", [1, 4, 25])
@pytest.mark.parametrize("soft", [False, True], ids=["clicks", "shares"])
def test_every_round_and_batch_as_algorithm_5_says(batch_size, soft):
    rng, dim, lam = np.random.default_rng(1), 8, 0.3
    agent, naive = aw.LogisticThompson(dim, lam, batch_size, scale=1.0, seed=1), Naive(dim, lam, batch_size)
    w_star, waiting = rng.normal(size=dim), []
    for _ in range(150):
        X = rng.normal(size=(rng.integers(1, 6), dim)) * (rng.random(dim) < 0.6)
        used = np.flatnonzero(X.any(axis=0))
        w = np.zeros(dim)
        w[used] = naive.m[used] + copy.deepcopy(agent._rng).standard_normal(len(used)) / np.sqrt(naive.q[used])
        scores = X @ w
        choice = agent.choose(X)
        assert choice.probability is None
        assert scores[choice.arm] >= scores.max() - 1e-6
        p = sigmoid(X[choice.arm] @ w_star)
        waiting.append((X, choice, float(p if soft else rng.random() < p)))
        while waiting and rng.random() > 0.5:
            X, choice, reward = waiting.pop(rng.integers(len(waiting)))
            agent.learn(X, choice, reward)
            naive.learn(X[choice.arm], reward)
        np.testing.assert_allclose(agent.m, naive.m, atol=1e-7)
        np.testing.assert_allclose(agent.q, naive.q, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_fit_is_a_stationary_point_whatever_the_scale(scale):
    """300 rows in 200 dimensions, separable or not: the gradient vanishes next to the terms that cancel in it."""
    rng = np.random.default_rng(2)
    X = scale * random_array((300, 200), density=0.1, rng=rng).toarray()
    r = (rng.random(300) < 0.5).astype(float)
    agent = aw.LogisticThompson(200, 0.5, 300)
    for j in range(300):
        agent.learn(X[j : j + 1], Choice(0, None), r[j])
    push = X.T @ (r - sigmoid(X @ agent.m))
    np.testing.assert_allclose(0.5 * agent.m, push, atol=1e-9 * np.abs(X).sum(axis=0).max())
    assert np.abs(push).max() > 0


def test_only_the_non_zero_coordinates_are_touched():
    """Every other coordinate holds NaN: one read of any of them would show in the scores or the fit."""
    dim, used = 2**18, np.array([3, 77, 2**17, 2**18 - 1])
    agent = aw.LogisticThompson(dim, batch_size=2, draws=3, seed=1)
    agent.m[:], agent.q[:] = np.nan, np.nan
    agent.m[used], agent.q[used] = 0.0, 1.0
    X = csr_array(([1.0, 2.0, 3.0, 1.0, 1.0], ([0, 0, 1, 1, 2], [3, 77, 77, 2**17, 2**18 - 1])), shape=(3, dim))
    for _ in range(10):
        choice = agent.choose(X)
        agent.learn(X, choice, 1.0)
    assert np.isfinite(agent.m[used]).all()
    assert agent.m[used].max() > 0
    assert np.isnan(agent.m).sum() == np.isnan(agent.q).sum() == dim - 4


def hashed(rng, K, dim=64):
    X = np.zeros((K, dim))
    for a in range(K):
        X[a, rng.integers(0, dim, 5)] = rng.normal(size=5)
    return X


def messy(X):
    """The same matrix with entries split in two, and explicit zeros."""
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    data = np.concatenate([0.25 * values, 0.75 * values, np.zeros(3)])
    at = (np.concatenate([rows, rows, [0, 0, 0]]), np.concatenate([columns, columns, [1, 2, 3]]))
    return csr_array(coo_array((data, at), shape=X.shape))


@pytest.mark.parametrize("form", [csr_array, csc_array, coo_array, csr_matrix, lil_matrix, messy])
def test_sparse_rows_give_what_dense_rows_give(form):
    rng = np.random.default_rng(3)
    dense, sparse = (aw.LogisticThompson(64, 0.5, 3, draws=draws, seed=1) for draws in (2, 2))
    for _ in range(30):
        X = hashed(rng, rng.integers(1, 5))
        given = form(X)
        np.testing.assert_array_equal(dense.probabilities(X), sparse.probabilities(given))
        mine, theirs = dense.choose(X), sparse.choose(given)
        assert mine == theirs
        dense.learn(X, mine, 1.0)
        sparse.learn(given, theirs, 1.0)
        np.testing.assert_allclose(given.toarray(), X, rtol=1e-15)
    np.testing.assert_allclose(dense.m, sparse.m, rtol=1e-12)


def test_an_unsorted_row_with_duplicates_is_read_and_left_as_it_was():
    X = csr_array((np.array([1.0, 2.0, 4.0]), np.array([5, 1, 5]), np.array([0, 3])), shape=(1, 8))
    agent = aw.LogisticThompson(8, seed=1)
    agent.learn(X, agent.choose(X), 1.0)
    assert agent.m[5] == pytest.approx(2.5 * agent.m[1])
    np.testing.assert_array_equal(X.indices, [5, 1, 5])
    np.testing.assert_array_equal(X.data, [1.0, 2.0, 4.0])


def test_a_shared_feature_has_one_draw_a_round():
    """Two arms with the same row always tie, whatever was drawn; a draw an arm would let one of them win."""
    agent = aw.LogisticThompson(4, 0.1, draws=1000, seed=1)
    X = csr_array(np.array([[0.0, 3.0, 0.0, 1.0], [0.0, 3.0, 0.0, 1.0], [0.0, 2.9999, 0.0, 1.0]]))
    p = agent.probabilities(X)
    assert p[2] == pytest.approx(0.5, abs=0.08)  # above the others exactly when the draw of feature 1 is negative
    assert p[0] == pytest.approx(0.25, abs=0.08)


def test_probabilities_change_nothing_and_agree_with_the_choices():
    """4,000 choices against 1,000 draws: the standard deviation of the difference is below 0.018 an arm."""
    rng = np.random.default_rng(5)
    agent = aw.LogisticThompson(64, 0.5, 2, seed=1)
    for _ in range(21):
        agent.learn(hashed(rng, 4), Choice(0, None), float(rng.random() < 0.5))
    X = hashed(rng, 4)
    before = saving.dumps(agent)
    estimate = agent.probabilities(X)
    assert saving.dumps(agent) == before
    chosen = np.bincount([agent.choose(X).arm for _ in range(4000)], minlength=4) / 4000
    np.testing.assert_allclose(chosen, estimate, atol=0.07)


def test_several_draws_tell_what_the_arm_is_drawn_from():
    rng = np.random.default_rng(6)
    agent = aw.LogisticThompson(64, 0.5, draws=8, seed=1)
    for _ in range(50):
        X = hashed(rng, 4)
        p, choice = agent.probabilities(X), agent.choose(X)
        assert choice.probability == p[choice.arm] > 0
        assert p.min() > 0 and p.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_play_with_a_fit_per_round_equals_the_loop_to_the_bit(sparse):
    rng = np.random.default_rng(8)
    contexts, rewards = np.array([hashed(rng, 5) for _ in range(300)]), rng.random((300, 5)).round(1)
    contexts[::4, 1] = contexts[::4, 0]  # ties
    contexts[7] = 0.0
    block = [csr_array(X) for X in contexts] if sparse else contexts
    agent = aw.LogisticThompson(64, 0.5, seed=1)
    loop = agent.clone(seed=1)
    played = agent.play(block, rewards)
    for t in range(300):
        choice = loop.choose(block[t])
        assert choice.arm == played.arms[t]
        loop.learn(block[t], choice, rewards[t, choice.arm])
    assert saving.dumps(agent) == saving.dumps(loop)


def test_a_magnitude_that_overflows_is_refused_and_changes_nothing():
    """1e160 squared is infinite: the precision would become NaN, and with it every score."""
    agent = aw.LogisticThompson(2, seed=1)
    agent.learn(np.eye(2), Choice(0, None), 1.0)
    before = saving.dumps(agent)
    large = np.eye(2)
    large[0, 0] = -1e160
    for X in (large, csr_array(large)):
        with pytest.raises(ValueError, match=r"magnitude|overflow"):
            agent.learn(X, Choice(0, None), 1.0)
        with pytest.raises(ValueError, match=r"magnitude|overflow"):
            agent.choose(X)
        with pytest.raises(ValueError, match=r"magnitude|overflow"):
            agent.play([np.eye(2), np.eye(2), X], np.ones((3, 2)))
    assert saving.dumps(agent) == before


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e149])
def test_a_single_row_is_fitted_at_any_scale(scale):
    """The stationary point of one row, s = s0 + v (r - sigmoid(s)), from where Newton's method has far to go."""
    for reward in (0.0, 0.3, 1.0):
        agent = aw.LogisticThompson(2, lam=1.0, seed=1)
        for _ in range(3):
            m, q = agent.m.copy(), agent.q.copy()
            agent.learn(np.array([[scale, -scale]]), Choice(0, None), reward)
            assert np.isfinite(agent.m).all() and (agent.q >= q).all()
            moved = agent.m - m
            s = scale * agent.m[0] - scale * agent.m[1]
            residual = reward * sigmoid(-s) - (1 - reward) * sigmoid(s)
            assert q[0] * moved[0] / scale == pytest.approx(residual, rel=1e-6, abs=1e-12)
            if reward in (0.0, 1.0):  # the residual itself, however small
                assert moved[0] == pytest.approx(scale / q[0] * residual, rel=1e-6, abs=1e-12 / scale)


@pytest.mark.parametrize("draws", [1, 4])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_play_equals_the_loop_and_a_reloaded_agent_goes_on(draws, sparse):
    rng = np.random.default_rng(7)
    contexts, rewards = np.array([hashed(rng, 3) for _ in range(80)]), (rng.random((80, 3)) < 0.5).astype(float)
    contexts[::4, 1] = contexts[::4, 0]
    block = [csr_array(X) for X in contexts] if sparse else contexts
    agent = aw.LogisticThompson(64, 0.5, 7, draws=draws, seed=1)
    loop = agent.clone(seed=1)
    played = agent.play(block[:40], rewards[:40])
    for t in range(40):
        choice = loop.choose(block[t])
        assert choice.arm == played.arms[t]
        assert choice.probability == (None if draws == 1 else played.probabilities[t])
        loop.learn(block[t], choice, rewards[t, choice.arm])
    assert saving.dumps(agent) == saving.dumps(loop)
    assert len(agent._waiting) == 5  # an unfinished batch is saved too
    same_future(agent, saving.loads(saving.dumps(agent)), block[40:], rewards[40:])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (csr_array((2, 5)), r"X must have shape \(K, 4\)"),
        (csr_array((0, 4)), r"X must have shape \(K, 4\)"),
        (csr_array(np.array([[1.0, np.nan, 0.0, 0.0]])), "X must be finite"),
        (csr_array(np.array([[1j, 0, 0, 0]])), "X must be a matrix of numbers"),
        (np.ones((2, 5)), r"X must have shape \(K, 4\)"),
        (np.ones(4), r"X must have shape \(K, 4\)"),
        (None, "X must be"),
    ],
)
def test_a_bad_context_is_refused_and_changes_nothing(X, message):
    agent = aw.LogisticThompson(4, seed=1)
    before = saving.dumps(agent)
    for call in (agent.choose, agent.probabilities, lambda X: agent.learn(X, Choice(0, None), 1.0)):
        with pytest.raises(ValueError, match=message):
            call(X)
    with pytest.raises(ValueError, match="contexts"):
        agent.play([csr_array(np.ones((2, 4))), X], np.ones((2, 2)))
    assert saving.dumps(agent) == before


def test_other_bad_input_is_refused():
    agent, X = aw.LogisticThompson(4, seed=1), csr_array(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"expects a number in \[0, 1\]"):
        agent.learn(X, Choice(0, None), 1.5)
    with pytest.raises(ValueError, match=r"choice\.arm is 2"):
        agent.learn(X, Choice(2, None), 1.0)
    with pytest.raises(ValueError, match="row 1: 1 arms, but row 0 has 2"):
        agent.play([X, X[:1]], np.ones((2, 2)))
    with pytest.raises(ValueError, match="one row for each of the 3 rows of rewards"):
        agent.play([X, X], np.ones((3, 2)))
    with pytest.raises(ValueError, match="rewards has 3 columns"):
        agent.play([X, X], np.ones((2, 3)))


@pytest.mark.parametrize(("argument", "value"), [("dim", 0), ("lam", 0.0), ("batch_size", 0), ("draws", 1.5)])
def test_bad_parameters_are_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        aw.LogisticThompson(**({"dim": 2} | {argument: value}))


def test_clicks_are_learnt():
    """On a logistic world it loses less than a third of what uniform play loses; a wrong sign of y would lose more."""
    rng, dim, T, K = np.random.default_rng(8), 10, 2000, 5
    for seed in range(2):
        w_star = 1.5 * rng.normal(size=dim)
        contexts = rng.normal(size=(T, K, dim))
        p = sigmoid(contexts @ w_star)
        agent = aw.LogisticThompson(dim, 1.0, 5, seed=seed)
        played = agent.play(contexts, (rng.random((T, K)) < p).astype(float))
        regret = (p.max(axis=1) - p[np.arange(T), played.arms]).sum()
        assert regret < 0.33 * (p.max(axis=1) - p.mean(axis=1)).sum()


def test_an_arm_each_is_one_model_over_crossed_columns():
    """With ``n_arms`` a context stands in the columns of each arm: same arms, same weights, also from sparse rows."""
    rng = np.random.default_rng(8)
    T, K, d = 60, 3, 4
    X, R = rng.normal(size=(T, d)) * (rng.random((T, d)) < 0.7), (rng.random((T, K)) < 0.4).astype(float)
    crossed = np.einsum("ab,td->tabd", np.eye(K), X).reshape(T, K, K * d)
    own, wide = aw.LogisticThompson(d, n_arms=K, seed=1), aw.LogisticThompson(K * d, seed=1)
    arms = own.play(X, R).arms
    np.testing.assert_array_equal(arms, wide.play(crossed, R).arms)
    np.testing.assert_array_equal(own.m, wide.m)
    loop = aw.LogisticThompson(d, n_arms=K, seed=1)
    for t in range(T):
        choice = loop.choose(csr_array(X[t : t + 1]))
        loop.learn(X[t], choice, R[t, choice.arm])
    np.testing.assert_array_equal(loop.m, own.m)
    weights = own.m.reshape(K, d)
    assert own.add_arm() == K
    own.remove_arm(1)
    np.testing.assert_array_equal(own.m.reshape(K, d), np.vstack([weights[[0, 2]], np.zeros((1, d))]))


def test_a_batch_forgets_the_rows_of_an_arm_that_is_removed():
    agent = aw.LogisticThompson(2, batch_size=9, n_arms=3, seed=1)
    for arm in (0, 2, 1, 2):
        agent.learn([1.0, 0.5], aw.Choice(arm, None), 1.0)
    agent.remove_arm(1)
    assert [indices.tolist() for indices, _, _ in agent._waiting] == [[0, 1], [2, 3], [2, 3]]
