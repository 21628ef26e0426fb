import numpy as np
import pytest

from armwise.models.noise import Noise
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
