"""Inference by simulation: clones of the agent live through worlds of the fitted model."""

from __future__ import annotations

import json

import numpy as np
import pytest

import armwise as aw
from armwise.offline import Log, WeakLogWarning, adaptive

SLOPES = np.array([[0.2, 0.0], [-0.1, 0.15], [-0.1, -0.15]])


def thompson(seed, curve=0.0, n=800):
    """A log of Thompson sampling, which soon gives arms no chance where they look bad; the arms' means are .5."""
    rng = np.random.default_rng([seed, 5])
    x = rng.uniform(-1, 1, (n, 2))
    expected = 0.5 + x @ SLOPES.T + curve * (x[:, :1] ** 2 - 1 / 3)
    agent = aw.LinThompson(2, n_arms=3, draws=10, seed=seed)
    played = agent.play(x, (rng.random((n, 3)) < expected).astype(float))
    log = Log(contexts=x, arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=3)
    return agent, log


def test_the_interval_covers_where_the_plain_mean_does_not():
    # LinUCB knows no probabilities, and none are needed. Binomial: .95 of 45 is below .84 once in 500 times. A failure
    # means that the law of the errors is not taken from the agent's own adaptivity. One log in five is refused.
    held, plain = [], []
    for seed in range(56):
        rng = np.random.default_rng([seed, 1])
        x, agent = rng.uniform(-1, 1, (300, 2)), aw.LinUCB(2, n_arms=3, seed=seed)
        played = agent.play(x, (rng.random((300, 3)) < 0.5 + 2 * x @ SLOPES.T).astype(float))
        log = Log(contexts=x, arms=played.arms, rewards=played.rewards, n_arms=3)
        found = adaptive(log, {"arm 0": 0}, interval="simulated", agent=agent, simulations=39, seed=seed, warn=False)
        if found["arm 0"].interval == "simulated":
            held.append(found["arm 0"].low <= 0.5 <= found["arm 0"].high)
            plain.append(found.plain["arm 0"].low <= 0.5 <= found.plain["arm 0"].high)
    assert len(held) > 35
    assert np.mean(held) >= 0.84
    assert np.mean(plain) < 0.5


def test_an_arm_that_was_hardly_played_has_no_simulated_interval():
    agent = aw.EpsilonGreedy(n_arms=2, epsilon=0.02, seed=3)
    played = agent.play(None, (np.random.default_rng(3).random((300, 2)) < [0.2, 0.7]).astype(float))
    log = Log(arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=2)
    found = adaptive(log, control=1, interval="simulated", agent=agent, simulations=39, warn=False)
    assert (played.arms == 0).sum() < 30
    assert found["arm 0"].interval == found["arm 0 - control"].interval == "likelihood"
    assert found["arm 1"].interval == found["agent - control"].interval == "simulated"
    assert found["arm 1"].low < 0.7 < found["arm 1"].high
    bare = adaptive(Log(arms=played.arms, rewards=played.rewards, n_arms=2), interval="simulated", agent=agent,
                    simulations=39, warn=False)  # fmt: skip
    assert bare["arm 0"].interval == "none" and "too few for a fit" in bare.verdict


def test_what_it_rests_on_is_said_in_every_view(tmp_path):
    agent, log = thompson(1)
    found = adaptive(log, control=1, interval="simulated", agent=agent, simulations=39)
    without = adaptive(log, control=1, warn=False)
    for name in ("arm 0", "arm 2", "agent - control", "arm 2 - control"):
        assert found[name].interval == "simulated"
        assert found[name].high - found[name].low < 0.7 * (without[name].high - without[name].low)
    said = "rewards that are linear in the columns (x0 to x1)"
    found.report(tmp_path / "page.html")
    views = (found.table(), found._repr_html_(), (tmp_path / "page.html").read_text(),
             json.loads(found.to_json())["simulation"]["rests_on"])  # fmt: skip
    assert all(said in view and "LinThompson" in view and "39 simulated logs" in view for view in views)
    assert found.verdict == ""
    again = adaptive(log, control=1, interval="simulated", agent=agent.clone(), simulations=39)
    assert again["arm 2"] == found["arm 2"]  # the seed is that of the simulation, not of the agent


def test_rewards_that_are_not_linear_are_found_out_and_judged_without_a_model():
    rng = np.random.default_rng(2)
    x, agent = rng.uniform(-1, 1, (1500, 1)), aw.Explore(aw.LinUCB(1, n_arms=2, seed=1), 0.05, seed=1)
    played = agent.play(x, (rng.random((1500, 2)) < np.c_[0.7 - 0.6 * x**2, 0.3 + 0 * x]).astype(float))
    log = Log(contexts=x, arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=2)
    with pytest.warns(WeakLogWarning, match="no simulated intervals: they would rest on .*lack of fit p = 0.02"):
        found = adaptive(log, interval="simulated", agent=agent, simulations=39)
    assert found["arm 0"].interval in ("likelihood", "normal")
    assert found["arm 0"].low < 0.5 < found["arm 0"].high
    assert not any("simulated intervals rest" in note for note in found.notes)
    bare = Log(contexts=x, arms=played.arms, rewards=played.rewards, n_arms=2)
    with pytest.warns(WeakLogWarning, match="lack of fit"):
        none = adaptive(bare, interval="simulated", agent=agent, simulations=39)
    assert none["arm 0"].interval == "none" and np.isinf(none["arm 0"].low)


@pytest.mark.parametrize("other", [
    aw.EpsilonGreedy(n_arms=3, epsilon=0.1), aw.LinThompson(2, n_arms=3, draws=10, scale=4.0), aw.LinUCB(2, n_arms=3),
])  # fmt: skip
def test_an_agent_that_did_not_write_the_log_is_found_out(other):
    _, log = thompson(3)
    found = adaptive(log, interval="simulated", agent=other, simulations=39, warn=False)
    assert f"{type(other).__name__} as given would have played the logged arms" in found.verdict
    assert found["arm 0"].interval != "simulated"


def test_amounts_and_features_of_arms():
    rng = np.random.default_rng(3)
    X, theta = rng.normal(size=(300, 4, 2)), np.array([1.0, -0.5])
    agent = aw.LinUCB(2, seed=1)
    played = agent.play(X, 10.0 + X @ theta + rng.normal(0, 0.3, (300, 4)))
    log = Log(contexts=X, arms=played.arms, rewards=played.rewards)
    found = adaptive(log, {"uniform": aw.Uniform(4)}, interval="simulated", agent=agent, simulations=39)
    assert found["uniform"].low < 10.0 < found["uniform"].high
    assert found["uniform"].high - found["uniform"].low < 0.6
    assert "linear in the features of the arms" in found.table()


@pytest.mark.parametrize(("options", "message"), [
    ({"interval": "simulated"}, "needs agent="), ({"interval": "simulated", "agent": "LinUCB"}, "got str"),
    ({"agent": aw.UCB1(n_arms=3)}, "agent is for interval='simulated'"),
    ({"interval": "simulated", "agent": aw.UCB1(n_arms=3), "simulations": 5}, "simulations must be"),
    ({"interval": "simulated", "agent": aw.LinUCB(5, n_arms=3)}, "5"),
])  # fmt: skip
def test_bad_input_is_said(options, message):
    _, log = thompson(4, n=60)
    with pytest.raises(ValueError, match=message):
        adaptive(log, **options)
