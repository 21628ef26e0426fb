"""Doubling restarts as it should; Explore reports how it plays, and the agent inside learns what it should."""

# mypy: disable-error-code="attr-defined, var-annotated"

from collections import Counter

import numpy as np
import pytest

import armwise as aw
from armwise import Choice
from armwise.core.saving import dumps
from tests.agents.wrappers.wrapped_agents import Recorder

REWARDS = (np.random.default_rng(1).random((400, 3)) < [0.2, 0.5, 0.7]).astype(float)

# ------------------------------------------------------------------ Doubling


@pytest.mark.parametrize("maker", ["Exp3.theoretical", aw.Exp3.theoretical, "function"])
def test_doubling_is_a_fresh_tuned_agent_at_1_2_4(maker):
    make = (lambda T: aw.Exp3.theoretical(3, T)) if maker == "function" else maker
    agent = aw.Doubling(make, None if maker == "function" else {"n_arms": 3}, seed=1)
    starts = []
    for t in range(70):
        if agent.horizon != (starts[-1][1] if starts else None):
            starts.append((t, agent.horizon))
            np.testing.assert_allclose(agent.probabilities(), 1 / 3)
        choice = agent.choose()
        assert choice.note == [len(starts) - 1, None]
        gamma = aw.Exp3.theoretical(3, agent.horizon).gamma
        assert agent.probabilities().min() >= gamma / 3 - 1e-12
        agent.learn(None, choice, REWARDS[t, choice.arm])
    assert starts == [(0, 1), (1, 2), (3, 4), (7, 8), (15, 16), (31, 32), (63, 64)]


def test_rewards_of_an_earlier_run_count_but_teach_nothing():
    agent = aw.Doubling("Exp3.theoretical", {"n_arms": 3}, seed=1)
    early = [agent.choose() for _ in range(6)]
    agent.learn(None, early[0], 1.0)  # ends the run of horizon 1
    assert agent.horizon == 2
    for choice in early[1:]:
        agent.learn(None, choice, 1.0)
        np.testing.assert_allclose(agent.probabilities(), 1 / 3)
    assert (agent.t, agent.horizon) == (7, 4)
    fresh = agent.choose()
    agent.learn(None, fresh, 1.0)  # the seventh reward ends the run of horizon 4
    assert agent.horizon == 8


def test_a_function_that_makes_agents_cannot_be_saved_but_its_name_can(tmp_path):
    agent = aw.Doubling(lambda T: aw.Exp3.theoretical(3, T))
    with pytest.raises(ValueError, match="name it instead"):
        agent.save(tmp_path / "model.aw")
    with pytest.raises(ValueError, match="make_agent cannot be saved"):
        dumps(agent)
    aw.Doubling(aw.Exp3.theoretical, {"n_arms": 3}).save(tmp_path / "model.aw")
    assert aw.load(tmp_path / "model.aw").make_agent == "Exp3.theoretical"


def test_horizons_that_the_agent_refuses_are_skipped():
    def picky(T):
        if T < 5:
            raise ValueError("horizon too short")
        return aw.Exp3.theoretical(3, T)

    agent = aw.Doubling(picky, seed=1)
    horizons = Counter()
    for t in range(8 + 16 + 5):
        horizons[agent.horizon] += 1
        agent.learn(None, agent.choose(), REWARDS[t, 0])
    assert horizons == {8: 8, 16: 16, 32: 5}


def test_doubling_regret_is_below_its_bound():
    T, K = 3_000, 3
    rewards = np.tile([0.1, 0.3, 0.9], (T, 1))
    regrets = [
        0.9 * T - aw.Doubling("Exp3.theoretical", {"n_arms": K}, seed=s).play(None, rewards).rewards.sum()
        for s in range(10)
    ]
    assert 0 < np.mean(regrets) < aw.bounds.doubling(T=T, bound=aw.bounds.exp3, K=K)


# ------------------------------------------------------------------ Explore


@pytest.mark.parametrize(
    "inner",
    [
        lambda: Recorder(seed=1),
        lambda: aw.Exp3(n_arms=3, gamma=0.1, seed=1),
        lambda: aw.EpsilonGreedy(n_arms=3, epsilon=0.2, seed=1),
    ],
)
def test_explore_reports_the_probabilities_with_which_it_plays(inner):
    """Frequencies over 20,000 choices; the standard error is below 0.0036."""
    agent = aw.Explore(inner(), 0.3, seed=1)
    q = inner().probabilities()
    expected = 0.7 * q + 0.1
    np.testing.assert_allclose(agent.probabilities(), expected)
    choices = [agent.choose() for _ in range(20_000)]
    frequencies = np.bincount([c.arm for c in choices], minlength=3) / len(choices)
    np.testing.assert_allclose(frequencies, expected, atol=0.013)
    assert all(c.probability == pytest.approx(expected[c.arm]) for c in choices)


def test_the_agent_inside_draws_independently_even_with_the_same_seed():
    """The first choice of 4,000 pairs, standard error below 0.008: with one stream for both, the agent's draw would
    depend on whether the round explores, and arm 0 would have 0.4 + 0.1 in place of 0.7 * 0.7 + 0.1."""
    arms = [aw.Explore(Recorder(seed=seed), 0.3, seed=seed).choose().arm for seed in range(4_000)]
    np.testing.assert_allclose(np.bincount(arms, minlength=3) / 4_000, 0.7 * Recorder.q + 0.1, atol=0.025)


def test_the_agent_inside_learns_every_round_with_the_actual_probability_and_its_own_note():
    recorder = Recorder(seed=1)
    agent = aw.Explore(recorder, 0.3, seed=1)
    choices = [agent.choose() for _ in range(50)]
    for choice in choices:
        agent.learn(None, choice, 0.5)
    assert [choice for choice, _ in recorder.taught] == choices
    assert {choice.note for choice in choices} == {"mine"}
    assert recorder.t == agent.t == 51


def test_an_unknown_probability_stays_unknown():
    agent = aw.Explore(aw.BetaThompson(n_arms=3, seed=1), 0.5, seed=1)
    assert {agent.choose().probability for _ in range(50)} == {None}


def test_a_probability_that_the_agent_inside_needs_is_asked_for():
    for agent in (
        aw.Explore(aw.Exp3(n_arms=2), 0.1),
        aw.PerContext(aw.Exp3(n_arms=2)),
        aw.Doubling("Exp3.theoretical", {"n_arms": 2}),
    ):
        context = "key" if agent.sees == "key" else None
        with pytest.raises(ValueError, match=r"probability is None, but Exp3 learns with it"):
            agent.learn(context, Choice(0, None), 1.0)


def test_explore_over_features_and_a_changing_number_of_arms():
    agent, rng = aw.Explore(aw.LinUCB(dim=3, lam=0.5, seed=1), 0.2, seed=1), np.random.default_rng(3)
    plain = aw.LinUCB(dim=3, lam=0.5, seed=1)
    for _ in range(100):
        K = int(rng.integers(1, 6))
        X = rng.normal(size=(K, 3))
        np.testing.assert_allclose(agent.probabilities(X), 0.8 * plain.probabilities(X) + 0.2 / K)
        choice, reward = agent.choose(X), rng.normal()
        agent.learn(X, choice, reward)
        plain.learn(X, choice, reward)
