"""Explore: a floor under any agent's probabilities, so that its log can be used for offline evaluation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from armwise.agents.wrappers.around import Around, expect_agent, teach
from armwise.agents.wrappers.wrapper import Wrapper
from armwise.core.agent import Agent, Choice, Floats, Played, Seed, Theory, fraction
from armwise.native.choice import explored
from armwise.native.weights import floored
from armwise.theory import bounds


class Explore(Wrapper):
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
    )

    def __init__(self, agent: Agent, epsilon: float, *, seed: Seed = None) -> None:
        super().__init__(expect_agent("agent", agent), seed=seed)
        self.agent = agent
        self.epsilon = fraction("epsilon", epsilon, zero=True, one=True)
        self._around(self.agent)
        self.keeps_sparse = self.agent.keeps_sparse
        self.revises, self.merges, self.per_arm = self.agent.revises, self.agent.merges, self.agent.per_arm
        self.fades = self.agent.fades
        # Between two rounds that explore the agent plays alone, unless it learns with the probability of the arm.
        learns_with_it = self.agent.needs_probability or isinstance(self.agent, Around)
        self.compiled = self.agent.compiled and not learns_with_it

    @property
    def one_row(self) -> bool:
        """Whether the agent inside needs no more than the row of the arm that was chosen.

        >>> import armwise as aw
        >>> aw.Explore(aw.LinUCB(dim=2, lam=1.0), epsilon=0.1).one_row
        True
        """
        return self.agent.one_row

    def _probabilities(self, context: Any) -> Floats:
        return floored(self.agent._probabilities(context), self.epsilon)

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

    def _chose(self, context: Any, choice: Choice) -> None:
        self.agent._chose(context, choice)

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        teach(self.agent, context, choice, reward)

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        if not self.compiled:
            return super()._play(contexts, rewards)
        T, K = rewards.shape
        arms, p = explored(T, K, self.epsilon, self._rng), np.full(T, np.nan)
        start = 0
        for t in [*np.flatnonzero(arms >= 0).tolist(), T]:
            if start < t:
                own = self.agent._play(None if contexts is None else contexts[start:t], rewards[start:t])
                arms[start:t] = own.arms
                p[start:t] = (1.0 - self.epsilon) * own.probabilities + self.epsilon / K
            if t < T:
                context, arm = None if contexts is None else contexts[t], int(arms[t])
                choice = self._exploring(context, arm, K)
                if choice.probability is not None:
                    p[t] = choice.probability
                teach(self.agent, context, choice, float(rewards[t, arm]))
            start = t + 1
        self._n_learnt += T
        return Played(arms, p, rewards[np.arange(T), arms])

    def _merge(self, other: Self) -> None:
        self.agent.merge(other.agent)

    def _renew(self) -> None:
        self.agent._renew()

    def _why_not_merged(self) -> str:
        return self.agent._why_not_merged()

    def _add_arm(self) -> None:
        self.agent.add_arm()

    def _remove_arm(self, arm: int) -> None:
        self.agent.remove_arm(arm)

    def _fade(self, keep: float) -> None:
        self.agent._fade(keep)

    def _predicted(self, context: Any, arm: int) -> float | None:
        return self.agent._predicted(context, arm)

    def _revise(self, context: Any, choice: Choice, before: float, after: float) -> None:
        self.agent._revise(context, choice, before, after)
