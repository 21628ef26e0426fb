"""Scale learns from the rows of the agent that uses it, and the agent is exact under the map of now."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.features import Chain, Columns, Fourier, Join, Scale
from armwise.testing.checks import check_agent

UNITS = np.array([1e-4, 1e5, 3.0])


def rows(n: int, seed: int = 1) -> np.ndarray:
    table: np.ndarray = np.random.default_rng([seed, 9]).normal([0.0, 5.0, -2.0], size=(n, 3)) * UNITS
    return table


def per_arm(n: int, seed: int = 1) -> np.ndarray:
    return rows(4 * n, seed).reshape(n, 4, 3)


def features() -> Join:
    return Join([Scale(3, rows=40)])


AGENTS: dict[str, Callable[[int | None], aw.Mapped]] = {
    "LinUCB": lambda n: aw.Mapped(aw.LinUCB(4, 0.5, 0.7, n_arms=n, seed=1), features(), seed=2),
    "LinThompson": lambda n: aw.Mapped(aw.LinThompson(4, n_arms=n, seed=1), features(), seed=2),
    "SquareCB": lambda n: aw.Mapped(aw.SquareCB(4, n_arms=n), features(), seed=2),
    "Explore": lambda n: aw.Mapped(aw.Explore(aw.LinThompson(4, n_arms=n), 0.3), features(), seed=2),
    "no dim": lambda n: aw.Mapped(aw.LinUCB(alpha=0.5, n_arms=n), features(), seed=2),
}


def test_it_standardises_by_the_rows_that_fit_saw() -> None:
    table = rows(300)
    out = Scale().fit(table).transform(table)
    expected = (table - table.mean(axis=0)) / table.std(axis=0)
    np.testing.assert_allclose(out, np.clip(expected, -5.0, 5.0), rtol=1e-9, atol=1e-12)
    assert Scale().fit(table).settled and not Scale(rows=301).fit(table).settled


def test_rows_in_parts_are_the_rows_at_once() -> None:
    # A column of 1e8 + noise: sums of squares would lose the noise. Renewed at 1, 2, 4, ..., and at rows.
    table = rows(200) + np.array([0.0, 1e8, 0.0])
    scale, renewed = Scale(3, rows=200), []
    for i, row in enumerate(table):
        assert not scale.settled
        if scale._watch(row[None]):
            renewed.append(i + 1)
            np.testing.assert_allclose(
                scale.transform(table[: i + 1]), Scale().fit(table[: i + 1]).transform(table[: i + 1]), atol=1e-6
            )
    assert renewed == [1, 2, 4, 8, 16, 32, 64, 128, 200] and scale.settled
    before = scale.transform(table)
    assert not scale._watch(1e3 * table) and np.array_equal(scale.transform(table), before)


def test_a_column_that_has_not_varied_is_zero() -> None:
    table = np.column_stack([np.full(30, 0.1), np.arange(30.0)])  # the mean of 30 times 0.1 is not 0.1
    assert not Scale().fit(table).transform(table)[:, 0].any()
    assert not Scale(2).transform(table).any()


@pytest.mark.parametrize("n_arms", [4, None])
@pytest.mark.parametrize("seen", [3, 11, 37, 60])
def test_widths_are_exact_in_the_space_of_now(n_arms: int | None, seen: int) -> None:
    # Against the naive ridge of all rewards so far under the map of now, before and after it is settled.
    agent, rng = AGENTS["LinUCB"](n_arms), np.random.default_rng(4)
    learnt = []
    for context in rows(seen) if n_arms else per_arm(seen):
        choice, reward = agent.choose(context), float(rng.normal())
        agent.learn(context, choice, reward)
        learnt.append((choice.arm if n_arms else 0, context if n_arms else context[choice.arm], reward))
    assert agent.fitted.settled == (seen * (1 if n_arms else 4) >= 40)
    probe = per_arm(1, seed=8)[0]
    means, widths = agent.estimate(probe[0] if n_arms else probe)
    assert widths is not None
    for a in range(4):
        mine = [(x, r) for m, x, r in learnt if m == (a if n_arms else 0)]
        X = agent.fitted.transform(np.array([x for x, _ in mine]).reshape(-1, 3))
        A = 0.7 * np.eye(4) + X.T @ X
        x = agent.fitted.transform(probe[0 if n_arms else a][None])[0]
        np.testing.assert_allclose(means[a], x @ np.linalg.solve(A, X.T @ np.array([r for _, r in mine])), rtol=1e-8)
        np.testing.assert_allclose(widths[a], np.sqrt(x @ np.linalg.solve(A, x)), rtol=1e-8)


@pytest.mark.parametrize(("name", "n_arms"), [*product(AGENTS, [4, None]), ("LogisticThompson", None)])
def test_play_is_the_loop_also_after_a_file(name: str, n_arms: int | None) -> None:
    contexts, rewards = rows(90) if n_arms else per_arm(90), np.random.default_rng(5).integers(0, 2, (90, 4)) * 1.0

    def make() -> aw.Mapped:
        if name in AGENTS:
            return AGENTS[name](n_arms)
        return aw.Mapped(aw.LogisticThompson(4), features(), seed=2)  # which reads rows its own way

    whole, parts = make(), make()
    played = whole.play(contexts, rewards)
    arms = list(parts.play(contexts[:5], rewards[:5]).arms)  # a file before the map is settled
    parts = saving.loads(saving.dumps(parts))
    for t in range(5, 90):
        choice = parts.choose(contexts[t])
        parts.learn(contexts[t], choice, rewards[t, choice.arm])
        arms.append(choice.arm)
        if t in (9, 70):  # and one after
            parts = saving.loads(saving.dumps(parts))
    assert np.array_equal(played.arms, arms)
    assert np.array_equal(whole.probabilities(contexts[0]), parts.probabilities(contexts[0]))


def test_it_keeps_the_contract_of_agents() -> None:
    scale = Join([Scale(4, rows=100)])
    assert "play_equals_the_loop" in check_agent(lambda seed: aw.Mapped(aw.LinUCB(5, 0.5, 0.3), scale, seed=seed))


def test_the_rewards_are_let_go_when_it_is_settled() -> None:
    agent = AGENTS["LinUCB"](4)
    contexts = rows(400)
    agent.play(contexts[:39], np.ones((39, 4)))
    kept = len(saving.dumps(agent))
    agent.play(contexts[39:50], np.ones((11, 4)))
    settled = len(saving.dumps(agent))
    agent.play(contexts[50:], np.ones((350, 4)))
    assert settled < kept and abs(len(saving.dumps(agent)) - settled) < 200


def test_random_streams_go_on_when_rewards_are_learnt_again() -> None:
    # Uniform choices: a stream that began anew at the renewals (1, 2, 4, 8, 16, 32) would give its numbers again.
    agent = aw.Mapped(aw.Explore(aw.LinUCB(4, n_arms=1000), 1.0, seed=3), features(), seed=2)
    plain = aw.Mapped(aw.Explore(aw.LinUCB(4, n_arms=1000), 1.0, seed=3), Join([Scale(3)]).fit(rows(300)), seed=2)
    one, other = (each.play(rows(40), np.zeros((40, 1000))).arms for each in (agent, plain))
    assert np.array_equal(one, other) and len(set(one)) > 30


def test_a_clone_begins_with_the_map_as_it_was_given() -> None:
    mapping = features()
    agent = aw.Mapped(aw.LinUCB(4, n_arms=2, seed=1), mapping)
    agent.play(rows(60), np.ones((60, 2)))
    assert agent.fitted.settled and not mapping.settled and not agent.clone().fitted.settled
    assert np.array_equal(mapping.transform(rows(2))[:, 1:], np.zeros((2, 3)))


def test_units_do_not_matter() -> None:
    # Rewards follow the column of 1e-4: a ridge of the raw columns never sees it beside that of 1e5. Scaled, the
    # agent finds it. A failure means that the columns do not come to one size.
    X = rows(1500)
    good = X[:, 0] > 0
    rewards = np.stack([good, ~good], axis=1) * 1.0
    scaled = aw.Mapped(aw.LinUCB(4, n_arms=2, seed=1), Join([Scale(3)])).play(X, rewards).rewards[-500:].mean()
    raw = aw.LinUCB(3, n_arms=2, seed=1).play(X, rewards).rewards[-500:].mean()
    assert scaled > 0.9 > 0.7 > raw


def test_in_a_chain_the_map_after_it_sees_scaled_rows() -> None:
    chain = Chain([Scale(rows=100), Fourier(8, length_scale=1.0)]).fit(rows(10))
    agent = aw.Mapped(aw.LinUCB(8, n_arms=2, seed=1), chain)
    agent.play(rows(120, seed=2), np.ones((120, 2)))
    seen = np.vstack([rows(10), rows(120, seed=2)[:90]])
    expected = Fourier(8, length_scale=1.0).fit(np.eye(3)).transform(Scale().fit(seen).transform(rows(5, seed=3)))
    np.testing.assert_allclose(agent.fitted.transform(rows(5, seed=3)), expected, atol=1e-9)
    assert agent.fitted.settled and Chain([Columns(), Scale()]).fit(rows(300)).size == 6


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="dim=2 columns"):
        Scale(2).fit(rows(5))
    with pytest.raises(ValueError, match="rows must"):
        Scale(2, rows=0)
    with pytest.raises(ValueError, match="at most 1e150"):
        Scale().fit([[1e200]])
    with pytest.raises(ValueError, match="cannot learn its rewards again"):
        aw.Mapped(aw.EpochGreedy(aw.LinearOracle(4, 2), 2), features())
    with pytest.raises(ValueError, match="cannot revise"):
        AGENTS["LinUCB"](2).revise(rows(1)[0], aw.Choice(0, 0.5), 0.0, 1.0)
