"""FastCB: inverse-gap weighting that explores less where losses are small (Foster, Krishnamurthy 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.oracle.regression.regression_agent import RegressionAgent
from armwise.agents.oracle.regression.regression_batches import FastCBBatches
from armwise.core.agent import Floats, Seed, Theory, positive
from armwise.core.policy_document import FrozenAgent
from armwise.native import regression

PRACTICAL = 10.0  # gamma of ``gamma=None``: of 1, 3, 10, 30 the least loss on four development sets


class FastCB(RegressionAgent):
    """With y_a the predicted loss and b its arm of least loss, play a != b with y_b / (K y_b + gamma_t (y_a - y_b)).

    gamma_t = gamma t^exponent / scale. Where the best arm hardly ever fails, y_b is small and so is exploration:
    SquareCB's is not. A loss is 1 - the estimated reward, clipped to [1 / (t + 1), 1]: t - 1 rewards cannot tell a
    smaller loss from 0, and a loss of 0 would end exploration. Arms that tie for the best share its probability.

    The regressor is ridge or any scikit-learn regressor, as in ``SquareCB``. The theorem is for a regressor under log
    loss, which ridge is not: no bound is printed.

    >>> import numpy as np
    >>> agent = FastCB(dim=2, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(100):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.probabilities(X).round(3)
    array([0.001, 0.999])
    """

    theory = Theory(
        section="beyond the survey",
        regret="O(sqrt(K L* Reg_log(T)) + K Reg_log(T)), L* the loss of the best",
        comparator="the best arm of each round",
        assumes="the regressor's class holds E[r | x, a], and it predicts under log loss; rewards in [0, 1]",
        reference="Foster, Krishnamurthy 2021",
        infinite_policies=True,
        needs_horizon=True,
        call="aw.FastCB(dim={d}, n_arms={K})",
    )
    batches = FastCBBatches()

    def __init__(
        self,
        dim: int | None = None,
        *,
        n_arms: int | None = None,
        gamma: float | None = None,
        exponent: float = 0.5,
        scale: float = 1.0,
        lam: float | None = None,
        prior_mean: ArrayLike | None = None,
        regressor: Any = None,
        refit: float = 1.1,
        seed: Seed = None,
    ) -> None:
        self._begin(dim, n_arms, lam, scale, False, regressor, refit, prior_mean, seed)
        self.gamma = None if gamma is None else positive("gamma", gamma)
        self.exponent = positive("exponent", exponent, zero=True)

    def _probabilities(self, context: Floats) -> Floats:
        rewards = np.clip(self._means(context), 0.0, 1.0 - 1.0 / (self.t + 1))
        least_loss = 1.0 - float(rewards.max())
        gamma = regression.gap_scale(self.t, (self.gamma or PRACTICAL) / self.scale, self.exponent)
        # y_b / (K y_b + gamma gap) = 1 / (K + (gamma / y_b) gap)
        return regression.inverse_gap(rewards, gamma / least_loss)

    def freeze(self) -> FrozenAgent:
        """The ridge and gamma_t; ``losses`` is the least loss that an arm is taken to have.

        >>> FastCB(dim=2, gamma=3.0).freeze().rule["losses"]
        0.5
        """
        gamma = regression.gap_scale(self.t, (self.gamma or PRACTICAL) / self.scale, self.exponent)
        rule = {"kind": "inverse gap", "gamma": gamma, "extra": 0.0, "beyond": 1.0, "losses": 1.0 / (self.t + 1)}
        return FrozenAgent(self._ridge().exported(), rule)
