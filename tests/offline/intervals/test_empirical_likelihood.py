"""Empirical likelihood on logs of agents: when it is taken, and by how much it is corrected for skewed weights."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.offline import Log, adaptive
from armwise.offline.intervals.empirical_likelihood import critical, heavier, likelihood
from armwise.offline.results.diagnostics import rare_rewards


def test_which_interval_is_taken_does_not_depend_on_how_often_chance_played_an_arm():
    # An arm of probability 1/30 is played 33 times in 1,000 rounds, or 25. Before, fewer than 30 plays meant the
    # likelihood, which covers almost always just there, while the normal one covered what was left: .977 of the logs.
    kinds = []
    for plays in (25, 33, 42):
        arms = np.zeros(1000, int)
        arms[:: 1000 // plays][:plays] = 1
        arms[np.flatnonzero(arms)[plays:]] = 0
        rewards = (np.arange(1000) % 7 < 3).astype(float)
        log = Log(arms=arms, rewards=rewards, probabilities=np.where(arms == 1, 1 / 30, 29 / 30), n_arms=2)
        kinds.append(adaptive(log, warn=False)["arm 1"].interval)
    assert kinds == ["normal"] * 3


def test_squarecbs_logs_average_more_than_one_as_seldom_as_is_said():
    # 400 logs, three arms each: a share of .45 with a standard error of .014, where .40 is said (80 logs have .031, and
    # chance decides whether .05 stays below .08). A failure means that the correction, which rests on this share, is
    # for another law of the weights than that of an agent that all but drops arms.
    above, said = [], []
    for seed in range(400):
        rng = np.random.default_rng([seed, 31_000])
        x = rng.uniform(-1, 1, (1000, 2))
        agent = aw.SquareCB(2, n_arms=3, seed=seed)
        played = agent.play(x, (rng.random((1000, 3)) < 0.5 + 0.2 * x[:, :1] * [1.0, -0.5, -0.5]).astype(float))
        for arm in range(3):
            w = (played.arms == arm) / played.probabilities
            above.append(w.mean() > 1.0)
            said.append(heavier(w))
    assert np.mean(said) == pytest.approx(np.mean(above), abs=0.08)
    assert np.mean(above) < 0.5


def test_skewed_weights_lower_the_critical_value_and_even_ones_do_not():
    rng = np.random.default_rng(3)
    even, rare = 1.0 + rng.random(2000), np.where(rng.random(2000) < 1 / 500, 500.0, 0.0)
    assert heavier(even) == pytest.approx(0.5, abs=0.005)
    assert 0.3 <= heavier(rare) < 0.46
    assert heavier(np.ones(10)) == 0.5
    spread = np.diag([0.5, 0.5])
    assert critical(spread, 0.95) > critical(spread, 1 - 0.05 * 0.5 / heavier(rare)) > 1.3
    levels = [-0.2, 0.0, 1e-6, 0.1, 0.5, 0.95, 1 - 1e-9]  # so low a level that nothing of it is left, and any other
    found = [critical(spread, level) for level in levels]
    assert 0.0 < found[0] == found[1] < 1e-9 and all(np.diff(found[1:]) > 0)


def test_epsilon_greedys_intervals_cover_as_often_as_they_say():
    # 300 logs, arm 2 and the lift together: .95 within 3 standard errors of 600 (.92 to .977); before .98.
    held = []
    for seed in range(300):
        rng = np.random.default_rng([seed, 20_260])
        means = np.array([0.5, 0.45, 0.4])
        agent = aw.EpsilonGreedy(n_arms=3, epsilon=0.1, seed=seed)
        played = agent.play(None, (rng.random((1000, 3)) < means).astype(float))
        log = Log(arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=3)
        found = adaptive(log, control=1, warn=False)
        lift = means[played.arms].mean() - means[1]
        held += [found["arm 2"].low <= 0.4 <= found["arm 2"].high]
        held += [found["agent - control"].low <= lift <= found["agent - control"].high]
    assert 0.925 <= np.mean(held) <= 0.975


def test_seven_of_twenty_rewards_are_not_rare_and_seven_of_a_hundred_are():
    assert rare_rewards(np.r_[np.ones(7), np.zeros(13)]) == []
    assert "7 of 100 matching rows" in rare_rewards(np.r_[np.ones(7), np.zeros(93)])[0]
    assert "4 of 10 matching rows" in rare_rewards(np.r_[np.ones(4), np.zeros(6)])[0]
    assert rare_rewards(np.r_[np.ones(10), np.zeros(990)]) == []


def test_weights_below_one_by_chance_are_not_taken_for_decisions_without_a_chance():
    # 23 plays where 33.3 are to be expected are 1.8 standard errors too few (a standard error is sqrt(29 / 1000)); by
    # the spread of the weights that came they are 2.2.
    arms = np.zeros(1000, int)
    arms[20:1000:42] = 1
    assert arms.sum() == 24
    arms[20] = 0
    log = Log(arms=arms, rewards=(np.arange(1000) % 5 < 2) * 1.0, probabilities=np.where(arms == 1, 1 / 30, 29 / 30),
              n_arms=2)  # fmt: skip
    found = adaptive(log, {"one": 1}, warn=False)
    assert found["one"].interval == "normal" and found.verdict == ""
    arms[500:] = 0  # and 11 are too few: the interval allows for decisions without a chance, which no verdict need say
    log = Log(arms=arms, rewards=(np.arange(1000) % 5 < 2) * 1.0, probabilities=np.where(arms == 1, 1 / 30, 29 / 30),
              n_arms=2)  # fmt: skip
    few = adaptive(log, {"one": 1}, warn=False)
    assert few["one"].interval == "likelihood" and few.verdict == ""
    assert few["one"].low < 0.05 and few["one"].high > 0.85


@pytest.mark.parametrize("level", [0.05, 0.3, 0.95])
def test_an_interval_of_any_level_has_its_ends_in_order(level):
    """At a low level hardly more than one value is left, and rounding ruled out that one too: from 1 to 0."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        share = rng.uniform(0.05, 0.6)
        weights = (rng.random(200) < share) / share
        rewards = (rng.random(200) < rng.random()) * 1.0
        low, high = likelihood(weights * rewards, weights * (1.0 - rewards), weights, 1.0, (0.0, 1.0), level)
        assert 0.0 <= low <= high <= 1.0, (seed, low, high)
