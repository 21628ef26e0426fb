"""HybridLinUCB: LinUCB with weights that arms share and weights of their own (Li et al. 2010, Algorithm 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.linucb import BEYOND, EXTRA, PRACTICAL
from armwise.agents.linear.ridge_agent import RidgeAgent
from armwise.core.agent import Choice, Floats, IndexAgent, Seed, Theory, count, positive
from armwise.core.policy_document import FrozenAgent
from armwise.models.hybrid_ridge import HybridRidge
from armwise.models.noise import Noise
from armwise.native.ridge import widen


class HybridLinUCB(RidgeAgent, IndexAgent):
    """Play the largest z.beta + x.theta_a + alpha_t s_a: beta is shared by all arms, theta_a is arm a's own.

    The first ``shared`` columns of an arm's row are z, the rest x; s_a is the width of the joint ridge over beta and
    all theta_a. What one arm teaches about z all arms know, so that a new arm (``add_arm``) does not begin from
    nothing, and what sets an arm apart is still learnt of its own rewards.

    ``alpha=None``, ``lam=None`` and ``scale`` as in LinUCB: 0.4 sqrt(ln t) deviations of the noise as it is learnt, and
    more for an arm that is known less than the leading one.
    ``prior_mean`` is what (beta, theta_a) are believed to be before any reward: (dim,), or a row per arm, whose shared
    columns are then the same in all rows. No bound is known for the hybrid model.

    >>> agent = HybridLinUCB(dim=3, n_arms=2, shared=1, seed=1)
    >>> X = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> for _ in range(20):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.choose(X).arm
    1
    """

    theory = Theory(
        section="beyond the survey",
        regret="none proved",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | z, x, a] = z.beta + x.theta_a",
        reference="Li, Chu, Langford, Schapire 2010",
        infinite_policies=True,
        call="aw.HybridLinUCB(dim={d}, n_arms={K}, shared=1)",
    )
    reward_range = (-np.inf, np.inf)
    n_arms: int
    dim: int
    _model: HybridRidge
    _learnt = ("_model", "_noise")

    def __init__(
        self,
        dim: int,
        n_arms: int,
        shared: int,
        alpha: float | None = None,
        lam: float | None = None,
        *,
        scale: float = 1.0,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.dim, self.n_arms = count("dim", dim, least=2), count("n_arms", n_arms)
        self.shared = count("shared", shared)
        if self.shared >= self.dim:
            raise ValueError(f"shared must be below dim, {dim}, so that arms have columns of their own, got {shared}")
        self.alpha = None if alpha is None else positive("alpha", alpha, zero=True)
        self.lam, self.scale = None if lam is None else positive("lam", lam), positive("scale", scale, zero=True)
        centred = alpha is None and prior_mean is None
        self._model = HybridRidge(self.shared, self.dim - self.shared, self.n_arms, self.lam, prior_mean, centred)
        self._noise = Noise() if alpha is None else Noise(scale_only=True) if lam is None else None

    @property
    def prior_mean(self) -> Floats | None:
        """The values that shared and own weights are shrunk towards: (dim,) or a row per arm; None for zeros.

        >>> HybridLinUCB(dim=2, n_arms=2, shared=1, prior_mean=[0.5, 0.0]).prior_mean
        array([0.5, 0. ])
        """
        return self._model.prior_mean

    def _scores(self, context: Floats) -> Floats:  # Algorithm 2, lines 8 to 13
        means, widths = self._model.estimate(context)
        if self._extra:
            return np.asarray(widen(means, widths, self._multiplier, self._extra, BEYOND))
        scores: Floats = means + self._multiplier * widths
        return scores

    @property
    def _multiplier(self) -> float:
        alpha = PRACTICAL * self._noise.growing if self.alpha is None and self._noise is not None else self.alpha
        return self.scale * (alpha or 0.0)

    @property
    def _extra(self) -> float:
        """For an arm that is known less than the leading one: see LinUCB."""
        if self.alpha is not None or self._noise is None:
            return 0.0
        return EXTRA * (self.scale * self._noise.deviation) ** 2

    def freeze(self) -> FrozenAgent:
        """The joint model as one of each arm.

        >>> len(HybridLinUCB(dim=3, n_arms=2, shared=1).freeze().models)
        2
        """
        rule = {"kind": "optimism", "extra": self._extra, "beyond": BEYOND}
        return FrozenAgent(self._model.exported(self._multiplier), rule)

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        return self._model.estimate(context)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:  # lines 15 to 23
        self._model.learn(context, choice.arm, reward)
        if self._noise is not None:
            self._noise.add(reward, self._model)
