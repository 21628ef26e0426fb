"""CascadeUCB1 and CascadeKL-UCB: lists for a user who stops at the first click (Kveton et al. 2015)."""

from __future__ import annotations

import math

import numpy as np

from armwise.agents.ranking.lists import Ranking
from armwise.agents.ranking.ranker import IndexRanker, first_click
from armwise.core.agent import Theory
from armwise.core.arguments import count, positive
from armwise.core.choices import Floats
from armwise.core.seeds import Seed
from armwise.theory import ranking_bounds, ranking_hypotheses

_ROOT_STEPS = 50  # Newton's method needs about 5
_CLOSE = 1e-10  # a step, as a share of 1 - q


class CountingRanker(IndexRanker):
    """A ranker that keeps, of each arm, how often it was examined and how often it was clicked."""

    sees = "nothing"
    n_arms: int
    _learnt = ("_clicks", "_seen", "n_arms")

    def __init__(self, n_arms: int, *, seed: Seed = None) -> None:
        super().__init__(seed=seed)
        self.n_arms = count("n_arms", n_arms)
        self._clicks, self._seen = np.zeros(self.n_arms), np.zeros(self.n_arms)

    def add_arm(self) -> int:
        """One more arm, of which nothing is known; its number, the largest, is returned.

        >>> import armwise as aw
        >>> aw.CascadeKLUCB(n_arms=2).add_arm()
        2
        """
        self._clicks, self._seen = np.append(self._clicks, 0.0), np.append(self._seen, 0.0)
        self.n_arms += 1
        return self.n_arms - 1

    def remove_arm(self, arm: int) -> None:
        """Forget an arm; the arms after it move down by one. Learn lists that are due first.

        >>> import armwise as aw
        >>> ranker = aw.CascadeKLUCB(n_arms=2)
        >>> ranker.remove_arm(0)
        >>> ranker.n_arms
        1
        """
        check_removable(arm, self.n_arms)
        self._clicks, self._seen = np.delete(self._clicks, arm), np.delete(self._seen, arm)
        self.n_arms -= 1

    def _learn(self, X: None, ranking: Ranking, outcomes: Floats) -> None:
        examined = first_click(outcomes)
        arms = list(ranking.arms[:examined])
        self._seen[arms] += 1.0
        self._clicks[arms] += outcomes[:examined]

    def _estimates(self, X: None) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore"):
            return self._clicks / np.maximum(self._seen, 1.0), 1.0 / np.sqrt(self._seen)


def check_removable(arm: int, n_arms: int) -> None:
    """Raise ValueError if this is no arm, or the last one."""
    if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)) or not 0 <= arm < n_arms:
        raise ValueError(f"arm must be one of 0 to {n_arms - 1}, got {arm!r:.80}")
    if n_arms == 1:
        raise ValueError("arm 0 is the only one: a ranker needs at least one arm")


class CascadeUCB1(CountingRanker):
    """Show the k arms with the largest clicks_a / n_a + scale sqrt(1.5 ln t / n_a), the best one at the top.

    n_a counts the lists in which arm a was examined: it stood at or above the first click. ``scale`` = 1 is the
    published index.

    >>> ranker = CascadeUCB1(n_arms=4, seed=1)
    >>> for _ in range(200):
    ...     ranking = ranker.rank(None, 2)
    ...     ranker.learn(None, ranking, [arm == 3 for arm in ranking.arms])
    >>> 3 in ranker.rank(None, 2).arms
    True
    """

    theory = Theory(
        section="rankings",
        regret="O(L / Delta ln T)",
        comparator="the best list",
        assumes="a cascade: the user stops at the first click, and arms attract independently",
        reference="Kveton, Szepesvari, Wen, Ashkan 2015",
        regret_bound=ranking_bounds.cascade_ucb1,
        hypotheses=ranking_hypotheses.cascade_ucb1,
        exponent=0.0,
        call="aw.CascadeUCB1(n_arms={K})",
    )
    feedback = "cascade"

    def __init__(self, n_arms: int, scale: float = 1.0, *, seed: Seed = None) -> None:
        super().__init__(n_arms, seed=seed)
        self.scale = positive("scale", scale, zero=True)

    def _scores(self, X: None) -> Floats:
        return ucb1_index(self._clicks, self._seen, self.t, self.scale)


class CascadeKLUCB(CountingRanker):
    """Show the k arms with the largest KL-UCB index: the largest q with n_a kl(mean_a, q) <= ln t + 3 ln ln t.

    >>> ranker = CascadeKLUCB(n_arms=4, seed=1)
    >>> ranker.learn(None, ranker.rank(None, 4), [1, 0, 0, 0])
    >>> ranker.t
    2
    """

    theory = Theory(
        section="rankings",
        regret="O(L Delta / kl ln T), no constant for the lower terms",
        comparator="the best list",
        assumes="a cascade: the user stops at the first click, and arms attract independently",
        reference="Kveton, Szepesvari, Wen, Ashkan 2015",
        exponent=0.0,
        call="aw.CascadeKLUCB(n_arms={K})",
    )
    feedback = "cascade"

    def _scores(self, X: None) -> Floats:
        return kl_index(self._clicks, self._seen, self.t)


def ucb1_index(clicks: Floats, seen: Floats, t: int, scale: float = 1.0) -> Floats:
    """The index of CascadeUCB1 in round t; an arm that was never examined has infinity."""
    n = np.maximum(seen, 1.0)
    return np.where(seen > 0, clicks / n + scale * np.sqrt(1.5 * math.log(t) / n), np.inf)


def kl_index(clicks: Floats, seen: Floats, t: int) -> Floats:
    """The index of CascadeKL-UCB in round t; an arm that was never examined has infinity."""
    level = math.log(t) + 3.0 * math.log(max(math.log(t), 1.0)) if t > 1 else 0.0
    n = np.maximum(seen, 1.0)
    return np.where(seen > 0, kl_upper(clicks / n, level / n), np.inf)


def kl_upper(means: Floats, levels: Floats) -> Floats:
    """The largest q >= mean with kl(mean, q) <= level, for Bernoulli rewards.

    Newton's method from above: kl is convex in q, so that it comes down to the root and never passes it. It starts at
    the smallest of three bounds: Pinsker's, the root of (q - p)^2 = 2 q level, and 1 - exp(-(level + entropy of p) /
    (1 - p)), as -ln q is not negative.
    """
    p = np.clip(means, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.where(p > 0, p * np.log(p), 0.0) + np.where(p < 1, (1.0 - p) * np.log1p(-p), 0.0)
        most = np.where(p < 1, -np.expm1(-(levels - plain) / (1.0 - p)), 1.0)
        q = np.minimum(p + np.minimum(np.sqrt(levels / 2.0), levels + np.sqrt(levels * (levels + 2.0 * p))), most)
        for _ in range(_ROOT_STEPS):
            gap = plain - p * np.log(q) - (1.0 - p) * np.log1p(-q) - levels
            step = np.where((q > p) & (q < 1.0) & (gap > 0.0), gap * q * (1.0 - q) / (q - p), 0.0)
            q = np.maximum(q - step, p)
            if not (step > _CLOSE * (1.0 - q)).any():
                break
    return np.asarray(q)
