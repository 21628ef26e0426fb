"""Replay: exactly the matching rows, and the agent's online value on average."""

# mypy: disable-error-code="arg-type, attr-defined"

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import armwise as aw
from armwise.core import saving
from armwise.offline import Log, WeakLogWarning, replay
from tests.offline.worlds import K, draw_arms, expected, logging, make


def uniform_log(n, seed, probabilities=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    arms = rng.integers(0, K, n)
    rewards = (rng.random(n) < expected(x)[np.arange(n), arms]).astype(float)
    return Log(
        contexts=x, arms=arms, rewards=rewards, probabilities=np.full(n, 1 / K) if probabilities else None, n_arms=K
    )


@pytest.mark.parametrize("probabilities", [True, False])
def test_a_uniform_log_gives_exactly_the_rewards_of_the_matching_rows(probabilities):
    log = uniform_log(1500, 1, probabilities)
    agent = aw.LinUCB(dim=3, n_arms=K, alpha=0.3, lam=2.0, seed=5)
    found = replay(log, agent, runs=0)
    by_hand, rows = aw.LinUCB(dim=3, n_arms=K, alpha=0.3, lam=2.0, seed=5), []
    for i in range(1500):
        choice = by_hand.choose(log.contexts[i])
        if choice.arm == log.arms[i]:
            by_hand.learn(log.contexts[i], choice, log.rewards[i])
            rows.append(i)
    assert found.rows.tolist() == rows
    assert found.matched == len(rows)
    assert found.n == 1500
    np.testing.assert_array_equal(found.rewards, log.rewards[rows])
    assert found.value == found.rewards.mean()
    error = found.rewards.std(ddof=1) / np.sqrt(len(rows))
    assert found.low == pytest.approx(found.value - 1.959964 * error, rel=1e-5)
    assert saving.dumps(found.agent) == saving.dumps(by_hand)
    assert agent.t == 1  # the agent that was given is as it was


def online_value(make_agent, horizon, seed):
    """What the agent earns on average in the real world."""
    rng = np.random.default_rng(seed)
    agent, total = make_agent(seed), 0.0
    x = rng.normal(size=(horizon, 3))
    rewards = (rng.random((horizon, K)) < expected(x)).astype(float)
    for t in range(horizon):
        choice = agent.choose(x[t])
        agent.learn(x[t], choice, rewards[t, choice.arm])
        total += rewards[t, choice.arm]
    return total / horizon


def learner(seed):
    return aw.LinUCB(dim=3, n_arms=K, alpha=0.5, seed=seed)


def test_replay_is_unbiased_on_a_uniform_log():
    # 200 replays against 200 lives online, 60 rounds each; a bias would be a difference of means (two-sided, 1 %).
    replayed = [replay(uniform_log(60 * K * 2, 1000 + s), learner(s), horizon=60, runs=0).value for s in range(200)]
    online = [online_value(learner, 60, 5000 + s) for s in range(200)]
    assert stats.ttest_ind(replayed, online).pvalue > 0.01


@pytest.mark.filterwarnings("ignore:few different rewards")  # forty rows are few
def test_rejection_makes_replay_unbiased_on_a_log_that_is_not_uniform():
    def skewed_log(seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1400, 3))
        p = logging(x)
        arms = draw_arms(p, rng)
        rows = np.arange(1400)
        rewards = (rng.random(1400) < expected(x)[rows, arms]).astype(float)
        return Log(contexts=x, arms=arms, rewards=rewards, probabilities=p[rows, arms], n_arms=K)

    found = [replay(skewed_log(s), learner(s), horizon=40, floor=0.05, runs=0, seed=s) for s in range(200)]
    assert all(f.matched == 40 for f in found)
    online = [online_value(learner, 40, 9000 + s) for s in range(200)]
    assert stats.ttest_ind([f.value for f in found], online).pvalue > 0.01


def test_rejection_accepts_each_arm_equally_often():
    rng = np.random.default_rng(3)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    arms = rng.choice(4, 40_000, p=p)
    log = Log(arms=arms, rewards=np.zeros(40_000), probabilities=p[arms], n_arms=4)
    found = replay(log, aw.Exp3(n_arms=4, gamma=1.0, seed=1))  # gamma = 1 chooses uniformly for ever
    counts = np.bincount(arms[found.rows], minlength=4)
    assert found.matched == pytest.approx(40_000 * 0.1, rel=0.1)  # floor times the number of rows
    assert stats.chisquare(counts).pvalue > 0.001
    assert "0.1 / p" in found.method


def test_a_match_that_fails_leaves_the_agent_as_it_was():
    # EpochGreedy counts its choices: rounds that never happened to it must not count.
    log = uniform_log(400, 4)
    agent = aw.EpochGreedy(
        [aw.Constant(a) for a in range(K)], n_arms=K, schedule=lambda epoch: 2, teaches="uniform", seed=2
    )
    found = replay(log, agent, horizon=30)
    assert found.agent._epoch == 10
    assert found.agent.t == 31


def test_arms_that_change():
    rng = np.random.default_rng(5)
    sizes = rng.integers(2, 5, 600)
    contexts = [rng.normal(size=(k, 2)) for k in sizes]
    arms = np.array([rng.integers(k) for k in sizes])
    rewards = np.array([float(x[a, 0] > 0) for x, a in zip(contexts, arms)])
    log = Log(contexts=contexts, arms=arms, rewards=rewards, probabilities=1.0 / sizes)
    found = replay(log, aw.LinUCB(dim=2, alpha=0.2, seed=1))
    assert found.value > 0.7
    assert "0.25 / p" in found.method
    with pytest.raises(ValueError, match="change from row to row"):
        replay(log, aw.UCB1(n_arms=4))


def test_what_speaks_against_a_log():
    rng = np.random.default_rng(6)
    arms = (rng.random(2000) < 0.9).astype(int)
    with pytest.warns(WeakLogWarning, match="not equally frequent"):
        assert replay(Log(arms=arms, rewards=arms * 1.0, n_arms=2), aw.UCB1(n_arms=2)).warnings
    lonely = Log(arms=np.zeros(500, int), rewards=np.zeros(500), probabilities=np.full(500, 0.001), n_arms=1000)
    with pytest.warns(WeakLogWarning, match="cannot answer the question: only"):
        found = replay(lonely, aw.Exp3(n_arms=1000, gamma=1.0, seed=1))
    assert "cannot answer" in found.table()
    assert found.to_dict()["warnings"]


def test_bad_input():
    log, _ = make(50, seed=1)
    with pytest.raises(ValueError, match="agent must be"):
        replay(log, aw.Constant(1))
    with pytest.raises(ValueError, match="floor must lie"):
        replay(log, learner(0), floor=0.9)
    with pytest.raises(ValueError, match="horizon"):
        replay(log, learner(0), horizon=0)
    negative = Log(arms=[0, 1] * 20, rewards=[-1.0] * 40, probabilities=[0.5] * 40, n_arms=2)
    with pytest.raises(ValueError, match=r"row \d+: reward is -1.0"):
        replay(negative, aw.UCB1(n_arms=2))


def by_context(n=4000, seed=0):
    """Arms that follow the context, both worth .5: whoever takes the log for uniform is misled."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    p = 1.0 / (1.0 + np.exp(-3.0 * x[:, 0]))
    arms = (rng.random(n) < p).astype(int)
    rewards = (rng.random(n) < np.where(arms == 1, p, 1.0 - p)).astype(float)
    return {"contexts": x, "arms": arms, "rewards": rewards, "n_arms": 2}, np.where(arms == 1, p, 1 - p)


def test_a_log_without_probabilities_whose_arms_follow_the_context_is_not_taken_for_uniform_in_silence():
    # Both arms are equally frequent, so their counts say nothing; the contexts of the two differ.
    columns, p = by_context()
    agent = aw.EpsilonGreedy(2, seed=1)
    with pytest.warns(WeakLogWarning, match="its arms differ in context 0"):
        found = replay(Log(**columns), agent, runs=0)
    assert found.low > 0.5  # the truth is outside: without the warning this would be a false answer
    assert "differ in context 0" in found.table()
    assert "differ in context 0" in " ".join(found.to_dict()["warnings"])
    assert "differ in context 0" in found._repr_html_()
    with pytest.warns(WeakLogWarning, match="its arms differ in context 0"):
        aw.offline.compare_learners(Log(**columns), agent, aw.UCB1(2), runs=2)
    with pytest.warns(WeakLogWarning, match="rows match the agent's choices"):  # few are left, which it says
        assert "differ in" not in replay(Log(**columns, probabilities=p), agent, runs=0).table()


def test_what_replay_takes_for_granted_is_said_in_every_view(tmp_path):
    log = uniform_log(600, 1, probabilities=False)
    found = replay(log, learner(0))
    assert found.warnings == ()
    for text in (found.table(), found._repr_html_(), str(found.to_dict())):
        assert "taken to be uniform" in text
    both = aw.offline.compare_learners(log, learner(0), aw.UCB1(K), runs=2)
    assert "taken to be uniform" in both.table()
    assert "taken to be uniform" in str(both.to_dict())
    known = replay(uniform_log(600, 1), learner(0))
    assert "taken to be uniform" not in known.table()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_short_file_is_replayed_as_often_as_a_frame(tmp_path, kind):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"arm": rng.integers(0, 2, 600), "reward": rng.integers(0, 2, 600), "probability": 0.5})
    path = tmp_path / f"log.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    here = replay(Log.from_pandas(frame), aw.UCB1(2, seed=1))
    there = replay(Log.read(path), aw.UCB1(2, seed=1))
    assert here.runs == 20
    assert (there.runs, there.low, there.high) == (here.runs, here.low, here.high)
    assert replay(Log.read(path), aw.UCB1(2, seed=1), horizon=60).runs == 20
    longer = pd.concat([frame] * 6)
    longer.to_csv(path, index=False) if kind == "csv" else longer.to_parquet(path)
    assert replay(Log.read(path), aw.UCB1(2, seed=1), horizon=60).runs == 0
