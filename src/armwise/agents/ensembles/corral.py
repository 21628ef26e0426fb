"""Corral: mirror descent with a log barrier over agents (Agarwal, Luo, Neyshabur, Schapire 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from armwise.agents.ensembles.ensemble import Ensemble
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, count, positive
from armwise.native.choice import draw
from armwise.theory import bounds, hypotheses


class Corral(Ensemble):
    """Draw a base from q = (1 - 1/T) p + 1/(T M), let it choose, and move p by its importance-weighted loss.

    p minimises <p, loss> plus a log barrier with a learning rate per base, which grows by exp(1 / ln T) whenever
    1 / q_i passes the largest value it has had (doubled). ``eta`` is the first rate; None is sqrt(M / T).
    An arm's probability is that of the mixture, sum_i q_i P_i(a), exact where every base knows its own. Only the base
    that was drawn learns, with the probability q_i P_i(a): a base that weighs rewards by probabilities (Exp3) then
    learns the importance-weighted reward of the paper. A base that does not (LinUCB) learns the reward itself.

    >>> import armwise as aw, numpy as np
    >>> agent = Corral([aw.EpsilonGreedy(2, 1.0), aw.UCB1(2)], horizon=2000, seed=1)
    >>> agent.play(None, np.tile([0.0, 1.0], (2000, 1))).rewards[-500:].mean() > 0.8
    np.True_
    """

    theory = Theory(
        section="beyond the survey",
        regret="O~(M / eta + T eta + M R), R the regret of the best base, eta at most 1 / (10 R ln T)",
        comparator="what the best base competes with",
        assumes="rewards in [0, 1]; a base whose regret bound holds whatever rounds it is drawn in",
        reference="Agarwal, Luo, Neyshabur, Schapire 2017",
        regret_bound=bounds.corral,
        hypotheses=hypotheses.corral,
        needs_horizon=True,
        adversarial=True,
        call="aw.Corral([aw.UCB1(n_arms={K}), aw.Exp3(n_arms={K})], horizon={T})",
    )
    _learnt = ("_weights", "_rates", "_thresholds")

    def __init__(self, agents: Sequence[Agent], horizon: int, *, eta: float | None = None, seed: Seed = None) -> None:
        super().__init__(agents, seed=seed)
        M = len(self.agents)
        self.horizon = count("horizon", horizon, least=2)
        self.eta = None if eta is None else positive("eta", eta)
        self._weights = np.full(M, 1.0 / M)
        self._rates = np.full(M, self.eta or math.sqrt(M / self.horizon))
        self._thresholds = np.full(M, 2.0 * M)

    @property
    def mixture(self) -> Floats:
        """The probability with which each base decides now.

        >>> import armwise as aw
        >>> Corral([aw.UCB1(2), aw.Exp3(2)], horizon=100).mixture
        array([0.5, 0.5])
        """
        gamma = 1.0 / self.horizon
        return (1.0 - gamma) * self._weights + gamma / len(self._weights)

    def _leader(self) -> int:
        return int(np.argmax(self._weights))

    def _probabilities(self, context: Any) -> Floats:
        return np.asarray(self.mixture @ np.stack([agent._probabilities(context) for agent in self.agents]))

    def _choose(self, context: Any) -> Choice:
        p, mixture = self._probabilities(context), self.mixture
        base = draw(mixture, self._rng.random())
        proposals = [agent._choose(context) for agent in self.agents]  # every base proposes, as in the paper
        known = all(proposal.probability is not None for proposal in proposals)
        own = proposals[base]
        share = float(mixture[base])
        remembered = [share, None if own.probability is None else share * own.probability]
        return Choice(own.arm, min(float(p[own.arm]), 1.0) if known else None, [base, remembered, own.note])

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        base, remembered, note = self._note(choice)
        share, own = remembered if remembered is not None else (float(self.mixture[base]), choice.probability)
        self._teach(base, context, choice._replace(probability=own, note=note), reward)
        losses = np.zeros(len(self.agents))
        losses[base] = (1.0 - reward) / share
        self._weights = barrier_step(self._weights, self._rates, losses)
        inverse = 1.0 / self.mixture
        passed = inverse > self._thresholds
        self._thresholds[passed] = 2.0 * inverse[passed]
        self._rates[passed] *= math.exp(1.0 / math.log(self.horizon))


def barrier_step(p: Floats, rates: Floats, losses: Floats) -> Floats:
    """The weights with 1 / p'_i = 1 / p_i + eta_i (loss_i - lam), lam such that they sum to 1, by bisection."""
    low, high = float(losses.min()), float(losses.max())
    starts = (1.0 / p + rates * losses).tolist()  # lists: a few numbers each, and no call into NumPy fifty times
    steps = rates.tolist()
    for _ in range(50):
        lam = 0.5 * (low + high)
        inverse = [start - step * lam for start, step in zip(starts, steps)]
        if min(inverse) > 0.0 and sum(1.0 / value for value in inverse) <= 1.0:
            low = lam
        else:
            high = lam
    weights = 1.0 / (1.0 / p + rates * (losses - low))
    return np.asarray(weights / weights.sum())
