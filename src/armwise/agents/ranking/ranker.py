"""The contract of ranking: a list of k arms from the top, and what its outcomes teach, now or later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from armwise.agents.ranking.lists import OpenSlots, Ranking, read_arms, read_offer
from armwise.core import inputs, rounds, saving
from armwise.core.agent import Agent, NoEstimate, Theory
from armwise.core.arguments import FilePath, Sees, as_floats, count, short
from armwise.core.choices import Floats
from armwise.core.seeds import Seed, stream
from armwise.native.choice import best_arms

Scorer = Callable[[NDArray[np.int64]], Floats]
Feedback = Literal["semi-bandit", "cascade", "several clicks", "position-based", "any"]


class Ranker(saving.Saved, ABC):
    """A learning algorithm that ranks. The public methods check their input once; the private ones are the algorithm.

    ``feedback`` is the model of the user that the algorithm relies on: "semi-bandit" (every slot's outcome is seen and
    depends on its arm alone), "cascade" (the user stops at the first click), "several clicks" (the user stops after
    the last one), "position-based" (a click is the slot's examination times the arm's attraction), or "any".
    ``sees`` is "features" (X has a row per arm; their number may change with every list) or "nothing" (X is None; arms
    are numbers below ``n_arms``).

    A new ranker defines ``_rank(X, slots)`` and ``_learn(X, ranking, outcomes)``, lists what learning changes in
    ``_learnt``, and has its row of ``theory``.
    """

    theory: ClassVar[Theory]
    feedback: Feedback = "semi-bandit"
    sees: Sees = "features"
    keeps_sparse: bool = False
    dim: int | None = None
    n_arms: int | None = None
    n_experts: int | None = None
    compiled: bool = False  # lists are ranked one by one, in Python
    n_slots: int | None = None  # the longest list, where the algorithm learns about slots
    reward_range: tuple[float, float] = (0.0, 1.0)
    _n_learnt = 0
    _rng: np.random.Generator

    def __init__(self, *, seed: Seed = None) -> None:
        self.seed = seed
        self._rng = stream(seed, "ranker")

    def rank(
        self, X: Any, k: int, *, available: Any = None, pinned: Mapping[int, int] | None = None, categories: Any = None,
        at_most: int | Mapping[Any, int] | None = None,
    ) -> Ranking:  # fmt: skip
        """Fill k slots from the top, each with an arm that no slot above it shows.

        ``available``: the arms that may be shown, as numbers or as a mask; ``pinned``: {slot: arm} of the slots that
        are not the agent's to fill; ``categories`` and ``at_most``: a label per arm, and how many arms of one label a
        list may hold (a number, or one by label).

        >>> import armwise as aw
        >>> aw.CascadeUCB1(n_arms=4, seed=1).rank(None, 2, pinned={0: 3}).arms[0]
        3
        """
        X = self._read(X)
        n_arms = self._count_arms(X)
        k = count("k", k)
        if self.n_slots is not None and k > self.n_slots:
            raise ValueError(f"k must be at most n_slots, {self.n_slots}, got {k}")
        offer = read_offer(n_arms, k, available, pinned, categories, at_most)
        arms, probabilities, note = self._rank(X, OpenSlots(n_arms, k, offer))
        return Ranking(tuple(arms), None if probabilities is None else tuple(probabilities), note, offer)

    def probabilities(
        self, X: Any, above: Sequence[int] = (), *, available: Any = None, categories: Any = None,
        at_most: int | Mapping[Any, int] | None = None,
    ) -> Floats:  # fmt: skip
        """Each arm's probability in the slot below the arms ``above``; ``NoProbabilities`` where it is not known.

        >>> import armwise as aw
        >>> aw.TopRank(n_arms=4, horizon=1000).probabilities(None, above=[2])
        array([0.33333333, 0.33333333, 0.        , 0.33333333])
        """
        X = self._read(X)
        n_arms = self._count_arms(X)
        shown = read_arms("above", np.array(above, np.int64) if len(above) == 0 else above, n_arms)
        if self.n_slots is not None and len(shown) >= self.n_slots:
            raise ValueError(f"above must have fewer arms than n_slots, {self.n_slots}, got {len(shown)}")
        offer = read_offer(n_arms, len(shown) + 1, available, None, categories, at_most)
        slots = OpenSlots(n_arms, len(shown) + 1, offer)
        for arm in shown:
            if arm not in slots.free:
                raise ValueError(f"above has arm {arm}, which no list of these arms shows in that slot")
            slots.take(arm)
        found = self._next(X, slots)
        if found is None:
            raise NoProbabilities(f"{type(self).__name__} does not know the probabilities of its lists")
        return found

    def learn(self, X: Any, ranking: Ranking, outcomes: Any) -> None:
        """Learn what a list brought: a number per slot, or {arm: outcome} of the arms that had any (others: 0).

        >>> import armwise as aw
        >>> ranker = aw.CascadeUCB1(n_arms=4, seed=1)
        >>> ranking = ranker.rank(None, 2)
        >>> ranker.learn(None, ranking, [0, 1])
        >>> ranker.estimate()[0][list(ranking.arms)]
        array([0., 1.])
        """
        X = self._read(X)
        ranking = self._check_ranking(ranking, self._count_arms(X))
        values = self._read_outcomes(ranking, outcomes)
        with rounds.all_or_nothing(self, X, values):
            self._learn(X, ranking, values)
        self._n_learnt += 1

    def estimate(self, X: Any = None) -> tuple[Floats, Floats | None]:
        """Each arm's estimated attraction, and how wide it is (None where the algorithm keeps no width).

        >>> import armwise as aw
        >>> aw.CascadeUCB1(n_arms=2).estimate()[0]
        array([0., 0.])
        """
        return self._estimates(self._read(X))

    def clone(self, seed: Seed = None) -> Self:
        """A ranker with the same parameters that has learnt nothing.

        >>> import armwise as aw
        >>> aw.CascadeUCB1(n_arms=2).clone(seed=3).n_arms
        2
        """
        params = {n: value.clone() if isinstance(value, Agent) else value for n, value in self.params().items()}
        return type(self)(**params, seed=seed)

    def save(self, path: FilePath) -> None:
        """Write the ranker to a file that ``armwise.load(path, kind)`` reads.

        >>> import armwise as aw, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "ranker.aw")
        >>> aw.CascadeUCB1(n_arms=2).save(path)
        >>> aw.load(path, aw.CascadeUCB1).n_arms
        2
        """
        saving.save(self, path)

    @property
    def t(self) -> int:
        """The round in every schedule: one more than the lists learnt."""
        return self._n_learnt + 1

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.params().items())
        return f"{type(self).__name__}({shown})"

    # ------------------------------------------------------------------ what an algorithm defines

    @abstractmethod
    def _rank(self, X: Any, slots: OpenSlots) -> tuple[list[int], list[float] | None, Any]:
        """The arm of each slot from the top, their probabilities given those above, and a note."""

    def _next(self, X: Any, slots: OpenSlots) -> Floats | None:
        """Each arm's probability in the next slot, or None; must not change the ranker."""
        return None

    @abstractmethod
    def _learn(self, X: Any, ranking: Ranking, outcomes: Floats) -> None:
        """Learn the checked outcomes of a list, one per slot."""

    def _estimates(self, X: Any) -> tuple[Floats, Floats | None]:
        raise NoEstimate(f"{type(self).__name__} has no estimate to give")

    def _count_arms(self, X: Any) -> int:
        return int(X.shape[0]) if self.n_arms is None else self.n_arms

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"_rng": self._rng, "_n_learnt": self._n_learnt}

    # ------------------------------------------------------------------ input, checked once

    def _read(self, X: Any) -> Any:
        return inputs.READERS[self.sees](self, X)

    def _check_ranking(self, ranking: Any, n_arms: int) -> Ranking:
        if not isinstance(ranking, Ranking):
            raise ValueError(f"ranking must be what rank answered, an armwise.Ranking, got {short(ranking)}")
        arms = read_arms("ranking.arms", ranking.arms, n_arms)
        if not arms or (self.n_slots is not None and len(arms) > self.n_slots):
            raise ValueError(f"ranking must have 1 to {self.n_slots or n_arms} arms, got {len(arms)}")
        p = ranking.probabilities
        if p is not None and (len(p) != len(arms) or not all(0.0 < each <= 1.0 + 1e-9 for each in p)):
            raise ValueError(f"ranking.probabilities must be {len(arms)} numbers in (0, 1], got {short(p)}")
        return ranking

    def _read_outcomes(self, ranking: Ranking, outcomes: Any) -> Floats:
        k = len(ranking.arms)
        if isinstance(outcomes, Mapping):
            strange = [arm for arm in outcomes if arm not in ranking.arms]
            if strange:
                raise ValueError(f"outcomes has arm {strange[0]!r:.40}, which the list did not show: {ranking.arms}")
            outcomes = [outcomes.get(arm, 0.0) for arm in ranking.arms]
        values = as_floats("outcomes", outcomes)
        if values.ndim == 0 and self.feedback == "semi-bandit":
            values = np.full(k, float(values) / k)  # one reward for the whole list: shared by its slots
        if values.shape != (k,):
            whole = ", or one for the whole list" if self.feedback == "semi-bandit" else ""
            raise ValueError(f"outcomes must have a number for each of the {k} slots{whole}, got shape {values.shape}")
        low, high = self.reward_range
        if not np.isfinite(values).all() or values.min() < low or values.max() > high:
            raise ValueError(f"outcomes must be finite numbers in [{low:g}, {high:g}], got {short(values.tolist())}")
        return values


class NoProbabilities(ValueError):
    """The chances of the ranker's lists are unknown."""


class GreedyRanker(Ranker):
    """A ranker that fills each slot with the largest score left; ties (within 1e-12) are broken uniformly."""

    @abstractmethod
    def _scorer(self, X: Any, slots: OpenSlots) -> Scorer:
        """A function of the arms left, which answers their scores for the next slot; must not change the ranker."""

    def _rank(self, X: Any, slots: OpenSlots) -> tuple[list[int], list[float] | None, Any]:
        return (*fill(slots, self._scorer(X, slots), self._rng), None)

    def _next(self, X: Any, slots: OpenSlots) -> Floats | None:
        free, p = slots.free, np.zeros(self._count_arms(X))
        best = best_arms(np.ascontiguousarray(self._scorer(X, slots)(free)))
        p[free[best]] = 1.0 / best.size
        return p


class IndexRanker(GreedyRanker):
    """A ranker whose scores are the same for every slot of a list."""

    @abstractmethod
    def _scores(self, X: Any) -> Floats:
        """One score per arm; must not change the ranker."""

    def _scorer(self, X: Any, slots: OpenSlots) -> Scorer:
        scores = self._scores(X)
        return lambda free: np.asarray(scores[free])


def fill(slots: OpenSlots, score: Scorer, rng: np.random.Generator) -> tuple[list[int], list[float]]:
    """Fill slots from the top with the best of what is left: the arms, and each one's probability given those above.

    ``score(free)`` answers the scores of these arms for the next slot.
    """
    probabilities: list[float] = []
    while len(slots.shown) < slots.k:
        arm, p = slots.pinned, 1.0
        if arm is None:
            free = slots.free
            best = best_arms(np.ascontiguousarray(score(free)))
            arm = int(free[best[0] if best.size == 1 else best[int(rng.random() * best.size)]])
            p = 1.0 / best.size
        probabilities.append(p)
        slots.take(arm)
    return slots.shown, probabilities


def first_click(outcomes: Floats) -> int:
    """The number of slots that a cascade user examined: down to the first click, or all."""
    clicked = np.flatnonzero(outcomes > 0)
    return int(clicked[0]) + 1 if clicked.size else len(outcomes)


def last_click(outcomes: Floats) -> int:
    """The least number of slots that a user of several clicks examined: down to the last click, or all without one."""
    clicked = np.flatnonzero(outcomes > 0)
    return int(clicked[-1]) + 1 if clicked.size else len(outcomes)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 or isinstance(value, Agent) else f"{text[:57]}..."
