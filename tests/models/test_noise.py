"""The noise of rewards: in blocks, merged, and by hand."""

import numpy as np
import pytest

from armwise.models.noise import Noise, RewardRange
from armwise.models.ridge import Ridge


@pytest.mark.parametrize("discount", [1.0, 0.99])
@pytest.mark.parametrize("scale_only", [False, True])
def test_a_block_of_rewards_is_their_sum_in_order_to_the_bit(discount: float, scale_only: bool) -> None:
    """If this fails, a block of rounds and a loop over the same rounds learn different noise."""
    rng = np.random.default_rng(0)
    one, many = Noise(scale_only), Noise(scale_only)
    models = [Ridge(dim=3, lam=1.0, centred=not scale_only, discount=discount) for _ in range(2)]
    done = 0
    for _ in range(60):
        n = many.rounds_left
        contexts, rewards = rng.normal(size=(n, 3)), 100.0 + rng.normal(size=n)
        for x, reward in zip(contexts, rewards.tolist(), strict=True):
            models[0].update(x, reward)
            models[1].update(x, reward)
            renewed = one.add(reward, models[0])
        assert many.add_block(rewards, models[1]) == renewed
        done += n
        for name, value in vars(one).items():
            np.testing.assert_array_equal(value, vars(many)[name], err_msg=f"{name} after {done} rewards")


def test_the_noise_is_that_of_the_residuals_and_the_centre_has_no_ridge() -> None:
    model, noise = Ridge(dim=1, lam=1e-9, centred=True), Noise()
    for reward in (101.0, 103.0, 101.0, 103.0):
        model.update(np.ones(1), reward)
        noise.add(reward, model)
    assert noise.deviation == pytest.approx(1.118034)  # residuals 4, variance 1, degrees of freedom 3
    assert model.centre == pytest.approx(101.0)  # one deviation below the mean, where the row is a constant
    assert noise.growing == pytest.approx(noise.deviation * np.log(1 + noise.learnt) ** 0.5)


def test_an_estimate_is_stale_from_the_next_reward_until_it_is_renewed() -> None:
    model, noise = Ridge(dim=1, lam=1.0), Noise()
    for reward in np.random.default_rng(1).normal(size=45):
        model.update(np.ones(1), reward)
        noise.add(reward, model)
    assert noise.stale and noise.learnt < 45
    noise.renew(model)
    assert not noise.stale and noise.learnt == 45


def test_noise_that_is_merged_is_that_of_all_rewards() -> None:
    rewards = np.random.default_rng(2).normal(size=40)
    models, noises = [Ridge(dim=1, lam=1.0) for _ in range(3)], [Noise() for _ in range(3)]
    for i, reward in enumerate(rewards):
        for which in (i % 2, 2):
            models[which].update(np.ones(1), reward)
            noises[which].add(reward, models[which])
    models[0].merge(models[1])
    noises[0].merge(noises[1], models[0])
    noises[2].renew(models[2])
    assert noises[0].deviation == pytest.approx(noises[2].deviation, rel=1e-12)


def test_a_removed_model_leaves_what_it_explained() -> None:
    noise, model = Noise(), Ridge(dim=1, n_models=2, lam=1.0)
    for reward in (1.0, 3.0, 2.0):
        model.update(np.ones(1), reward)
        noise.add(reward, model)
    noise.renew(model)
    before, explained = noise.deviation, model.explained(0)
    model.remove_model(0)
    noise.drop(explained)
    noise.renew(model)
    assert noise.deviation == pytest.approx(before, rel=1e-12)


def test_a_range_of_rewards_that_are_all_the_same_is_one() -> None:
    seen = RewardRange()
    seen.add(20.0)
    assert (seen.low, seen.extent) == (20.0, 1.0)
    seen.add(50.0)
    assert (seen.low, seen.extent) == (20.0, 30.0)
