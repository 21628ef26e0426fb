"""Explore: a floor under any agent's probabilities, so that its log can be used for offline evaluation."""

from __future__ import annotations

from typing import Any

from armwise import bounds
from armwise.agent import Agent, Choice, Floats, Seed, Theory, fraction
from armwise.around import expect_agent, teach
from armwise.numerics.weights import floored
from armwise.reduction.wrapper import Wrapper


class Explore(Wrapper):
    """Follow ``agent``, except for a share ``epsilon`` of the rounds in which any arm is played.

    p_a = (1 - epsilon) q_a + epsilon / K, where q is the agent's own distribution: exact wherever the agent knows
    q, None where it does not (Thompson sampling with one draw). The agent learns every round, with p_a in place
    of q_a, and with its own note.

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
        self.revises = self.agent.revises

    def _probabilities(self, context: Any) -> Floats:
        return floored(self.agent._probabilities(context), self.epsilon)

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        return self.agent._estimates(context)

    def _choose(self, context: Any) -> Choice:
        if self._rng.random() >= self.epsilon:
            own = self.agent._choose(context)
            arm, q, K = own.arm, own.probability, self._count_arms(context)
        else:
            every = self.agent._probabilities(context)  # before the agent's own draw moves its stream on
            own = self.agent._choose(context)  # drawn all the same: its note is what learning needs
            K = every.size
            arm = int(self._rng.random() * K)
            q = None if own.probability is None else float(every[arm])
        return Choice(arm, None if q is None else (1.0 - self.epsilon) * q + self.epsilon / K, own.note)

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        teach(self.agent, context, choice, reward)

    def _revise(self, context: Any, choice: Choice, before: float, after: float) -> None:
        self.agent._revise(context, choice, before, after)
