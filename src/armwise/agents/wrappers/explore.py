"""Explore: a floor under any agent's probabilities, so that its log can be used for offline evaluation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from armwise.agents.wrappers.transparent import TransparentWrapper
from armwise.agents.wrappers.wrapper import Wrapper, expect_agent, teach
from armwise.core import rounds
from armwise.core.agent import Agent, Choice, Floats, Played, Seed, Theory, fraction
from armwise.core.capabilities.counting import record_choice
from armwise.core.capabilities.merging import Merging, can_merge, why_not_merged
from armwise.core.capabilities.one_row import OneRow, learns_one_row
from armwise.core.capabilities.optimism import Optimism, Optimistic, optimism_of
from armwise.core.capabilities.per_arm import PerArm, has_arms
from armwise.core.capabilities.revising import Fading, Revising, can_fade, can_revise, predicted
from armwise.core.policy_document import FrozenAgent
from armwise.core.rounds import Batches
from armwise.native.choice import explored
from armwise.native.weights import floored
from armwise.theory import bounds


class ExploringBatches(Batches["Explore"]):
    """Between two rounds that explore the agent inside plays alone, unless it learns with the arm's probability."""

    def compiled(self, agent: Explore) -> bool:
        inside = agent.agent
        return inside.compiled and not (inside.needs_probability or isinstance(inside, Wrapper))

    def block(self, agent: Explore, contexts: Any, rewards: Floats) -> Played | None:
        if not self.compiled(agent):
            return None
        T, K = rewards.shape
        arms, p = explored(T, K, agent.epsilon, agent._rng), np.full(T, np.nan)
        start = 0
        for t in [*np.flatnonzero(arms >= 0).tolist(), T]:
            if start < t:
                own = rounds.play(agent.agent, rounds.rows(contexts, start, t), rewards[start:t])
                arms[start:t] = own.arms
                p[start:t] = (1.0 - agent.epsilon) * own.probabilities + agent.epsilon / K
            if t < T:
                context, arm = rounds.row(contexts, t), int(arms[t])
                choice = agent._exploring(context, arm, K)
                if choice.probability is not None:
                    p[t] = choice.probability
                teach(agent.agent, context, choice, float(rewards[t, arm]))
            start = t + 1
        return Played(arms, p, rewards[np.arange(T), arms])


class Explore(TransparentWrapper, Merging, PerArm, Revising, Fading, OneRow, Optimistic):
    """Follow ``agent``, except for a share ``epsilon`` of the rounds in which any arm is played.

    p_a = (1 - epsilon) q_a + epsilon / K, where q is the agent's own distribution: exact wherever the agent knows
    q, None where it does not (Thompson sampling with one draw). The agent learns every round, with p_a in place of
    q_a, and with its own note. It explores arms that a budget inside does not cover, too: where spend must never
    pass the budget, put ``HardStop`` around it.

    >>> import armwise as aw, numpy as np
    >>> agent = Explore(aw.LinUCB(dim=2, alpha=0.0, seed=1), epsilon=0.2, seed=1)
    >>> agent.learn(np.eye(2), Choice(arm=1, probability=0.5), 1.0)
    >>> agent.probabilities(np.eye(2))
    array([0.1, 0.9])
    """

    theory = Theory(
        section="beyond the survey",
        regret="epsilon T + the agent's own",
        comparator="what the agent inside competes with",
        assumes="what the agent inside assumes",
        reference="Strehl, Langford, Li, Kakade 2010",
        regret_bound=bounds.explore,
        exponent=1.0,
        call="aw.Explore(aw.UCB1(n_arms={K}), epsilon=0.05)",
        call_if_linear="aw.Explore(aw.LinUCB(dim={d}), epsilon=0.05)",
    )
    batches = ExploringBatches()

    def __init__(self, agent: Agent, epsilon: float, *, seed: Seed = None) -> None:
        super().__init__(expect_agent("agent", agent), seed=seed)
        self.agent = agent
        self.epsilon = fraction("epsilon", epsilon, zero=True, one=True)
        self._wrap(self.agent)
        self.keeps_sparse = self.agent.keeps_sparse
        self.revises, self.merges, self.per_arm = can_revise(agent), can_merge(agent), has_arms(agent)
        self.fades = can_fade(agent)

    @property
    def one_row(self) -> bool:
        """Whether the agent inside needs no more than the row of the arm that was chosen.

        >>> import armwise as aw
        >>> aw.Explore(aw.LinUCB(dim=2, lam=1.0), epsilon=0.1).one_row
        True
        """
        return learns_one_row(self.agent)

    @property
    def optimism(self) -> Optimism | None:
        """The optimism of the agent inside, with rounds in which any arm is played.

        >>> import armwise as aw
        >>> aw.Explore(aw.LinUCB(dim=2, lam=1.0), epsilon=0.1).optimism.epsilon
        0.1
        """
        inner = optimism_of(self.agent)
        return None if inner is None or inner.explorer is not None else Optimism(inner.scorer, self)

    def _probabilities(self, context: Any) -> Floats:
        return floored(self.agent._probabilities(context), self.epsilon)

    def freeze(self) -> FrozenAgent:
        """The agent inside, under a floor.

        >>> import armwise as aw
        >>> Explore(aw.LinUCB(dim=2, lam=1.0), epsilon=0.2).freeze().floors
        (0.2,)
        """
        return self.agent.freeze().under(self.epsilon)

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        return self.agent._estimates(context)

    def _choose(self, context: Any) -> Choice:
        K = self._count_arms(context)
        (arm,) = explored(1, K, self.epsilon, self._rng).tolist()
        if arm >= 0:
            return self._exploring(context, arm, K)
        own = self.agent._choose(context)
        return Choice(own.arm, self._mixed(own.probability, K), own.note)

    def _exploring(self, context: Any, arm: int, K: int) -> Choice:
        # Before the agent's own draw moves its stream on.
        q = float(self.agent._probabilities(context)[arm]) if self._knows_probability else None
        own = self.agent._choose(context)  # drawn all the same: its note is what learning needs
        return Choice(arm, None if own.probability is None else self._mixed(q, K), own.note)

    def _mixed(self, q: float | None, K: int) -> float | None:
        return None if q is None else (1.0 - self.epsilon) * q + self.epsilon / K

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        teach(self.agent, context, choice, reward)

    # What the agent inside can do, this one can do: the attributes of the constructor say what that is.

    def _merge(self, other: Self) -> None:
        self._inside.merge(other.agent)

    @property
    def _stale(self) -> bool:
        return isinstance(self.agent, Merging) and self.agent._stale

    def _renew(self) -> None:
        self._inside._renew()

    def _why_not_merged(self) -> str:
        return why_not_merged(self.agent)

    def _add_arm(self) -> None:
        self._inside.add_arm()

    def _remove_arm(self, arm: int) -> None:
        self._inside.remove_arm(arm)

    def _fade(self, keep: float) -> None:
        self._inside._fade(keep)

    def _predicted(self, context: Any, arm: int) -> float | None:
        return predicted(self.agent, context, arm)

    def _revise(self, context: Any, choice: Choice, before: float, after: float) -> None:
        self._inside._revise(context, choice, before, after)

    def record_choice(self, context: Any, choice: Choice) -> None:
        record_choice(self.agent, context, choice)
