"""Worlds of lists: k slots are filled from L arms, and users click as a model of their reading says."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armwise.core.agent import Floats, count
from armwise.core.arguments import as_floats
from armwise.environments.environment import Block, Blocks, Environment, block_sizes, unit_rows

Users = Literal["cascade", "several clicks", "position-based"]
_DECAY = 0.7  # from slot to slot, of examination and of going on after a click


class PlayedLists(NamedTuple):
    """Lists that were shown: their arms (T, k), the probability of each list (NaN: unknown), rewards and clicks (T, k).

    ``rewards`` is what the world counts: a click at all (cascade), a satisfied user (several clicks), or all clicks.
    """

    arms: NDArray[np.int64]
    probabilities: Floats
    rewards: Floats
    clicks: Floats
    costs: None = None


class ListBlock(Block):
    """Consecutive lists: how much each arm attracts, what users would do, and the best list of each round.

    ``weights`` (k,) are how often each slot is examined (position-based), or how often a click on it ends the search.
    ``attracted`` (T, L) are the arms that would be clicked if they were examined; ``luck`` (T, k) decides the rest.

    >>> block = next(Lists(n_arms=5, n_slots=2).blocks(10, seed=1))
    >>> block.best_lists.shape
    (10, 2)
    """

    def __init__(
        self, views: dict[str, Any], attraction: Floats, attracted: NDArray[np.bool_], luck: Floats, users: Users,
        weights: Floats,
    ) -> None:  # fmt: skip
        self.attraction, self.attracted, self.luck = attraction, attracted, luck
        self.users, self.weights = users, weights
        order = np.argsort(-attraction, axis=1, kind="stable")[:, : len(weights)]
        self.best_lists = np.empty_like(order)
        self.best_lists[:, np.argsort(-weights, kind="stable")] = order  # the best arm where it counts most
        best = self.values(self.best_lists)[:, None]
        super().__init__(views, attraction, attraction, best)

    def values(self, lists: NDArray[np.int64]) -> Floats:
        """The expected rewards of lists (T, k).

        >>> block = next(Lists(n_arms=3, n_slots=2, attraction=[0.5, 0.2, 0.0]).blocks(1, seed=1))
        >>> block.values(np.array([[0, 1]])).round(9)
        array([0.6])
        """
        w = np.take_along_axis(self.attraction, lists, axis=1)
        if self.users == "position-based":
            return np.asarray(w @ self.weights[: w.shape[1]])
        return np.asarray(1.0 - (1.0 - w * self.weights[: w.shape[1]]).prod(axis=1))

    def click_chances(self, lists: NDArray[np.int64]) -> Floats:
        """The chance of a click on each slot of lists (T, k).

        >>> block = next(Lists(n_arms=3, n_slots=2, attraction=[0.5, 0.2, 0.0]).blocks(1, seed=1))
        >>> block.click_chances(np.array([[0, 1]])).round(9).tolist()
        [[0.5, 0.1]]
        """
        w = np.take_along_axis(self.attraction, lists, axis=1)
        weights = self.weights[: w.shape[1]]
        if self.users == "position-based":
            return np.asarray(w * weights)
        gone_on = np.cumprod(1.0 - w * weights, axis=1)[:, :-1]
        return np.asarray(w * np.column_stack([np.ones(len(w)), gone_on]))

    def click(self, t: int, arms: NDArray[np.int64]) -> tuple[Floats, float]:
        """The clicks of round t's user on this list, and the reward.

        >>> block = next(Lists(n_arms=3, n_slots=2, attraction=[1.0, 1.0, 0.0]).blocks(1, seed=1))
        >>> block.click(0, np.array([0, 1]))
        (array([1., 0.]), 1.0)
        """
        would, luck = self.attracted[t, arms], self.luck[t]
        if self.users == "position-based":
            clicks = (would & (luck < self.weights)).astype(np.float64)
            return clicks, float(clicks.sum())
        ends = np.flatnonzero(would & (luck < self.weights))  # the click that ends the search
        clicks = would.astype(np.float64)
        if ends.size:
            clicks[ends[0] + 1 :] = 0.0
        return clicks, float(ends.size > 0)

    def play(self, ranker: Any) -> PlayedLists:
        """Rank, click and learn, round by round."""
        contexts, k = self.view(ranker.sees), len(self.weights)
        played = PlayedLists(np.empty((len(self), k), np.int64), np.full(len(self), np.nan), np.empty(len(self)),
                             np.empty((len(self), k)))  # fmt: skip
        for t in range(len(self)):
            X = None if contexts is None else contexts[t]
            ranking = ranker.rank(X, k)
            played.arms[t] = ranking.arms
            if ranking.probability is not None:
                played.probabilities[t] = ranking.probability
            played.clicks[t], played.rewards[t] = self.click(t, played.arms[t])
            ranker.learn(X, ranking, played.clicks[t])
        return played

    def expected_of(self, played: Any) -> Floats:
        """The expected rewards of the lists that were shown."""
        return self.values(played.arms)

    def measures(self, played: Any) -> dict[str, Floats]:
        """The clicks on each slot."""
        return {click_measure(slot): played.clicks[:, slot] for slot in range(played.clicks.shape[1])}


def click_measure(slot: int) -> str:
    """The name of a slot's clicks among a run's measures."""
    return f"clicks on slot {slot + 1}"


class ListWorld(Environment):
    """A world whose rounds are lists of ``n_slots`` of its arms; rankers play it."""

    comparator = "the best list of each round"
    n_slots: int
    users: Users

    def _read_users(self, n_arms: Any, n_slots: Any, users: Any, weights: ArrayLike | None) -> None:
        """Check the arguments that all worlds of lists share."""
        self.n_arms, self.n_slots = count("n_arms", n_arms), count("n_slots", n_slots)
        if self.n_slots > self.n_arms:
            raise ValueError(f"n_slots must be at most n_arms, {self.n_arms}, got {self.n_slots}")
        if users not in get_args(Users):
            raise ValueError(f"users must be one of {', '.join(map(repr, get_args(Users)))}, got {users!r:.80}")
        self.users = users
        self.weights = None if weights is None else as_floats("weights", weights).copy()
        if users == "cascade" and weights is not None:
            raise ValueError("weights must be left out for a cascade: users read from the top and stop at a click")
        w = self.slot_weights
        if w.shape != (self.n_slots,) or not ((w > 0) & (w <= 1)).all():
            raise ValueError(f"weights must have a number in (0, 1] for each of the {self.n_slots} slots, got {w}")
        self.span = float(w.sum()) if users == "position-based" else 1.0

    @property
    def slot_weights(self) -> Floats:
        """The chance that each slot is examined (position-based), or that a click on it ends the search.

        >>> Lists(n_arms=5, n_slots=2, users="position-based").slot_weights
        array([1. , 0.7])
        """
        if self.users == "cascade":
            return np.ones(self.n_slots)
        return np.asarray(_DECAY ** np.arange(self.n_slots)) if self.weights is None else self.weights

    def _list_block(
        self, views: dict[str, Any], attraction: Floats, rng: np.random.Generator, certain: bool = False
    ) -> ListBlock:
        """A block with these attractions; ``certain`` if they are 0 and 1."""
        luck = rng.random((len(attraction), self.n_slots))
        attracted = attraction > 0.5 if certain else rng.random(attraction.shape) < attraction
        return ListBlock(views, attraction, attracted, luck, self.users, self.slot_weights)

    def constants(self) -> dict[str, Any]:
        """The letters of theorems on rankings (see ``armwise.theory.ranking_hypotheses``)."""
        all_seen = self.users == "position-based" and bool((self.slot_weights == 1).all())
        return super().constants() | {"model": "semi-bandit" if all_seen else self.users, "k": self.n_slots}

    @abstractmethod
    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks: ...


class Lists(ListWorld):
    """Simulated users of a list: attractions given, drawn by the seed, or linear in features that change every round.

    ``users``: "cascade" (stop at the first click; the reward is a click), "several clicks" (stop after a click with
    probability ``weights``; the reward is having stopped so, a satisfied user), "position-based" (look at slot l with
    probability ``weights``; the reward is the number of clicks). ``attraction`` has a probability per arm. With ``dim``
    arm a attracts with probability x_a.theta, which lies in [0, 1/2], and features are drawn anew for every list.

    >>> world = Lists(n_arms=10, n_slots=3, users="position-based", weights=[1.0, 0.6, 0.3])
    >>> world.comparator
    'the best list of each round'
    """

    def __init__(
        self,
        n_arms: int = 10,
        n_slots: int = 3,
        users: Users = "cascade",
        *,
        weights: ArrayLike | None = None,
        attraction: ArrayLike | None = None,
        dim: int | None = None,
    ) -> None:
        self._read_users(n_arms, n_slots, users, weights)
        self.dim = None if dim is None else count("dim", dim, least=2)
        self.attraction = None if attraction is None else as_floats("attraction", attraction).copy()
        if self.attraction is not None:
            if self.dim is not None:
                raise ValueError("attraction and dim exclude each other: features say what attracts")
            w = self.attraction
            if w.shape != (self.n_arms,) or not ((w >= 0) & (w <= 1)).all():
                raise ValueError(f"attraction must have a probability for each of the {self.n_arms} arms")

    @property
    def comparators(self) -> tuple[str, ...]:
        """The best list of each round; where attractions stand still, that is the best list.

        >>> Lists(n_arms=5).comparators
        ('the best list of each round', 'the best list')
        """
        return (self.comparator, "the best list") if self.dim is None else (self.comparator,)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        L, d = self.n_arms, self.dim
        if d is None:
            fixed = 0.5 * rng.random(L) if self.attraction is None else self.attraction
            for T in block_sizes(horizon, L):
                yield self._list_block({}, np.tile(fixed, (T, 1)), rng)
            return
        theta = unit_rows(rng, (d - 1,))
        for T in block_sizes(horizon, L * d):
            X = np.concatenate([np.ones((T, L, 1)), unit_rows(rng, (T, L, d - 1))], axis=2) * 0.5**0.5
            attraction = np.clip(0.25 + 0.25 * 2**0.5 * (X[:, :, 1:] @ theta), 0.0, 1.0)  # of norm 1/2 in all
            yield self._list_block({"features": X}, attraction, rng)

    def constants(self) -> dict[str, Any]:
        """The letters of theorems on rankings: gaps where attractions are given, S, L and R where they are linear.

        >>> Lists(n_arms=3, n_slots=1, attraction=[0.5, 0.25, 0.25]).constants()["gaps"]
        [0.25, 0.25]
        """
        found = super().constants()
        if self.dim is not None:
            return found | {"linear": True, "S": 0.5, "L": 1.0, "R": 0.5}
        if self.attraction is not None:
            w = np.sort(self.attraction)[::-1]
            gaps = (w[self.n_slots - 1] - w[self.n_slots :]).tolist()
            return found | {"gaps": gaps} if all(gap > 0 for gap in gaps) else found
        return found
