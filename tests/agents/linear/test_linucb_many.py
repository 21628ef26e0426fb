"""LinUCB over very many arms, and one decision at a time through the compiled object: the scores' own best arm."""

import copy
import pickle

import numpy as np
import pytest

import armwise as aw
from armwise.native.ridge import Optimist

D = 5


def taught(**settings):
    agent = aw.LinUCB(D, 0.7, 0.5, seed=1, **settings)
    rng = np.random.default_rng(2)
    for _ in range(30):
        x = rng.normal(size=(3, D))
        agent.learn(x[0] if agent.n_arms else x, aw.Choice(int(rng.integers(3)), 1.0), float(rng.normal()))
    return agent


@pytest.mark.parametrize("K", [*range(1, 18), 1000, 4099])
def test_the_arm_is_the_one_with_the_largest_score(K):
    agent, X = taught(), np.random.default_rng(K).normal(size=(K, D))
    assert agent.choose(X) == aw.Choice(int(agent._scores(X).argmax()), 1.0)


@pytest.mark.parametrize("d", [1, 3, 8, 21])
@pytest.mark.parametrize("K", [512, 1003, 5000])
def test_single_precision_only_rules_out(d, K):
    """Thousands of arms whose scores differ by less than single precision sees, and sizes beyond its range."""
    agent, rng = aw.LinUCB(d, 0.7, 0.5, seed=1), np.random.default_rng(d * K)
    for _ in range(30):
        agent.learn(rng.normal(size=(3, d)), aw.Choice(int(rng.integers(3)), 1.0), float(rng.normal()))
    for trial in range(6):
        X = rng.normal(size=(K, d))
        near = X[int(agent._scores(X).argmax())] * (1.0 + 1e-9 * rng.normal(size=(200, 1)))
        X[rng.choice(K, 200, replace=False)] = near
        for size in (1.0, 1e-3, 1e25, 1e60):
            expected = agent.probabilities(size * X)
            choice = agent.choose(size * X)
            assert expected[choice.arm] == choice.probability == expected.max(), (trial, size)
    spoilt = rng.normal(size=(K, d))
    for value in (np.nan, np.inf, 1e151):
        for row in (0, K // 2, K - 1):
            X = spoilt.copy()
            X[row, -1] = value
            with pytest.raises(ValueError, match="finite"):
                agent.choose(X)


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.5, 5.0])
@pytest.mark.parametrize("settings", [{}, {"discount": 0.95}, {"prior_mean": [0.3, -0.2, 0.0, 0.0, 0.1]}])
def test_models_that_cannot_win_are_left_out_and_no_other(alpha, settings):
    """One model per arm: choose, play and choose_many find the arm of all scores, ties included."""
    rng, K = np.random.default_rng(8), 12
    agent, played = (aw.LinUCB(D, alpha, 0.3, n_arms=K, seed=4, **settings) for _ in range(2))
    X, R = rng.normal(size=(400, D)), rng.normal(size=(400, K)) + np.arange(K) / 4
    X[::7] = 0.0  # all scores are 0, and tie
    together = played.play(X, R)
    for t, x in enumerate(X):
        p = agent.probabilities(x)
        choice = agent.choose(x)
        assert (choice.arm, choice.probability) == (together.arms[t], together.probabilities[t])
        assert p[choice.arm] == choice.probability == p.max()
        agent.learn(x, choice, R[t, choice.arm])
    assert np.all(agent.choose_many(X[1:7]).arms == [agent._scores(x).argmax() for x in X[1:7]])


def test_arms_that_tie_share_the_choice_wherever_they_stand():
    agent, X = taught(), np.random.default_rng(3).normal(size=(300, D))
    X[[7, 8, 150, 299]] = 3.0 * X[agent.choose(X).arm]
    assert {agent.choose(X).arm for _ in range(200)} == {7, 8, 150, 299}
    assert agent.choose(X).probability == 0.25


@pytest.mark.parametrize("gap", [0.4e-12, 0.9e-12, 1.1e-12])
def test_scores_that_tie_in_a_chain(gap):
    """Each within 1e-12 of the next, not of the one after: who ties with the best is only known at the end."""
    optimist = Optimist(model := np.zeros((1, 9, 8)), 1, False, True, 0.0, 1.0, 0.0, 0.0, 1.0)
    model[0, 8, 0] = 1.0
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        scores = 1.0 + gap * np.array(order, float)
        ties = int((scores >= scores.max() - 1e-12).sum())
        assert optimist.choose(scores[:, None]) == (int(scores.argmax()) if ties == 1 else -1)


def test_a_large_context_is_checked_when_it_is_chosen_from_and_not_again():
    agent, X = taught(), np.random.default_rng(4).normal(size=(2000, D))
    choice, other = agent.choose(X), X.copy()
    other[(choice.arm + 1) % 2000, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        agent.choose(other)
    with pytest.raises(ValueError, match="finite"):
        agent.learn(other, choice, 1.0)  # this array has not been seen
    X[(choice.arm + 1) % 2000, 0] = np.nan
    agent.learn(X, choice, 1.0)  # this one has, and the row that is learnt is fine
    X[choice.arm, 0] = np.nan
    before = agent._model.models.tobytes()
    with pytest.raises(ValueError, match="finite"):
        agent.learn(X, choice, 1.0)
    assert agent._model.models.tobytes() == before


def test_no_context_is_kept_alive():
    import weakref

    agent, X = taught(), np.random.default_rng(5).normal(size=(2000, D))
    agent.learn(X, agent.choose(X), 1.0)
    gone = weakref.ref(X)
    del X
    assert gone() is None


@pytest.mark.parametrize("settings", [{}, {"n_arms": 3}])
def test_a_copy_learns_on_its_own(settings):
    agent = taught(**settings)
    X = np.random.default_rng(6).normal(size=D if settings else (3, D))
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        before = agent._model.models.tobytes()
        twin.learn(X, aw.Choice(1, 1.0), 5.0)
        assert agent._model.models.tobytes() == before != twin._model.models.tobytes()
        assert twin.choose(X).arm == int(twin._scores(X).argmax())


def test_arms_that_come_and_go_are_seen_by_the_next_choice():
    agent, x = taught(n_arms=3), np.ones(D)
    agent.add_arm()
    for _ in range(5):
        agent.learn(x, aw.Choice(3, 1.0), 50.0)
    assert agent.choose(x).arm == 3
    agent.remove_arm(0)
    assert agent.choose(x).arm == 2


def test_memory_that_is_not_aligned_is_read_all_the_same():
    agent, twin, X = taught(), taught(), np.random.default_rng(7).normal(size=(4, D))
    raw = np.empty(X.nbytes + 1, np.uint8)
    odd = raw[1:].view(np.float64).reshape(X.shape)
    odd[:] = X
    assert agent.choose(odd) == twin.choose(X)
    agent.learn(odd, aw.Choice(2, 1.0), 1.0)
    twin.learn(X, aw.Choice(2, 1.0), 1.0)
    assert agent._model.models.tobytes() == twin._model.models.tobytes()
