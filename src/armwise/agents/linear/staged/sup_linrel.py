"""SupLinREL: LinREL's estimates under staged elimination (survey 4.1.2, Algorithm 2; Auer 2003)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from armwise.agents.linear.linrel import width_scale
from armwise.agents.linear.staged.staging import StagedLinear
from armwise.core.agent import Floats, Theory
from armwise.core.rounds import CompiledBlocks
from armwise.models.truncated_ridge import TruncatedRidge
from armwise.native import truncated
from armwise.theory import bounds, hypotheses


def _play_stages(agent: SupLinREL, contexts: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
    grams, bs, (prior, *_) = map(list, zip(*(model.sums for model in agent._models)))
    settings = (width_scale(agent.horizon, contexts.shape[1], agent.delta), agent.scale, agent.horizon)
    pooled = agent.n_stages if agent.pooled else 0
    return truncated.play_stages(grams, bs, prior, *settings, contexts, rewards, agent._rng, pooled)


class SupLinREL(StagedLinear[TruncatedRidge]):
    """Staged elimination (see ``Staged``) around LinREL's mean w'c and width ||w|| sqrt(ln(2TK/delta)) + ||v~||.

    ``scale`` multiplies the widths; 1, with separate stages, is what the bound is for: ``SupLinREL.theoretical``.
    By default one model answers for all stages (``pooled``).
    ``prior_mean`` (d,) is what theta is believed to be before any reward.

    >>> import numpy as np
    >>> agent = SupLinREL.theoretical(dim=2, horizon=100, delta=0.05, seed=1)
    >>> agent.choose(np.eye(2)).note
    1
    """

    theory = Theory(
        section="4.1.2",
        regret="O(sqrt(T d) (1 + ln(2 K T ln(T) / delta))^(3/2))",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta, in [0, 1]; contexts fixed in advance",
        reference="Auer 2003",
        regret_bound=bounds.sup_linrel,
        hypotheses=hypotheses.staged_linear,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        erratum="Theorem 4 prints sqrt(2 ln(2TK/delta)); the algorithm has sqrt(ln(2TK/delta))",
        call="aw.SupLinREL(dim={d}, horizon={T}, delta={delta})",
        survey_row="SupLinREL",
    )
    batches = CompiledBlocks(_play_stages)

    def _stage_model(self, dim: int, prior_mean: ArrayLike | None) -> TruncatedRidge:
        return TruncatedRidge(dim, prior_mean)

    def _estimate(self, model: TruncatedRidge, X: Floats, n_arms: int) -> tuple[Floats, Floats]:
        means, widths = model.estimate(X, width_scale(self.horizon, n_arms, self.delta))
        return means, self.scale * widths
