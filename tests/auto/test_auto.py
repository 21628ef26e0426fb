"""Auto: its models against a naive fit, its choices against the loop, its promises on worlds that are known."""

import numpy as np
import pytest

import armwise as aw
from armwise import persist
from armwise.features.maps import Columns, Fourier
from armwise.numerics import nested


def classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three kinds of columns, three arms, and a rule that is neither linear nor additive."""
    rng = np.random.default_rng([seed, 5])
    X = np.column_stack([rng.normal(size=n), rng.exponential(size=n) ** 3, rng.integers(0, 4, n)])
    best = (X[:, 0] > 0).astype(int) + ((X[:, 2] >= 2) & (X[:, 0] > 0))
    return X, (best[:, None] == np.arange(3)).astype(float)


def test_every_prefix_is_the_ridge_fit_of_its_features() -> None:
    rng = np.random.default_rng(1)
    D, ends, prior = 24, np.array([8, 16, 24]), rng.uniform(0.5, 2.0, 24)
    factors, thetas, state = np.diag(prior)[None].copy(), np.zeros((1, 3, D)), np.zeros(19)
    X, r = rng.normal(size=(60, D)), rng.normal(size=60)
    nested.learn_rows(factors, thetas, ends, prior, state, X, np.zeros(60, np.int64), r)
    for b, end in enumerate(ends):
        A = np.diag(prior[:end] ** -2) + X[:, :end].T @ X[:, :end]
        np.testing.assert_allclose(thetas[0, b, :end], np.linalg.solve(A, X[:, :end].T @ r), rtol=1e-9, atol=1e-12)
        probe = rng.normal(size=(1, D))
        mean, width = nested.estimates(factors, thetas, ends, prior, probe, b)
        x = probe[0, :end]
        np.testing.assert_allclose(mean, x @ np.linalg.solve(A, X[:, :end].T @ r), rtol=1e-9)
        np.testing.assert_allclose(width, np.sqrt(x @ np.linalg.solve(A, x)), rtol=1e-9)


def test_an_arm_that_is_passed_over_could_not_have_won() -> None:
    # Scores skip the width of hopeless arms; the best arm must be that of the full formula, in every round.
    agent = aw.Auto(3, 3, seed=1)
    X, R = classes(400, 1)
    for x, r in zip(X, R):
        means, widths = agent.estimate(x)
        assert widths is not None
        # 0.3 standard errors of optimism (1 for a constant per arm), as nested.hpp has it.
        optimism = 1.0 if agent.explain()["in_charge"] == "constant" else 0.3
        scores = means + optimism * widths
        choice = agent.choose(x)
        assert scores[choice.arm] >= scores.max() - 1e-9
        agent.learn(x, choice, r[choice.arm])


@pytest.mark.parametrize("floor", [0.0, 0.2])
@pytest.mark.parametrize("n_arms", [3, None])
def test_play_is_the_loop_across_refits(n_arms: int | None, floor: float) -> None:
    rng = np.random.default_rng(3)
    T = 1200  # beyond the last refit, at 1,024 rewards
    contexts = rng.normal(size=(T, 2) if n_arms else (T, 3, 2)).round(3)
    rewards = rng.random((T, 3))
    block, loop = aw.Auto(2, n_arms, floor=floor, seed=4), aw.Auto(2, n_arms, floor=floor, seed=4)
    played = block.play(contexts, rewards)
    for t in range(T):
        choice = loop.choose(contexts[t])
        assert (choice.arm, choice.probability) == (played.arms[t], played.probabilities[t]), t
        loop.learn(contexts[t], choice, rewards[t, choice.arm])
    assert np.array_equal(loop._model._factors, block._model._factors)


def test_rewards_of_any_size_give_the_same_arms() -> None:
    X, R = classes(600, 2)
    plain = aw.Auto(3, 3, seed=5).play(X, R).arms
    scaled = aw.Auto(3, 3, seed=5).play(X, R * 4096.0 - 1024.0).arms  # powers of two: the very same numbers inside
    assert np.array_equal(plain, scaled)


def test_it_finds_a_rule_that_is_not_linear() -> None:
    # Uniform play earns 1/3, a linear model per arm about 0.75. A failure means the smooth part does not decide.
    X, R = classes(3000, 3)
    agent = aw.Auto(3, 3, seed=6)
    assert agent.play(X, R).rewards[-1000:].mean() > 0.9
    assert agent.explain()["in_charge"] in ("additive", "smooth")


def test_without_signal_it_is_no_worse_than_an_agent_without_context() -> None:
    # Six worlds of Bernoulli arms and useless columns; regret against 1.5 x UCB1's.
    rng = np.random.default_rng(7)
    regret = {"auto": 0.0, "ucb1": 0.0}
    for seed in range(6):
        p, X = rng.uniform(0.2, 0.8, 4), rng.normal(size=(2000, 4))
        R = (rng.random((2000, 4)) < p).astype(float)
        regret["auto"] += (p.max() - p[aw.Auto(4, 4, seed=seed).play(X, R).arms]).sum()
        regret["ucb1"] += (p.max() - p[aw.UCB1(4, seed=seed).play(None, R).arms]).sum()
    assert regret["auto"] <= 1.5 * regret["ucb1"]


def test_arms_that_were_never_chosen_are_not_written_off() -> None:
    # Thirty fixed arms whose rewards are a draw from a Gaussian process: with maps fitted to the chosen rows alone, and
    # too little width, it settled early on a poor arm in most runs. Uniform play has a regret of about 700 per run.
    world = aw.environments.GaussianProcess()
    regret = []
    for seed in range(100, 106):
        block = next(world.blocks(horizon=600, seed=seed))
        arms = aw.Auto(2, seed=seed).play(block.view("features"), block.rewards).arms
        assert block.expected is not None
        regret.append((block.expected[0].max() - block.expected[0][arms]).sum())
    assert np.mean(regret) < 50


def test_linear_rewards_of_described_arms_cost_little_more_than_a_linear_agent() -> None:
    # Ten runs against LinUCB at settings that are good on this world; 1.96 before the likelihood decided, 1.7 allowed.
    world = aw.environments.Linear(n_arms=5, dim=5, noise=0.1)
    regret = {"auto": 0.0, "linucb": 0.0}
    for seed in range(10):
        block = next(world.blocks(horizon=2000, seed=seed))
        assert block.expected is not None
        for name, agent in (("auto", aw.Auto(5, seed=seed)), ("linucb", aw.LinUCB(5, 0.1, 0.1, seed=seed))):
            arms = agent.play(block.view("features"), block.rewards).arms
            regret[name] += (block.expected.max(axis=1) - block.expected[np.arange(2000), arms]).sum()
    assert regret["auto"] <= 1.7 * regret["linucb"]


def test_drift_is_followed() -> None:
    # After round 3,000 the other arm is right; without forgetting it takes thousands of rewards to believe it.
    rng = np.random.default_rng(8)
    X = rng.normal(size=(6000, 2))
    best = (X[:, 0] > 0) ^ (np.arange(6000) >= 3000)
    R = np.stack([best, ~best], axis=1).astype(float)
    late = {d: aw.Auto(2, 2, drift=d, seed=9).play(X, R).rewards[4500:].mean() for d in (True, False)}
    assert late[True] > 0.95
    assert late[True] > late[False]


def test_its_probabilities_are_those_it_draws_with() -> None:
    # 20,000 draws of a frozen snapshot: inverse propensity weights must give back each arm's own reward (4 s.e.).
    X, R = classes(500, 4)
    agent = aw.Auto(3, 3, floor=0.3, seed=10)
    agent.play(X, R)
    value = np.array([0.2, 0.5, 0.9])
    drawn = [agent.choose(X[i % 50]) for i in range(20_000)]
    for arm in range(3):
        scores = np.array([value[c.arm] / c.probability if c.arm == arm else 0.0 for c in drawn if c.probability])
        assert abs(scores.mean() - value[arm]) < 4 * scores.std() / np.sqrt(len(scores))


def test_the_memory_does_not_grow() -> None:
    X, R = classes(3000, 5)
    agent = aw.Auto(3, 3, seed=11)
    agent.play(X[:1500], R[:1500])
    size = len(persist.dumps(agent))
    agent.play(X[1500:], R[1500:])
    assert abs(len(persist.dumps(agent)) - size) < 1000


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="dim"):
        aw.Auto(0)
    with pytest.raises(ValueError, match="floor"):
        aw.Auto(2, 2, floor=1.5)


class TestMaps:
    def test_columns_are_what_they_say(self) -> None:
        rng = np.random.default_rng(1)
        rows = np.column_stack([rng.normal(2.0, 3.0, 500), rng.integers(0, 3, 500), np.full(500, 7.0)])
        columns = Columns().fit(rows)
        out = columns.transform(rows)
        assert columns.names() == ["x0", "x1 = 0", "x1 = 1", "x1 = 2", "position of x0"]
        np.testing.assert_allclose(out[:, 0], np.clip((rows[:, 0] - rows[:, 0].mean()) / rows[:, 0].std(), -5, 5))
        np.testing.assert_array_equal(out[:, 1:4], rows[:, 1:2] == np.arange(3))
        # The position is the rank, to the width of one of the 16 pieces.
        ranks = rows[:, 0].argsort().argsort() / 499
        assert np.abs(out[:, 4] / np.sqrt(12) + 0.5 - ranks).max() < 1 / 16

    def test_a_row_alone_has_the_bits_of_a_row_in_a_block(self) -> None:
        rows = np.random.default_rng(2).normal(size=(50, 7))
        for mapping in (Columns().fit(rows), Fourier(64, seed=3).fit(rows)):
            alone = np.vstack([mapping.transform(row[None]) for row in rows])
            assert np.array_equal(alone, mapping.transform(rows))

    def test_fourier_features_have_the_kernel_as_inner_product(self) -> None:
        # 4,000 features: the error of each of the 190 entries has a standard deviation of about 0.011.
        rows = np.random.default_rng(3).normal(size=(20, 3))
        features = Fourier(4000, length_scale=1.5, seed=4).fit(rows).transform(rows)
        distances = ((rows[:, None] - rows[None]) ** 2).sum(-1)
        assert np.abs(features @ features.T - np.exp(-distances / (2 * 1.5**2))).max() < 0.06

    def test_a_map_that_has_seen_nothing_says_so(self) -> None:
        for mapping in (Columns(), Fourier()):
            with pytest.raises(ValueError, match="call fit first"):
                mapping.transform([[1.0]])
        with pytest.raises(ValueError, match="rows must be finite"):
            Columns().fit([[np.nan]])
