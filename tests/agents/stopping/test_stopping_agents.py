"""Agents that stop: beside naive versions from the whole history, and never wrong more often than they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import armwise as aw
from armwise.theory import stopping

AGENTS = [aw.TrackAndStop, aw.TopTwoThompson, aw.LUCB, aw.SuccessiveElimination]


def history(agent, means, rng, noise=None):
    """Play until it stops; every (probabilities, arm, reward)."""
    played = []
    while agent.answer is None:
        choice, p = None, agent.probabilities()
        choice = agent.choose()
        mean = means[choice.arm]
        reward = float(rng.random() < mean) if noise is None else float(rng.normal(mean, noise))
        agent.learn(None, choice, reward)
        played.append((p, choice, reward))
    return played


def empty(n_arms: int) -> list[list[float]]:
    """No rewards of any arm."""
    return [[] for _ in range(n_arms)]


@pytest.mark.parametrize("noise", [None, 0.5])
def test_track_and_stop_tracks_the_optimal_shares(noise):
    """D-tracking written out; a wrong forced exploration or share plays another arm."""
    agent, seen = aw.TrackAndStop(3, 0.1, noise=noise, seed=1), empty(3)
    for p, choice, reward in history(agent, [0.9, 0.5, 0.2], np.random.default_rng(2), noise):
        counts = np.array([len(each) for each in seen])
        t = counts.sum()
        if 0 in counts:
            want = counts == 0
        elif counts.min() < math.sqrt(t) - 1.5:
            want = counts == counts.min()
        else:
            _, shares = stopping.optimal_shares([float(np.mean(each)) for each in seen], noise)
            want = t * shares - counts >= (t * shares - counts).max() - 1e-9
        np.testing.assert_allclose(p, want / want.sum(), atol=1e-12)
        seen[choice.arm].append(reward)


def test_chernoffs_rule_is_the_likelihood_ratio():
    """Stop exactly when n_a d + n_b d exceeds the threshold for every rival: computed from all rewards."""
    agent, seen = aw.TrackAndStop(3, 0.1, seed=4), empty(3)
    rng = np.random.default_rng(5)
    rule = stopping.Threshold(3, 0.1, None, "proved")
    while agent.answer is None:
        choice = agent.choose()
        reward = float(rng.random() < [0.8, 0.4, 0.3][choice.arm])
        agent.learn(None, choice, reward)
        seen[choice.arm].append(reward)
        if all(seen):
            n, mean = [len(each) for each in seen], [float(np.mean(each)) for each in seen]
            best = int(np.argmax(mean))
            sure = True
            for b in range(3):
                x = (n[best] * mean[best] + n[b] * mean[b]) / (n[best] + n[b])
                z = n[best] * stopping.bernoulli_divergence(mean[best], x)
                z += n[b] * stopping.bernoulli_divergence(mean[b], x)
                sure &= b == best or (mean[best] > mean[b] and z > rule.between(n[best], n[b]))
            assert sure == (agent.answer is not None)
    assert agent.answer == 0 and agent.stopped_at == sum(map(len, seen)) == agent.t - 1


def test_top_two_thompson_draws_leader_then_challenger():
    """Its exact probabilities are the frequencies of the two-step draw; 4 deviations would be a wrong distribution."""
    agent = aw.TopTwoThompson(3, 0.1, share=0.6, seed=1)
    rewards = [(0, 1.0), (0, 1.0), (0, 0.0), (1, 1.0), (1, 0.0), (2, 0.0), (2, 1.0), (2, 0.0)]
    for arm, reward in rewards:
        agent.learn(None, aw.Choice(arm, 0.5), reward)
    rng, n = np.random.default_rng(1), 40_000
    wins, losses, means = np.array([2, 1, 1]), np.array([1, 1, 2]), np.array([2 / 3, 1 / 2, 1 / 3])
    counts = wins + losses

    def advantage(a, b):
        if means[a] <= means[b]:
            return 0.0
        x = (counts[a] * means[a] + counts[b] * means[b]) / (counts[a] + counts[b])
        return counts[a] * stopping.bernoulli_divergence(means[a], x) + counts[b] * stopping.bernoulli_divergence(
            means[b], x
        )

    played = np.zeros(3)
    for leader in rng.beta(1 + wins, 1 + losses, (n, 3)).argmax(axis=1):
        if rng.random() < 0.6:
            played[leader] += 1
        else:
            others = [b for b in range(3) if b != leader]
            least = min(advantage(leader, b) for b in others)
            hardest = [b for b in others if advantage(leader, b) <= least]
            played[hardest[int(rng.random() * len(hardest))]] += 1
    assert np.abs(played / n - agent.probabilities()).max() < 4 * 0.5 / math.sqrt(n)


def test_lucb_compares_the_best_with_the_largest_upper_end():
    agent, seen = aw.LUCB(4, 0.2, seed=1), empty(4)
    for p, choice, reward in history(agent, [0.9, 0.2, 0.3, 0.1], np.random.default_rng(3)):
        if all(seen):
            means = [float(np.mean(each)) for each in seen]
            best = int(np.argmax(means))
            if means.count(means[best]) == 1:
                cost = stopping.mixture_cost(math.log(4 / 0.2))
                ends = [stopping.confidence_ends(m, (cost + 3 * math.log1p(math.log(len(s)))) / len(s), None)[1]
                        for m, s in zip(means, seen, strict=True)]  # fmt: skip
                rivals = [
                    a for a in range(4) if a != best and ends[a] >= max(e for b, e in enumerate(ends) if b != best)
                ]
                want = np.zeros(4)
                want[best], want[rivals] = 0.5, 0.5 / len(rivals)
                np.testing.assert_allclose(p, want, atol=1e-12)
        seen[choice.arm].append(reward)
    assert agent.answer == 0


def test_elimination_never_takes_an_arm_back():
    agent, left = aw.SuccessiveElimination(4, 0.2, seed=1), {0, 1, 2, 3}
    rng = np.random.default_rng(1)
    while agent.answer is None:
        choice = agent.choose()
        assert choice.arm in left
        agent.learn(None, choice, float(rng.random() < [0.9, 0.5, 0.3, 0.1][choice.arm]))
        assert set(agent.left) <= left
        left = set(agent.left)
    assert agent.left == [agent.answer] == [0]


@pytest.mark.parametrize("make", AGENTS)
@pytest.mark.parametrize("noise", [None, 0.5])
def test_an_answer_is_right_and_not_sooner_than_possible(make, noise):
    """40 runs with delta = .1: 4 wrong answers would be expected of a rule that is just correct, and these are far from
    it; a rule that stops by a fixed-sample test looked at after every round is wrong in about a third. No correct rule
    stops sooner in the mean than kl(delta, 1 - delta) T*."""
    means = np.array([0.3, 0.8])
    least = stopping.least_stopping_time(means, 0.1, noise)
    times, wrong = [], 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rewards = (rng.random((400, 2)) < means) * 1.0 if noise is None else rng.normal(means, noise, (400, 2))
        agent = make(2, 0.1, noise=noise, seed=seed)
        agent.play(None, rewards)
        times.append(agent.stopped_at or 400)
        wrong += agent.answer == 0
    assert wrong <= 1
    assert least < np.mean(times) < 400


@pytest.mark.parametrize("make", AGENTS)
def test_a_stopped_search_stays_stopped(make):
    agent = make(2, 0.1, seed=1)
    agent.play(None, np.tile([0.0, 1.0], (200, 1)))
    at = agent.stopped_at
    assert agent.answer == 1 and at is not None
    for _ in range(300):
        agent.learn(None, aw.Choice(0, 1.0), 1.0)
    assert (agent.answer, agent.stopped_at) == (1, at) and agent.probabilities().tolist() == [0.0, 1.0]
    assert agent.clone().answer is None


@pytest.mark.parametrize("make", AGENTS)
def test_bad_arguments_are_named(make):
    for arguments, name in (({"n_arms": 1}, "n_arms"), ({"delta": 1.0}, "delta"), ({"noise": 0.0}, "noise"),
                            ({"threshold": "quick"}, "threshold")):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            make(**({"n_arms": 2} | arguments))


def test_a_race_runs_searches_to_their_stop(tmp_path):
    world = aw.environments.KArmed([0.2, 0.8])
    agents = {"LUCB": aw.LUCB(2, 0.1), "Track": aw.TrackAndStop(2, 0.1), "UCB1": aw.UCB1(2)}
    result = aw.race(agents, world, horizon=600, seeds=4)
    assert result.searchers == ["LUCB", "Track"] and result.answers("Track") == [1, 1, 1, 1]
    assert (result.stopping_times("LUCB") < 600).all()
    assert result.table().set_index("agent")["stopped_at"].notna().to_dict() == {
        "LUCB": True,
        "Track": True,
        "UCB1": False,
    }
    assert "median stop" in str(result) and len(result.plot(kind="stopping").axes) == 1
    result.save(tmp_path / "race.aw")
    again = type(result).load(tmp_path / "race.aw")
    np.testing.assert_array_equal(again.stopping_times("LUCB"), result.stopping_times("LUCB"))
    with pytest.raises(ValueError, match="name must be an agent that stops"):
        result.stopping_times("UCB1")
    short = aw.race(agents, world, horizon=20, seeds=2)
    assert np.isnan(short.stopping_times("LUCB")).all() and short.answers("LUCB") == [None, None]
    assert "stopped by each round" in result.report(tmp_path / "race.html").read_text()


@pytest.mark.parametrize("means", [[0.5], [0.5, 1.5], [0.5, float("nan")], "ab", [[0.1, 0.2]]])
def test_means_that_are_none_are_refused(means):
    with pytest.raises(ValueError, match=r"means|could not convert"):
        aw.environments.KArmed(means)
