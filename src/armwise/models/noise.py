"""What the practical defaults measure exploration in: the noise of the rewards around a ridge model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from armwise.core import saving
from armwise.models.ridge import Ridge

_LONGEST = 1000  # rewards between two estimates


class Model(Protocol):
    """What the noise has to know of a model: how it forgets, and what it leaves unexplained."""

    discount: float

    def noise(self, squares: float, n: float, changed: Iterable[int] | None = None) -> float: ...


class Noise(saving.Saved):
    """A running estimate of the rewards' standard deviation around the model, in the rewards' own units.

    The estimate is renewed after 1, 2, 3, ... rewards, then whenever they have grown by a tenth (or by 1000), and
    stands still in between: a block of rounds can be played with it, and the cost of O(d^3) per model that learnt is
    shared.

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
        self._changed: set[int] | None = (
            set()
        )  # models that learnt since the last estimate; None: it is not known which

    @property
    def rounds_left(self) -> int:
        """How many rewards the estimate still stands for.

        >>> Noise().rounds_left
        1
        """
        return self._next - self._n

    def add(self, reward: float, model: Model, arm: int | None = None) -> bool:
        """One reward that the model has just learnt, of this arm; whether the estimate was renewed.

        >>> Noise().add(0.0, Ridge(dim=1))
        True
        """
        if arm is None:
            self._changed = None
        elif self._changed is not None:
            self._changed.add(arm)
        self._n += 1
        self._squares = model.discount * self._squares + reward * reward
        self._weight = model.discount * self._weight + 1.0
        if self._n < self._next:
            return False
        self._estimate(model, self._changed)
        return True

    def renew(self, model: Model) -> None:
        """Estimate afresh, now.

        >>> noise = Noise()
        >>> noise.renew(Ridge(dim=1))
        >>> noise.deviation
        0.0
        """
        self._estimate(model, None)

    def _estimate(self, model: Model, changed: set[int] | None) -> None:
        squares, weight = self._squares, self._weight
        if isinstance(model, Ridge) and model.window:
            squares, weight = model.recent_squares()
        self.deviation, self._changed = model.noise(squares, weight, changed), set()
        self._at, self._next = self._n, self._n + min(max(1, self._n // 10), _LONGEST)

    def merge(self, other: Noise, model: Model) -> None:
        """Add the rewards that another has seen; ``model`` has learnt all of them. The estimate is renewed.

        >>> noise, other = Noise(), Noise()
        >>> _ = other.add(2.0, Ridge(dim=1))
        >>> noise.merge(other, Ridge(dim=1))
        >>> noise.rounds_left
        1
        """
        self._n += other._n
        self._squares += other._squares
        self._weight += other._weight
        self.renew(model)

    def drop(self, explained: float, used: float) -> None:
        """A model is removed: what it explained of the squares goes with it, so that residuals stay what they were.

        >>> noise = Noise()
        >>> _ = noise.add(2.0, Ridge(dim=1))
        >>> noise.drop(explained=4.0, used=1.0)
        >>> noise._squares, noise._weight
        (0.0, 0.0)
        """
        self._squares = max(0.0, self._squares - explained)
        self._weight = max(0.0, self._weight - used)

    @property
    def growing(self) -> float:
        """deviation x sqrt(ln(1 + n)), n the rewards at the last estimate: what an optimist's width is measured in.

        >>> Noise().growing
        0.0
        """
        return self.deviation * math.sqrt(math.log1p(self._at))
