"""SupLinUCB: LinUCB's estimates under staged elimination (survey 4.1.1; Chu et al. 2011)."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from armwise.agents.linear.staged.staging import StagedLinear
from armwise.core.agent import Floats, Theory
from armwise.core.rounds import CompiledBlocks
from armwise.models.ridge import Ridge
from armwise.native import staged
from armwise.theory import bounds, hypotheses


def _play(agent: SupLinUCB, contexts: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
    stages, multiplier = [model.models for model in agent._models], agent._multiplier(contexts.shape[1])
    pooled = agent.n_stages if agent.pooled else 0
    return staged.play(stages, multiplier, agent.horizon, contexts, rewards, agent._rng, pooled)


class SupLinUCB(StagedLinear[Ridge]):
    """Stages of ridge models (lam = 1) with widths scale (alpha + 1) sqrt(x' A^-1 x), alpha = sqrt(ln(2TK/delta) / 2).

    The theorem wants scale = 1 and stages that share nothing (``SupLinUCB.theoretical``), rewards in [0, 1],
    ||x|| <= 1 and ||theta*|| <= 1; its widths are so large that thousands of rounds explore in stage 1, hence the
    smaller default, and one model behind all stages (``pooled``). How a round goes is told in ``Staged``.
    ``prior_mean`` (d,) is what theta is believed to be before any reward, in every stage.

    >>> import numpy as np
    >>> agent = SupLinUCB(dim=2, horizon=100, delta=0.05, seed=1)
    >>> choice = agent.choose(np.eye(2))
    >>> choice.probability, choice.note
    (0.5, 3)
    >>> agent.learn(np.eye(2), choice, 1.0)
    """

    theory = Theory(
        section="4.1.1",
        regret="O(sqrt(T d ln^3(K T ln(T) / delta)))",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta, in [0, 1]; contexts fixed in advance",
        reference="Chu, Li, Reyzin, Schapire 2011",
        regret_bound=bounds.sup_linucb,
        hypotheses=hypotheses.staged_linear,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        erratum="the survey gives SupLinUCB in words only; the stages are those of Chu et al. 2011",
        call="aw.SupLinUCB(dim={d}, horizon={T}, delta={delta})",
        survey_row="SupLinUCB",
    )
    batches = CompiledBlocks(_play)

    def _stage_model(self, dim: int, prior_mean: ArrayLike | None) -> Ridge:
        return Ridge(dim, lam=1.0, prior_mean=prior_mean)

    def _multiplier(self, n_arms: int) -> float:
        alpha = math.sqrt(0.5 * math.log(2 * self.horizon * n_arms / self.delta))
        return self.scale * (alpha + 1.0)

    def _estimate(self, model: Ridge, X: Floats, n_arms: int) -> tuple[Floats, Floats]:
        means, widths = model.estimate(X)
        return means, self._multiplier(n_arms) * widths
