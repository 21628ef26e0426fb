"""Common base of LinUCB and LinThompson: a ridge, the width of exploration, and revised rewards."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.ridge_agent import LinearRidge, width_of
from armwise.agents.linear.ridge_batches import RidgeBatches
from armwise.core.agent import Choice, Floats, count, positive
from armwise.core.capabilities.revising import Fading, Revising
from armwise.core.inputs import dense_row
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge


class LinearAgent(LinearRidge, Revising, Fading):
    """An agent over a ``Ridge`` alone that may be revised.

    A subclass defines ``_exploration``: what multiplies its widths, kept in ``_width`` until ridge or noise change.
    """

    reward_range = (-np.inf, np.inf)
    batches: ClassVar[RidgeBatches[Any]]
    _width: Any  # what the kernels take: see ``_exploration``
    _settings: tuple[float, ...]  # the ridge in use, and the width

    def _begin(
        self,
        dim: int | None,
        lam: float | None,
        n_arms: int | None,
        discount: float,
        window: int | None,
        prior_mean: ArrayLike | None,
        scale: float,
        noise: Noise | None,
    ) -> None:
        """The last lines of every constructor."""
        self.dim = width_of(dim, prior_mean)
        models = 1 if n_arms is None else count("n_arms", n_arms)
        centred = noise is not None and prior_mean is None
        self._model = model = Ridge(self.dim or 1, lam, models, discount, window, prior_mean, centred)
        self._noise = Noise(scale_only=True) if noise is None and lam is None else noise
        self.lam, self.discount, self.window = model.lam, model.discount, model.window
        self.n_arms = None if n_arms is None else model.n_models
        self.sees = "features" if n_arms is None else "shared"
        self.scale = positive("scale", scale, zero=True)
        self.revises = self.fades = noise is None and not model.forgets
        self.merges, self.per_arm = not model.forgets, n_arms is not None
        self._refresh()

    @abstractmethod
    def _exploration(self) -> tuple[float, ...]:
        """What the kernels take: (a, b, delta) of a + b sqrt(a logarithm that grows with what was learnt), which
        multiplies the widths, and how much more an arm gets that is known less than the leading one."""

    def _refresh(self) -> None:
        self._width = self._exploration()
        self._settings = (self._model.ridge or 1.0, *self._width)
        self._step = self.batches.step(self)

    def _revise(self, context: Floats, choice: Choice, before: float, after: float) -> None:
        if self.n_arms is None:
            self._model.revise(*dense_row(context, choice.arm), after - before)
        else:
            self._model.revise(context[None], 0, after - before, choice.arm)

    def _fade(self, keep: float) -> None:
        self._model.fade(keep)
        self._refresh()

    def _predicted(self, context: Floats, arm: int) -> float:
        if self.n_arms is not None:
            return float(self._model.theta[arm] @ context) + self._model.centre
        X, row = dense_row(context, arm)
        return float(self._model.theta[0] @ X[row]) + self._model.centre

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._refresh()
