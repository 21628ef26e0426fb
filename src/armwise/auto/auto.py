"""Auto: one agent that nobody has to tune (beyond the survey).

It maps the raw columns (``features.Columns`` and ``features.Fourier``), keeps nested ridge models of the mapped rows (a
constant per arm, linear, additive, smooth), lets the one that predicts best decide, and is optimistic in proportion to
the errors it makes: where rewards are nearly determined it explores little, where they are noise it explores more.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armwise.agent import Agent, Choice, Floats, Played, Seed, Theory, count, fraction, make_choice
from armwise.features.maps import Columns, Fourier
from armwise.numerics import nested
from armwise.numerics.choice import best_arms, draw, tied_probabilities

_LANES = 8  # prefixes of the features end at multiples of eight
_CHUNK = 4096  # rows that play maps at once


class Auto(Agent):
    """Choose well from raw columns, with nothing to set.

    ``Auto(dim, n_arms=K)`` sees one context per round and learns one model per arm; ``Auto(dim)`` sees one row of
    features per arm, any number of them. Rewards may be of any size: their range is learnt. ``floor`` is the share of
    decisions spread evenly over all arms, so that every probability is at least floor / K and the log can answer other
    questions later; without it the best arm is played. ``drift=True`` forgets: only the last 1,024 to 2,048 rewards
    count.

    The maps and the range of the rewards are fitted anew whenever the number of rewards learnt reaches 1, 2, 4, ...,
    1,024, from those rewards, which are then learnt again in their order. Beyond that the cost per decision, and the
    memory, stay what they are.

    >>> agent = Auto(dim=2, n_arms=2, seed=1)
    >>> rng = np.random.default_rng(5)
    >>> contexts = rng.normal(size=(2000, 2))
    >>> inside = (contexts**2).sum(axis=1) < 1.4                # no linear rule knows this
    >>> agent.play(contexts, np.stack([inside, ~inside], axis=1)).rewards[-500:].mean() > 0.9
    np.True_
    >>> agent.explain()["in_charge"]
    'smooth'
    """

    theory = Theory(
        section="beyond the survey",
        regret="none proved: optimism over the best of nested ridge models",
        comparator="the best arm of each round",
        assumes="rewards that a constant, a linear or a smooth function of the columns predicts",
        reference="Li et al. 2010 (optimism over ridge); Rahimi, Recht 2007 (random Fourier features)",
        infinite_policies=True,
    )
    reward_range = (-np.inf, np.inf)
    compiled = True
    _learnt = ("_columns", "_fourier", "_ends", "_prior", "_factors", "_thetas", "_evidence", "_center", "_unit",
               "_rows", "_models", "_rewards", "_filled", "_offered", "_first", "_n_first")  # fmt: skip

    MEMORY: ClassVar[int] = 1024  # rewards that are kept to fit the maps
    FIRST: ClassVar[int] = 32  # rounds of which all rows (at most 32) are looked at for the maps, chosen or not
    FEATURES: ClassVar[int] = 288  # about as many as are worth their time; at least 96 of them are smooth
    SCALE: ClassVar[float] = 4.0  # of the linear, and of the smooth part, beside a constant of 1
    CENTER: ClassVar[float] = 0.3  # of the rewards' range: what an arm never played is expected to bring

    def __init__(
        self, dim: int, n_arms: int | None = None, *, floor: float = 0.0, drift: bool = False, seed: Seed = None
    ) -> None:
        super().__init__(seed=seed)
        self.dim = count("dim", dim)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.floor = fraction("floor", floor) if floor else 0.0
        self.drift = bool(drift)
        self.sees = "features" if n_arms is None else "shared"
        self._rows = np.zeros((self.MEMORY, self.dim))
        self._models, self._rewards = np.zeros(self.MEMORY, np.int64), np.zeros(self.MEMORY)
        offers = n_arms is None  # rows that describe arms: those that were not chosen belong to the maps too
        self._offered = np.zeros((self.MEMORY if offers else 0, self.dim))
        self._first, self._n_first = np.zeros((self.FIRST * self.FIRST if offers else 0, self.dim)), 0
        self._filled = 0  # of the memory, or, with drift, rewards that ever went through it
        self._columns: Columns | None = None
        self._fourier: Fourier | None = None
        self._center, self._unit = 0.0, 1.0
        self._begin_model(np.array([_LANES], np.int64), np.array([1.0] + [0.0] * (_LANES - 1)))

    # ------------------------------------------------------------------ the features of a row

    def _map(self, rows: Floats) -> Floats:
        """A constant, the columns, the smooth features; each part padded with zeros to a multiple of eight."""
        mapped = np.zeros((len(rows), int(self._ends[-1])))
        mapped[:, 0] = 1.0
        if self._columns is not None and self._fourier is not None:
            columns, linear, start = self._columns.transform(rows), self._columns.linear, _LANES
            mapped[:, start : start + linear] = columns[:, :linear]
            start += _padded(linear)
            mapped[:, start : start + columns.shape[1] - linear] = columns[:, linear:]
            mapped[:, self._ends[-2] :] = self._fourier.transform(columns)
        return mapped

    def _begin_model(self, ends: NDArray[np.int64], prior: Floats) -> None:
        M, B, D = self.n_arms or 1, len(ends), len(prior)
        self._ends, self._prior = ends, prior
        self._factors, self._thetas = np.zeros((M, D, D)), np.zeros((M, B, D))
        self._factors[:, np.arange(D), np.arange(D)] = prior
        self._evidence = np.zeros(3 + 5 * B)

    def _refit(self) -> None:
        """Fit maps and range to the rewards in memory, and learn them again."""
        n = min(self._filled, self.MEMORY)
        order = np.arange(n) if self._filled <= self.MEMORY else np.arange(self._filled, self._filled + n) % n
        rows, models, rewards = self._rows[order], self._models[order], self._rewards[order]
        low, high = float(rewards.min()), float(rewards.max())
        if low == high:  # nothing yet says how rewards vary: compare with 0
            low, high = min(low, 0.0), max(high, 0.0)
        self._unit = high - low if high > low else 1.0
        self._center = low + self.CENTER * self._unit
        seen = rows
        if self.n_arms is None:
            first = self._first[: self._n_first] if self._filled <= self.MEMORY else self._first[:0]
            seen = np.concatenate([first, rows, self._offered[order]])
        columns = Columns().fit(seen)
        mapped = columns.transform(seen)
        ends, prior = [_LANES], [np.array([1.0] + [0.0] * (_LANES - 1))]
        self._columns = self._fourier = None
        if columns.size:
            length = float(np.sqrt(np.einsum("ij,ij->i", mapped, mapped).mean()))
            for size in (columns.linear, columns.size - columns.linear):
                if size:
                    ends.append(ends[-1] + _padded(size))
                    prior.append(np.where(np.arange(_padded(size)) < size, self.SCALE / length, 0.0))
            smooth = max(96, (self.FEATURES - ends[-1]) // _LANES * _LANES)
            ends.append(ends[-1] + smooth)
            prior.append(np.full(smooth, self.SCALE))
            self._columns, self._fourier = columns, Fourier(smooth).fit(mapped)
        self._begin_model(np.array(ends, np.int64), np.concatenate(prior))
        nested.learn_rows(*self._model, self._map(rows), models, (rewards - self._center) / self._unit)

    @property
    def _model(self) -> tuple[Floats, Floats, NDArray[np.int64], Floats, Floats]:
        return self._factors, self._thetas, self._ends, self._prior, self._evidence

    # ------------------------------------------------------------------ choose and learn

    def _scores(self, context: Floats) -> Floats:
        return nested.scores(*self._model, self._map(np.atleast_2d(context)))

    def _probabilities(self, context: Floats) -> Floats:
        p = tied_probabilities(self._scores(context))
        return (1.0 - self.floor) * p + self.floor / len(p) if self.floor else p

    def _choose(self, context: Floats) -> Choice:
        if self.floor:
            p = self._probabilities(context)
            arm = draw(p, self._rng.random())
            return make_choice((arm, float(p[arm]), None, None))
        arms = best_arms(self._scores(context))
        if arms.size == 1:
            return make_choice((int(arms[0]), 1.0, None, None))
        return make_choice((int(arms[int(self._rng.random() * arms.size)]), 1.0 / arms.size, None, None))

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        row, model = (context, choice.arm) if self.n_arms is not None else (context[choice.arm], 0)
        mapped = self._map(row[None, :])[0]
        nested.learn(*self._model, mapped, model, (reward - self._center) / self._unit)
        self._remember(row[None, :], np.array([model]), np.array([reward]), context[None])

    def _until_refit(self) -> int:
        """How many more rewards until the maps are fitted again."""
        if self._filled < self.MEMORY:
            return (1 << self._filled.bit_length()) - self._filled if self._filled else 1
        return self.MEMORY - self._filled % self.MEMORY if self.drift else 1 << 62

    def _remember(self, rows: Floats, models: Any, rewards: Floats, rounds: Floats) -> None:
        """Keep what was learnt (never beyond the next refit), and refit when it is time."""
        if self._filled >= self.MEMORY and not self.drift:
            return
        due = len(rows) == self._until_refit()
        where = (self._filled + np.arange(len(rows))) % self.MEMORY
        self._rows[where], self._models[where], self._rewards[where] = rows, models, rewards
        if self.n_arms is None:
            self._offer(rounds)
        self._filled += len(rows)
        if due:
            self._refit()

    def _offer(self, rounds: Floats) -> None:
        """Keep one row of each round, every arm in its turn, and all rows of the first rounds."""
        K = rounds.shape[1]
        n = self._filled + np.arange(len(rounds))
        self._offered[n % self.MEMORY] = rounds[np.arange(len(rounds)), n % K]
        some = np.linspace(0, K - 1, min(K, self.FIRST)).astype(np.int64)
        new = rounds[n < self.FIRST][:, some].reshape(-1, rounds.shape[2])
        self._first[self._n_first : self._n_first + len(new)] = new
        self._n_first += len(new)

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        T = len(rewards)
        arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
        table = contexts[:, None, :] if self.n_arms is not None else contexts
        start = 0
        while start < T:
            stop = min(T, start + min(self._until_refit(), _CHUNK))
            block = table[start:stop]
            mapped = self._map(block.reshape(-1, self.dim)).reshape(*block.shape[:2], -1)
            played = nested.play(
                *self._model, mapped, rewards[start:stop], self._center, self._unit, self.floor, self._rng
            )
            arms[start:stop], probabilities[start:stop], got[start:stop] = played
            rows = block[np.arange(stop - start), 0 if self.n_arms is not None else played[0]]
            models = played[0] if self.n_arms is not None else np.zeros(stop - start, np.int64)
            self._n_learnt += stop - start
            self._remember(rows, models, played[2], block)
            start = stop
        return Played(arms, probabilities, got)

    # ------------------------------------------------------------------ what it decided

    def explain(self) -> dict[str, Any]:
        """What it has decided so far: which model is in charge, how often each was, the maps, and the noise.

        >>> sorted(Auto(dim=1, n_arms=2).explain())
        ['features', 'in_charge', 'length_scale', 'noise', 'reward_range', 'shares', 'since_refit']
        """
        B = len(self._ends)
        names = ["constant", "linear", "smooth"] if B < 4 else ["constant", "linear", "additive", "smooth"]
        level, _, noise = nested.level(self._evidence, B, self.n_arms or 1)
        counts = self._evidence[3 + 2 * B : 3 + 3 * B]
        low = self._center - self.CENTER * self._unit
        return {
            "in_charge": names[level],
            "shares": {name: float(n / max(1.0, counts.sum())) for name, n in zip(names, counts)},
            "since_refit": int(counts.sum()),
            "noise": float(noise * self._unit),
            "reward_range": (low, low + self._unit),
            "features": self._columns.names() if self._columns is not None else [],
            "length_scale": self._fourier.scale_used if self._fourier is not None else None,
        }

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        X = self._map(np.atleast_2d(context))
        level, _, noise = nested.level(self._evidence, len(self._ends), self.n_arms or 1)
        means, widths = nested.estimates(*self._model[:4], X, level)
        return means * self._unit + self._center, widths * (noise * self._unit)


def _padded(size: int) -> int:
    return -(-size // _LANES) * _LANES
