"""What the practical defaults measure exploration in: the noise of the rewards around a ridge model."""

from __future__ import annotations

import math

from armwise import persist
from armwise.ridge import Ridge

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

    _learnt = ("deviation", "_n", "_at", "_next", "_squares", "_weight")

    def __init__(self) -> None:
        self.deviation = 0.0  # nothing is known of the rewards' size, and all arms tie
        self._n, self._at, self._next = 0, 0, 1
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
        self._at, self._next = self._n, self._n + min(max(1, self._n // 10), _LONGEST)
        return True

    @property
    def growing(self) -> float:
        """deviation x sqrt(ln(1 + n)), n the rewards at the last estimate: what an optimist's width is measured in.

        >>> Noise().growing
        0.0
        """
        return self.deviation * math.sqrt(math.log1p(self._at))
