"""A log learnt in parts is a log learnt in one pass; test_offline_cluster has the same on a Dask cluster."""

# mypy: disable-error-code="arg-type, list-item"

import numpy as np
import pytest

import armwise as aw

N, K, D = 3000, 4, 5


def world():
    rng = np.random.default_rng(4)
    X, arms = rng.normal(size=(N, K, D)), rng.integers(0, K, N)
    rewards = (rng.random(N) < 1 / (1 + np.exp(-X[np.arange(N), arms].sum(axis=1)))).astype(float)
    return X, arms, rewards, rng.uniform(0.1, 1.0, N)


X, ARMS, REWARDS, P = world()
FEATURES = aw.offline.Log(contexts=X, arms=ARMS, rewards=REWARDS, probabilities=P)
SHARED = aw.offline.Log(contexts=X[:, 0], arms=ARMS, rewards=REWARDS, probabilities=P, n_arms=K)
AGENTS = [
    (aw.LinUCB(), FEATURES),
    (aw.LinUCB(n_arms=K), SHARED),
    (aw.LinThompson(D, lam=0.3), FEATURES),
    (aw.SquareCB(), FEATURES),
    (aw.HybridLinUCB(D, K, 2), FEATURES),
    (aw.Exp3(K), SHARED),
    (aw.Explore(aw.RegCB(), 0.1), FEATURES),
]


def learnt(agent, log):
    context = None if agent.sees == "nothing" else (X[0] if agent.sees == "features" else X[0, 0])
    found = [agent.probabilities(context)]
    if not isinstance(agent, aw.Exp3):
        found += [part for part in agent.estimate(context) if part is not None]
    return found


def test_one_pass_is_the_loop_with_the_logged_probabilities():
    fitted, looped = aw.fit_log(aw.Exp3(K), SHARED), aw.Exp3(K)
    for arm, p, reward in zip(ARMS.tolist(), P.tolist(), REWARDS.tolist()):
        looped.learn(None, aw.Choice(arm, p), reward)
    np.testing.assert_array_equal(fitted.probabilities(), looped.probabilities())
    assert fitted.t == N + 1


def test_a_row_that_is_refused_leaves_the_agent_as_it_was():
    agent = aw.UCB1(K)
    bad = aw.offline.Log(arms=ARMS[:10], rewards=[*REWARDS[:9], 7.0], n_arms=K)
    with pytest.raises(ValueError, match=r"log, rows from 0: rewards\[9\] is 7.0"):
        aw.fit_log(agent, [SHARED, bad])
    assert agent.t == 1


def test_arms_that_were_not_on_offer_are_not_seen():
    log = aw.offline.Log(contexts=[X[0][:2], X[1]], arms=[1, 3], rewards=[1.0, 0.0])
    agent, naive = aw.fit_log(aw.LinUCB(alpha=0.1, lam=1.0), log), aw.LinUCB(alpha=0.1, lam=1.0)
    naive.learn(X[0][:2], aw.Choice(1, 1.0), 1.0)
    naive.learn(X[1], aw.Choice(3, 1.0), 0.0)
    np.testing.assert_array_equal(agent.estimate(X[2]), naive.estimate(X[2]))


def test_what_cannot_be_fitted_says_why():
    with pytest.raises(ValueError, match="its statistics are not additive"):
        aw.fit_log(aw.LogisticThompson(D), FEATURES, engine="dask")
    with pytest.raises(ValueError, match="what its own choices put into a stage"):
        aw.fit_log(aw.SupLinUCB(D, 100), FEATURES)
    with pytest.raises(ValueError, match="Exp3 learns with it"):
        aw.fit_log(aw.Exp3(K), aw.offline.Log(arms=ARMS, rewards=REWARDS))
    with pytest.raises(ValueError, match="log must be a Log"):
        aw.fit_log(aw.UCB1(K), [1, 2])
    with pytest.raises(ValueError, match=r"engine must be .* got int 3"):
        aw.fit_log(aw.UCB1(K), SHARED, engine=3)
    with pytest.raises(ValueError, match="there is no current Client"):
        aw.fit_log(aw.UCB1(K), SHARED, engine="dask")
