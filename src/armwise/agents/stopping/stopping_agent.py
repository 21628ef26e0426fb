"""Common base of agents that stop: counts, the test that ends the search, and the answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np

from armwise.agents.arms.counts import kary_estimates
from armwise.core.agent import Choice, Floats, Seed, count, fraction, positive
from armwise.core.capabilities.stopping import Stopping
from armwise.native.choice import tied_probabilities
from armwise.theory import stopping

Kind = Literal["proved", "heuristic"]
KINDS = ("proved", "heuristic")


class StoppingAgent(Stopping):
    """Search for the best of K arms until ``answer`` is known to be right but for a probability ``delta``.

    From then on it plays ``answer``, and nothing it learns changes that. Rewards lie in [0, 1], or are amounts with
    sub-Gaussian deviation ``noise``.
    """

    sees = "nothing"
    n_arms: int
    _learnt: ClassVar[tuple[str, ...]] = ("_totals", "_counts", "_answer", "_stopped_at")

    def __init__(
        self,
        n_arms: int,
        delta: float = 0.05,
        *,
        noise: float | None = None,
        threshold: Kind = "proved",
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.n_arms, self.delta = count("n_arms", n_arms, least=2), fraction("delta", delta)
        self.noise = None if noise is None else positive("noise", noise)
        if threshold not in KINDS:
            raise ValueError(f"threshold must be one of {', '.join(KINDS)}, got {threshold!r:.80}")
        self.threshold = threshold
        if noise is not None:
            self.reward_range = (-np.inf, np.inf)
        self._enough = stopping.Threshold(self.n_arms, self.delta, self.noise, threshold)
        self._totals, self._counts = np.zeros(self.n_arms), np.zeros(self.n_arms)
        self._answer: int | None = None
        self._stopped_at: int | None = None
        self._begin()

    def _begin(self) -> None:
        """Set up what the agent keeps beside totals and counts."""

    @property
    def answer(self) -> int | None:
        """The best arm, once the search has stopped; None before.

        >>> import armwise as aw
        >>> aw.LUCB(n_arms=2).answer is None
        True
        """
        return self._answer

    @property
    def stopped_at(self) -> int | None:
        """The number of rewards after which the search stopped; None while it goes on.

        >>> import armwise as aw
        >>> agent = aw.LUCB(n_arms=2, delta=0.1, seed=1)
        >>> _ = agent.play(None, np.tile([0.0, 1.0], (100, 1)))
        >>> agent.stopped_at, agent.answer
        (50, 1)
        """
        return self._stopped_at

    @abstractmethod
    def _search(self) -> Floats:
        """The distribution over the arms while the search goes on, once every arm has a reward."""

    @abstractmethod
    def _verdict(self) -> int | None:
        """The arm that is the best with enough certainty; None if there is none yet. Every arm has a reward."""

    def _probabilities(self, context: None) -> Floats:
        if self._answer is not None:
            p = np.zeros(self.n_arms)
            p[self._answer] = 1.0
            return p
        return self._search() if self._counts.all() else tied_probabilities(-self._counts)

    def _learn(self, context: None, choice: Choice, reward: float) -> None:
        self._totals[choice.arm] += reward
        self._counts[choice.arm] += 1.0
        if self._answer is None and self._counts.all():
            self._answer = self._verdict()
            self._stopped_at = None if self._answer is None else self._n_learnt + 1

    def _estimates(self, context: None) -> tuple[Floats, Floats]:
        return kary_estimates(self._totals, self._counts)

    # ------------------------------------------------------------------ evidence

    @property
    def _means(self) -> list[float]:
        means: list[float] = (self._totals / self._counts).tolist()
        return means

    def _evidence(self, a: int, b: int, means: list[float]) -> float:
        """Z_ab = n_a d(mean_a, x) + n_b d(mean_b, x), x the weighted mean: the evidence that a is better than b."""
        if means[a] <= means[b]:
            return 0.0
        n, m = float(self._counts[a]), float(self._counts[b])
        middle = (n * means[a] + m * means[b]) / (n + m)
        return n * stopping.divergence(means[a], middle, self.noise) + m * stopping.divergence(
            means[b], middle, self.noise
        )

    def _likelihood_ratio_verdict(self) -> int | None:
        """Chernoff's stopping rule: the arm that is better than each other one by more than the threshold."""
        means = self._means
        best = max(range(self.n_arms), key=means.__getitem__)
        n = self._counts.tolist()
        sure = all(
            self._evidence(best, b, means) > self._enough.between(n[best], n[b])
            for b in range(self.n_arms)
            if b != best
        )
        return best if sure else None

    def _interval(self, a: int, mean: float) -> tuple[float, float]:
        """An interval that holds the arm's mean, at all times and for all arms at once, but for ``delta``."""
        n, t = float(self._counts[a]), float(self._counts.sum())
        return stopping.confidence_ends(mean, self._enough.around(n, t) / n, self.noise)
