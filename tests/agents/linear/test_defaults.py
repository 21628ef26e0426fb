"""What a stranger gets: the defaults learn real classes quickly, and do not depend on anybody's units."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import armwise as aw

MAKERS = {
    "LinUCB": aw.LinUCB,
    "LinThompson": aw.LinThompson,
    "RegCB": aw.RegCB,
    "SquareCB": aw.SquareCB,
}


@pytest.mark.parametrize("name", MAKERS)
def test_digits_are_learnt_from_right_or_wrong_alone(name):
    """1,700 digits, ten arms, 65 features: below 500 wrong. The defaults before (v = 1) had 1,173; chance has 1,530."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng([2, 8]).permutation(len(y))[:1700]
    X, y = np.column_stack([X[order] / 16.0, np.ones(1700)]), y[order]
    played = MAKERS[name](65, n_arms=10, seed=1).play(X, np.eye(10)[y])
    assert 1700 - played.rewards.sum() < 500


@pytest.mark.parametrize("n_arms", [3, None], ids=["disjoint", "shared"])
@pytest.mark.parametrize("name", ["LinUCB", "LinThompson"])
def test_units_of_rewards_and_features_change_nothing(name, n_arms):
    """Exploration is measured in the rewards' own noise and the ridge in the features' own size: powers of two, whose
    arithmetic is exact, must give the very same arms."""
    rng = np.random.default_rng([3, 8])
    contexts, rewards = rng.normal(size=(300, 3, 4)), rng.normal(size=(300, 3))
    contexts = np.ascontiguousarray(contexts[:, 0]) if n_arms else contexts
    arms = [
        MAKERS[name](4, n_arms=n_arms, seed=1).play(unit * contexts, reward * rewards).arms.tolist()
        for unit, reward in ((1.0, 1.0), (1.0, 1024.0), (256.0, 1.0), (2.0**-10, 2.0**-8))
    ]
    assert arms[0] == arms[1] == arms[2] == arms[3]


@pytest.mark.parametrize("name", ["LinUCB", "LinThompson", "SquareCB", "RegCB", "LinREL"])
def test_a_larger_scale_explores_more(name):
    """One word, one direction: with a hundred times the default the best arm is played less often than with ten times
    (mean of five seeds)."""
    share = {}
    for scale in (10.0, 100.0):  # far above the default, where no run is unlucky
        shares = []
        for seed in range(5):
            rng = np.random.default_rng([seed, 9])
            rewards = np.clip(rng.normal([0.3, 0.5, 0.7], 0.1, (600, 3)), 0.0, 1.0)
            more = {"horizon": 600} if name == "LinREL" else {}
            made = getattr(aw, name)(3, **more)
            agent = getattr(aw, name)(3, **more, scale=scale * made.scale, seed=seed)
            shares.append((agent.play(np.tile(np.eye(3), (600, 1, 1)), rewards).arms == 2).mean())
        share[scale] = np.mean(shares)
    assert share[100.0] < share[10.0]


@pytest.mark.parametrize(
    "agent",
    [
        aw.LinUCB.theoretical(3, noise=0.1, n_arms=4),
        aw.LinThompson.theoretical(3),
        aw.SupLinUCB.theoretical(3, 100),
        aw.LinREL.theoretical(3, 100),
        aw.SupLinREL.theoretical(3, 100),
        aw.CoFineUCB.theoretical(3, np.eye(3)[:, :1], 100),
        aw.UCB1.theoretical(3),
        aw.SquareCB.theoretical(3, 2, 100),
        aw.EpochGreedy.theoretical([aw.Constant(0), aw.Constant(1)], 2),
        aw.PolicyElimination.theoretical([aw.Constant(0), aw.Constant(1)], 2, np.zeros((1, 1))),
        aw.RandomizedUCB.theoretical([aw.Constant(0), aw.Constant(1)], 2),
        aw.ILoveToConBandits.theoretical([aw.Constant(0), aw.Constant(1)], 2),
    ],
    ids=lambda agent: type(agent).__name__,
)
def test_theoretical_is_scale_one_and_can_be_made_again(agent):
    assert agent.scale == 1.0
    assert agent.clone(seed=1).scale == 1.0
