"""OnlineCover's estimates: the default must find the best policy of its class whatever the rewards look like."""

import numpy as np

import armwise as aw


def test_the_default_finds_the_perfect_policy_where_no_linear_model_can():
    """Rewards depend on x0 x1, which no linear model sees: a regret near chance (1,500) means that the policies are
    taught a regression's mistakes, as estimator="dm" does."""
    policies = [
        lambda x: int(x[0] * x[1] > 0),
        lambda x: int(x[0] * x[1] <= 0),
        lambda x: 0,
        lambda x: 1,
    ]
    regrets = []
    for seed in range(3):
        rng = np.random.default_rng([seed, 17])
        X = rng.choice([-1.0, 1.0], (2500, 2))
        means = np.where(np.arange(2) == (X[:, :1] * X[:, 1:] > 0), 0.8, 0.2)
        agent = aw.OnlineCover(policies, n_arms=2, seed=seed)
        arms = agent.play(X, (rng.random(means.shape) < means).astype(float)).arms
        regrets.append(float((0.8 - means[np.arange(2500), arms]).sum()))
    assert agent.estimator == "dr"
    assert max(regrets) < 150, regrets
