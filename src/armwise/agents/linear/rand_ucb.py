"""RandUCB: optimism with one random multiplier for all arms (beyond the survey; Vaswani et al. 2020)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.ridge_agent import LinearRidge, width_of
from armwise.core.agent import Floats, Seed, Theory, count, fraction, positive
from armwise.core.policy_document import FrozenAgent, fixed
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge
from armwise.native.choice import TIE


class RandUCB(LinearRidge):
    """Draw one multiplier z for all arms, and play the largest x.theta + z s sqrt(x' A^-1 x): an optimist with chances.

    z is one of ``points`` numbers from ``low`` B to B = scale sqrt(2 ln(1 + t)), with weights that fall from the lowest
    as a normal density of deviation ``spread`` does; s is the noise of the rewards as it is learnt (see ``Noise``). An
    arm's probability is the sum of the weights at which it wins: exact, without any draw. Exact is not covering: an arm
    that wins nowhere has probability 0; wrap it in ``Explore`` where the log must answer questions about every arm.

    Shared parameters over per-arm features, or, with ``n_arms``, one model for each arm over a shared context, like
    LinUCB, whose ``dim``, ``lam``, ``scale`` and ``prior_mean`` it has too.

    Args:
        points: How many multipliers there are.
        low: The lowest, as a share of the largest; 1 is LinUCB with a multiplier of B.
        spread: Larger gives the upper multipliers more weight.

    >>> agent = RandUCB(dim=2, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(50):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.probabilities(X).round(2)
    array([0., 1.])
    """

    theory = Theory(
        section="beyond the survey",
        regret="O~(d sqrt(T)) with the paper's constants; none proved for the defaults",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta, with sub-Gaussian noise",
        reference="Vaswani, Mehrabian, Durand, Kveton 2020",
        infinite_policies=True,
        call="aw.RandUCB(dim={d})",
    )
    reward_range = (-np.inf, np.inf)
    keeps_sparse = True
    _noise: Noise

    def __init__(
        self,
        dim: int | None = None,
        lam: float | None = None,
        *,
        scale: float = 1.0,
        points: int = 20,
        low: float = 0.35,
        spread: float = 0.5,
        n_arms: int | None = None,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.scale, self.points = positive("scale", scale, zero=True), count("points", points)
        self.low, self.spread = fraction("low", low, zero=True, one=True), positive("spread", spread)
        self.dim = width_of(dim, prior_mean)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.sees, self.per_arm = ("features" if n_arms is None else "shared"), n_arms is not None
        centred = prior_mean is None
        self._model = Ridge(self.dim or 1, lam, self.n_arms or 1, prior_mean=prior_mean, centred=centred)
        self._noise, self.lam = Noise(), self._model.lam

    def _multipliers(self) -> tuple[Floats, Floats]:
        """The multipliers, in deviations of the noise, and their weights."""
        largest = math.sqrt(2.0 * math.log1p(self._noise.learnt))
        z = np.linspace(self.low * largest, largest, self.points)
        weights = np.exp(-0.5 * ((z - z[0]) / self.spread) ** 2)
        return z, weights / weights.sum()

    def freeze(self) -> FrozenAgent:
        """The ridge, its width, and the multipliers with their weights.

        >>> RandUCB(dim=2, points=2).freeze().rule["multipliers"]
        [0.0, 0.0]
        """
        if (p := self._model.untried()) is not None:
            return fixed(p)
        z, weights = self._multipliers()
        models = self._model.exported([self.scale * self._noise.deviation] * self._model.n_models)
        rule = {"kind": "random optimism", "multipliers": z.tolist(), "weights": weights.tolist()}
        return FrozenAgent(models, rule)

    def _probabilities(self, context: Floats) -> Floats:
        if (p := self._model.untried()) is not None:  # they come first
            return p
        means, widths = self._estimates(context)
        z, weights = self._multipliers()
        scores = means + np.outer(z, self.scale * self._noise.deviation * widths)
        if not np.isfinite(scores).all():
            raise ValueError("context must be finite (and its square must not overflow)")
        best = scores >= scores.max(axis=1, keepdims=True) - TIE
        p = weights @ (best / best.sum(axis=1, keepdims=True))
        return np.asarray(p / p.sum())  # rounding must not make a sure arm surer than 1
