"""LinREL: least squares on the well-explored directions (survey 4.1.2, Algorithm 2; Auer 2003)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import saving
from armwise.core.agent import Choice, Floats, IndexAgent, Seed, Theory, count, fraction, positive
from armwise.core.capabilities.merging import Merging
from armwise.core.rounds import CompiledBlocks
from armwise.models.ridge import read_mean
from armwise.native import truncated


class TruncatedRidge(saving.Saved):
    """Least squares on the eigenvectors of D'D whose eigenvalue is at least 1; the others are cut.

    Only D'D and D'c are kept. With D'D = U' diag(l) U and x~ = Ux cut into u~ (l >= 1) and v~ (l < 1),
    the mean is w'c = u~' diag(1/l) U D'c and the noise it carries has norm ||w||, ||w||^2 = u~' diag(1/l) u~.
    With a ``prior_mean`` c is what the rewards bring beyond x.prior_mean, which is added to the means: cut directions
    have the prior's reward instead of 0.
    """

    _learnt = ("_gram", "_b")

    def __init__(self, dim: int, prior_mean: ArrayLike | None = None) -> None:
        self.dim = count("dim", dim)
        self.prior_mean = None if prior_mean is None else read_mean(prior_mean, 1, self.dim).ravel()
        self._gram, self._b = np.zeros((dim, dim)), np.zeros(dim)
        self._prior = np.empty(0) if self.prior_mean is None else self.prior_mean  # as the kernels want it
        self._factors: tuple[Floats, int, Floats] | None = None

    def update(self, x: Floats, reward: float) -> None:
        """Append a row to D and its reward to c."""
        truncated.learn(self._gram, self._b, self._prior, x, reward)
        self._factors = None  # decomposed when next asked, at most once between two rewards

    def merge(self, other: TruncatedRidge) -> None:
        """Append another's rows."""
        self._gram += other._gram
        self._b += other._b
        self._factors = None

    def estimate(self, X: Floats, scale: float) -> tuple[Floats, Floats]:
        """Means w'c and widths ||w|| scale + ||v~|| of the rows of X."""
        if self._factors is None:
            self._factors = truncated.decompose(self._gram, self._b)
        return truncated.estimate(*self._factors, self._prior, X, scale)

    @property
    def sums(self) -> tuple[Floats, Floats, Floats]:
        """D'D and D'c themselves, for a kernel that changes them, and the prior mean (empty: none).

        What was worked out from them is forgotten.
        """
        self._factors = None
        return self._gram, self._b, self._prior

    def _restore(self, state: dict[str, Floats]) -> None:
        super()._restore(state)
        self._factors = None


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
