"""What the practical defaults measure exploration in: the noise of the rewards around a ridge model."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from armwise.core import saving
from armwise.core.agent import Floats
from armwise.models.ridge import Ridge

_LONGEST = 1000  # rewards between two estimates
_PRIOR_ROUNDS = 1.0  # rounds that the noise is taken for the rewards' own spread, before residuals are known
PESSIMISM = 1.0  # deviations of the rewards by which less is expected where nothing is known: see docs/choose.md
_UNSURE = 20.0  # times the share of a constant that the rows cannot express: then nothing is expected less
_NO_CENTRE = 1e-9  # a share of the rewards: less than that left unexplained of a constant says nothing of the centre


class CentredModel(Protocol):
    """What the noise has to know of a model: how it forgets, where it measures rewards from, what it explains."""

    discount: float
    centred: bool
    centre: float

    @property
    def least_share(self) -> float: ...
    def explained(self) -> tuple[float, float, float, float]: ...
    def recentre(self, centre: float) -> None: ...
    def rescale(self, least: float = 0.01, rewards: tuple[float, float, float] | None = None) -> None: ...


class RewardRange(saving.Saved):
    """The least and the largest reward so far: the unit of rewards where no model says how noisy they are."""

    _learnt = ("low", "high", "_n")

    def __init__(self) -> None:
        self.low, self.high, self._n = 0.0, 0.0, 0

    def add(self, reward: float) -> None:
        """One reward."""
        self.low = min(self.low, reward) if self._n else reward
        self.high = max(self.high, reward) if self._n else reward
        self._n += 1

    @property
    def extent(self) -> float:
        """How far apart rewards lie; 1 as long as all are the same."""
        return self.high - self.low or 1.0


class Noise(saving.Saved):
    """What is estimated from all rewards: their standard deviation around the model, the centre, and the ridge's scale.

    The model fits r = c + x.theta with a ridge on theta and none on c, which all models share. The sums behind it (of
    1, r, r^2, and the model's own) are additive: c is the same in whichever order rewards come, and rewards shifted by
    a constant move it by that constant and nothing else. The variance is
    (residual sum of squares + v) / (n - df + 1), with df the degrees of freedom of the fit and v the variance of the
    rewards: before there are residuals, the noise is taken to be of the rewards' own spread. The ridge draws estimates
    not to c but one deviation of the rewards below it, where the rows can express a constant: what is unknown is tried
    for its width, and not because the arms that were played for being good say that all are. Under a larger ridge than
    the least it is as much less below: a new arm would not be heard for long.

    All is renewed after 1, 2, 3, ... rewards, then whenever they have grown by a tenth (or by 1000), and stands still
    in between: a block of rounds can be played with it, and the cost of O(d^3) per model that learnt is shared. A ridge
    that follows the rows (``lam=None``) is worked out again whenever the rewards have doubled.
    """

    _learnt = ("deviation", "extent", "low", "high", "_n", "_at", "_next", "_scaled", "_centre", "_sum", "_squares",
               "_ones", "_gone")  # fmt: skip

    def __init__(self, scale_only: bool = False) -> None:
        self.scale_only = bool(scale_only)  # the ridge's scale, and nothing about rewards
        self.low = self.high = 0.0  # the least and the largest reward so far
        self.deviation = 0.0  # nothing is known of the rewards' size, and all arms tie
        self.extent = 0.0  # high - low at the last estimate: like the deviation, it stands still in between
        self._n, self._at, self._next, self._scaled = 0, 0, 1, 0
        self._centre = self._sum = self._squares = 0.0  # sums are measured from the centre
        self._ones = 0.0  # rewards
        self._gone = np.zeros(4)  # what models explained that were removed: see ``Ridge.explained``

    def _restore(self, state: dict[str, Any]) -> None:
        if "_weight" in state:  # of armwise 0.1, whose models are not centred
            state["_ones"] = state.pop("_weight")
        super()._restore(state)

    @property
    def rounds_left(self) -> int:
        """How many rewards the estimate still stands for."""
        return self._next - self._n

    def add(self, reward: float, model: CentredModel) -> bool:
        """One reward that the model has just learnt; whether the estimate was renewed."""
        if self._n:
            if reward < self.low:
                self.low = reward
            elif reward > self.high:
                self.high = reward
        else:
            self.low = self.high = reward
            if not self.scale_only:
                self._centre = model.centre
        if self.scale_only:
            reward = 0.0
        self._n += 1
        reward -= self._centre
        discount = model.discount
        if discount == 1.0:
            self._sum += reward
            self._squares += reward * reward
            self._ones += 1.0
        else:
            self._sum = discount * self._sum + reward
            self._squares = discount * self._squares + reward * reward
            self._ones = discount * self._ones + 1.0
            self._gone *= discount
        if self._n < self._next:
            return False
        if self._n >= 2 * self._scaled:
            model.rescale(rewards=self._unexplained)
            self._scaled = self._n
        self._estimate(model)
        return True

    def add_block(self, rewards: Floats, model: CentredModel) -> bool:
        """Add rewards just learnt by the model, at most ``rounds_left``: as ``add`` of each in order, to the bit."""
        early = rewards[:-1]
        if model.discount < 1.0 or not self._n or self.scale_only:
            for reward in early.tolist():
                self.add(reward, model)
        elif len(early):
            self.low, self.high = min(self.low, float(early.min())), max(self.high, float(early.max()))
            rests = early - self._centre
            self._sum = float(np.cumsum(np.append(self._sum, rests))[-1])  # one after the other, as ``add`` sums
            self._squares = float(np.cumsum(np.append(self._squares, rests * rests))[-1])
            self._ones += float(len(early))
            self._n += len(early)
        return self.add(float(rewards[-1]), model)

    def renew(self, model: CentredModel) -> None:
        """Estimate afresh, now."""
        model.rescale(least=0.0, rewards=self._unexplained)
        self._scaled = self._n
        self._estimate(model)

    @property
    def stale(self) -> bool:
        """Whether rewards came after the last estimate, or after the ridge was last worked out."""
        return self._at < self._n or self._scaled < self._n

    @property
    def _unexplained(self) -> tuple[float, float, float] | None:
        """Rewards, their sum and that of their squares, less by what models explained that were removed."""
        if self.scale_only:
            return None
        return self._ones - self._gone[3], self._sum - self._gone[2], self._squares - self._gone[0]

    def _estimate(self, model: CentredModel) -> None:
        self._at, self._next = self._n, self._n + min(max(1, self._n // 10), _LONGEST)
        self.extent = self.high - self.low
        if self.scale_only:
            return
        if isinstance(model, Ridge) and model.window:
            self._ones, self._sum, self._squares = model.recent_sums()
        fit, used, cross, explained = (self._gone + model.explained()).tolist()
        n = max(self._ones, 1.0)
        rest, residual = self._squares - fit, self._squares
        if model.centred:
            residual -= self._sum * self._sum / n
            left = self._ones - explained  # 1' (I - S) 1, with S what the models make of rewards
            if left > _NO_CENTRE * n:
                by = (self._sum - cross) / left
                rest -= by * (self._sum - cross)
                used += left / n
                deviation = math.sqrt(max(0.0, residual) / n)
                below = PESSIMISM * model.least_share * deviation
                self._move(by - below * max(0.0, 1.0 - _UNSURE * left / n), model)
        spread = max(0.0, rest) + _PRIOR_ROUNDS * max(0.0, residual) / n
        self.deviation = math.sqrt(spread / (max(0.0, self._ones - used) + _PRIOR_ROUNDS))

    def _move(self, by: float, model: CentredModel) -> None:
        """Measure rewards from another centre."""
        self._squares += by * (by * self._ones - 2.0 * self._sum)
        self._sum -= by * self._ones
        self._gone[0] += by * (by * self._gone[3] - 2.0 * self._gone[2])
        self._gone[2] -= by * self._gone[3]
        self._centre += by
        model.recentre(self._centre)

    def merge(self, other: Noise, model: CentredModel) -> None:
        """Add the rewards that another has seen; ``model`` has learnt all of them. The estimate is renewed."""
        if other._n:
            self.low = min(self.low, other.low) if self._n else other.low
            self.high = max(self.high, other.high) if self._n else other.high
        if not self._n:
            self._centre = other._centre
        by = other._centre - self._centre
        self._n += other._n
        self._squares += other._squares + by * (by * other._ones + 2.0 * other._sum)
        self._sum += other._sum + by * other._ones
        self._ones += other._ones
        gone = other._gone.copy()
        gone[0] += by * (by * gone[3] + 2.0 * gone[2])
        gone[2] += by * gone[3]
        self._gone += gone
        self.renew(model)

    def drop(self, explained: tuple[float, float, float, float]) -> None:
        """A model is removed: what it explained still counts, so that residuals and centre stay what they were."""
        self._gone += explained

    @property
    def learnt(self) -> int:
        """The rewards at the last estimate: like the deviation, it stands still in between."""
        return self._at

    @property
    def growing(self) -> float:
        """deviation x sqrt(ln(1 + n)), n the rewards at the last estimate: what an optimist's width is measured in."""
        return self.deviation * math.sqrt(math.log1p(self._at))
