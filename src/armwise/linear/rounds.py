"""What the agents over a ridge model share: how they learn and play blocks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from armwise.agent import Agent, Choice, Floats, Played, joined, positive
from armwise.noise import Noise
from armwise.ridge import Ridge


class RidgeAgent(Agent):
    """An agent over a ``Ridge``: one model over per-arm features, or one per arm over a shared context.

    A subclass says in ``_set_width`` what its exploration is multiplied with, which may change whenever the noise is
    estimated anew, and in ``_play_piece`` how it plays rounds between two estimates.
    """

    reward_range = (-np.inf, np.inf)
    dim: int
    _model: Ridge
    _noise: Noise | None
    _learnt = ("_model", "_noise")

    def _begin(
        self,
        model: Ridge,
        n_arms: int | None,
        scale: float,
        noise: Noise | None,
    ) -> None:
        """The last lines of every constructor."""
        self._model, self._noise = model, noise
        self.dim, self.lam, self.discount, self.window = model.dim, model.lam, model.discount, model.window
        self.n_arms = None if n_arms is None else model.n_models
        self.sees = "features" if n_arms is None else "shared"
        self.scale = positive("scale", scale, zero=True)
        self.compiled = self.window is None
        self.revises = noise is None and not model.forgets
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
            self._noise.add(reward, self._model)
        self._set_width()

    def _revise(self, context: Floats, choice: Choice, before: float, after: float) -> None:
        if self.n_arms is None:
            self._model.revise(context, choice.arm, after - before)
        else:
            self._model.revise(context[None], 0, after - before, choice.arm)

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
                    for reward in played.rewards.tolist():  # one by one, so that loop and block agree to the bit
                        self._noise.add(reward, self._model)
                self._set_width()
            done += len(pieces[-1].rewards)
        return joined(pieces)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._set_width()
