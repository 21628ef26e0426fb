"""Exp4P: exponential weights on upper confidence bounds (survey 5.2, Algorithm 13; Beygelzimer et al. 2011)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.agents.experts.weighted_experts import WeightedExperts
from armwise.core.agent import Choice, Floats, Seed, Theory, count, fraction
from armwise.core.capabilities.noting import Noting
from armwise.core.rounds import CompiledBlocks
from armwise.native import experts
from armwise.native.choice import draw
from armwise.theory import bounds, hypotheses


def _play(agent: Exp4P, advice: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
    return experts.exp4p_play(agent._log_weights, agent.p_min, agent._bonus, advice, rewards, agent._rng)


class Exp4P(WeightedExperts, Noting):
    """Exp4 with a bound that holds with probability 1 - ``delta``: experts are paid for uncertainty too.

    w_i grows by exp(p_min / 2 (y_i + v_i sqrt(ln(N / delta) / (K T)))), where v_i = sum_j advice_ij / p_j needs the
    whole p_t of the moment of choosing: the choice's note carries it. Each arm has probability at least
    p_min = sqrt(ln N / (K T)). The bound asks for a uniform expert among the experts.

    >>> agent = Exp4P(n_experts=2, n_arms=2, horizon=1000, delta=0.05, seed=1)
    >>> agent.choose(np.eye(2)).note
    [0.5, 0.5]
    """

    theory = Theory(
        section="5.2",
        regret="O(sqrt(T K ln(N / delta)))",
        comparator="the best expert in hindsight",
        assumes="rewards in [0, 1], chosen by anyone; a uniform expert among the experts; ln(N / delta) <= K T",
        reference="Beygelzimer, Langford, Li, Reyzin, Schapire 2011",
        regret_bound=bounds.exp4p,
        hypotheses=hypotheses.exp4p,
        high_probability=True,
        needs_horizon=True,
        adversarial=True,
        call="aw.Exp4P(n_experts={N}, n_arms={K}, horizon={T}, delta={delta})",
        survey_row="EXP4.P",
    )
    batches = CompiledBlocks(_play)

    def __init__(self, n_experts: int, n_arms: int, horizon: int, delta: float = 0.05, *, seed: Seed = None) -> None:
        super().__init__(n_experts, n_arms, seed=seed)
        N, K = self.n_experts, self.n_arms
        self.horizon = T = count("horizon", horizon)
        self.delta = fraction("delta", delta)
        self.p_min = math.sqrt(math.log(N) / (K * T))
        if K * self.p_min > 1.0:
            raise ValueError(
                f"horizon is {T}: p_min = sqrt(ln N / (K T)) = {self.p_min:.3g} would exceed 1 / K = {1 / K:.3g}; with "
                f"{N} experts and {K} arms expected at least {math.ceil(K * math.log(N))} rounds"
            )
        self._bonus = math.sqrt(math.log(N / self.delta) / (K * T))

    def _probabilities(self, advice: Floats) -> Floats:
        return experts.advised(self._log_weights, advice, self.p_min)

    def _choose(self, advice: Floats) -> Choice:
        p = self._probabilities(advice)
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]), p.tolist())

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        noted_probabilities(choice, n_arms)

    def _learn(self, advice: Floats, choice: Choice, reward: float) -> None:
        assert choice.probability is not None
        p = np.array(choice.note)
        experts.exp4p_learn(
            self._log_weights, advice, self.p_min, self._bonus, p, choice.arm, choice.probability, reward
        )


def noted_probabilities(choice: Choice, n_arms: int) -> Floats:
    """The vector p_t that a choice's note carries; ValueError if it is not one."""
    try:
        p = np.array(choice.note, dtype=np.float64)
    except (TypeError, ValueError):
        p = np.empty(0)
    if p.shape != (n_arms,) or not np.all((p >= 0.0) & (p <= 1.0 + 1e-9)) or not abs(p.sum() - 1.0) <= 1e-6:
        raise ValueError(
            f"choice.note must be the list of the {n_arms} probabilities that choose put there, got {choice.note!r:.80}"
        )
    return p
