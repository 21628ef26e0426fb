"""Position-based clicks as counts, and how often each slot is examined: known, fitted, or drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.ranking.cascade import check_removable
from armwise.agents.ranking.lists import OpenSlots, Ranking
from armwise.agents.ranking.ranker import Ranker, fill
from armwise.core.arguments import as_floats, count
from armwise.core.choices import Floats
from armwise.core.seeds import Seed

_STEPS = 100  # of expectation maximisation, each time: it is slow where arms and slots trade places
_OFTEN = 20  # kappa is fitted again when the lists have grown by a share of 1 / 20
_MIN_CHANCE = 1e-4  # of kappa and of an attraction, so that a fit can leave it again
_POINTS = 24  # of a grid
_NARROWED = 3  # times
_DEEP = 18.0  # logarithms below the mode, beyond which a density is not looked at


def read_kappa(kappa: ArrayLike) -> Floats:
    """The checked chances that slots are examined: numbers in (0, 1], one per slot."""
    values = as_floats("kappa", kappa).copy()
    if values.ndim != 1 or not values.size or not ((values > 0) & (values <= 1)).all():
        raise ValueError(f"kappa must have a number in (0, 1] for each slot, got {str(kappa)[:80]}")
    return values


class PositionRanker(Ranker):
    """A ranker for position-based clicks: P(click) = kappa_slot theta_arm. It counts clicks by arm and slot."""

    sees = "nothing"
    feedback = "position-based"
    n_arms: int
    n_slots: int
    _learnt = ("n_arms", "_clicks", "_shown", "_kappa", "_theta", "_fit_at")

    def __init__(
        self, n_arms: int, n_slots: int | None = None, kappa: ArrayLike | None = None, *, seed: Seed = None
    ) -> None:
        super().__init__(seed=seed)
        self.n_arms, self.kappa = count("n_arms", n_arms), None if kappa is None else read_kappa(kappa)
        if self.kappa is None and n_slots is None:
            raise ValueError("n_slots must say how long lists are at most, unless kappa does, with a number per slot")
        known = 0 if self.kappa is None else len(self.kappa)
        self.n_slots = known if n_slots is None else count("n_slots", n_slots)
        if self.kappa is not None and known != self.n_slots:
            raise ValueError(f"kappa must have a number for each of the {self.n_slots} slots, got {known}")
        self._clicks, self._shown = np.zeros((2, self.n_arms, self.n_slots))
        self._kappa = np.ones(self.n_slots) if self.kappa is None else self.kappa.copy()
        self._theta, self._fit_at = np.full(self.n_arms, 0.5), 0

    @property
    def examination(self) -> Floats:
        """The chance that each slot is examined, relative to the most examined one: as given, or as learnt so far.

        >>> import armwise as aw
        >>> aw.PositionUCB(n_arms=5, kappa=[1.0, 0.6]).examination
        array([1. , 0.6])
        """
        return np.asarray(self._kappa / self._kappa.max())

    def add_arm(self) -> int:
        """One more arm, of which nothing is known; its number, the largest, is returned.

        >>> import armwise as aw
        >>> aw.PositionUCB(n_arms=5, n_slots=2).add_arm()
        5
        """
        more = np.zeros((1, self.n_slots))
        self._clicks, self._shown = np.vstack([self._clicks, more]), np.vstack([self._shown, more])
        self._theta = np.append(self._theta, 0.5)
        self.n_arms += 1
        return self.n_arms - 1

    def remove_arm(self, arm: int) -> None:
        """Forget an arm; the arms after it move down by one. Learn lists that are due first.

        >>> import armwise as aw
        >>> ranker = aw.PositionUCB(n_arms=5, n_slots=2)
        >>> ranker.remove_arm(0)
        >>> ranker.n_arms
        4
        """
        check_removable(arm, self.n_arms)
        self._clicks, self._shown = (np.delete(counts, arm, axis=0) for counts in (self._clicks, self._shown))
        self._theta = np.delete(self._theta, arm)
        self.n_arms -= 1

    def _learn(self, X: None, ranking: Ranking, outcomes: Floats) -> None:
        arms, slots = list(ranking.arms), np.arange(len(outcomes))
        self._shown[arms, slots] += 1.0
        self._clicks[arms, slots] += outcomes
        if self.kappa is None and self._n_learnt >= self._fit_at:
            self._fit()
            self._fit_at = self._n_learnt + 1 + self._n_learnt // _OFTEN

    def _fit(self) -> None:
        """Some steps of expectation maximisation for kappa and theta; the largest kappa is 1."""
        clicks, shown = self._clicks, np.maximum(self._shown, self._clicks)
        missed, arms, slots = shown - clicks, shown.sum(axis=1), shown.sum(axis=0)
        kappa, theta = self._kappa, self._theta
        for _ in range(_STEPS):
            unseen = missed / (1.0 - np.outer(theta, kappa) + 1e-12)
            attracted = (clicks + unseen * np.outer(theta, 1.0 - kappa)).sum(axis=1)
            examined = (clicks + unseen * np.outer(1.0 - theta, kappa)).sum(axis=0)
            theta = np.where(arms > 0, np.clip(attracted / np.maximum(arms, 1.0), _MIN_CHANCE, 1.0), theta)
            kappa = np.where(slots > 0, np.clip(examined / np.maximum(slots, 1.0), _MIN_CHANCE, 1.0), kappa)
        top = kappa.max()
        self._kappa, self._theta = kappa / top, np.clip(theta * top, _MIN_CHANCE, 1.0)

    def _place(self, scores: Floats, slots: OpenSlots, examination: Floats) -> tuple[list[int], list[float] | None]:
        """The best arms, the better ones where users look more often."""
        arms, p = fill(slots, lambda free: scores[free], self._rng)
        kappa = examination[: slots.k]
        if (np.diff(kappa) <= 0).all():
            return arms, p
        free = [slot for slot in range(slots.k) if slots.pinned_at(slot) is None]
        best_first = [arms[slot] for slot in free]
        for slot, arm in zip(sorted(free, key=lambda slot: -kappa[slot]), best_first):
            arms[slot] = arm
        return arms, None  # not in the order of the slots, so that slots above do not say what it was drawn from


def draw_rates(clicks: Floats, missed: Floats, factors: Floats, rng: np.random.Generator) -> Floats:
    """For each row a draw of x in (0, 1) with density x^clicks prod_l (1 - factors_l x)^missed_l.

    ``clicks`` (n,), ``missed`` (n, m), ``factors`` (m,). The density is log-concave: a grid narrows down on where its
    mass is, and the draw is uniform within the cell that its share picks.
    """
    n = len(clicks)
    low, high = np.zeros(n), np.ones(n)
    steps = np.arange(_POINTS) + 0.5
    for narrowed in range(_NARROWED + 1):
        cell = (high - low) / _POINTS
        grid = low[:, None] + cell[:, None] * steps
        log = clicks[:, None] * np.log(grid) + (np.log1p(-grid[:, :, None] * factors) @ missed[:, :, None])[:, :, 0]
        log -= log.max(axis=1, keepdims=True)
        if narrowed == _NARROWED:
            break
        inside = log > -_DEEP
        first, last = inside.argmax(axis=1), _POINTS - 1 - inside[:, ::-1].argmax(axis=1)
        low, high = np.maximum(low + cell * (first - 1), 0.0), np.minimum(low + cell * (last + 2), 1.0)
    mass = np.cumsum(np.exp(log), axis=1)
    picked = (mass < rng.random(n)[:, None] * mass[:, -1:]).sum(axis=1)
    return np.asarray(low + cell * (picked + rng.random(n)))
