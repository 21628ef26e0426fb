"""What agents over a ridge model share: their size, many rounds at once, and models that are added up, come and go."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from armwise.core.agent import Agent, Choices, Floats, count
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge


def width_of(dim: int | None, prior_mean: Any) -> int | None:
    """``dim``, or the columns of a prior mean; None where the first context says it.

    >>> width_of(None, [0.0, 1.0]), width_of(3, None), width_of(None, None)
    (2, 3, None)
    """
    if dim is None and prior_mean is not None:
        return int(np.shape(prior_mean)[-1]) if np.ndim(prior_mean) else None
    return None if dim is None else count("dim", dim)


class OverRidge(Agent):
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
        self._settle()

    def _settle(self) -> None:
        """Models or noise have changed other than by learning one reward: what was worked out from them is stale."""

    def _block(self, contexts: Floats) -> Floats:
        """(T, K, d), or (T, 1, d) where each arm has a model."""
        return contexts if self.n_arms is None else contexts[:, None]

    def _learn_many(self, contexts: Any, choices: Choices, rewards: Floats) -> None:
        model = self._model
        if isinstance(contexts, list) or not isinstance(model, Ridge) or model.window is not None:
            return super()._learn_many(contexts, choices, rewards)
        done, block = 0, self._block(contexts)
        while done < len(rewards):
            if model.ridge is None:  # the first rows settle it
                now = slice(done, done + 1)
                super()._learn_many(contexts[now], choices[now], rewards[now])
            else:  # rewards over which the estimate of the noise stands still
                now = slice(done, len(rewards) if self._noise is None else done + self._noise.rounds_left)
                model.learn_many(block[now], choices.arms[now], rewards[now])
                self._n_learnt += len(rewards[now])
                if self._noise is not None:
                    # One by one, so that loop and block agree to the bit.
                    for reward, arm in zip(rewards[now].tolist(), choices.arms[now].tolist()):
                        self._noise.add(reward, model, arm)
                self._settle()
            done = min(now.stop, len(rewards))
        return None

    def _merge(self, other: Self) -> None:
        self._model.merge(other._model)
        if self._noise is not None and other._noise is not None:
            self._noise.merge(other._noise, self._model)
        self._settle()

    def _renew(self) -> None:
        if self._noise is not None:
            self._noise.renew(self._model)
        self._settle()

    def _why_not_merged(self) -> str:
        if isinstance(self._model, Ridge) and self._model.forgets:
            return "with a discount or a window a reward counts by its age, which two agents do not share"
        return super()._why_not_merged()

    def _add_arm(self) -> None:
        self._model.add_model()
        self._settle()

    def _remove_arm(self, arm: int) -> None:
        if self._noise is not None and self._model.window is None:
            self._noise.drop(*self._model.explained(arm))
        self._model.remove_model(arm)
        self._settle()
