"""LinREL: least squares on the well-explored directions (survey 4.1.2, Algorithm 2; Auer 2003)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.core.agent import Choice, Floats, IndexAgent, Seed, Theory, count, fraction, positive
from armwise.core.capabilities.merging import Merging
from armwise.core.rounds import CompiledBlocks
from armwise.models.truncated_ridge import TruncatedRidge
from armwise.native import truncated


def width_scale(horizon: int, n_arms: int, delta: float) -> float:
    """sqrt(ln(2TK/delta)), by which the noise of a mean is multiplied."""
    return math.sqrt(math.log(2 * horizon * n_arms / delta))


def _play(agent: LinREL, contexts: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
    width = width_scale(agent.horizon, contexts.shape[1], agent.delta)
    return truncated.play(*agent._model.sums, width, agent.scale, contexts, rewards, agent._rng)


class LinREL(Merging, IndexAgent):
    """Play the largest w'c + scale (||w|| sqrt(ln(2TK/delta)) + ||v~||), K the number of arms of this round.

    ``scale`` = 1 is the paper's width: ``LinREL.theoretical``.
    ``prior_mean`` (d,) is what theta is believed to be before any reward.

    Erratum: the survey's Theorem 4 has sqrt(2 ln(2TK/delta)); its Algorithm 2 and Auer 2003 have no 2, nor has this.
    No regret bound is known for LinREL itself, whose rewards are not independent; SupLinREL has one.

    >>> agent = LinREL(dim=2, horizon=100, delta=0.05, seed=1)
    >>> agent.probabilities(np.eye(2))
    array([0.5, 0.5])
    """

    theory = Theory(
        section="4.1.2",
        regret="none proved (see SupLinREL)",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta, in [0, 1]",
        reference="Auer 2003",
        infinite_policies=True,
        needs_horizon=True,
        erratum="Theorem 4 prints sqrt(2 ln(2TK/delta)); the algorithm has sqrt(ln(2TK/delta))",
        call="aw.LinREL(dim={d}, horizon={T}, delta={delta})",
    )
    reward_range = (-np.inf, np.inf)
    not_exported = "its width depends on the number of arms of each round", "LinUCB"
    batches = CompiledBlocks(_play)
    dim: int
    _learnt = ("_model",)

    def __init__(
        self,
        dim: int,
        horizon: int,
        delta: float = 0.05,
        *,
        scale: float = 0.1,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.scale = positive("scale", scale, zero=True)
        self.dim, self.horizon = count("dim", dim), count("horizon", horizon)
        self.delta = fraction("delta", delta)
        self._model = TruncatedRidge(self.dim, prior_mean)
        self.prior_mean = self._model.prior_mean

    @classmethod
    def theoretical(cls, dim: int, horizon: int, delta: float = 0.05, *, seed: Seed = None) -> Self:
        """With the paper's widths.

        >>> LinREL.theoretical(dim=2, horizon=100).scale
        1.0
        """
        return cls(dim, horizon, delta, scale=1.0, seed=seed)

    def _scores(self, context: Floats) -> Floats:
        means, widths = self._model.estimate(context, width_scale(self.horizon, len(context), self.delta))
        return means + self.scale * widths

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        return self._model.estimate(context, width_scale(self.horizon, len(context), self.delta))

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        self._model.update(context[choice.arm], reward)

    def _merge(self, other: Self) -> None:
        self._model.merge(other._model)
