"""What the agents over a ridge model share: how they learn, play blocks, and measure the noise of the rewards."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from armwise import persist
from armwise.agent import Agent, Choice, Floats, Played, positive
from armwise.ridge import Ridge

PRACTICAL = 0.5  # exploration of the defaults, in standard deviations of the noise (docs/defaults.md)
_LONGEST = 1000  # rewards between two estimates


class Noise(persist.Saved):
    """A running estimate of the rewards' standard deviation around the model, in the rewards' own units.

    The estimate is renewed after 1, 2, 3, ... rewards, then whenever they have grown by a tenth (or by 1000), and
    stands still in between: a block of rounds can be played with it, and the cost of O(d^2) per model is shared.

    >>> import numpy as np
    >>> model, noise = Ridge(dim=1, lam=1e-9), Noise()
    >>> for reward in (1.0, 3.0, 1.0, 3.0):
    ...     model.update(np.ones(1), reward)
    ...     renewed = noise.add(reward, model)
    >>> round(noise.deviation, 9)
    1.5
    """

    _learnt = ("deviation", "_n", "_next", "_squares", "_weight")

    def __init__(self) -> None:
        self.deviation = 0.0  # nothing is known of the rewards' size, and all arms tie
        self._n, self._next = 0, 1
        self._squares = self._weight = 0.0

    @property
    def rounds_left(self) -> int:
        """How many rewards the estimate still stands for.

        >>> Noise().rounds_left
        1
        """
        return self._next - self._n

    def add(self, reward: float, model: Ridge) -> bool:
        """One reward that the model has just learnt; whether the estimate was renewed.

        >>> Noise().add(0.0, Ridge(dim=1))
        True
        """
        self._n += 1
        self._squares = model.discount * self._squares + reward * reward
        self._weight = model.discount * self._weight + 1.0
        if self._n < self._next:
            return False
        squares, weight = model.recent_squares() if model.window else (self._squares, self._weight)
        self.deviation = model.noise(squares, weight)
        self._next = self._n + min(max(1, self._n // 10), _LONGEST)
        return True

    def width(self) -> float:
        """The practical multiplier of the widths: ``PRACTICAL`` x deviation x sqrt(ln(1 + n)).

        >>> Noise().width()
        0.0
        """
        return PRACTICAL * self.deviation * math.sqrt(math.log1p(self._n))


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
        self._set_width()

    @abstractmethod
    def _set_width(self) -> None:
        """Work out the multiplier again: at the start, and when the noise or the ridge have changed."""

    @abstractmethod
    def _play_piece(self, block: Floats, rewards: Floats) -> Played:
        """Rounds over which the multiplier stands still, in compiled code; ``block`` is (T, K, d) or (T, 1, d)."""

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        if self.n_arms is None:
            self._model.learn(context, choice.arm, reward)
        else:
            self._model.learn(context[None], 0, reward, choice.arm)
        if self._noise is not None:
            self._noise.add(reward, self._model)
        self._set_width()

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
        return pieces[0] if len(pieces) == 1 else Played(*(np.concatenate(column) for column in zip(*pieces)))

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._set_width()
