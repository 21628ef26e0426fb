"""Common base of rankers with a row of features per arm: one ridge of attraction, and its width."""

from __future__ import annotations

import numpy as np

from armwise.agents.linear.linucb import Ellipsoid
from armwise.agents.ranking.lists import Ranking
from armwise.agents.ranking.ranker import Ranker, first_click
from armwise.core.arguments import count, positive
from armwise.core.choices import Floats
from armwise.core.inputs import TakesDim
from armwise.core.seeds import Seed
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge

PRACTICAL = 0.5  # widths of ``alpha=None``, in deviations of the noise x sqrt(ln t)


class LinearRanker(TakesDim, Ranker):
    """A ranker whose arms attract linearly in their features: one ridge for all arms.

    ``alpha=None`` is a practical width: half a deviation of the noise as it is learnt, times sqrt(ln n).
    ``lam=None`` lets the ridge follow the size of the rows.
    """

    _learnt = ("dim", "_model", "_noise")

    def __init__(
        self, dim: int | None = None, alpha: float | Ellipsoid | None = None, lam: float | None = None, *,
        seed: Seed = None,
    ) -> None:  # fmt: skip
        super().__init__(seed=seed)
        self.dim = None if dim is None else count("dim", dim)
        self.alpha = alpha if alpha is None or isinstance(alpha, Ellipsoid) else positive("alpha", alpha, zero=True)
        self.lam = (1.0 if isinstance(alpha, Ellipsoid) else None) if lam is None else positive("lam", lam)
        self._noise = Noise()
        self._model: Ridge | None = None
        if self.dim is not None:
            self._take_dim(self.dim)

    def _take_dim(self, dim: int) -> None:
        self.dim, self._model = dim, Ridge(dim, self.lam, centred=self.alpha is None)

    @property
    def model(self) -> Ridge:
        """The ridge, which exists once the number of features is known."""
        assert self._model is not None
        return self._model

    @property
    def width(self) -> float:
        """The factor of an arm's sqrt(x' A^-1 x)."""
        if self.alpha is None:
            return PRACTICAL * self._noise.growing
        if isinstance(self.alpha, Ellipsoid):
            lam, d = self.model.ridge or 1.0, self.model.dim
            grown = self.model.log_det() - d * float(np.log(lam)) - 2.0 * float(np.log(self.alpha.delta))
            return self.alpha.noise * float(np.sqrt(grown)) + float(np.sqrt(lam)) * self.alpha.norm
        return float(self.alpha)

    def _estimates(self, X: Floats) -> tuple[Floats, Floats]:
        return self.model.estimate(X)

    def _optimistic(self, X: Floats) -> Floats:
        means, widths = self.model.estimate(X)
        return means + self.width * widths

    def _learn(self, X: Floats, ranking: Ranking, outcomes: Floats) -> None:
        for slot in range(first_click(outcomes) if self.feedback == "cascade" else len(outcomes)):
            self.model.learn(X, ranking.arms[slot], float(outcomes[slot]))
            self._noise.add(float(outcomes[slot]), self.model)
