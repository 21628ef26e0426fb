"""LinUCB: optimism over a ridge estimate (survey 4.1.1, Algorithm 1; Li et al. 2010, Abbasi-Yadkori et al. 2011)."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.ridge_batches import OptimisticBatches
from armwise.agents.linear.stepped import Stepped
from armwise.core import saving
from armwise.core.agent import Floats, IndexAgent, Seed, Theory, count, fraction, positive
from armwise.core.capabilities.optimism import Optimism, Optimistic
from armwise.core.policy_document import FrozenAgent, fixed
from armwise.models.noise import Noise
from armwise.theory import bounds, hypotheses

PRACTICAL = 0.4  # alpha of ``alpha=None``, in deviations of the noise x sqrt(ln t): see docs/choose.md
EXTRA, BEYOND = 2.0, 3.0  # for an arm that is known less than the leading one: see docs/choose.md


class Ellipsoid(saving.Saved):
    """The width multiplier of the confidence ellipsoid (survey Theorem 2), which grows as det A grows.

    alpha_t = R sqrt(2 ln(det(A_t)^1/2 det(lam I)^-1/2 / delta)) + lam^1/2 S, where rewards are R-sub-Gaussian
    (``noise``) and ||theta*|| <= S (``norm``).

    >>> LinUCB(dim=2, alpha=Ellipsoid(noise=0.1, norm=1.0, delta=0.05)).alpha.norm
    1.0
    """

    def __init__(self, noise: float, norm: float, delta: float) -> None:
        self.noise, self.norm = positive("noise", noise), positive("norm", norm, zero=True)
        self.delta = fraction("delta", delta)

    def __repr__(self) -> str:
        return f"Ellipsoid(noise={self.noise}, norm={self.norm}, delta={self.delta})"


class LinUCB(Stepped, IndexAgent, Optimistic):
    """Play the arm whose estimated reward plus confidence width is largest: x.theta + alpha_t sqrt(x' A^-1 x).

    Shared parameters over per-arm features (K may change every round), or, with ``n_arms``, one model for each arm
    over a shared context (*disjoint*, Li et al. 2010). ``scale`` multiplies the widths: larger explores more.
    ``dim`` is the number of features; None takes as many as the first context has. ``prior_mean`` is what theta is
    believed to be before any reward: the ridge draws it there instead of to zeros.

    ``alpha=None``, the practical default, is 0.4 sqrt(ln t) deviations of the noise of the rewards around the model,
    as it is learnt (see ``Noise``), so that neither the rewards' units nor the number of features have to be known;
    with ``lam=None`` the ridge follows the features' size. Otherwise ``alpha`` is a number, or an ``Ellipsoid``, which
    is what the bound needs: ``LinUCB.theoretical``.

    For worlds that drift: ``discount`` < 1 weighs a reward by discount^age, ``window`` keeps the last W rewards. Both
    count all rewards, so that an arm's width grows while it rests (see ``Ridge`` for the cost).
    Erratum: where the survey writes lam^1/2 in Theorem 2, det(lam I)^1/2 = lam^(d/2) is meant.

    >>> agent = LinUCB(dim=2, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(20):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.choose(X)
    Choice(arm=1, probability=1.0, note=None)
    """

    theory = Theory(
        section="4.1.1",
        regret="O(d sqrt(T) ln(1 + T) + sqrt(d T ln(1 + T) ln(1 / delta)))",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta",
        reference="Li, Chu, Langford, Schapire 2010; Abbasi-Yadkori, Pal, Szepesvari 2011",
        regret_bound=bounds.linucb,
        hypotheses=hypotheses.linucb,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        erratum="Theorem 2 prints lam^(1/2) for det(lam I)^(1/2), and drops the proof's factor 2 sqrt(2); "
        "the table misses a sqrt(ln T)",
        call="aw.LinUCB(dim={d}, alpha=aw.Ellipsoid(noise={R}, norm={S}, delta={delta}))",
        survey_row="LinUCB",
    )
    keeps_sparse = True
    batches = OptimisticBatches()

    def __init__(
        self,
        dim: int | None = None,
        alpha: float | Ellipsoid | None = None,
        lam: float | None = None,
        *,
        scale: float = 1.0,
        n_arms: int | None = None,
        discount: float = 1.0,
        window: int | None = None,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.alpha = alpha if alpha is None or isinstance(alpha, Ellipsoid) else positive("alpha", alpha, zero=True)
        if lam is None and isinstance(alpha, Ellipsoid):
            lam = 1.0  # the ellipsoid is around a ridge that is known
        self._begin(dim, lam, n_arms, discount, window, prior_mean, scale, Noise() if alpha is None else None)

    @classmethod
    def theoretical(
        cls,
        dim: int,
        *,
        noise: float = 1.0,
        norm: float = 1.0,
        length: float = 1.0,
        delta: float = 0.05,
        n_arms: int | None = None,
        seed: Seed = None,
    ) -> Self:
        """The agent of the theorem: the ellipsoid's alpha, and lam = max(1, L^2) for rows of length at most L.

        Rewards are R-sub-Gaussian (``noise``), ||theta*|| <= S (``norm``). With ``n_arms`` each of the K ellipsoids
        has delta / K.

        >>> LinUCB.theoretical(dim=5, noise=0.1, length=2.0)
        LinUCB(dim=5, alpha=Ellipsoid(noise=0.1, norm=1.0, delta=0.05), lam=4.0, scale=1.0, n_arms=None, ...
        """
        share = fraction("delta", delta) / (1 if n_arms is None else count("n_arms", n_arms))
        lam = max(1.0, positive("length", length) ** 2)
        return cls(dim, Ellipsoid(noise, norm, share), lam, n_arms=n_arms, seed=seed)

    def _exploration(self) -> tuple[float, float, float, float, float]:
        """alpha_t = a + b sqrt(2 ln(det(A_t)^1/2 det(lam I)^-1/2 / delta)), or the root of a^2 + extra."""
        lam, scale = self._model.ridge or 1.0, self.scale
        if isinstance(self.alpha, Ellipsoid):
            norm, noise = float(np.sqrt(lam)) * (scale * self.alpha.norm), scale * self.alpha.noise
            return norm, noise, self.alpha.delta, 0.0, 1.0
        if self.alpha is None and self._noise is not None:
            extra = EXTRA * (scale * self._noise.deviation) ** 2
            return scale * PRACTICAL * self._noise.growing, 0.0, 1.0, extra, BEYOND
        return scale * (self.alpha or 0.0), 0.0, 1.0, 0.0, 1.0

    @property
    def optimism(self) -> Optimism | None:
        """How it chooses, where one ridge model that does not forget scores the rows of all arms.

        >>> LinUCB(dim=2, lam=1.0).optimism.epsilon
        -1.0
        """
        plain = self.n_arms is None and self.lam is not None and not self._model.forgets
        return Optimism(self) if plain else None

    def _scores(self, context: Floats) -> Floats:  # Algorithm 1, line 7: x.theta + alpha_t sqrt(x' A^-1 x)
        return self._model.optimistic(context if self.n_arms is None else context[None], self._width)

    def freeze(self) -> FrozenAgent:
        """The ridge and its width.

        >>> LinUCB(dim=2, alpha=0.5, lam=1.0).freeze().rule
        {'kind': 'optimism', 'extra': 0.0, 'beyond': 1.0}
        """
        model = self._model
        alpha, noise, delta, extra, beyond = self._width
        if extra and (p := model.untried()) is not None:
            return fixed(p)
        alphas = [
            alpha + noise * math.sqrt(max(0.0, model.log_det(m) - excess) - 2.0 * math.log(delta)) if noise else alpha
            for m in range(model.n_models)
            for excess in [model.dim * math.log(model.ridge or 1.0)]
        ]
        return FrozenAgent(model.exported(alphas), {"kind": "optimism", "extra": extra, "beyond": beyond})

    # Lines 11 and 12, A += x x' and b += r x, are LinearAgent's.
