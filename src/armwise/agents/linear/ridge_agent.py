"""Common base of agents over a ridge model: width, noise around the model, merging, arms that come and go."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from armwise.core.agent import Choice, Floats, count
from armwise.core.capabilities.merging import Merging
from armwise.core.capabilities.one_row import OneRow
from armwise.core.capabilities.per_arm import PerArm
from armwise.core.inputs import TakesDim
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge


def width_of(dim: int | None, prior_mean: Any) -> int | None:
    """``dim``, or the columns of a prior mean; None where the first context says it."""
    if dim is None and prior_mean is not None:
        return int(np.shape(prior_mean)[-1]) if np.ndim(prior_mean) else None
    return None if dim is None else count("dim", dim)


class RidgeAgent(TakesDim, Merging, PerArm):
    """An agent over a ``Ridge`` (``_model``), whose exploration may be measured in ``_noise``.

    Without ``dim`` it takes as many columns as the first context has. With ``n_arms`` each arm has a model of its own
    over a shared context; otherwise there is one model over per-arm features.
    """

    _model: Any  # a Ridge, or what a subclass has in its place
    _noise: Noise | None

    def _take_dim(self, dim: int) -> None:
        self.dim = dim
        if isinstance(self._model, Ridge):
            self._model = Ridge(**self._model.params() | {"dim": dim})
        self._refresh()

    def shrink_to_zero(self) -> None:
        """Draw estimates to 0 from now on, and not to a centre of the rewards; nothing must have been learnt.

        >>> import armwise as aw
        >>> agent = aw.SquareCB(dim=2)
        >>> agent.shrink_to_zero()
        >>> agent._model.centred
        False
        """
        if isinstance(self._model, Ridge):
            self._model = Ridge(**self._model.params() | {"centred": False})
            self._refresh()

    def _refresh(self) -> None:
        """Compute again what depends on the ridge and the noise."""

    def _follow(self, reward: float) -> None:
        """Estimate the noise anew when it is time; the model has just learnt this reward."""
        if self._noise is not None and self._noise.add(reward, self._model):
            self._refresh()

    def _merge(self, other: Self) -> None:
        self._model.merge(other._model)
        if self._noise is not None and other._noise is not None:
            self._noise.merge(other._noise, self._model)
        self._refresh()

    @property
    def _stale(self) -> bool:
        return self._noise is not None and self._noise.stale

    def _renew(self) -> None:
        if self._noise is not None:
            self._noise.renew(self._model)
        self._refresh()

    def _why_not_merged(self) -> str:
        if isinstance(self._model, Ridge) and self._model.forgets:
            return "with a discount or a window a reward counts by its age, which two agents do not share"
        return super()._why_not_merged()

    def _add_arm(self) -> None:
        self._model.add_model()
        self._refresh()

    def _remove_arm(self, arm: int) -> None:
        self._renew()  # what the others are told does not change with it
        if self._noise is not None and self._model.window is None:
            self._noise.drop(self._model.explained(arm))
        self._model.remove_model(arm)
        self._refresh()


class LinearRidge(RidgeAgent, OneRow):
    """An agent over a ``Ridge`` alone: one model over per-arm features, or one per arm over a shared context."""

    _model: Ridge
    _learnt = ("_model", "_noise")

    @property
    def prior_mean(self) -> Floats | None:
        """The value that the ridge shrinks theta towards: (d,) or, with ``n_arms``, a row per arm; None for zeros.

        >>> import armwise as aw
        >>> aw.LinUCB(prior_mean=[0.5, 0.0]).prior_mean
        array([0.5, 0. ])
        """
        return self._model.prior_mean

    @property
    def one_row(self) -> bool:
        """Whether what it learns of a choice is in that arm's row.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=2).one_row, aw.LinUCB(dim=2, n_arms=3).one_row
        (True, False)
        """
        return self.n_arms is None

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        return self._model.estimate(context) if self.n_arms is None else self._model.estimate_all(context)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        open_ridge = not self._model.settled
        if self.n_arms is None:
            self._model.learn(context, choice.arm, reward)
        else:
            self._model.learn(context[None], 0, reward, choice.arm)
        self._follow(reward)
        if open_ridge:
            self._refresh()
