"""Feature maps: each against its definition, saved with the agent, and exact under every linear agent."""

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.features import Bins, Chain, Columns, Cross, FeatureMap, Fourier, Join, hashed_text


def table(n: int = 80, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng([seed, 3])
    return np.column_stack([rng.normal(size=n), rng.exponential(size=n), rng.integers(0, 4, n)])


def maps() -> list[FeatureMap]:
    return [
        Columns(),
        Fourier(16, seed=3),
        Fourier(16, seed=3, scales=(0.1, 1.0, 4.0)),
        Bins(5),
        Cross(1),
        Chain([Columns(), Fourier(8, seed=2)]),
        Join([Columns(), Bins(3), Chain([Columns(), Cross(2)])]),
    ]


@pytest.mark.parametrize("i", range(7))
def test_every_map_is_the_same_alone_again_and_after_a_file(i: int) -> None:
    rows, mapping, again = table(), maps()[i], maps()[i]
    with pytest.raises(ValueError, match="call fit first"):
        mapping.transform(rows)
    out = mapping.fit(rows).transform(rows)
    assert out.shape == (80, mapping.size)
    assert np.array_equal(again.fit(rows).transform(rows), out)  # its seed, and nothing else
    assert np.array_equal(np.vstack([mapping.transform(row[None]) for row in rows]), out)
    assert np.array_equal(saving.loads(saving.dumps(mapping)).transform(rows), out)
    with pytest.raises(ValueError, match="rows must have 3 columns"):
        mapping.transform(rows[:, :2])


def test_fourier_adapts_its_length_scale_to_the_first_rewards() -> None:
    # Rewards that turn thirteen times over the range of the one column: the median distance is ten times too long.
    rng = np.random.default_rng(7)
    rows = rng.uniform(0.0, 40.0, (1500, 1))
    curve = 0.5 + 0.5 * np.sin(2.0 * rows[:, 0])
    arms, first = rng.integers(0, 2, 300), slice(0, 300)
    brought = np.where(arms == 0, curve[first], 1.0 - curve[first]) + 0.1 * rng.normal(size=300)
    median, adapted = Fourier(64).fit(rows[first]), Fourier(64).fit(rows[first], brought, arms)
    assert adapted.scale_used == pytest.approx(median.scale_used / 16)
    assert saving.loads(saving.dumps(adapted)).scale_used == adapted.scale_used
    again = Fourier(64).fit(rows[first], brought, arms).transform(rows)
    assert np.array_equal(adapted.transform(rows), again)
    # The arms apart: together their rewards are a constant with noise, and the median is as good as any.
    assert Fourier(64).fit(rows[first], brought).scale_used != adapted.scale_used
    late = {}
    for features in (median, adapted):
        agent = aw.Mapped(aw.LinUCB(64, alpha=0.5, n_arms=2, seed=1), features)
        late[features.scale_used] = agent.play(rows, np.stack([curve, 1.0 - curve], axis=1)).rewards[-500:].mean()
    assert late[adapted.scale_used] > 0.75 > 0.6 > late[median.scale_used]  # the best arm brings 0.82, any 0.5
    with pytest.raises(ValueError, match="rewards must be 300 numbers"):
        Fourier(8).fit(rows[first], brought[:3])
    with pytest.raises(ValueError, match="and length_scale=2"):
        Fourier(8, length_scale=2.0).fit(rows[first], brought)
    with pytest.raises(ValueError, match="rewards must be finite"):
        Fourier(8).fit(rows[first], np.full(300, np.nan))


def test_bins_are_steps_at_quantiles() -> None:
    rows = np.random.default_rng(2).normal(size=(1000, 1))
    out = Bins(10).fit(rows).transform(rows)
    assert out.shape == (1000, 9)
    np.testing.assert_allclose(out.mean(axis=0), 1 - np.arange(1, 10) / 10, atol=1e-12)
    assert Bins(10).fit(np.array([[0.0], [1.0]])).size == 1  # of two values, one step


def test_hashed_words_keep_inner_products() -> None:
    # Words in common are inner products: the same text 1, none in common about 0 (a collision moves it by 1/7).
    rows = hashed_text(["the cat sat down", "the cat sat up", "green ideas sleep furiously"], size=1 << 16)
    assert rows[0] @ rows[1] == pytest.approx(5 / 7) and abs(rows[0] @ rows[2]) < 1e-12
    assert not np.array_equal(rows, hashed_text(["the cat sat down"], size=1 << 16, seed=1))
    with pytest.raises(ValueError, match=r"texts\[0\]"):
        hashed_text([3])  # type: ignore[list-item]


@pytest.mark.parametrize("n_arms", [2, None])
def test_widths_are_exact_in_the_mapped_space(n_arms: int | None) -> None:
    # Against the naive ridge of the mapped rows: (lam I + sum x x')^-1, by numpy.
    rng, features = np.random.default_rng(4), Join([Columns(), Chain([Columns(), Fourier(12)])]).fit(table(200))
    agent = aw.Mapped(aw.LinUCB(features.size, 0.5, 0.7, n_arms=n_arms, seed=1), features, seed=2)
    seen: list[tuple[int, np.ndarray, float]] = []
    for row in table(60, seed=5):
        context = row if n_arms else np.stack([row, row * 0.5])
        choice, reward = agent.choose(context), float(rng.normal())
        agent.learn(context, choice, reward)
        seen.append((choice.arm if n_arms else 0, row if n_arms else context[choice.arm], reward))
    probe = table(2, seed=6)
    means, widths = agent.estimate(probe[0] if n_arms else probe)
    for a in range(2):
        mine = [(features.transform(x[None])[0], r) for m, x, r in seen if m == (a if n_arms else 0)]
        X, r = np.array([x for x, _ in mine]), np.array([r for _, r in mine])
        A, x = 0.7 * np.eye(features.size) + X.T @ X, features.transform(probe[0 if n_arms else a][None])[0]
        assert widths is not None
        np.testing.assert_allclose(means[a], x @ np.linalg.solve(A, X.T @ r), rtol=1e-8)
        np.testing.assert_allclose(widths[a], np.sqrt(x @ np.linalg.solve(A, x)), rtol=1e-8)


def test_a_length_scale_far_from_the_median_is_found() -> None:
    # Rewards of two arms are +-f, f a draw from a Gaussian process whose length scale is a sixteenth of the median
    # distance. A failure means that the weights do not follow what predicts: the median's map has a regret of 198 in
    # the second half, the right one's 30, and the adaptive one's, with 60 features of each scale, 56.
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(2000, 1))
    length = Fourier(1).fit(rows[:300]).scale_used / 16
    f = Fourier(2000, length_scale=length, seed=77).fit(rows).transform(rows) @ rng.normal(size=2000)
    regret = {}
    for name, mapping in (("median", Fourier(240)), ("adaptive", Fourier(240, scales=(1 / 16, 1 / 4, 1.0, 4.0)))):
        agent = aw.Mapped(aw.LinUCB(240, 0.1, 0.1, n_arms=2, seed=1), mapping.fit(rows[:300]), seed=1)
        earned = agent.play(rows, np.stack([f, -f], axis=1)).rewards
        regret[name] = (np.abs(f) - earned)[1000:].sum()
    assert regret["adaptive"] < 0.5 * regret["median"]
    theta = np.array([agent.agent.estimate(row)[0][0] for row in np.eye(240)])
    energy = (theta**2).reshape(-1, 4).sum(axis=0)
    assert energy[0] > 0.6 * energy.sum() and energy[2] < 0.05 * energy.sum()  # a quarter each if nothing was found


def test_any_linear_agent_takes_features() -> None:
    # Inside or outside a circle: no linear rule of the columns beats 0.75 by much, with features all do (0.9 here).
    rows = np.random.default_rng(7).normal(size=(3000, 2))
    inside = (rows**2).sum(axis=1) < 1.4
    rewards = np.stack([inside, ~inside], axis=1).astype(float)
    features = Join([Fourier(64)]).fit(rows[:200])
    for make in (aw.LinUCB, aw.LinThompson, aw.SquareCB, aw.RegCB, aw.FastCB):
        agent = aw.Mapped(make(features.size, n_arms=2, seed=1), features, seed=1)
        assert agent.play(rows, rewards).rewards[-1000:].mean() > 0.85, make


def test_what_does_not_fit_is_refused() -> None:
    features = Columns().fit(table())
    with pytest.raises(ValueError, match=f"dim={features.size}"):
        aw.Mapped(aw.LinUCB(3), features)
    with pytest.raises(ValueError, match="features has seen no rows"):
        aw.Mapped(aw.LinUCB(3), Columns())
    with pytest.raises(ValueError, match="sees nothing"):
        aw.Mapped(aw.UCB1(2), features)
    with pytest.raises(ValueError, match="columns"):
        Cross(3).fit(table())
    with pytest.raises(ValueError, match="scales must be 1 to count=4 positive numbers"):
        Fourier(4, scales=(1.0, -1.0))
    with pytest.raises(ValueError, match=r"maps\[0\]"):
        Join([3])  # type: ignore[list-item]
