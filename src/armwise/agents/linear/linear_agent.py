"""What the agents over a ridge model share: how they learn and play blocks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.ridge_agent import OverRidge, width_of
from armwise.core.agent import Choice, Floats, Played, count, joined, positive
from armwise.core.inputs import dense_row
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge


class RidgeAgent(OverRidge):
    """An agent over a ``Ridge``: one model over per-arm features, or one per arm over a shared context.

    A subclass says in ``_set_width`` what its exploration is multiplied with, which may change whenever the noise is
    estimated anew, and in ``_play_piece`` how it plays rounds between two estimates.
    """

    reward_range = (-np.inf, np.inf)
    _model: Ridge
    _learnt = ("_model", "_noise")

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
        self._model = model = Ridge(self.dim or 1, lam, models, discount, window, prior_mean)
        self._noise = noise
        self.lam, self.discount, self.window = model.lam, model.discount, model.window
        self.n_arms = None if n_arms is None else model.n_models
        self.sees = "features" if n_arms is None else "shared"
        self.scale = positive("scale", scale, zero=True)
        self.compiled = self.window is None
        self.revises = self.fades = noise is None and not model.forgets
        self.merges, self.per_arm = not model.forgets, n_arms is not None
        self._set_width()

    @property
    def prior_mean(self) -> Floats | None:
        """What the ridge draws theta towards: (d,) or, with ``n_arms``, a row per arm; None for zeros.

        >>> import armwise as aw
        >>> aw.LinUCB(prior_mean=[0.5, 0.0]).prior_mean
        array([0.5, 0. ])
        """
        return self._model.prior_mean

    @property
    def one_row(self) -> bool:
        """Whether what it learns of a choice is in that arm's row: the first rows may all have to settle the ridge.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, lam=None)
        >>> before = agent.one_row
        >>> agent.learn(np.eye(2), Choice(0, 1.0), 1.0)
        >>> before, agent.one_row
        (False, True)
        """
        return self.n_arms is None and self._model.ridge is not None

    def _settle(self) -> None:
        self._set_width()

    @abstractmethod
    def _set_width(self) -> None:
        """Work out the multiplier again: at the start, and when the noise or the ridge have changed."""

    @abstractmethod
    def _play_piece(self, block: Floats, rewards: Floats) -> Played:
        """Rounds over which the multiplier stands still, in compiled code; ``block`` is (T, K, d) or (T, 1, d)."""

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        return self._model.estimate(context) if self.n_arms is None else self._model.estimate_all(context)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        if self.n_arms is None:
            self._model.learn(context, choice.arm, reward)
        else:
            self._model.learn(context[None], 0, reward, choice.arm)
        if self._noise is not None:
            self._noise.add(reward, self._model, choice.arm)
        self._set_width()

    def _revise(self, context: Floats, choice: Choice, before: float, after: float) -> None:
        if self.n_arms is None:
            self._model.revise(*dense_row(context, choice.arm), after - before)
        else:
            self._model.revise(context[None], 0, after - before, choice.arm)

    def _fade(self, keep: float) -> None:
        self._model.fade(keep)
        self._set_width()

    def _predicted(self, context: Floats, arm: int) -> float:
        if self.n_arms is not None:
            return float(self._model.theta[arm] @ context)
        X, row = dense_row(context, arm)
        return float(self._model.theta[0] @ X[row])

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        if not self.compiled:
            return super()._play(contexts, rewards)
        pieces, done = [], 0
        block = contexts if self.n_arms is None else contexts[:, None]
        while done < len(rewards):
            if self._model.ridge is None:  # the first rows settle it
                now = slice(done, done + 1)
                pieces.append(super()._play(contexts[now], rewards[now]))
            else:
                now = slice(done, len(rewards) if self._noise is None else done + self._noise.rounds_left)
                played = self._play_piece(block[now], rewards[now])
                pieces.append(played)
                self._n_learnt += len(played.rewards)
                if self._noise is not None:
                    # One by one, so that loop and block agree to the bit.
                    for reward, arm in zip(played.rewards.tolist(), played.arms.tolist()):
                        self._noise.add(reward, self._model, arm)
                self._set_width()
            done += len(pieces[-1].rewards)
        return joined(pieces)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._set_width()
