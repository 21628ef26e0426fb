"""SquareCB: inverse-gap weighting over a regression estimate (beyond the survey; Foster, Rakhlin 2020)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.oracle.regression.regression_agent import RegressionAgent
from armwise.agents.oracle.regression.regression_batches import SquareCBBatches
from armwise.core.agent import Floats, Seed, Theory, count, fraction, positive
from armwise.core.policy_document import FrozenAgent, fixed
from armwise.models.ridge import Ridge
from armwise.native import regression
from armwise.native.ridge import widen
from armwise.theory import bounds, hypotheses

FIRST_ORDER = 6.25  # in its place over the variance: the same where the deviation is 1/4
PRACTICAL = 25.0  # gamma of ``gamma=None`` and exponent 1/2, times the deviation of the noise: see docs/choose.md
GROWTH = 2 / 3  # the exponent of ``gamma=None``
SAME = 500  # the round at which all exponents of ``gamma=None`` have the same gamma_t
EXTRA, BEYOND = 1.5, 2.0  # for an arm that is known less than the leading one: see docs/choose.md
MIN_NOISE = 0.01  # of the rewards' range
MIN_VARIANCE = 0.001  # of its square


class SquareCB(RegressionAgent):
    """Play the arm of the best estimate b, and any other arm a with probability 1 / (K + gamma_t (y_b - y_a)).

    gamma_t = gamma t^exponent / scale: larger ``scale`` explores more. ``gamma=None``, the practical default, is a
    constant over the noise of the rewards, as it is learnt (see ``Noise``), or over their range with a ``regressor``,
    which does not tell the noise; with ``first_order`` over its variance, which for 0/1 rewards is the best loss
    L (1 - L): where the best arm hardly ever fails it explores less. ``exponent`` is 1/2, and 2/3 for the practical
    default over the ridge, which explores an arm that is known less than the leading one for its width too. Arms that
    tie for the best share its probability equally. ``SquareCB.theoretical`` has the constant gamma of the bound.
    Per-arm features with one regressor, or with ``n_arms`` one regressor for each arm over a shared context; the
    regressor is ridge (``lam``; None follows the features' size), or any scikit-learn regressor: taught by
    ``partial_fit`` where it has one, otherwise fitted again whenever its examples have grown by the factor ``refit``.

    >>> import numpy as np
    >>> agent = SquareCB(dim=2, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(100):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.probabilities(X).round(2)
    array([0., 1.])
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
        call="aw.SquareCB(dim={d}, n_arms={K})",
    )
    batches = SquareCBBatches()

    def __init__(
        self,
        dim: int | None = None,
        *,
        n_arms: int | None = None,
        gamma: float | None = None,
        exponent: float | None = None,
        scale: float = 1.0,
        lam: float | None = None,
        prior_mean: ArrayLike | None = None,
        first_order: bool = False,
        regressor: Any = None,
        refit: float = 1.1,
        seed: Seed = None,
    ) -> None:
        self._begin(dim, n_arms, lam, scale, gamma is None, regressor, refit, prior_mean, seed)
        self.gamma = None if gamma is None else positive("gamma", gamma)
        self.exponent = None if exponent is None else positive("exponent", exponent, zero=True)
        self.first_order = bool(first_order)
        if self.first_order and (gamma is not None or regressor is not None):
            raise ValueError("first_order scales the practical gamma by the noise: leave gamma and regressor out")

    @classmethod
    def theoretical(
        cls, dim: int, n_arms: int, horizon: int, delta: float = 0.05, *, lam: float = 1.0, seed: Seed = None
    ) -> Self:
        """One ridge model per arm and the constant gamma that the bound asks for, for ||x|| <= 1 and ||theta|| <= 1.

        gamma = sqrt(K T / (Reg_Sq + ln(2 / delta))), with Reg_Sq of K models of dimension ``dim``.

        >>> round(SquareCB.theoretical(dim=5, n_arms=2, horizon=10_000).gamma, 2)
        8.44
        """
        K, T, delta = count("n_arms", n_arms), count("horizon", horizon), fraction("delta", delta)
        regression_regret = bounds.ridge_regression(T=T, d=K * count("dim", dim), lam=lam)
        gamma = math.sqrt(K * T / (regression_regret + math.log(2 / delta)))
        return cls(dim, n_arms=K, gamma=gamma, exponent=0.0, lam=lam, seed=seed)

    def _schedule(self) -> tuple[float, float]:
        """The factor of t^exponent, and the exponent."""
        if self.gamma is not None:
            return self.gamma / self.scale, 0.5 if self.exponent is None else self.exponent
        exponent = self.exponent
        if exponent is None:  # a regressor tells no widths either
            exponent = 0.5 if self._noise is None else GROWTH
        return self._practical() * SAME ** (0.5 - exponent), exponent

    def _practical(self) -> float:
        """The factor of sqrt(t)."""
        if self._noise is None:  # a regressor does not tell the deviation
            return PRACTICAL / (self.scale * (1.0 if self._range is None else self._range.extent))
        deviation, extent = self._noise.deviation, self._noise.extent or 1.0  # gamma is in units of one over a reward
        if self.first_order:
            return FIRST_ORDER * extent / (self.scale * max(deviation * deviation, MIN_VARIANCE * extent * extent))
        return PRACTICAL / (self.scale * max(deviation, MIN_NOISE * extent))

    def _probabilities(self, context: Floats) -> Floats:
        gamma = regression.gap_scale(self.t, *self._schedule())
        if isinstance(self._model, Ridge):
            some, p = regression.untried(self._model.models, self._model.dim)  # which come first
            if some:
                return p
        elif self._range is not None and self.n_arms is not None:
            blank = np.array([learner.blank for learner in self._model])
            if blank.any():
                p = np.where(blank, 1.0 / blank.sum(), 0.0)
                return p
        extra, beyond = self._widening()
        if extra and isinstance(self._model, Ridge):
            means = widen(*self._ridge_estimates(self._model, context), 0.0, extra, beyond)
        else:
            means = self._means(context)
        return regression.inverse_gap(means, gamma)

    def freeze(self) -> FrozenAgent:
        """The ridge and gamma_t.

        >>> SquareCB(dim=2, gamma=3.0).freeze().rule
        {'kind': 'inverse gap', 'gamma': 3.0, 'extra': 0.0, 'beyond': 2.0, 'losses': 0.0}
        """
        model, (extra, beyond) = self._ridge(), self._widening()
        if (p := model.untried()) is not None:
            return fixed(p)
        gamma = regression.gap_scale(self.t, *self._schedule())
        rule = {"kind": "inverse gap", "gamma": gamma, "extra": extra, "beyond": beyond, "losses": 0.0}
        return FrozenAgent(model.exported([0.0] * model.n_models if extra else None), rule)

    def _widening(self) -> tuple[float, float]:
        """The bonus of an arm with less data than the leading one: see LinUCB."""
        practical = self.gamma is None and self._noise is not None
        return (EXTRA * (self.scale * self._noise.deviation) ** 2 if practical and self._noise else 0.0), BEYOND
