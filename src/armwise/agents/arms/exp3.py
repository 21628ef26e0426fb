"""Exp3: exponential weights on importance-weighted rewards (survey 3; Auer et al. 2002)."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from armwise.agents.arms.arm_batches import Exp3Batches
from armwise.core.agent import Choice, Floats, Seed, Theory, count, fraction
from armwise.core.capabilities.merging import Merging
from armwise.core.capabilities.per_arm import PerArm
from armwise.native import kary
from armwise.native.weights import mixed
from armwise.theory import bounds, hypotheses


class Exp3(Merging, PerArm):
    """Draw each arm in proportion to its weight, with a share ``gamma`` spread uniformly.

    p_a = (1 - gamma) w_a / sum(w) + gamma / K, and w_a grows by exp(gamma r_hat_a / K).

    >>> agent = Exp3(n_arms=2, gamma=0.1, seed=1)
    >>> played = agent.play(None, np.tile([0.0, 1.0], (500, 1)))
    >>> agent.probabilities().round(2)
    array([0.05, 0.95])
    """

    theory = Theory(
        section="3",
        regret="O(sqrt(T K ln K))",
        comparator="the best arm in hindsight",
        assumes="rewards in [0, 1], chosen by anyone",
        reference="Auer, Cesa-Bianchi, Freund, Schapire 2002",
        regret_bound=bounds.exp3,
        hypotheses=hypotheses.exp3,
        needs_horizon=True,
        adversarial=True,
        call="aw.Exp3.theoretical(n_arms={K}, horizon={T})",
    )
    sees = "nothing"
    batches = Exp3Batches()
    needs_probability = True
    n_arms: int
    _learnt = ("_log_weights",)

    def __init__(self, n_arms: int, gamma: float = 0.1, *, seed: Seed = None) -> None:
        super().__init__(seed=seed)
        self.n_arms = count("n_arms", n_arms)
        self.gamma = fraction("gamma", gamma, one=True)
        self._log_weights = np.zeros(self.n_arms)

    @classmethod
    def theoretical(cls, n_arms: int, horizon: int, *, seed: Seed = None) -> Self:
        """With the gamma that the bound asks for: min(1, sqrt(K ln K / ((e - 1) T))).

        >>> round(Exp3.theoretical(n_arms=10, horizon=10_000).gamma, 4)
        0.0366
        """
        K, T = count("n_arms", n_arms), count("horizon", horizon)
        gamma = math.sqrt(K * math.log(K) / ((math.e - 1) * T))
        return cls(n_arms, gamma=min(1.0, gamma) or 1.0, seed=seed)

    def _probabilities(self, context: None) -> Floats:
        return mixed(self._log_weights, self.gamma)

    def _learn(self, context: None, choice: Choice, reward: float) -> None:
        assert choice.probability is not None
        kary.exp3_learn(self._log_weights, self.gamma, choice.arm, choice.probability, reward)

    def _merge(self, other: Self) -> None:
        self._log_weights += other._log_weights

    def _add_arm(self) -> None:
        """A new arm begins with the mean weight of the others, hence with probability 1 / K."""
        top = self._log_weights.max()
        mean = top + np.log(np.exp(self._log_weights - top).mean())
        self._log_weights = np.append(self._log_weights, mean)

    def _remove_arm(self, arm: int) -> None:
        self._log_weights = np.delete(self._log_weights, arm)
