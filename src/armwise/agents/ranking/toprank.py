"""TopRank: lists for any user who prefers attractive arms near the top (Lattimore et al. 2018)."""

from __future__ import annotations

import math

import numpy as np

from armwise.agents.ranking.cascade import check_removable
from armwise.agents.ranking.lists import OpenSlots, Ranking
from armwise.agents.ranking.ranker import Ranker
from armwise.core.agent import Theory
from armwise.core.arguments import count
from armwise.core.choices import Floats
from armwise.core.seeds import Seed
from armwise.theory import ranking_bounds, ranking_hypotheses

_C = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))


class TopRank(Ranker):
    """Order arms in blocks, and shuffle each block: within it, no arm is known to be better than another.

    Clicks of arms in one block are compared pair by pair: once the difference of their clicks, S, reaches
    sqrt(2 N ln(c sqrt(N) / delta)), with N the times that exactly one was clicked and delta = 1 / horizon, the one
    with more clicks stands above the other for good. Every slot's probability is exact: 1 / (arms left in its block).

    >>> ranker = TopRank(n_arms=4, horizon=1000, seed=1)
    >>> ranker.rank(None, 2).probabilities
    (0.25, 0.3333333333333333)
    """

    theory = Theory(
        section="rankings",
        regret="O(sqrt(k^3 L T ln T))",
        comparator="the best list",
        assumes="clicks that grow with an arm's attraction and with its place, of any such model",
        reference="Lattimore, Kveton, Li, Szepesvari 2018",
        regret_bound=ranking_bounds.toprank,
        hypotheses=ranking_hypotheses.toprank,
        needs_horizon=True,
        call="aw.TopRank(n_arms={K}, horizon={T})",
    )
    sees = "nothing"
    feedback = "any"
    n_arms: int
    _learnt = ("n_arms", "_difference", "_once", "_worse")

    def __init__(self, n_arms: int, horizon: int, *, seed: Seed = None) -> None:
        super().__init__(seed=seed)
        self.n_arms, self.horizon = count("n_arms", n_arms), count("horizon", horizon, least=2)
        n = self.n_arms
        self._difference, self._once = np.zeros((n, n)), np.zeros((n, n))  # clicks of i minus those of j; |...|
        self._worse = np.zeros((n, n), np.bool_)  # j is known to be worse than i: [i, j]

    def add_arm(self) -> int:
        """One more arm, of which nothing is known; its number, the largest, is returned.

        >>> TopRank(n_arms=4, horizon=1000).add_arm()
        4
        """
        for name in ("_difference", "_once", "_worse"):
            setattr(self, name, np.pad(getattr(self, name), ((0, 1), (0, 1))))
        self.n_arms += 1
        return self.n_arms - 1

    def remove_arm(self, arm: int) -> None:
        """Forget an arm; the arms after it move down by one. Learn lists that are due first.

        >>> ranker = TopRank(n_arms=4, horizon=1000)
        >>> ranker.remove_arm(0)
        >>> ranker.n_arms
        3
        """
        check_removable(arm, self.n_arms)
        for name in ("_difference", "_once", "_worse"):
            setattr(self, name, np.delete(np.delete(getattr(self, name), arm, axis=0), arm, axis=1))
        self.n_arms -= 1

    def blocks(self, arms: list[int] | None = None) -> list[list[int]]:
        """The arms in blocks, the best first: no arm of a block is known to be better than another of it.

        >>> TopRank(n_arms=3, horizon=1000).blocks()
        [[0, 1, 2]]
        """
        left = np.arange(self.n_arms) if arms is None else np.array(arms, np.int64)
        found: list[list[int]] = []
        while left.size:
            beaten = np.asarray(self._worse[np.ix_(left, left)].any(axis=0))
            if beaten.all():  # contradictory comparisons, which have a chance of delta: nobody is known to be best
                beaten = np.zeros(left.size, np.bool_)
            found.append(left[~beaten].tolist())
            left = left[beaten]
        return found

    def _rank(self, X: None, slots: OpenSlots) -> tuple[list[int], list[float] | None, list[list[int]]]:
        blocks, probabilities = self.blocks(slots.free.tolist()), []
        waiting = [list(block) for block in blocks]
        while len(slots.shown) < slots.k:
            arm, p = slots.pinned, 1.0
            if arm is None:
                free = set(slots.free.tolist())
                now = next(some for block in waiting if (some := [each for each in block if each in free]))
                arm, p = now[int(self._rng.random() * len(now))], 1.0 / len(now)
            probabilities.append(p)
            slots.take(arm)
        return slots.shown, probabilities, blocks

    def _next(self, X: None, slots: OpenSlots) -> Floats:
        p, free = np.zeros(self.n_arms), set(slots.free.tolist())
        blocks = self.blocks(slots.anew().free.tolist())
        now = next(some for block in blocks if (some := [arm for arm in block if arm in free]))
        p[now] = 1.0 / len(now)
        return p

    def _learn(self, X: None, ranking: Ranking, outcomes: Floats) -> None:
        clicks = np.zeros(self.n_arms)
        clicks[list(ranking.arms)] = outcomes
        labels = None if ranking.offer is None else ranking.offer.categories
        for block in ranking.note:
            for some in _alike(block, labels):
                if len(some) > 1 and clicks[some].any():
                    at = np.ix_(some, some)
                    beyond = clicks[some][:, None] - clicks[some]
                    self._difference[at] += beyond
                    self._once[at] += np.abs(beyond)
                    once = self._once[at]
                    with np.errstate(divide="ignore", invalid="ignore"):
                        needed = np.sqrt(2.0 * once * np.log(_C * self.horizon * np.sqrt(once)))
                    self._worse[at] |= (once > 0) & (self._difference[at] >= needed)

    def _check_ranking(self, ranking: Ranking, n_arms: int) -> Ranking:
        super()._check_ranking(ranking, n_arms)
        note = ranking.note
        arms = [arm for block in note for arm in block] if isinstance(note, (list, tuple)) else [-1]
        if any(not isinstance(arm, int) or not 0 <= arm < n_arms for arm in arms):
            raise ValueError(f"ranking.note must be the blocks that TopRank.rank put there, got {str(note)[:80]}")
        return ranking

    def _estimates(self, X: None) -> tuple[Floats, None]:
        """Minus the number of an arm's block: the blocks' order is all that is known."""
        values = np.empty(self.n_arms)
        for number, block in enumerate(self.blocks()):
            values[block] = -float(number)
        return values, None


def _alike(block: list[int], labels: tuple[object, ...] | None) -> list[list[int]]:
    """The arms of a block that had equal chances of every slot: those of one category, where these are limited."""
    if labels is None:
        return [block]
    groups: dict[object, list[int]] = {}
    for arm in block:
        groups.setdefault(labels[arm], []).append(arm)
    return list(groups.values())
