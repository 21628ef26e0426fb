"""D3RB and ED2RB: regret balancing over agents, from what each brings (Pacchiano, Dann, Gentile 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armwise.agents.ensembles.ensemble import Ensemble
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, fraction, positive
from armwise.theory import bounds, hypotheses


class D3RB(Ensemble):
    """Play the base of the smallest balancing potential phi_i = d_i sqrt(n_i), and double d_i when base i falls behind.

    With n_i plays and mean reward m_i, and w_i = scale sqrt(ln(M (1 + ln n_i) / delta) / n_i), base i has fallen behind
    when m_i + d_i / sqrt(n_i) + w_i < max_j (m_j - w_j). A potential grows at most twofold per play and never falls.
    Only the base that was played learns. The probabilities are those of the base whose turn it is, as it knows them.

    >>> import armwise as aw, numpy as np
    >>> agent = D3RB([aw.EpsilonGreedy(2, 1.0), aw.UCB1(2)], seed=1)
    >>> agent.play(None, np.tile([0.0, 1.0], (2000, 1))).rewards[-100:].mean() > 0.9
    np.True_
    """

    theory = Theory(
        section="beyond the survey",
        regret="O~(d* M sqrt(T) + d*^2 sqrt(M T)), d* sqrt(T) the realised regret of the best base",
        comparator="what the best base competes with",
        assumes="rewards in [0, 1] whose best mean does not depend on which base plays",
        reference="Pacchiano, Dann, Gentile 2023",
        regret_bound=bounds.d3rb,
        hypotheses=hypotheses.balancing,
        high_probability=True,
        call="aw.D3RB([aw.UCB1(n_arms={K}), aw.Exp3(n_arms={K})])",
    )
    _learnt = ("_plays", "_totals", "_coefficients", "_potentials")

    def __init__(
        self, agents: Sequence[Agent], *, delta: float = 0.05, scale: float = 1.0, d_min: float = 1.0, seed: Seed = None
    ) -> None:
        super().__init__(agents, seed=seed)
        self.delta, self.scale, self.d_min = (
            fraction("delta", delta),
            positive("scale", scale),
            positive("d_min", d_min),
        )
        M = len(self.agents)
        self._plays, self._totals = np.zeros(M), np.zeros(M)
        self._coefficients, self._potentials = np.full(M, self.d_min), np.full(M, self.d_min)

    def _leader(self) -> int:
        return int(np.argmin(self._potentials))

    def _probabilities(self, context: Any) -> Floats:
        return self.agents[self._leader()]._probabilities(context)

    def _choose(self, context: Any) -> Choice:
        base = self._leader()
        own = self.agents[base]._choose(context)
        return Choice(own.arm, own.probability, [base, None, own.note])

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        base, _, note = self._note(choice)
        self._teach(base, context, choice._replace(note=note), reward)
        self._plays[base] += 1.0
        self._totals[base] += reward
        self._coefficients[base] = self._coefficient(base)
        n, before = self._plays[base], self._potentials[base]
        self._potentials[base] = min(max(self._coefficients[base] * math.sqrt(n), before), 2.0 * before)

    def _shortfall(self, base: int) -> float:
        """By how much the mean of this base is certainly below the best one's."""
        seen = np.flatnonzero(self._plays)
        n = self._plays[seen]
        widths = self.scale * np.sqrt(np.log(len(self.agents) * (1.0 + np.log(n)) / self.delta) / n)
        means = self._totals[seen] / n
        own = int(np.searchsorted(seen, base))
        return float((means - widths).max() - means[own] - widths[own])

    def _coefficient(self, base: int) -> float:
        d = float(self._coefficients[base])
        return 2.0 * d if d / math.sqrt(self._plays[base]) < self._shortfall(base) else d


class ED2RB(D3RB):
    """D3RB that estimates d_i instead of doubling it: d_i = max(d_min, sqrt(n_i) (max_j (m_j - w_j) - m_i - w_i)).

    >>> import armwise as aw, numpy as np
    >>> agent = ED2RB([aw.EpsilonGreedy(2, 1.0), aw.UCB1(2)], seed=1)
    >>> agent.play(None, np.tile([0.0, 1.0], (2000, 1))).rewards[-100:].mean() > 0.9
    np.True_
    """

    theory = replace(
        D3RB.theory, regret_bound=bounds.ed2rb, call="aw.ED2RB([aw.UCB1(n_arms={K}), aw.Exp3(n_arms={K})])"
    )

    def _coefficient(self, base: int) -> float:
        return max(self.d_min, math.sqrt(self._plays[base]) * self._shortfall(base))
