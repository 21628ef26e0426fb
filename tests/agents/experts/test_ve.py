"""VE: uniform rounds, representatives, then exactly Exp4P; and its bound on a planted stump."""

# mypy: disable-error-code="arg-type, union-attr"

import math

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.policies import PlanarSeparators, SampledLinear, Stumps


def stump_world(seed, T, dim=2, high=0.9, levels=None):
    """The last feature decides: arm 1 is better above a threshold, arm 0 below it."""
    rng = np.random.default_rng(seed)
    x = rng.random((T, dim)) if levels is None else rng.integers(levels, size=(T, dim)) / levels
    good = x[:, -1] > 0.35
    means = np.where(np.column_stack([~good, good]), high, 1.0 - high)
    return x, (rng.random((T, 2)) < means).astype(float)


def test_tau_is_the_theorem_and_a_short_horizon_is_refused():
    agent = aw.VE(Stumps(2), n_arms=2, horizon=5000, delta=0.1)
    assert agent.tau == math.ceil(math.sqrt(5000 * (2 * 3 * math.log(math.e * 5000 / 3) + math.log(20))))
    with pytest.raises(ValueError, match="horizon is 30, too short"):
        aw.VE(Stumps(2), n_arms=2, horizon=30)
    with pytest.raises(ValueError, match="policy_class"):
        aw.VE([aw.Constant(0)], n_arms=2, horizon=3000)


@pytest.mark.parametrize("kind", [Stumps(2), PlanarSeparators(), SampledLinear(2, 300)], ids=lambda k: type(k).__name__)
def test_after_tau_rounds_it_is_exp4p_on_the_representatives(kind):
    x, rewards = stump_world(1, 400)
    agent = aw.VE(kind, n_arms=2, horizon=400, delta=0.1, seed=2)
    for t in range(agent.tau):
        choice = agent.choose(x[t])
        assert (choice.probability, choice.note) == (0.5, None)
        agent.learn(x[t], choice, rewards[t, choice.arm])
    found = agent.representatives
    assert len(found) == len({row.tobytes() for row in found.votes(x[: agent.tau]).T})
    plain = aw.Exp4P(len(found), 2, 400 - agent.tau, 0.05)  # half of delta, as in the proof
    for t in range(agent.tau, 400):
        advice = np.eye(2)[found.votes(x[t : t + 1])[0]]
        expected = plain.probabilities(advice)
        assert np.abs(agent.probabilities(x[t]) - expected).max() < 1e-12
        choice = agent.choose(x[t])
        agent.learn(x[t], choice, rewards[t, choice.arm])
        plain.learn(advice, aw.Choice(choice.arm, choice.probability, expected.tolist()), rewards[t, choice.arm])
    assert np.abs(agent.weights - plain.weights).max() < 1e-12


def test_regret_lies_below_the_bound_in_every_one_of_50_runs():
    """A failure means that VE does not find the planted stump: its bound holds with probability 0.95 a run, and the
    regret is about a fifth of it. The uniform agent's regret, T / 2, is above the bound at this horizon."""
    T, d = 20_000, 2
    bound = aw.bounds.ve(T=T, d=d, delta=0.05)
    assert Stumps(1).dimension(2) == d
    planted = aw.Stump(feature=0, threshold=0.35)
    worst = 0.0
    for seed in range(50):
        x, rewards = stump_world(seed, T, dim=1, high=1.0, levels=100)
        agent = aw.VE(Stumps(1), n_arms=2, horizon=T, delta=0.05, seed=seed)
        played = agent.play(x, rewards)
        assert len(agent.representatives) == 2 * len(np.unique(x[: agent.tau]))  # the combinatorial count
        best = rewards[np.arange(T), planted.many(x)].sum()
        worst = max(worst, best - played.rewards.sum())
    assert worst < bound < 0.5 * T
    assert worst < 0.5 * bound


def test_play_is_the_loop():
    x, rewards = stump_world(8, 300)
    fast, slow = (aw.VE(Stumps(2), n_arms=2, horizon=300, seed=9) for _ in range(2))
    played = [fast.play(x[:250], rewards[:250]), fast.play(x[250:], rewards[250:])]
    for t in range(300):
        choice = slow.choose(x[t])
        assert choice.arm == np.concatenate([p.arms for p in played])[t]
        slow.learn(x[t], choice, rewards[t, choice.arm])
    assert saving.dumps(fast) == saving.dumps(slow)


def test_delayed_rewards_of_uniform_rounds_join_exp4p():
    x, rewards = stump_world(3, 600)
    agent = aw.VE(Stumps(2), n_arms=2, horizon=600, seed=4)
    early = [agent.choose(row) for row in x[:300]]  # all chosen before any reward
    order = np.random.default_rng(5).permutation(300)
    for i, t in enumerate(order):
        assert (agent.representatives is not None) is (i >= agent.tau)
        agent.learn(x[t], early[t], rewards[t, early[t].arm])
    assert agent.weights.max() > 2 / len(agent.weights)
    choice = agent.choose(x[0])
    assert choice.note[choice.arm] == choice.probability


@pytest.mark.parametrize("kind", [Stumps(2), PlanarSeparators(), SampledLinear(2, 300)], ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("at", [10, 260])
def test_saved_and_loaded_it_continues_identically(kind, at, tmp_path):
    x, rewards = stump_world(6, 300)
    agent = aw.VE(kind, n_arms=2, horizon=300, seed=7)
    agent.play(x[:at], rewards[:at])
    assert (agent.representatives is None) is (at == 10)
    agent.save(tmp_path / "ve.aw")
    again = aw.load(tmp_path / "ve.aw")
    one, two = agent.play(x[at:], rewards[at:]), again.play(x[at:], rewards[at:])
    assert np.array_equal(one.arms, two.arms)
    assert saving.dumps(agent) == saving.dumps(again)


@pytest.mark.parametrize("note", ["p", [0.9, 0.9], [0.5]])
def test_a_wrong_note_is_refused(note):
    agent = aw.VE(Stumps(1), n_arms=2, horizon=500)
    with pytest.raises(ValueError, match="note"):
        agent.learn([0.1], aw.Choice(0, 0.5, note), 1.0)
    assert agent.t == 1
