"""Auto's model of raw columns: nested ridge models of mapped rows, with a memory from which the maps are fitted."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armwise.core import saving
from armwise.core.agent import Floats
from armwise.features.maps import Columns, Fourier
from armwise.native import nested

_LANES = 8  # prefixes of the features end at multiples of eight


class NestedModel(saving.Saved):
    """A constant, linear, additive and smooth model of each arm (or of all rows), of which the best predictor decides.

    The maps and the range of the rewards are fitted anew whenever the number of rewards learnt reaches 1, 2, 4, ...,
    ``memory``, from those rewards, which are then learnt again in their order. With ``forgets`` that happens again
    after every ``memory`` rewards, from the last ``memory``; all before are forgotten.
    """

    _learnt = ("_columns", "_fourier", "_ends", "_prior", "_factors", "_thetas", "_evidence", "_center", "_unit",
               "_scale", "_rows", "_models", "_rewards", "_filled", "_offered", "_first", "_n_first",
               "_loss", "_knows_range")  # fmt: skip

    FIRST: ClassVar[int] = 32  # rounds of which all rows (at most 32) are looked at for the maps, chosen or not
    FEATURES: ClassVar[int] = 288  # about as many as are worth their time; at least 96 of them are smooth
    SCALE: ClassVar[float] = 4.0  # of the linear, and of the smooth part, beside a constant of 1
    SCALES_PER_ARM: ClassVar[tuple[float, ...]] = (3.0, 1.0, 0.33, 0.1)  # the same where each arm has a model
    UNLIKELIER: ClassVar[float] = 10.0  # of -2 ln(likelihood): what a larger scale may cost more than the next one
    COMPARED: ClassVar[int] = 256  # rewards from which each fit compares the scales: each costs a fit of its own
    MORE: ClassVar[float] = 0.7  # of optimism, where rewards take more than two values: no ceiling is in sight
    CENTER: ClassVar[float] = 0.3  # of the rewards' range: what an arm never played is expected to bring

    def __init__(
        self, dim: int, n_arms: int | None, memory: int, *, forgets: bool = False, smooth: bool = True
    ) -> None:
        self.dim, self.n_arms, self.memory, self.forgets, self.smooth = dim, n_arms, memory, forgets, smooth
        self._rows = np.zeros((memory, dim))
        self._models, self._rewards = np.zeros(memory, np.int64), np.zeros(memory)
        offers = n_arms is None  # rows that describe arms: those that were not chosen belong to the maps too
        self._offered = np.zeros((memory if offers else 0, dim))
        self._first, self._n_first = np.zeros((self.FIRST * self.FIRST if offers else 0, dim)), 0
        self._filled = 0  # of the memory, or, where it forgets, rewards that ever went through it
        self._columns: Columns | None = None
        self._fourier: Fourier | None = None
        self._center, self._unit, self._loss, self._knows_range = 0.0, 1.0, 0.0, False
        self._scale = self.SCALE if n_arms is None else self.SCALES_PER_ARM[0]
        self._begin(np.array([_LANES], np.int64), np.array([1.0] + [0.0] * (_LANES - 1)))

    # ------------------------------------------------------------------ the features of a row

    def _map(self, rows: Floats) -> Floats:
        """A constant, the columns, the smooth features; each part padded with zeros to a multiple of eight."""
        mapped = np.zeros((len(rows), int(self._ends[-1])))
        mapped[:, 0] = 1.0
        if self._columns is not None:
            columns, linear, start = self._columns.transform(rows), self._columns.linear, _LANES
            mapped[:, start : start + linear] = columns[:, :linear]
            start += _padded(linear)
            mapped[:, start : start + columns.shape[1] - linear] = columns[:, linear:]
            if self._fourier is not None:
                mapped[:, self._ends[-2] :] = self._fourier.transform(columns)
        return mapped

    def _begin(self, ends: NDArray[np.int64], prior: Floats) -> None:
        M, B, D = self.n_arms or 1, len(ends), len(prior)
        self._ends, self._prior = ends, prior
        self._factors, self._thetas = np.zeros((M, D, D)), np.zeros((M, B, D))
        self._factors[:, np.arange(D), np.arange(D)] = prior
        self._evidence = np.zeros(_evidence_type(B).itemsize // 8)

    def refit(self) -> None:
        """Fit maps and range to the rewards in memory, and learn them again.

        Where each arm has a model, the scale of the linear and the smooth part is chosen in each fit from ``COMPARED``
        rewards on, by their marginal likelihood: the largest scale unless a smaller one is much likelier. A weak signal
        among noise is then shrunk, and one that rewards have not told yet from none is still looked for.
        """
        n = min(self._filled, self.memory)
        order = np.arange(n) if self._filled <= self.memory else np.arange(self._filled, self._filled + n) % n
        order = order[self._models[order] >= 0]  # -1: of an arm that was removed
        rows, models, rewards = self._rows[order], self._models[order], self._rewards[order]
        low, high = float(rewards.min()), float(rewards.max())
        self._knows_range = high > low
        self._unit = high - low if high > low else 1.0  # nothing yet says how rewards vary
        self._center = low + self.CENTER * self._unit
        seen = rows
        if self.n_arms is None:
            first = self._first[: self._n_first] if self._filled <= self.memory else self._first[:0]
            seen = np.concatenate([first, rows, self._offered[order]])
        columns = Columns().fit(seen)
        mapped = columns.transform(seen)
        ends, kinds = [_LANES], [np.array([1.0] + [0.0] * (_LANES - 1))]
        self._columns = self._fourier = None
        if columns.size:
            length = float(np.sqrt(np.einsum("ij,ij->i", mapped, mapped).mean()))
            for size in (columns.linear, columns.size - columns.linear):
                if size:
                    ends.append(ends[-1] + _padded(size))
                    kinds.append(np.where(np.arange(_padded(size)) < size, 1.0 / length, 0.0))
            self._columns = columns
            if self.smooth:
                smooth = max(96, (self.FEATURES - ends[-1]) // _LANES * _LANES)
                ends.append(ends[-1] + smooth)
                kinds.append(np.ones(smooth))
                self._fourier = Fourier(smooth).fit(mapped)
        self._ends, unscaled = np.array(ends, np.int64), np.concatenate(kinds)
        self._learn_memory(unscaled, self._map(rows), models, (rewards - self._center) / self._unit)

    def _learn_memory(self, unscaled: Floats, rows: Floats, models: NDArray[np.int64], rewards: Floats) -> None:
        """Learn mapped rows under the scale in use, or choose it anew; ``unscaled`` is the prior at a scale of 1."""
        more = self.MORE if len(np.unique(rewards)) > 2 else 0.0
        compares = (self.n_arms or 1) > 1 and not self.forgets and self._filled >= self.COMPARED and len(self._ends) > 1
        least, best = np.inf, None
        for scale in self.SCALES_PER_ARM if compares else (self._scale,):
            prior = np.concatenate([unscaled[:_LANES], scale * unscaled[_LANES:]])
            self._begin(self._ends, prior)
            self._named_evidence["more"] = more
            nested.learn_rows(*self._model, rows, models, rewards)
            if not compares:
                break
            cost = self._cost(rows, models, rewards)
            if best is not None and cost > least - self.UNLIKELIER:
                self._prior, self._factors, self._thetas, self._evidence = best
                break
            least, best = cost, (self._prior, self._factors, self._thetas, self._evidence)
            self._scale = scale
        self._named_evidence["loss"] = 0.0  # these errors were counted when the rewards came

    def _cost(self, rows: Floats, models: NDArray[np.int64], rewards: Floats) -> float:
        """-2 ln(marginal likelihood) of the likeliest prefix beyond the constant, the noise integrated out.

        The same as ``Evidence.cost`` in nested.hpp, of all rewards alike.
        """
        used = self._prior > 0.0
        logs = np.zeros(len(self._prior))
        diagonals = np.diagonal(self._factors, axis1=1, axis2=2)[:, used]
        logs[used] = -2.0 * np.log(diagonals / self._prior[used]).sum(axis=0)
        costs, n = [], len(rewards) + 2.0
        for b, end in enumerate(self._ends):
            predicted = np.einsum("ij,ij->i", rows[:, :end], self._thetas[models, b, :end])
            rest = 0.1 + max(0.0, float((rewards * (rewards - predicted)).sum()))
            costs.append(float(logs[:end].sum()) + n * float(np.log(rest / n)))
        return min(costs[1:] or costs)

    @property
    def _model(self) -> tuple[Floats, Floats, NDArray[np.int64], Floats, Floats]:
        return self._factors, self._thetas, self._ends, self._prior, self._evidence

    # ------------------------------------------------------------------ score and learn

    def scores(self, context: Floats) -> Floats:
        """Optimistic scores of the arms."""
        return nested.scores(*self._model, self._map(np.atleast_2d(context)))

    def learn(self, row: Floats, model: int, reward: float, context: Floats) -> None:
        """A row and its reward; ``context`` is the round's."""
        nested.learn(*self._model, self._map(row[None, :])[0], model, (reward - self._center) / self._unit)
        self._after(row[None, :], np.array([model]), np.array([reward]), context[None])

    def teach(self, rows: Floats, models: NDArray[np.int64], rewards: Floats, rounds: Floats) -> None:
        """``learn`` for many rows that another chose."""
        start = 0
        while start < len(rows):
            part = slice(start, min(len(rows), start + self.until_refit()))
            start = part.stop
            scaled = (rewards[part] - self._center) / self._unit
            nested.learn_rows(*self._model, self._map(rows[part]), models[part], scaled)
            self._after(rows[part], models[part], rewards[part], rounds[part])

    def play(self, block: Floats, rewards: Floats, floor: float, rng: np.random.Generator) -> Any:
        """Choose and learn for rounds up to the next refit at most: arms, probabilities and rewards."""
        n = len(block)
        mapped = self._map(block.reshape(-1, self.dim)).reshape(*block.shape[:2], -1)
        played = nested.play(*self._model, mapped, rewards, self._center, self._unit, floor, rng)
        self._after(*chosen(block, played[0], self.n_arms), played[2], block if self.n_arms is None else block[:n, 0])
        return played

    def _after(self, rows: Floats, models: NDArray[np.int64], rewards: Floats, rounds: Floats) -> None:
        due = len(rows) == self.until_refit()
        self.keep(rows, models, rewards, rounds)
        if due:
            self._loss = self._total_loss()
            self.refit()

    def _total_loss(self) -> float:
        # Errors made before it was known where rewards lie are alike for all memories, and as large as the rewards.
        return self._loss + (float(self._named_evidence["loss"]) * self._unit**2 if self._knows_range else 0.0)

    def take_loss(self) -> float:
        """The squared errors of its predictions since this was last asked."""
        loss, self._loss = self._total_loss(), 0.0
        self._named_evidence["loss"] = 0.0
        return loss

    def until_refit(self) -> int:
        """The number of rewards until the maps are fitted again."""
        if self._filled < self.memory:
            return (1 << self._filled.bit_length()) - self._filled if self._filled else 1
        return self.memory - self._filled % self.memory if self.forgets else 1 << 62

    def keep(self, rows: Floats, models: NDArray[np.int64], rewards: Floats, rounds: Floats) -> None:
        """Into the memory, as long as it has room or forgets (never beyond the next refit); nothing is learnt."""
        if self._filled >= self.memory and not self.forgets:
            return
        where = (self._filled + np.arange(len(rows))) % self.memory
        self._rows[where], self._models[where], self._rewards[where] = rows, models, rewards
        if self.n_arms is None:
            self._offer(rounds)
        self._filled += len(rows)

    def _offer(self, rounds: Floats) -> None:
        """Keep one row of each round, every arm in its turn, and all rows of the first rounds."""
        K = rounds.shape[1]
        n = self._filled + np.arange(len(rounds))
        self._offered[n % self.memory] = rounds[np.arange(len(rounds)), n % K]
        if self._filled >= self.FIRST:
            return
        some = np.linspace(0, K - 1, min(K, self.FIRST)).astype(np.int64)
        new = rounds[n < self.FIRST][:, some].reshape(-1, rounds.shape[2])
        self._first[self._n_first : self._n_first + len(new)] = new
        self._n_first += len(new)

    # ------------------------------------------------------------------ arms that come and go

    def add_model(self) -> None:
        """One more arm, of which nothing is known."""
        assert self.n_arms is not None
        self.n_arms += 1
        B, D = self._thetas.shape[1:]
        self._factors = np.concatenate([self._factors, np.diag(self._prior)[None]])
        self._thetas = np.concatenate([self._thetas, np.zeros((1, B, D))])

    def remove_model(self, arm: int) -> None:
        """Forget an arm; those after it move down by one."""
        assert self.n_arms is not None
        self.n_arms -= 1
        self._factors = np.delete(self._factors, arm, axis=0)
        self._thetas = np.delete(self._thetas, arm, axis=0)
        self._models[self._models == arm] = -1
        self._models[self._models > arm] -= 1

    # ------------------------------------------------------------------ what it decided

    @property
    def in_charge(self) -> str:
        """The part of the features that decides."""
        return self._names()[nested.level(self._evidence, len(self._ends), self.n_arms or 1)[0]]

    @property
    def shares(self) -> dict[str, float]:
        """The share of rewards for which each part was in charge since the last refit."""
        counts = self._named_evidence["charge"]
        return {name: float(n / max(1.0, counts.sum())) for name, n in zip(self._names(), counts)}

    @property
    def since_refit(self) -> int:
        """The rewards that ``shares`` are about."""
        return int(self._named_evidence["charge"].sum())

    @property
    def noise(self) -> float:
        """The deviation of the rewards around what it predicts."""
        return float(nested.level(self._evidence, len(self._ends), self.n_arms or 1)[2] * self._unit)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The range of the rewards, as learnt."""
        low = self._center - self.CENTER * self._unit
        return low, low + self._unit

    @property
    def features(self) -> list[str]:
        """The names of the mapped columns."""
        return self._columns.names() if self._columns is not None else []

    @property
    def length_scale(self) -> float | None:
        """The length scale of the smooth features; None as long as there are none."""
        return self._fourier.scale_used if self._fourier is not None else None

    def estimates(self, context: Floats) -> tuple[Floats, Floats]:
        """Each arm's expected reward, and its standard deviation."""
        level, _, noise = nested.level(self._evidence, len(self._ends), self.n_arms or 1)
        means, widths = nested.estimates(*self._model[:4], self._map(np.atleast_2d(context)), level)
        return means * self._unit + self._center, widths * (noise * self._unit)

    def _names(self) -> list[str]:
        names = ["constant", "linear", "additive"][: len(self._ends) - (self._fourier is not None)]
        return [*names, "smooth"] if self._fourier is not None else names

    @property
    def _named_evidence(self) -> Any:
        """The numbers of ``_evidence`` by name; what is written here is written there."""
        return self._evidence.view(_evidence_type(len(self._ends)))[0]


@functools.cache
def _evidence_type(n_prefixes: int) -> np.dtype[Any]:
    """``Evidence`` of nested.hpp as a record: sums over rewards, then of each prefix, then of all."""
    each = ("gaps", "squares", "charge", "sums", "logs")
    return np.dtype(
        [("learnt", "f8"), ("faded_error", "f8"), ("faded_count", "f8")]
        + [(name, "f8", (n_prefixes,)) for name in each]
        + [("loss", "f8"), ("more", "f8"), ("apart", "f8")]
    )


def chosen(block: Floats, arms: NDArray[np.int64], n_arms: int | None) -> tuple[Floats, NDArray[np.int64]]:
    """The rows that were chosen, of (T, rows, d), and the number of each one's model."""
    T = np.arange(len(block))
    return (block[T, 0], arms) if n_arms is not None else (block[T, arms], np.zeros(len(block), np.int64))


def _padded(size: int) -> int:
    return -(-size // _LANES) * _LANES
