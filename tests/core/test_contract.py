"""What the checks of armwise.testing cannot say of every agent: merging, prior means, sparse rows, late sizes."""

# mypy: disable-error-code="arg-type, index, union-attr"

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import armwise as aw
from armwise.agents.linear.staged.staging import Staged
from armwise.core import saving
from armwise.models.ridge import Ridge
from armwise.theory import hypotheses


def log_of(n, K=4, d=5, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, K, d))
    arms = rng.integers(0, K, n)
    rewards = X[np.arange(n), arms] @ np.linspace(-1, 1, d) + rng.normal(0, 0.3, n)
    return X, aw.Choices(arms, np.full(n, 1 / K)), rewards


# ---------------------------------------------------------------------- merging


@pytest.mark.parametrize("lam", [0.5, None])
def test_eight_merged_parts_are_one_pass(lam):
    X, choices, rewards = log_of(4000)
    whole = aw.LinUCB(alpha=0.3, lam=lam)
    whole.learn_many(X, choices, rewards)
    parts = [whole.clone() for _ in range(8)]
    for i, part in enumerate(parts):
        now = slice(500 * i, 500 * (i + 1))
        part.learn_many(X[now], choices[now], rewards[now])
    merged = parts[0]
    for part in parts[1:]:
        merged.merge(part)
    np.testing.assert_allclose(merged.estimate(X[0]), whole.estimate(X[0]), rtol=1e-9)
    np.testing.assert_allclose(merged.probabilities(X[1]), whole.probabilities(X[1]), rtol=1e-9)


def test_a_prior_mean_counts_once():
    X, choices, rewards = log_of(60)
    whole, half, rest = (aw.LinUCB(alpha=0.3, lam=20.0, prior_mean=np.ones(5)) for _ in range(3))
    whole.learn_many(X, choices, rewards)
    half.learn_many(X[:25], choices[:25], rewards[:25])
    rest.learn_many(X[25:], choices[25:], rewards[25:])
    np.testing.assert_allclose(half.merge(rest).estimate(X[0]), whole.estimate(X[0]), rtol=1e-9)


@pytest.mark.parametrize("agent", [aw.LinUCB(), aw.HybridLinUCB(5, 4, 2), aw.HybridLinUCB(5, 4, 2, lam=0.5)])
@pytest.mark.parametrize("zeros", [0, 12])  # rows of zeros, which say where rewards lie and nothing else
def test_one_that_has_learnt_nothing_takes_all_of_the_other(agent, zeros):
    X, choices, rewards = log_of(60)
    X[:zeros] = 0.0
    rewards += 5.0
    taught, fresh, first, rest = (agent.clone(seed=seed) for seed in range(4))
    taught.learn_many(X, choices, rewards)
    first.learn_many(X[:12], choices[:12], rewards[:12])
    rest.learn_many(X[12:], choices[12:], rewards[12:])
    np.testing.assert_allclose(
        agent.clone().merge(first).merge(rest).estimate(X[20]), taught.estimate(X[20]), rtol=1e-9
    )
    np.testing.assert_allclose(
        agent.clone().merge(rest).merge(first).estimate(X[20]), taught.estimate(X[20]), rtol=1e-9
    )
    np.testing.assert_allclose(fresh.merge(taught).estimate(X[20]), taught.estimate(X[20]), rtol=1e-9)
    before = taught.estimate(X[20])
    taught.merge(agent.clone())
    np.testing.assert_allclose(taught.estimate(X[20]), before, rtol=1e-12)


@pytest.mark.parametrize(
    ("mine", "other", "message"),
    [
        (aw.LinUCB(dim=3, lam=1.0), aw.LinUCB(dim=3, lam=2.0), "lam is 1.0 here and 2.0 there"),
        (aw.LinUCB(dim=3), aw.LinUCB(dim=4), "dim is 3 here and 4 there"),
        (aw.LinUCB(dim=2, prior_mean=[0, 1]), aw.LinUCB(dim=2), "prior_mean is"),
        (aw.LinUCB(dim=3), aw.LinThompson(dim=3), "other must be a LinUCB"),
        (aw.LinUCB(dim=3), None, "other must be a LinUCB"),
        (aw.LinUCB(dim=3, discount=0.9), aw.LinUCB(dim=3, discount=0.9), "counts by its age"),
        (aw.LinUCB(dim=3, window=9), aw.LinUCB(dim=3, window=9), "counts by its age"),
        (aw.UCB1(3, scale=0.1), aw.UCB1(3), "scale is 0.1 here and 0.5 there"),
        (aw.Explore(aw.UCB1(2), 0.1), aw.Explore(aw.UCB1(3), 0.1), "agent.n_arms is 2 here and 3 there"),
        (aw.EpsilonGreedy(model=Ridge(3, 1.0)), aw.EpsilonGreedy(model=Ridge(3, 2.0)), "model.lam is 1.0"),
    ],
)
def test_what_cannot_be_merged_says_why(mine, other, message):
    with pytest.raises(ValueError, match=message):
        mine.merge(other)


@pytest.mark.parametrize("agent", [aw.LogisticThompson(dim=3), aw.GPUCB(aw.kernels.RBF(1.0))], ids=lambda a: str(a)[:8])
def test_an_agent_without_additive_statistics_has_no_merge(agent):
    log = aw.offline.Log(contexts=np.ones((2, 2, 3)), arms=[0, 1], rewards=[1.0, 0.0], probabilities=[0.5, 0.5])
    assert not hasattr(agent, "merge")
    with pytest.raises(ValueError, match="needs parts that are merged: its statistics are not additive"):
        aw.fit_log(agent, log, engine="dask")


# ---------------------------------------------------------------------- prior means


def naive(X, arms, rewards, lam, mean, weights):
    """argmin of sum w (r - x.theta)^2 + lam ||theta - mean||^2."""
    rows = X[np.arange(len(arms)), arms]
    A = lam * np.eye(len(mean)) + (weights * rows.T) @ rows
    return np.linalg.solve(A, lam * mean + rows.T @ (weights * rewards))


@pytest.mark.parametrize(
    ("forgetting", "weights"),
    [
        ({}, np.ones(50)),
        ({"discount": 0.9}, 0.9 ** np.arange(49, -1, -1.0)),
        ({"window": 20}, (np.arange(50) >= 30).astype(float)),
    ],
    ids=["all", "discount", "window"],
)
def test_the_ridge_draws_theta_towards_the_prior_mean(forgetting, weights):
    X, choices, rewards = log_of(50)
    mean = np.array([0.5, -1.0, 2.0, 0.0, 0.3])
    theta = naive(X, choices.arms, rewards, 4.0, mean, weights)
    for agent in (
        aw.LinUCB(alpha=0.3, lam=4.0, prior_mean=mean, **forgetting),
        aw.LinThompson(v=0.3, lam=4.0, prior_mean=mean, **forgetting),
    ):
        agent.learn_many(X, choices, rewards)
        np.testing.assert_allclose(agent.estimate(X[0])[0], X[0] @ theta, atol=1e-9)


def test_each_arm_may_have_its_own_prior_mean():
    means = np.arange(6.0).reshape(3, 2)
    agent = aw.LinUCB(n_arms=3, prior_mean=means, lam=2.0, alpha=0.1)
    np.testing.assert_allclose(agent.estimate([1.0, 1.0])[0], means.sum(axis=1))
    agent.remove_arm(1)
    agent.add_arm()
    np.testing.assert_allclose(agent.prior_mean, [[0.0, 1.0], [4.0, 5.0], [0.0, 0.0]])
    np.testing.assert_allclose(agent.estimate([1.0, 1.0])[0], [1.0, 9.0, 0.0])
    assert agent.clone().estimate([1.0, 1.0])[0].tolist() == [1.0, 9.0, 0.0]


def test_the_noise_knows_what_the_prior_mean_explains():
    """Rewards exactly as the prior mean says have no noise, however strong the ridge."""
    X, choices, _ = log_of(200)
    mean = np.array([0.5, -1.0, 2.0, 0.0, 0.3])
    agent = aw.LinUCB(prior_mean=mean, lam=50.0)
    agent.learn_many(X, choices, X[np.arange(200), choices.arms] @ mean)
    assert agent._noise is not None
    fit, *_ = agent._model.explained()
    assert agent._noise._squares - fit < 1e-6 * agent._noise._squares


MEAN = np.array([0.5, -1.0, 2.0, 0.0, 0.3])
SUBSPACE = np.random.default_rng(5).normal(size=(5, 2))
SHIFTED = {
    "LinREL": lambda **prior: aw.LinREL(5, 60, scale=0.3, seed=1, **prior),
    "SupLinUCB": lambda **prior: aw.SupLinUCB(5, 60, scale=0.3, seed=1, **prior),
    "SupLinREL": lambda **prior: aw.SupLinREL(5, 60, scale=0.3, seed=1, **prior),
    "SupLinUCB, separate": lambda **prior: aw.SupLinUCB(5, 60, scale=0.3, pooled=False, seed=1, **prior),
    "SupLinREL, separate": lambda **prior: aw.SupLinREL(5, 60, scale=0.3, pooled=False, seed=1, **prior),
    "CoFineUCB": lambda **prior: aw.CoFineUCB(5, SUBSPACE, lam=2.0, lam_coarse=0.5, seed=1, **prior),
    "HybridLinUCB": lambda **prior: aw.HybridLinUCB(5, 4, 2, 0.3, 2.0, seed=1, **prior),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_a_prior_mean_is_a_shift_of_the_rewards(name):
    """Round by round beside an agent without one that learns r - x.theta_0: its scores plus x.theta_0 decide."""
    rng = np.random.default_rng(3)
    X, noise = rng.normal(size=(60, 4, 5)) / 3.0, 0.1 * rng.normal(size=(60, 4))
    rewards = X @ (MEAN + 0.2 * rng.normal(size=5)) + noise
    agent, plain = SHIFTED[name](prior_mean=MEAN), SHIFTED[name]()
    played = SHIFTED[name](prior_mean=MEAN).play(X, rewards)
    for t in range(60):
        assert agent.choose(X[t]).arm == played.arms[t]
        choice, prior = naive_choice(plain, X[t]), X[t] @ MEAN
        assert choice.arm == played.arms[t]
        agent.learn(X[t], choice, rewards[t, choice.arm])
        plain.learn(X[t], choice, rewards[t, choice.arm] - prior[choice.arm])
    if not name.startswith("Sup"):
        means, widths = agent.estimate(X[0])
        expected, same = plain.estimate(X[0])
        np.testing.assert_allclose(means, expected + X[0] @ MEAN, atol=1e-9)
        np.testing.assert_allclose(widths, same, atol=1e-9)


def naive_choice(plain, X):
    """What ``plain``, which learns rewards less x.theta_0, would choose with x.theta_0 added to its means."""
    prior = X @ MEAN
    if not isinstance(plain, Staged):
        return aw.Choice(int(np.argmax(plain._scores(X) + prior)), 1.0)
    alive = np.arange(len(X))
    for s in range(1, plain.n_stages + 1):
        means, widths = plain._estimate(plain._models[0 if plain.pooled else s - 1], X[alive], len(X))
        scores = means + prior[alive] + widths
        if widths.max() <= 60**-0.5:
            return aw.Choice(int(alive[scores.argmax()]), 1.0)
        if widths.max() > 2.0**-s:
            return aw.Choice(int(alive[widths.argmax()]), 1.0, s)
        alive = alive[scores >= scores.max() - 2.0 ** (1 - s)]
    raise AssertionError


def test_the_hybrid_ridge_draws_shared_and_own_weights_towards_the_prior_mean():
    """The joint ridge over (beta, theta_1 .. theta_K), a row of its own per arm; merged it counts once."""
    X, choices, rewards = log_of(80)
    K, mean = X.shape[1], np.random.default_rng(4).normal(size=(X.shape[1], 5))
    mean[:, :2] = mean[0, :2]
    joint = np.concatenate([mean[0, :2], mean[:, 2:].ravel()])
    rows = np.zeros((80, len(joint)))
    for t, a in enumerate(choices.arms):
        rows[t, :2], rows[t, 2 + 3 * a : 5 + 3 * a] = X[t, a, :2], X[t, a, 2:]
    A = 2.0 * np.eye(len(joint)) + rows.T @ rows
    theta = np.linalg.solve(A, 2.0 * joint + rows.T @ rewards)
    expected = [X[0, a, :2] @ theta[:2] + X[0, a, 2:] @ theta[2 + 3 * a : 5 + 3 * a] for a in range(K)]
    whole, half, rest = (aw.HybridLinUCB(5, K, 2, lam=2.0, prior_mean=mean) for _ in range(3))
    whole.learn_many(X, choices, rewards)
    half.learn_many(X[:30], choices[:30], rewards[:30])
    rest.learn_many(X[30:], choices[30:], rewards[30:])
    np.testing.assert_allclose(whole.estimate(X[0])[0], expected, atol=1e-9)
    np.testing.assert_allclose(half.merge(rest).estimate(X[0])[0], expected, atol=1e-9)
    residuals = (rewards - rows @ theta) @ (rewards - rows @ theta) + 2.0 * (theta - joint) @ (theta - joint)
    explained = sum(whole._model._arms.explained(a)[0] for a in range(K)) + whole._model._shared.explained()[0]
    np.testing.assert_allclose(rewards @ rewards - explained, residuals, rtol=1e-9)
    whole.remove_arm(1)
    whole.add_arm()
    np.testing.assert_allclose(whole.prior_mean[-1], [*mean[0, :2], 0.0, 0.0, 0.0])
    assert saving.dumps(saving.loads(saving.dumps(whole))) == saving.dumps(whole)
    with pytest.raises(ValueError, match="same first 2 columns"):
        aw.HybridLinUCB(5, 2, 2, prior_mean=np.arange(10.0).reshape(2, 5))


def test_logistic_thompson_begins_at_its_prior_mean():
    """A batch's fit is the minimiser of 1/2 lam ||w - mean||^2 + sum ln(1 + exp(-y x.w)), here by plain gradients."""
    X, choices, rewards = log_of(40)
    labels = (rewards > np.median(rewards)).astype(float)
    agent = aw.LogisticThompson(5, lam=2.0, batch_size=40, prior_mean=MEAN, seed=1)
    np.testing.assert_allclose(agent.estimate(np.eye(5))[0], 1.0 / (1.0 + np.exp(-MEAN)))
    agent.learn_many(X, choices, labels)
    rows, w = X[np.arange(40), choices.arms], MEAN.copy()
    for _ in range(20_000):
        w -= 0.01 * (2.0 * (w - MEAN) + rows.T @ (1.0 / (1.0 + np.exp(-rows @ w)) - labels))
    np.testing.assert_allclose(agent.m, w, atol=1e-6)


def test_no_bound_is_claimed_around_a_prior_mean():
    """The theorems' widths cover ||theta||, not its distance from the prior mean."""
    world = {"linear": "features", "K": 4, "R": 0.1, "S": 1.0, "L": 1.0}
    ellipsoid = aw.Ellipsoid(0.1, 1.0, 0.05)
    assert isinstance(hypotheses.linucb(aw.LinUCB(2, ellipsoid, 1.0), world, 100), dict)
    assert "prior_mean" in hypotheses.linucb(aw.LinUCB(2, ellipsoid, 1.0, prior_mean=[0, 1]), world, 100)
    assert "prior_mean" in hypotheses.staged_linear(aw.SupLinUCB(2, 100, scale=1.0, prior_mean=[0, 1]), world, 100)


def test_a_prior_mean_that_overflows_with_the_context_is_refused():
    agent = aw.LinREL(2, 100, prior_mean=[1e150, 0.0])
    before = saving.dumps(agent)
    with pytest.raises(ValueError, match="too large for this prior_mean"):
        agent.learn(np.full((2, 2), 1e149), aw.Choice(0, 1.0), 1.0)
    assert saving.dumps(agent) == before


# ---------------------------------------------------------------------- sizes and rows


def test_without_dim_the_first_context_says_it():
    agent = aw.LinUCB(alpha=0.3, seed=1)
    with pytest.raises(ValueError, match="finite"):
        agent.choose(np.full((2, 3), np.nan))
    assert agent.dim is None
    agent.choose(np.eye(3))
    assert agent.dim == 3
    with pytest.raises(ValueError, match=r"shape \(K, 3\)"):
        agent.choose(np.eye(2))
    twin = aw.LinUCB(dim=3, alpha=0.3, seed=1)
    twin.choose(np.eye(3))
    X, rewards = np.random.default_rng(1).normal(size=(50, 4, 3)), np.random.default_rng(2).random((50, 4))
    assert agent.play(X, rewards).arms.tolist() == twin.play(X, rewards).arms.tolist()
    assert aw.Decider(aw.LinUCB(alpha=0.3)).decide({"hour": 3}, arms=["a"]).arm == "a"


def test_a_refused_block_leaves_the_size_open():
    agent = aw.SquareCB(seed=1)
    block = np.ones((3, 2, 4))
    block[2] = np.nan
    with pytest.raises(ValueError, match="finite"):
        agent.play(block, np.ones((3, 2)))
    assert agent.dim is None


@pytest.mark.parametrize("make", [aw.LinUCB, aw.SquareCB, aw.FastCB, aw.RegCB], ids=lambda cls: cls.__name__)
def test_many_sparse_rows_are_never_all_dense(make):
    K, d = 20_000, 500  # 80 MB dense
    X = random_array((K, d), density=0.002, rng=np.random.default_rng(1), format="csr")
    agent = make(seed=1)
    agent.choose(X)
    tracemalloc.start()
    choice = agent.choose(X)
    agent.learn(X, choice, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25e6, f"{peak / 1e6:.0f} MB"


def test_sparse_rows_that_are_wrong_are_refused():
    agent = aw.LinUCB(dim=3)
    for bad, message in (
        (csr_array((2, 4)), "shape"),
        (csr_array(np.array([[np.nan, 0.0, 0.0]])), "finite"),
        (csr_array(np.array([[1e200, 0.0, 0.0]])), "in size"),
        (csr_array(np.array([[1j, 0.0, 0.0]])), "numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            agent.choose(bad)


def test_learn_many_checks_everything_before_it_learns_anything():
    X, choices, rewards = log_of(10)
    agent = aw.LinUCB(alpha=0.3)
    for contexts, chosen, values, message in (
        (X, choices, np.append(rewards[:-1], np.nan), r"rewards\[9\] is nan"),
        (X, aw.Choices([0] * 9 + [4]), rewards, "choices, row 9: choice.arm is 4"),
        (X, aw.Choices([0] * 10, [0.5] * 9 + [2.0]), rewards, "choices, row 9: choice.probability"),
        (X[:9], choices, rewards, "one row for each of the 10 rows"),
        (X, choices[:9], rewards, "for each of the 10 rewards"),
        (X, [*choices[:9], "x"], rewards, "choices, row 9: choice must be"),
        (X, choices, rewards[None], "one number per choice"),
    ):
        with pytest.raises(ValueError, match=message):
            agent.learn_many(contexts, chosen, values)
        assert agent.t == 1
    with pytest.raises(ValueError, match="n must say how many"):
        aw.UCB1(2).choose_many()
    with pytest.raises(ValueError, match="leave n out"):
        agent.choose_many(X, n=3)
    assert len(agent.choose_many([])) == 0


@pytest.mark.parametrize("name", ["UCB1", "BetaThompson", "Exp3", "EpsilonGreedy"])
def test_agents_that_see_nothing_ignore_numbers(name):
    """One line gives every agent a world's contexts; a text or a dictionary is a mistake all the same."""
    with_numbers, without = getattr(aw, name)(2, seed=1), getattr(aw, name)(2, seed=1)
    R = np.tile([0.0, 1.0], (9, 1))
    np.testing.assert_array_equal(with_numbers.play(np.ones((9, 1)), R).arms, without.play(None, R).arms)
    assert with_numbers.choose([1.0]) == without.choose()
    assert len(with_numbers.choose_many(np.ones((4, 1))).arms) == 4
    for context in ("phone", {"device": "phone"}):
        with pytest.raises(ValueError, match="sees nothing"):
            with_numbers.choose(context)
    with pytest.raises(ValueError, match="one row for each of the 9 rows"):
        with_numbers.play(np.ones((4, 1)), R)
