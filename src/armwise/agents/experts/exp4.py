"""Exp4: exponential weights over experts (survey 5.1, Algorithm 12; Auer et al. 2002)."""

from __future__ import annotations

import math
from typing import Any, Self

from armwise.agents.experts.weighted_experts import WeightedExperts
from armwise.core.agent import Choice, Floats, Seed, Theory, count, fraction
from armwise.core.rounds import CompiledBlocks
from armwise.native import experts
from armwise.theory import bounds, hypotheses


def _play(agent: Exp4, advice: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
    return experts.exp4_play(agent._log_weights, agent.gamma, advice, rewards, agent._rng)


class Exp4(WeightedExperts):
    """Draw an arm from the weighted vote of N experts, with a share ``gamma`` spread uniformly.

    The context is the (N, K) advice: row i is expert i's distribution over the arms (``Advised`` builds it from
    any context). Its bound competes with the best expert and asks for a uniform expert among them.

    >>> import numpy as np
    >>> agent = Exp4(n_experts=2, n_arms=2, gamma=0.1, seed=1)
    >>> advice = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> played = agent.play(np.tile(advice, (500, 1, 1)), np.tile([0.0, 1.0], (500, 1)))
    >>> agent.probabilities(advice).round(2)
    array([0.05, 0.95])
    """

    theory = Theory(
        section="5.1",
        regret="O(sqrt(T K ln N))",
        comparator="the best expert in hindsight",
        assumes="rewards in [0, 1], chosen by anyone; a uniform expert among the experts",
        reference="Auer, Cesa-Bianchi, Freund, Schapire 2002",
        regret_bound=bounds.exp4,
        hypotheses=hypotheses.exp4,
        needs_horizon=True,
        adversarial=True,
        call="aw.Exp4.theoretical(n_experts={N}, n_arms={K}, horizon={T})",
        survey_row="EXP4",
    )
    batches = CompiledBlocks(_play)

    def __init__(self, n_experts: int, n_arms: int, gamma: float = 0.1, *, seed: Seed = None) -> None:
        super().__init__(n_experts, n_arms, seed=seed)
        self.gamma = fraction("gamma", gamma, one=True)

    @classmethod
    def theoretical(cls, n_experts: int, n_arms: int, horizon: int, *, seed: Seed = None) -> Self:
        """With the gamma that the bound asks for: min(1, sqrt(K ln N / ((e - 1) T))).

        >>> round(Exp4.theoretical(n_experts=8, n_arms=10, horizon=10_000).gamma, 4)
        0.0348
        """
        N, K, T = count("n_experts", n_experts), count("n_arms", n_arms), count("horizon", horizon)
        gamma = math.sqrt(K * math.log(N) / ((math.e - 1) * T))
        return cls(N, K, gamma=min(1.0, gamma) or 1.0, seed=seed)

    def _probabilities(self, advice: Floats) -> Floats:
        return experts.advised(self._log_weights, advice, self.gamma / self.n_arms)

    def _learn(self, advice: Floats, choice: Choice, reward: float) -> None:
        assert choice.probability is not None
        experts.exp4_learn(self._log_weights, advice, self.gamma, choice.arm, choice.probability, reward)
