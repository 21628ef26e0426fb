"""Every world keeps the contract: the same rounds for the same seed, all views, honest expected rewards."""

# mypy: disable-error-code="arg-type, assignment, attr-defined"

import numpy as np
import pytest

from armwise import environments
from armwise.environments import environment
from armwise.policies import Constant, distributions

rng = np.random.default_rng(5)
WORLDS = {
    "linear": environments.Linear(n_arms=4, dim=6),
    "linear, no noise": environments.Linear(n_arms=3, dim=2, noise=0.0),
    "disjoint": environments.Linear(n_arms=4, dim=6, disjoint=True),
    "drifting": environments.Drifting(n_arms=4, dim=5, period=3000),
    "hierarchical": environments.Hierarchical(n_arms=4, dim=12, subspace_dim=3),
    "logistic": environments.Logistic(n_arms=4, dim=6),
    "tabular": environments.Tabular(n_contexts=6, n_arms=4),
    "prior": environments.Tabular(n_contexts=1, n_arms=4, prior=(2.0, 1.0)),
    "planted linear": environments.Planted(n_policies=7, n_arms=3, dim=2),
    "planted stumps": environments.Planted(n_policies=7, n_arms=3, dim=2, kind="stumps"),
    "graph": environments.Graph(n_arms=30),
    "grid": environments.Graph(n_arms=25, kind="grid"),
    "process": environments.GaussianProcess(n_arms=12),
    "contextual process": environments.GaussianProcess(n_arms=6, n_contexts=5, context_dim=2),
    "switching": environments.Switching(n_arms=4),
    "experts": environments.Experts(n_experts=6, n_arms=4),
    "against UCB1": environments.AgainstUCB1(n_arms=4),
    "adaptive": environments.Adaptive(n_arms=4),
    "classification": environments.Classification(rng.standard_normal((200, 3)), rng.integers(3, size=200)),
    "regression": environments.Regression(rng.standard_normal((200, 3)), rng.random(200)),
    "rows": environments.Rows(rng.standard_normal((50, 3)), rng.random((50, 2))),
    "ratings": environments.Ratings(
        rng.integers(30, size=900), rng.integers(25, size=900), rng.integers(1, 6, size=900), n_arms=4, rank=3
    ),
}
STOCHASTIC = [name for name in WORLDS if name not in ("switching", "experts", "adaptive", "against UCB1")]


def played(world, horizon, seed):
    """All blocks of a run in which arm 1 is always played."""
    rounds = world.blocks(horizon, seed)
    blocks, arms = [], None
    while True:
        try:
            blocks.append(rounds.send(arms))
        except StopIteration:
            return blocks
        arms = np.ones(len(blocks[-1]), np.int64)


@pytest.fixture(params=WORLDS, ids=list(WORLDS))
def world(request):
    return WORLDS[request.param]


def test_same_seed_same_rounds(world):
    first, again, other = (played(world, 300, seed) for seed in (3, 3, 4))
    assert sum(len(block) for block in first) == 300
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.rewards, b.rewards)
        np.testing.assert_array_equal(a.expected, b.expected)
        np.testing.assert_array_equal(a.view("features"), b.view("features"))
    total = [np.concatenate([b.rewards for b in blocks]) for blocks in (first, other)]
    assert not np.array_equal(*total)


def test_made_again_from_its_parameters_it_is_the_same_world(world):
    again = type(world)(**world.params())
    for a, b in zip(played(world, 50, 1), played(again, 50, 1), strict=True):
        np.testing.assert_array_equal(a.rewards, b.rewards)


def test_what_was_drawn_is_no_parameter():
    """A world whose class or graph is drawn by its seed is drawn again, and not written out."""
    assert environments.Planted(gap=0.8).params()["policies"] is None
    assert environments.Graph(smooth=3).params()["laplacian"] is None
    policies = [Constant(0), Constant(1)]
    assert environments.Planted(n_arms=2, policies=policies).params()["policies"] == policies


def test_chances_come_from_the_prior():
    """The mean of Beta(2, 1) is 2/3: over 300 worlds of 4 arms its error is 0.007, and 0.05 would be another prior."""
    world = WORLDS["prior"]
    means = [next(world.blocks(1, seed)).expected for seed in range(300)]
    assert abs(np.mean(means) - 2 / 3) < 0.05
    assert world.constants()["prior"] == (2.0, 1.0)


def test_every_view_is_there(world):
    block = next(world.blocks(40, 1))
    T, K = len(block), world.n_arms
    assert block.rewards.shape == block.expected.shape == (T, K)
    assert block.view("nothing") is None
    features, shared, advice = block.view("features"), block.view("shared"), block.view("advice")
    assert features.shape == (T, K, world.width("features"))
    assert shared.shape == (T, world.width("shared"))
    assert advice.shape == (T, world.width("advice"), K)
    assert len(block.view("key")) == T
    for view in (features, shared, advice):
        assert view.dtype == np.float64
        assert view.flags.c_contiguous
    np.testing.assert_allclose(advice.sum(axis=2), 1.0)
    assert {hash(key) for key in block.view("key")}


def test_no_arm_beats_the_comparator_of_each_round(world):
    for block in played(world, 200, 2):
        if world.comparators[0] == environment.BEST_ARM_IN_HINDSIGHT:
            np.testing.assert_array_equal(block.competitors, block.rewards)
        elif world.comparator == environment.BEST_EXPERT:
            assert block.competitors.shape == (len(block), world.n_experts)
        else:
            np.testing.assert_allclose(block.competitors[:, 0], block.expected.max(axis=1))


@pytest.mark.parametrize("name", STOCHASTIC)
def test_expected_is_the_mean_of_the_rewards(name):
    """A failure means that regret is measured against the wrong means: off by more than five standard errors."""
    blocks = played(WORLDS[name], 4000, 6)
    noise = np.concatenate([block.rewards - block.expected for block in blocks])
    error = noise.std(axis=0) / np.sqrt(len(noise))
    assert np.all(np.abs(noise.mean(axis=0)) <= 5 * error + 1e-12)


@pytest.mark.parametrize("name", [n for n in WORLDS if "process" not in n])
def test_rewards_lie_in_the_unit_interval(name):
    for block in played(WORLDS[name], 500, 7):
        assert block.rewards.min() >= 0.0
        assert block.rewards.max() <= 1.0


def test_linear_world_is_linear_with_the_constants_it_states():
    world = environments.Linear(n_arms=5, dim=8, noise=0.1)
    X, y, R = [], [], []
    for block in world.blocks(3000, 1):
        X.append(block.view("features").reshape(-1, 8))
        y.append(block.expected.ravel())
        R.append((block.rewards - block.expected).ravel())
    X, y, R = np.concatenate(X), np.concatenate(y), np.concatenate(R)
    theta = np.linalg.lstsq(X, y)[0]
    np.testing.assert_allclose(X @ theta, y, atol=1e-12)
    known = world.constants()
    assert np.linalg.norm(theta) == pytest.approx(known["S"])
    assert np.linalg.norm(X, axis=1).max() == pytest.approx(known["L"])
    assert R.std() == pytest.approx(known["R"], rel=0.02)


def test_drifting_turns_and_returns():
    world = environments.Drifting(n_arms=4, dim=5, period=1000, noise=0.0)
    thetas = []
    block = next(world.blocks(2000, 1))
    X, y = block.view("features"), block.expected
    for t in (0, 500, 1000):
        thetas.append(np.linalg.lstsq(X[t : t + 3].reshape(-1, 5), y[t : t + 3].ravel())[0])
    assert np.linalg.norm(thetas[0] - thetas[1]) > 1.0
    assert np.linalg.norm(thetas[0] - thetas[2]) < 0.1


def test_hierarchical_profiles_lie_near_the_subspace():
    world = environments.Hierarchical(dim=30, subspace_dim=4, residual=0.1)
    values = np.linalg.svd(world.profiles(200), compute_uv=False)
    assert values[4] < 0.1 * values[3]


def test_planted_policy_is_the_best_of_its_class():
    world = environments.Planted(n_policies=12, n_arms=3, dim=3)
    block = next(world.blocks(4000, 3))
    contexts = block.view("shared")
    values = [(distributions(p, contexts, 3) * block.expected).sum() for p in world.policies]
    assert max(values) == pytest.approx(block.competitors.sum())
    np.testing.assert_array_equal(block.view("advice")[:, 4], distributions(world.policies[4], contexts, 3))
    np.testing.assert_allclose(block.view("advice")[:, -1], 1 / 3)


def test_graph_functions_are_smooth():
    world = environments.Graph(n_arms=60, noise=0.05)
    for seed in range(20):
        f = next(world.blocks(1, seed)).expected[0]
        assert np.sqrt(f @ world.laplacian @ f + 0.3 * f @ f) <= world.norm(lam=0.3)


def test_adaptive_adversary_reacts_to_the_arms():
    """Arm 1, always played, must soon pay less than arm 2, which is not; and the other way round."""
    world = environments.Adaptive(n_arms=3)
    rewards = np.concatenate([block.rewards for block in played(world, 3000, 1)])
    means = rewards[500:].mean(axis=0)
    assert means[1] < 0.2
    assert means[2] > 0.7
    with pytest.raises(ValueError, match="must be sent the arms"):
        list(world.blocks(3, 1))


def test_information_gain_bounds_the_exact_maximum():
    """Over all multisets of two arms of three, the greedy bound is no less than the exact best."""
    world = environments.GaussianProcess(n_arms=3, noise=0.3)
    points = world.points[0]
    best = 0.0
    for i in range(3):
        for j in range(3):
            chosen = points[[i, j]]
            K = world.covariance(chosen, chosen)
            best = max(best, 0.5 * np.linalg.slogdet(np.eye(2) + K / 0.09)[1])
    assert best <= world.information_gain(2) <= best * 1.6


def test_ratings_keep_the_last_rating_and_only_rated_items():
    users = np.repeat(np.arange(10), 6)
    items = np.tile(np.arange(6), 10)
    ratings = (users * 7 + items * 3) % 5 + 1.0
    world = environments.Ratings(np.r_[0, users], np.r_[0, items], np.r_[5.0, ratings], n_arms=6, rank=2)
    block = next(world.blocks(50, 1))
    for user, rewards in zip(block.view("key"), block.rewards, strict=True):
        expected = (ratings[users == user] - 1.0) / 4.0
        np.testing.assert_allclose(np.sort(rewards), np.sort(expected))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: environments.Linear(n_arms=1), "n_arms must be a whole number >= 2"),
        (lambda: environments.Linear(noise=0.4), "rewards stay in"),
        (lambda: environments.Tabular(prior=(1.0, 0.0)), r"prior\[1\] must be"),
        (lambda: environments.Tabular(prior=1.0), "prior must be"),
        (lambda: environments.Graph(n_arms=10, kind="grid"), "square number"),
        (lambda: environments.Graph(kind="tree"), "kind must be"),
        (lambda: environments.Graph(laplacian=[[1.0, 0.0], [0.0, 1.0]]), "rows that sum to 0"),
        (lambda: environments.Planted(kind="forest"), "kind must be"),
        (lambda: environments.GaussianProcess(n_contexts=3), "give both"),
        (lambda: environments.Classification([[1.0]], ["a"]), "two classes"),
        (lambda: environments.Classification(np.ones((200, 1)), np.arange(200)), "not a class label"),
        (lambda: environments.Classification([[np.nan], [1.0]], [0, 1]), "must be finite"),
        (lambda: environments.Regression([[1.0], [2.0]], [3.0, 3.0]), "two different values"),
        (lambda: environments.Classification.from_sklearn("irises"), "no data set 'irises'; it has"),
        (lambda: environments.Ratings([1, 2], [1, 2], [1.0, 2.0], rank=5), "rank must be below"),
        (lambda: environments.Linear().blocks(0), "horizon"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_files_parquet_and_csv(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"], "y": list("abab")})
    frame.to_parquet(tmp_path / "f.parquet")
    frame.to_csv(tmp_path / "f.csv", index=False)
    worlds = [environments.Classification.from_file(tmp_path / name, label="y") for name in ("f.parquet", "f.csv")]
    assert worlds[0].width("shared") == 4  # size, two colours, and the ones
    np.testing.assert_array_equal(worlds[0].X, worlds[1].X)
    with pytest.raises(ValueError, match=r"no column 'z'; it has size, colour, y"):
        environments.Classification.from_file(tmp_path / "f.csv", label="z")
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        environments.Classification.from_file(tmp_path / "bad.parquet", label="y")
    frame.loc[0, "size"] = np.nan
    frame.to_csv(tmp_path / "holes.csv", index=False)
    holes = environments.Classification.from_file(tmp_path / "holes.csv", label="y")
    assert holes.width("shared") == 5  # and one column that says where the size is missing
