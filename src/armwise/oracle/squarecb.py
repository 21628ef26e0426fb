"""SquareCB: inverse-gap weighting over a regression estimate (beyond the survey; Foster, Rakhlin 2020)."""

from __future__ import annotations

import math
from typing import Any, Self

from armwise import bounds, hypotheses
from armwise.agent import Floats, Played, Seed, Theory, count, fraction, positive
from armwise.numerics import regression
from armwise.oracle.regression import RegressionAgent
from armwise.ridge import Ridge


class SquareCB(RegressionAgent):
    """Play the arm of the best estimate b, and any other arm a with probability 1 / (K + gamma_t (y_b - y_a)).

    gamma_t = scale t^exponent: larger explores less. Arms that tie for the best share its probability equally.
    Per-arm features with one regressor, or with ``n_arms`` one regressor for each arm over a shared context; the
    regressor is ridge (``lam``), or any scikit-learn regressor: taught by ``partial_fit`` where it has one, otherwise
    fitted again whenever its examples have grown by the factor ``refit``.

    >>> import numpy as np
    >>> agent = SquareCB(dim=2, scale=10.0, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(100):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.probabilities(X).round(2)
    array([0.01, 0.99])
    """

    theory = Theory(
        section="beyond the survey",
        regret="O(sqrt(K T Reg_Sq(T)))",
        comparator="the best arm of each round",
        assumes="the regressor's class holds E[r | x, a]; rewards in [0, 1]",
        reference="Foster, Rakhlin 2020",
        regret_bound=bounds.squarecb,
        hypotheses=hypotheses.squarecb,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
    )

    def __init__(
        self,
        dim: int,
        *,
        n_arms: int | None = None,
        scale: float = 10.0,
        exponent: float = 0.5,
        lam: float = 1.0,
        regressor: Any = None,
        refit: float = 1.1,
        seed: Seed = None,
    ) -> None:
        self._begin(dim, n_arms, lam, regressor, refit, seed)
        self.scale, self.exponent = positive("scale", scale), positive("exponent", exponent, zero=True)

    @classmethod
    def tuned(
        cls, dim: int, n_arms: int, horizon: int, delta: float = 0.05, *, lam: float = 1.0, seed: Seed = None
    ) -> Self:
        """One ridge model an arm and the constant gamma that the bound asks for, for ||x|| <= 1 and ||theta|| <= 1.

        gamma = sqrt(K T / (Reg_Sq + ln(2 / delta))), with Reg_Sq of K models of dimension ``dim``.

        >>> round(SquareCB.tuned(dim=5, n_arms=2, horizon=10_000).scale, 2)
        8.44
        """
        K, T, delta = count("n_arms", n_arms), count("horizon", horizon), fraction("delta", delta)
        regression_regret = bounds.ridge_regression(T=T, d=K * count("dim", dim), lam=lam)
        scale = math.sqrt(K * T / (regression_regret + math.log(2 / delta)))
        return cls(dim, n_arms=K, scale=scale, exponent=0.0, lam=lam, seed=seed)

    def _probabilities(self, context: Floats) -> Floats:
        return regression.inverse_gap(self._means(context), regression.gap_scale(self.t, self.scale, self.exponent))

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        if not isinstance(self._model, Ridge):
            return super()._play(contexts, rewards)
        block = contexts if self.n_arms is None else contexts[:, None]
        played = regression.squarecb_play(
            self._model.models, self.scale, self.exponent, self.t, block, rewards, self._rng
        )
        self._n_learnt += len(rewards)
        return Played(*played)
