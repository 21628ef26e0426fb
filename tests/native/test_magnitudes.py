"""Numbers that would overflow are refused at the door, by every agent, and change nothing."""

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.models.ridge import Ridge
from armwise.testing.checks import D, K
from tests.cases import CASES

SEEING = [case for case in CASES if case.make(1).sees in ("features", "shared")]
UNBOUNDED = [case for case in CASES if case.make(1).reward_range[1] == np.inf]


def context(agent: aw.Agent, value: float) -> np.ndarray:
    x = np.full((K, D) if agent.sees == "features" else (D,), 0.3)
    x.flat[-1] = value
    return x


def test_a_context_that_would_overflow_does_not_crash():
    """Each of these two was a segmentation fault: a NaN became an index."""
    agent = aw.LogisticThompson(2, seed=1)
    agent.learn(np.eye(2), aw.Choice(0, None), 1.0)
    with pytest.raises(ValueError, match=r"1e\+150"):
        agent.learn(np.array([[1e160, 0.0]]), aw.Choice(0, None), 1.0)
    assert {agent.choose(np.eye(2)).arm for _ in range(1000)} <= {0, 1}
    with pytest.raises(ValueError, match=r"1e\+150|too large"):
        aw.GPUCB(aw.kernels.Polynomial(3), seed=1).play(np.full((50, 2, 2), 1e60), np.ones((50, 2)))


@pytest.mark.parametrize("case", SEEING, ids=lambda case: case.name)
@pytest.mark.parametrize("value", [1e160, -1e300, np.inf, np.nan])
def test_every_agent_refuses_the_context_and_changes_nothing(case, value):
    agent = case.make(1)
    before = saving.dumps(agent)
    for call in (
        lambda X: agent.choose(X),
        lambda X: agent.probabilities(X),
        lambda X: agent.learn(X, aw.Choice(0, 0.5), 0.5),
    ):
        with pytest.raises(ValueError, match=r"finite|1e\+?150"):
            call(context(agent, value))
    assert saving.dumps(agent) == before


@pytest.mark.parametrize("case", SEEING, ids=lambda case: case.name)
def test_every_agent_refuses_it_in_the_middle_of_a_block(case):
    agent = case.make(1)
    block = np.stack([context(agent, 0.1 * t) for t in range(9)])
    block[5] = context(agent, 1e160)
    before = saving.dumps(agent)
    with pytest.raises(ValueError, match="row 5"):
        agent.play(block, np.full((9, K), 0.5))
    assert saving.dumps(agent) == before


@pytest.mark.parametrize("case", UNBOUNDED, ids=lambda case: case.name)
def test_a_reward_that_would_overflow_is_refused(case):
    agent = case.make(1)
    if agent.sees not in ("features", "shared"):
        return
    before, n = saving.dumps(agent), agent.n_costs
    with pytest.raises(ValueError, match=r"1e\+150"):
        agent.learn(context(agent, 0.1), aw.Choice(0, 0.5), 1e160, cost=[0.01] * n if n else None)
    rewards = np.full((9, K), 0.5)
    rewards[5, 1] = -1e160
    with pytest.raises(ValueError, match=r"rewards\[5, 1\]"):
        agent.play(np.stack([context(agent, 0.1)] * 9), rewards, costs=np.full((9, K, n), 0.01) if n else None)
    assert saving.dumps(agent) == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: aw.LinUCB(2, seed=1),  # the ridge follows the features, which are small at first
        lambda: aw.LinUCB(2, 1.0, 1e-20, n_arms=2, seed=1),
        lambda: aw.LinUCB(2, 1.0, 1e-20, window=5, seed=1),
        lambda: aw.HybridLinUCB(2, 2, 1, 1.0, 1e-20, seed=1),
        lambda: aw.LinThompson(2, 1.0, 1e-20, draws=5, seed=1),
        lambda: aw.EpsilonGreedy(model=Ridge(2, 1e-20), seed=1),
        lambda: aw.CoFineUCB(2, np.eye(2)[:, :1], lam=1e-20, seed=1),
        lambda: aw.Explore(aw.LinUCB(2, 1.0, 1e-20), 0.3, seed=1),
        lambda: aw.D3RB([aw.LinUCB(2, 1.0, 1e-20), aw.LinUCB(2, 0.5, 1e-20)], seed=1),
    ],
)
def test_a_block_that_overflows_in_the_middle_changes_nothing(make):
    """Rows within the limit at the door, whose squares over a small ridge are beyond all numbers."""
    agent = make()
    shared = agent.sees == "shared"
    rows = 1e-12 * np.random.default_rng(1).normal(size=(60, 2, 2))
    rows[40:] = 1e149
    block, rewards = rows[:, 0] if shared else rows, np.full((60, 2), 0.5)
    agent.play(block[:20], rewards[:20])
    logged = agent.choose_many(block[:40])
    before = saving.dumps(agent)
    for call in (
        lambda: agent.play(block[20:], rewards[20:]),
        lambda: agent.learn_many(block[20:], logged, rewards[20:, 0]),
        lambda: agent.learn_many(list(block[20:]), list(logged), rewards[20:, 0]),
    ):
        with pytest.raises(ValueError, match=r"overflow|NaN"):
            call()
        assert saving.dumps(agent) == before
    try:
        agent.choose_many(block[20:])
    except ValueError:
        assert saving.dumps(agent) == before, "its random stream has moved"


@pytest.mark.parametrize(
    "make", [lambda: aw.LinUCB(2, 1.0, 1e-20, window=5), lambda: aw.HybridLinUCB(2, 2, 1, 1.0, 1e-20)]
)
def test_a_single_reward_that_overflows_changes_nothing(make):
    """Both learn in several steps, of which a later one finds the overflow."""
    agent = make()
    for _ in range(7):
        agent.learn(1e-12 * np.eye(2), aw.Choice(0, 1.0), 0.5)
    before = saving.dumps(agent)
    with pytest.raises(ValueError, match="overflow"):
        agent.learn(np.full((2, 2), 1e149), aw.Choice(1, 1.0), 0.5)
    assert saving.dumps(agent) == before


def test_the_largest_numbers_are_learnt_without_a_nan():
    """W is turned by square roots of products up to 1e600: they are taken apart."""
    agent = aw.LinUCB(2, 1.0, 1.0, seed=1)
    for _ in range(5):
        agent.learn(np.array([[1e150, 1e150], [1.0, -1.0]]), aw.Choice(0, 1.0), 1.0)
    scores = agent._scores(np.eye(2))
    assert np.isfinite(scores).all()
    assert agent.choose(np.eye(2)).arm in (0, 1)
